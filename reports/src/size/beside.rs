//! Two results side by side: the same rows of two versions, and the ratio of each figure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Figures, Row, Sizes};

/// Differences of memory below this size, in bytes, do not count: a heap grows in such steps.
const BYTES_MIN: u64 = 8 << 20;
/// Differences of time below this value, in milliseconds, do not count.
const MS_MIN: u64 = 1_000;
/// A ratio above this value, or below its inverse, counts as a difference.
const RATIO_MIN: f64 = 1.25;

/// Two results, row by row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Beside {
    /// The command of the first result.
    pub a: Vec<String>,
    /// The command of the second result.
    pub b: Vec<String>,
    pub differences: Vec<Difference>,
    /// The largest ratio of the highest memories of B and A in rows that both results have.
    pub worst: Option<f64>,
    /// Differences between the measurements, such as the machine, each a sentence.
    pub notes: Vec<String>,
}

/// One figure of one row in both results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// `all kinds`, or the only resource that has objects in the row.
    pub of: String,
    pub objects: u64,
    pub object_bytes: u64,
    /// `highest memory`, `memory at rest` or `time to ready`.
    pub figure: String,
    /// The figure in the first result: bytes, or milliseconds for `time to ready`.
    pub a: u64,
    pub b: u64,
    pub ratio: f64,
    /// Whether both the difference and the ratio are too large for noise.
    pub is_clear: bool,
}

/// Puts two results side by side.
pub fn beside(a: &Sizes, b: &Sizes) -> Beside {
    let mut differences = Vec::new();
    pairs(&mut differences, "all kinds", &a.steps, &b.steps);
    // If there is only one kind, its rows repeat those of all kinds.
    for kind in a.kinds.iter().filter(|_| a.kinds.len() > 1) {
        if let Some(other) = b.kinds.iter().find(|other| other.resource == kind.resource) {
            pairs(&mut differences, &kind.resource, &kind.rows, &other.rows);
        }
    }
    let highest = differences.iter().filter(|one| one.figure == "highest memory" && one.of == "all kinds");
    let worst = highest.map(|one| one.ratio).max_by(f64::total_cmp);
    let mut notes = Vec::new();
    if a.machine != b.machine {
        notes.push("The results come from different machines.".to_owned());
    }
    let names = |sizes: &Sizes| sizes.kinds.iter().map(|kind| kind.resource.clone()).collect::<Vec<_>>();
    for (one, other, name) in [(a, b, "A"), (b, a, "B")] {
        let others = names(other);
        let alone: Vec<String> = names(one).into_iter().filter(|name| !others.contains(name)).collect();
        if !alone.is_empty() {
            notes.push(format!("Only {name} asks for {}.", alone.join(", ")));
        }
    }
    Beside { a: a.command.clone(), b: b.command.clone(), differences, worst, notes }
}

fn pairs(out: &mut Vec<Difference>, of: &str, a: &[Row], b: &[Row]) {
    type Read = fn(&Figures) -> Option<u64>;
    let figures: [(&str, Read); 3] = [
        ("highest memory", |figures| Some(figures.highest_bytes)),
        ("memory at rest", |figures| figures.steady_bytes),
        ("time to ready", |figures| figures.ready_ms),
    ];
    for row in a {
        let same = |other: &&Row| (other.objects, other.object_bytes) == (row.objects, row.object_bytes);
        let Some((one, other)) = row.whole().zip(b.iter().find(same).and_then(Row::whole)) else { continue };
        for (figure, read) in figures {
            let Some((a, b)) = read(one).zip(read(other)) else { continue };
            let ratio = b as f64 / a.max(1) as f64;
            let is_large = a.abs_diff(b) >= if figure == "time to ready" { MS_MIN } else { BYTES_MIN };
            let is_clear = is_large && (ratio >= RATIO_MIN || ratio <= 1.0 / RATIO_MIN);
            let (objects, object_bytes) = (row.objects, row.object_bytes);
            out.push(Difference {
                of: of.to_owned(),
                objects,
                object_bytes,
                figure: figure.to_owned(),
                a,
                b,
                ratio,
                is_clear,
            });
        }
    }
}
