//! Catalogue entries of faults of a subject process's clock, which the harness injects through `mocks/clock`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

use super::process::KillKeys;
use super::settings::keys;
use super::settings::{Family, Row};
use super::{Error, Fault, Name};

/// The default length of a clock's jump.
const AHEAD: Span = Span::from_secs(600);
/// The longest jump: ten years.
const JUMP_MAX: Span = Span::from_secs(10 * 365 * 86_400);
/// The largest drift of a clock in millionths: the clock runs at least half and at most one and a half times as fast as
/// normal.
const PPM_MAX: i32 = 500_000;

/// The clocks that jump together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum JumpOf {
    /// The wall clock, as if an administrator set it.
    Wall,
    /// The wall clock and the boot-time clock, but not the monotonic clock, as after a suspend of the machine.
    Suspended,
    /// All clocks, as after a pause of a virtual machine.
    All,
}

keys! {
    pub struct JumpKeys {
        process "process": String = ("all of the subject", "one of `processes`"),
        ahead "ahead": Span = ("10m", "by how much, by its own clock"),
        back "back": Span = ("", "instead of `ahead`: the wall clock alone goes back by so much"),
        of "of": JumpOf = ("`wall`", "`wall`; `suspended`: the monotonic clock stands still, all others jump; `all`"),
    }
}

keys! {
    pub struct DriftKeys {
        process "process": String = ("all of the subject", "one of `processes`"),
        ppm "ppm": i32 = ("1000", "parts per million too fast; below 0 too slow"),
    }
}

impl JumpKeys {
    /// The clocks that the fault `clock-jump` changes.
    pub fn which(&self) -> JumpOf {
        self.of.unwrap_or(JumpOf::Wall)
    }

    /// The jump of the process's clock in nanoseconds; a negative number moves the clock backwards.
    pub fn by_ns(&self) -> i64 {
        let nanos = |span: Option<Span>| i64::try_from(span.unwrap_or_default().0.as_nanos()).unwrap_or(i64::MAX);
        let ahead = self.ahead.or_else(|| self.back.is_none().then_some(AHEAD));
        nanos(ahead) - nanos(self.back)
    }
}

impl DriftKeys {
    /// The number of millionths by which the clock runs faster than normal.
    pub fn ppm(&self) -> i32 {
        self.ppm.unwrap_or(1000)
    }
}

/// The time that passes at once in the whole cluster, if the fault is such a jump: a machine with all processes of the
/// subject wakes up, and the API server's time went on.
pub fn passed(fault: &Fault) -> Option<Duration> {
    let keys = fault.keys::<JumpKeys>();
    let is_of_all = fault.name == Name::ClockJump && keys.process.is_none() && keys.which() != JumpOf::Wall;
    let by_ns = u64::try_from(keys.by_ns()).ok().filter(|_| is_of_all)?;
    Some(Duration::from_nanos(by_ns))
}

/// The process that the fault affects; `None` means all processes of the subject.
pub fn process_of(fault: &Fault) -> Option<String> {
    let of_clock = || fault.keys::<JumpKeys>().process.or_else(|| fault.keys::<DriftKeys>().process);
    of_clock().or_else(|| fault.keys::<KillKeys>().process)
}

pub(super) const JUMP: Row =
    Row::new(Family::Clock, "clock-jump", "The clock of a process jumps, ahead or, of the wall clock only, back.")
        .takes::<JumpKeys>()
        .instant()
        .refuses(jump)
        .sees("its clock changes by minutes or days from one reading to the next; running waits end as planned")
        .hit("a process whose clock jumped");

pub(super) const DRIFT: Row =
    Row::new(Family::Clock, "clock-drift", "The clock of a process goes too fast or too slow.")
        .takes::<DriftKeys>()
        .refuses(drift)
        .sees("all its clocks run faster or slower than others; the difference stays")
        .hit("a process whose clock drifts");

fn jump(fault: &Fault) -> Result<(), Error> {
    let keys = fault.keys::<JumpKeys>();
    let wrong = |key, given: &str, instead| Err(Error::Value { key, given: given.to_owned(), instead });
    match (keys.ahead, keys.back) {
        (Some(_), Some(_)) => wrong("back", "both", "keep `ahead` or `back`"),
        (_, Some(_)) if keys.which() != JumpOf::Wall => {
            wrong("back", "not `wall`", "only the wall clock goes back: leave out `of`, or write `ahead`")
        }
        (Some(span), _) | (_, Some(span)) if span.0.is_zero() => wrong("ahead", "0", "write how far it jumps"),
        (Some(span), _) | (_, Some(span)) if span > JUMP_MAX => wrong("ahead", "longer", "at most ten years"),
        _ => Ok(()),
    }
}

fn drift(fault: &Fault) -> Result<(), Error> {
    match fault.keys::<DriftKeys>().ppm() {
        0 => Err(Error::Value { key: "ppm", given: "0".to_owned(), instead: "write how many millionths it is off" }),
        ppm if ppm.unsigned_abs() > PPM_MAX.unsigned_abs() => {
            Err(Error::Value { key: "ppm", given: ppm.to_string(), instead: "write -500000 to 500000" })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    /// Time passes for the whole cluster if a machine with all processes of the subject wakes up, and not if somebody sets a
    /// clock or one process alone jumps.
    #[test]
    fn time_passes_for_all_after_a_suspend() {
        let passed = |keys: serde_json::Value| {
            let mut fault = json!({"name": "clock-jump", "at": "1s"});
            fault.as_object_mut().unwrap().extend(keys.as_object().cloned().unwrap());
            super::passed(&serde_json::from_value(fault).unwrap()).map(|passed| passed.as_secs())
        };
        assert_eq!(passed(json!({"of": "all", "ahead": "1h"})), Some(3600));
        assert_eq!(passed(json!({"of": "suspended"})), Some(600));
        assert_eq!(passed(json!({"ahead": "1h"})), None);
        assert_eq!(passed(json!({"back": "1h"})), None);
        assert_eq!(passed(json!({"of": "all", "ahead": "1h", "process": "a"})), None);
        let drift = json!({"name": "clock-drift", "at": "1s", "ppm": 5});
        assert_eq!(super::passed(&serde_json::from_value(drift).unwrap()), None);
    }
}
