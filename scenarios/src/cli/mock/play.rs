//! Faults of a mock alone: begun and ended at their times, hits printed as they come.

use std::time::{Duration, Instant};

use mocks::{faults, proxy};

use crate::out::out;
use crate::run::describe;

/// How often hits are looked at, for the faults that wait for them.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Hits of one fault that are printed; some faults hit every event.
const TOLD_MAX: usize = 20;

/// Those who play: the server its own faults, the proxy in front of it those of the network.
pub(super) struct Engines<'a> {
    pub(super) server: &'a faults::Faults,
    pub(super) network: Option<&'a proxy::Faults>,
}

impl Engines<'_> {
    /// The network's, where the fault is one of the network.
    fn network(&self, fault: &faults::Fault) -> Option<&proxy::Faults> {
        self.network.filter(|_| fault.name.family() == faults::Family::Network)
    }

    fn begin(&self, index: usize, fault: &faults::Fault) -> Result<(), faults::Error> {
        match self.network(fault) {
            Some(network) => network.begin(number(index), fault),
            None => self.server.begin(number(index), fault),
        }
    }

    fn end(&self, index: usize, fault: &faults::Fault) {
        match self.network(fault) {
            Some(network) => network.end(number(index)),
            None => self.server.end(number(index)),
        }
    }

    fn hits(&self, index: usize, fault: &faults::Fault) -> u64 {
        match self.network(fault) {
            Some(network) => network.hits(number(index)),
            None => self.server.hits(number(index)),
        }
    }

    fn take_hits(&self) -> Vec<faults::Hit> {
        let network = self.network.map(proxy::Faults::take_hits).unwrap_or_default();
        self.server.take_hits().into_iter().chain(network).collect()
    }
}

/// Begins and ends the faults at their times; never returns.
pub(super) async fn play(engines: &Engines<'_>, faults: &[faults::Fault], mut schedule: faults::Schedule) {
    let start = Instant::now();
    let begin = |index: usize, at: Duration| {
        out!("{:>6.1}s begins: {}", at.as_secs_f64(), describe(&faults[index]));
        if let Err(error) = engines.begin(index, &faults[index]) {
            crate::out::err!("longhaul: fault {} was refused: {error}", index + 1);
        }
    };
    for index in schedule.armed_before() {
        begin(index, Duration::ZERO);
    }
    let mut told = vec![0; faults.len()];
    loop {
        let now = start.elapsed();
        for hit in engines.take_hits() {
            tell(&hit, faults, &mut told, now);
        }
        for index in (0..faults.len()).filter(|index| engines.hits(*index, &faults[*index]) > 0) {
            schedule.hit(index, now);
        }
        while let Some(step) = schedule.due(now) {
            match step {
                faults::Step::Begin(index) => begin(index, now),
                faults::Step::End(index) => {
                    engines.end(index, &faults[index]);
                    let (name, hits) = (faults[index].name.as_str(), engines.hits(index, &faults[index]));
                    out!("{:>6.1}s ended: {name} ({hits} hits)", now.as_secs_f64());
                }
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Prints a hit, the first ones of each fault.
fn tell(hit: &faults::Hit, faults: &[faults::Fault], told: &mut [usize], now: Duration) {
    let index = usize::try_from(hit.fault.0).unwrap_or(usize::MAX);
    let Some((fault, told)) = faults.get(index).zip(told.get_mut(index)) else { return };
    *told += 1;
    if *told <= TOLD_MAX {
        let more = if *told == TOLD_MAX { " (further hits are counted only)" } else { "" };
        out!("{:>6.1}s hit: {}: {}{more}", now.as_secs_f64(), fault.name.as_str(), hit.detail);
    }
}

fn number(index: usize) -> faults::FaultId {
    faults::FaultId(u32::try_from(index).unwrap_or(u32::MAX))
}
