//! The operations of trials of a watch client: which objects exist, and which changes come before, during and after a
//! disturbance.
//!
//! Owns the times. Most disturbances begin at [`FAULT_MS`]; the standard course has changes that fall into them, and
//! others after them. Does no I/O.

use serde_json::{Map, Value, json};

/// The time at which most disturbances begin, in milliseconds.
pub(crate) const FAULT_MS: u64 = 2000;
/// Length of the warm-up, in milliseconds.
const WARM_UP_MS: u64 = 200;
/// Length of the warm-up if growth is judged: it needs samples before and after, one a second.
const LONG_WARM_UP_MS: u64 = 3000;
/// Number of objects that come and go, and of objects in a large list.
const NAMES: u32 = 250;
pub(crate) const MANY: u32 = 3000;
/// Number of large changes, and the size of each.
const FAT_TIMES: u32 = 300;
const FAT_SIZE: &str = "96KiB";
/// The label of objects that are deleted together.
const LABEL: &str = "hunt";
/// The letters of the objects that exist before the client starts: more than a page ceiling of ten.
const LETTERS: &str = "abcdefghijklmn";

/// The changes of one trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Course {
    /// Objects come, change and go before, during and after the disturbance.
    #[default]
    Standard,
    /// One object changes ten times a second.
    Busy,
    /// Many changes before a restore of the store, few after it.
    Restore,
    /// No object exists at first.
    Empty,
    /// Nothing happens for twelve seconds.
    Quiet,
    /// Changes come some seconds after the start.
    Later,
    /// Many objects come and go.
    Names,
    /// The list is large.
    Large,
    /// One large object changes often.
    Fat,
}

impl Course {
    /// For people.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Standard => "objects come, change and go",
            Self::Busy => "one object changes ten times a second",
            Self::Restore => "many changes, and few after a restore",
            Self::Empty => "no object exists at first",
            Self::Quiet => "nothing happens for twelve seconds",
            Self::Later => "changes come six seconds after the start",
            Self::Names => "many objects come and go",
            Self::Large => "many objects exist",
            Self::Fat => "one large object changes often",
        }
    }

    /// Lengths of the warm-up and of the steady phase, in milliseconds, with a disturbance that lasts so long.
    pub(crate) fn phases(self, lasts_ms: u64) -> (u64, u64) {
        let warm_up_ms = if self == Self::Names { LONG_WARM_UP_MS } else { WARM_UP_MS };
        let all_ms = match self {
            Self::Quiet => 12_500,
            Self::Later => 8500,
            Self::Names => 9000,
            _ => 5000,
        };
        (warm_up_ms, all_ms.max(if lasts_ms > 0 { FAULT_MS + lasts_ms + 500 } else { 0 }) - warm_up_ms)
    }

    /// Adds objects and steps to a script.
    pub(crate) fn fill(self, script: &mut Map<String, Value>) {
        let objects: Vec<String> = match self {
            Self::Empty => Vec::new(),
            _ => LETTERS.chars().map(name).collect(),
        };
        script.insert("objects".to_owned(), json!(objects));
        if self == Self::Large {
            script.insert("objectsMany".to_owned(), MANY.into());
        }
        script.insert("steps".to_owned(), Value::Array(self.steps()));
    }

    fn steps(self) -> Vec<Value> {
        let at = |ms: u64, verb: &str, letter: char| json!({"at": format!("{ms}ms"), verb: name(letter)});
        let more = |mut step: Value, key: &str, value: Value| {
            step[key] = value;
            step
        };
        let often = |ms: u64, times: u32, every: &str| {
            let step = more(at(ms, "update", 'a'), "times", times.into());
            more(step, "every", every.into())
        };
        match self {
            Self::Standard => vec![
                at(500, "update", 'a'),
                at(700, "delete", 'h'),
                at(900, "create", 'o'),
                often(1200, 6, "60ms"),
                at(2200, "create", 'p'),
                more(at(2230, "update", 'b'), "size", "2KiB".into()),
                at(2300, "delete", 'c'),
                at(2400, "recreate", 'd'),
                more(at(2450, "update", 'e'), "text", "žluťoučký 漢字 🚀".into()),
                at(2700, "update", 'b'),
                at(2750, "create", 'q'),
                at(3700, "create", 's'),
                at(4400, "update", 'a'),
                at(4500, "delete", 'g'),
                at(4600, "create", 'r'),
                at(4800, "update", 'f'),
            ],
            Self::Busy => vec![often(500, 40, "100ms"), at(4600, "create", 'p'), at(4650, "delete", 'c')],
            Self::Restore => vec![
                at(500, "update", 'a'),
                often(1200, 25, "20ms"),
                at(3000, "create", 'p'),
                at(3050, "delete", 'c'),
                at(3100, "update", 'b'),
            ],
            Self::Empty => vec![
                at(1200, "create", 'a'),
                at(1200, "create", 'b'),
                at(1200, "create", 'c'),
                at(3000, "update", 'a'),
                at(3200, "delete", 'b'),
            ],
            Self::Quiet => vec![
                at(300, "update", 'a'),
                at(11_700, "update", 'a'),
                at(11_800, "create", 'p'),
                at(11_900, "delete", 'c'),
            ],
            Self::Later => vec![
                at(300, "update", 'a'),
                at(6500, "update", 'a'),
                at(7000, "create", 'p'),
                at(7500, "delete", 'c'),
                at(8000, "update", 'b'),
            ],
            Self::Names => vec![
                json!({"at": "3300ms", "create": "hunt-many", "times": NAMES, "labels": {LABEL: "yes"}}),
                json!({"at": "6500ms", "deleteCollection": {"selector": format!("{LABEL}=yes")}}),
                at(8000, "update", 'a'),
            ],
            Self::Large => vec![at(2500, "update", 'a'), at(4500, "update", 'b')],
            Self::Fat => {
                vec![more(often(500, FAT_TIMES, "10ms"), "size", FAT_SIZE.into()), at(4500, "update", 'b')]
            }
        }
    }
}

fn name(letter: char) -> String {
    format!("hunt-{letter}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Course; 9] = [
        Course::Standard,
        Course::Busy,
        Course::Restore,
        Course::Empty,
        Course::Quiet,
        Course::Later,
        Course::Names,
        Course::Large,
        Course::Fat,
    ];

    /// Every course is a valid script whose steps end before the load ends.
    #[test]
    fn courses_are_scripts_that_fit_their_phases() {
        for course in ALL {
            let mut script = json!({"resource": "configmaps/v1"}).as_object().cloned().unwrap();
            course.fill(&mut script);
            let script: loadgen::script::Config = serde_json::from_value(Value::Object(script)).unwrap();
            script.check().unwrap();
            let (warm_up, steady) = course.phases(0);
            let last = script.steps.iter().filter_map(|step| step.at).max().unwrap().as_millis();
            assert!(last < warm_up + steady, "{course:?}");
            assert!(!course.describe().is_empty());
        }
        assert_eq!(Course::Standard.phases(9000).1, 11_300);
    }
}
