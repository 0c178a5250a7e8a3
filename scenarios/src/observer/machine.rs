//! The load on the machine (pressure stall information, steal time, load average), the time in suspend, and changes of
//! the wall clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use procfs::{Current, CurrentSI};
use reports::record::MachineRow;
use rustix::time::{ClockId, clock_gettime};

#[derive(Debug, Clone, Copy)]
pub(super) struct Clocks {
    /// The clock that stops while the machine is suspended.
    awake: Duration,
    /// The clock that never stops and is never set.
    boot: Duration,
    /// The wall clock, which may be set.
    wall: Duration,
}

impl Clocks {
    pub(super) fn read() -> Self {
        let at = |id| Duration::try_from(clock_gettime(id)).unwrap_or_default();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { awake: at(ClockId::Monotonic), boot: at(ClockId::Boottime), wall }
    }

    /// How long the machine was suspended until `now`, and how far its wall clock was changed, in milliseconds.
    fn until(&self, now: &Self) -> (u64, i64) {
        let passed = |at: fn(&Self) -> Duration| signed_ms(at(now)) - signed_ms(at(self));
        let (awake, boot, wall) = (passed(|clocks| clocks.awake), passed(|clocks| clocks.boot), passed(|c| c.wall));
        (u64::try_from(boot - awake).unwrap_or(0), wall - boot)
    }
}

fn signed_ms(at: Duration) -> i64 {
    i64::try_from(at.as_millis()).unwrap_or(i64::MAX)
}

/// The figures that this kernel reports; `start` holds the clocks when sampling began.
pub(super) fn row(start: &Clocks) -> MachineRow {
    let (suspended_ms, clock_set_ms) = start.until(&Clocks::read());
    let total = procfs::KernelStats::current().ok().map(|stats| stats.total);
    MachineRow {
        psi_cpu_some_pct: procfs::CpuPressure::current().ok().map(|psi| hundredths(psi.some.avg10)),
        psi_memory_some_pct: procfs::MemoryPressure::current().ok().map(|psi| hundredths(psi.some.avg10)),
        psi_io_some_pct: procfs::IoPressure::current().ok().map(|psi| hundredths(psi.some.avg10)),
        steal_ms: total.as_ref().and_then(procfs::CpuTime::steal_ms),
        busy_ms: total.as_ref().map(busy_ms),
        idle_ms: total.as_ref().map(|total| total.idle_ms() + total.iowait_ms().unwrap_or(0)),
        load_1m: procfs::LoadAverage::current().ok().map(|load| hundredths(load.one)),
        suspended_ms: Some(suspended_ms),
        clock_set_ms: Some(clock_set_ms),
    }
}

/// Time in which processes ran. User time includes the time of virtual machines on this host.
fn busy_ms(total: &procfs::CpuTime) -> u64 {
    let interrupts = total.irq_ms().unwrap_or(0) + total.softirq_ms().unwrap_or(0);
    total.user_ms() + total.nice_ms() + total.system_ms() + interrupts
}

/// Rounds to the two decimals that the kernel writes, because a single-precision number would be printed with fifteen.
fn hundredths(value: f32) -> f64 {
    (f64::from(value) * 100.0).round() / 100.0
}

/// Total waiting times of the machine at one moment. The difference between two moments gives the pressure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strain {
    at: Instant,
    cpu_us: Option<u64>,
    io_us: Option<u64>,
    steal_ms: Option<u64>,
}

impl Strain {
    pub(crate) fn read() -> Self {
        Self {
            at: Instant::now(),
            cpu_us: procfs::CpuPressure::current().ok().map(|psi| psi.some.total),
            io_us: procfs::IoPressure::current().ok().map(|psi| psi.some.total),
            steal_ms: procfs::KernelStats::current().ok().and_then(|stats| stats.total.steal_ms()),
        }
    }

    /// Percentages of the time since `before`: waiting for a processor, waiting for the disk, and stolen by other
    /// virtual machines.
    pub(crate) fn since(&self, before: &Self) -> [Option<f64>; 3] {
        let passed_us = self.at.duration_since(before.at).as_micros().max(1) as f64;
        let share = |now: Option<u64>, then: Option<u64>, all_us: f64| {
            Some((now?.saturating_sub(then?) as f64 / all_us).clamp(0.0, 1.0))
        };
        let processors = std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
        [
            share(self.cpu_us, before.cpu_us, passed_us),
            share(self.io_us, before.io_us, passed_us),
            share(self.steal_ms, before.steal_ms, passed_us * processors / 1000.0),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The percentages refer to the time between two readings of the waiting times.
    #[test]
    fn strain_is_a_share_of_the_time_between() {
        let now = Instant::now();
        let reading = |s: u64, us: u64| Strain {
            at: now + Duration::from_secs(s),
            cpu_us: Some(us),
            io_us: None,
            steal_ms: Some(us / 1000),
        };
        let [cpu, io, steal] = reading(10, 6_000_000).since(&reading(0, 1_000_000));
        assert_eq!((cpu, io), (Some(0.5), None));
        assert!(steal.unwrap() <= 0.5 && steal.unwrap() > 0.0);
    }

    fn clocks(awake_s: u64, boot_s: u64, wall_s: u64) -> Clocks {
        let [awake, boot, wall] = [awake_s, boot_s, wall_s].map(Duration::from_secs);
        Clocks { awake, boot, wall }
    }

    #[test]
    fn sleep_and_a_clock_that_was_set_are_told_apart() {
        let start = clocks(100, 500, 1_000_000);
        assert_eq!(start.until(&clocks(160, 560, 1_000_060)), (0, 0));
        assert_eq!(start.until(&clocks(160, 590, 1_000_090)), (30_000, 0), "slept for half a minute");
        assert_eq!(start.until(&clocks(160, 560, 1_003_660)), (0, 3_600_000), "an hour forward");
        assert_eq!(start.until(&clocks(160, 560, 999_000)), (0, -1_060_000), "back");
    }

    #[test]
    fn decimals_are_those_of_the_kernel() {
        let written = [21.37_f32, 0.0, 1.82, 100.0].map(|value| hundredths(value).to_string());
        assert_eq!(written, ["21.37", "0", "1.82", "100"]);
    }

    #[test]
    fn an_awake_machine_with_a_good_clock_shows_nothing() {
        let start = Clocks::read();
        let row = row(&start);
        assert!(row.suspended_ms.unwrap() < 100, "{row:?}");
        assert!(row.clock_set_ms.unwrap().abs() < 100, "{row:?}");
        assert!(row.busy_ms.unwrap() > 0 && row.idle_ms.is_some(), "{row:?}");
    }
}
