//! The result of `longhaul size`: memory and time of a program by number of objects, cost of each kind, and a forecast.
//!
//! Owns the types of the result and its conclusions. All conclusions come from the measured rows alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::Machine;

mod beside;
mod curve;
#[cfg(test)]
pub(crate) mod tests;

pub use beside::{Beside, Difference, beside};
pub use curve::{Curve, Forecast, Shape, curve};

/// The version of the schema of a result.
pub const SCHEMA: &str = "longhaul.size/v1";
/// Numbers of objects for which every curve has a forecast.
pub const FORECASTS: [u64; 4] = [1_000, 10_000, 33_000, 100_000];
/// The relists in a row leak only if each relist after the first adds at least this share of the memory of all objects.
const LEAK_SHARE: f64 = 0.05;
/// The relists in a row leak only if all relists after the first together add at least this share of the memory of all
/// objects.
const LEAK_SHARE_ALL: f64 = 0.3;
/// If all relists after the first together add less memory than this, in bytes, the growth is noise.
const LEAK_BYTES_MIN: u64 = 2 << 20;
/// Minimum number of relists that show a leak.
const LEAK_RELISTS: usize = 3;

/// The whole result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sizes {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// When the measurement began, RFC 3339.
    pub started_at: String,
    /// The version of `longhaul`.
    pub longhaul: String,
    pub machine: Machine,
    /// The name of the scenario.
    pub scenario: String,
    /// The program and its arguments. Values with secret names are masked.
    pub command: Vec<String>,
    /// The SHA-256 of the program, if the program could be read.
    pub digest: Option<String>,
    pub seed: u64,
    /// The command that repeats the measurement.
    pub repeat: String,
    /// The memory limit of `--limit`.
    pub limit: Option<Limit>,
    /// The row without objects. Curves and findings compare the other rows with it.
    pub base: Row,
    /// Rows in which all watched kinds share the objects.
    pub steps: Vec<Row>,
    /// The watched kinds, the most expensive first.
    pub kinds: Vec<KindCost>,
    /// The highest memory by the number of objects: one curve for each size of objects.
    pub curves: Vec<Curve>,
    /// Remarkable facts, each a sentence.
    pub findings: Vec<Finding>,
    /// Restrictions of the measurement, each a sentence.
    pub notes: Vec<String>,
}

/// A memory limit for the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limit {
    pub bytes: u64,
    /// The cgroup version that enforces the limit: `v1` or `v2`; absent if nothing enforces it.
    pub enforced_by: Option<String>,
    /// Why nothing enforces the limit.
    pub why_not: Option<String>,
}

/// One start of the program at one number of objects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Number of objects in the API server.
    pub objects: u64,
    /// Size of an object as JSON, in bytes.
    pub object_bytes: u64,
    pub fate: Fate,
    /// The figures; absent if the program was not started.
    pub figures: Option<Figures>,
}

/// How a row ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "how")]
pub enum Fate {
    /// The program became ready and lived until the end of the row.
    #[default]
    Lived,
    /// The kernel killed the program at the memory limit.
    LimitKilled,
    /// The program ended by itself, or by a signal not sent for the memory limit.
    Died {
        /// The program's exit status and last output.
        words: String,
    },
    /// The program did not become ready in time.
    NotReady {
        /// The condition that was not met.
        words: String,
    },
    /// The program was not started.
    LeftOut {
        /// Why the program was not started.
        words: String,
    },
}

impl Fate {
    /// A text for a table cell.
    pub fn words(&self) -> String {
        match self {
            Self::Lived => "lives".to_owned(),
            Self::LimitKilled => "killed at the limit".to_owned(),
            Self::Died { words } => format!("died: {words}"),
            Self::NotReady { words } => format!("not ready: {words}"),
            Self::LeftOut { words } => format!("left out: {words}"),
        }
    }
}

/// The figures of a row. Memory is the resident memory of the whole process tree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Time from the start until everything that the program watches was listed and the program was ready.
    pub ready_ms: Option<u64>,
    /// The highest memory from the start until the program was at rest, in bytes.
    pub highest_bytes: u64,
    /// The memory at the moment of readiness, in bytes.
    pub after_start_bytes: Option<u64>,
    /// The memory at rest, in bytes.
    pub steady_bytes: Option<u64>,
    /// Processor time until the program was ready.
    pub start_cpu_ms: Option<u64>,
    /// Processor time per minute at rest, including resyncs, which send no request.
    pub rest_cpu_ms_per_min: Option<u64>,
    pub requests: u64,
    pub lists: u64,
    pub watches: u64,
    /// Bytes of lists as JSON, with the initial events of streaming lists.
    pub list_bytes: u64,
    pub descriptors: Option<u64>,
    pub threads: Option<u64>,
    /// The cost of each relist. A 410 for all watches causes a relist.
    pub relists: Vec<Relist>,
}

/// One relist of all watched kinds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Relist {
    /// Time until all kinds were listed again; absent if the program did not list all kinds again.
    pub took_ms: Option<u64>,
    pub cpu_ms: u64,
    /// The highest memory during the relist, in bytes.
    pub highest_bytes: u64,
    /// The memory after the relist, at rest, in bytes.
    pub after_bytes: u64,
    pub list_bytes: u64,
}

/// A watched or listed kind, and its cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KindCost {
    /// The resource as `plural.group`.
    pub resource: String,
    pub form: Form,
    /// Rows in which only this kind has objects.
    pub rows: Vec<Row>,
    pub curve: Option<Curve>,
    /// The share of this kind in the memory of all kinds, if every kind has the same number of objects.
    pub share: Option<f64>,
    /// Number of requests for one named object, by path or by a field selector on `metadata.name`.
    pub named_requests: u64,
}

/// How a program asks for a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a program's requests")]
pub struct Form {
    /// Whether the program watches the kind; otherwise it only lists.
    pub is_watched: bool,
    /// Complete lists per start.
    pub lists: u64,
    /// The label selector, if every request has one.
    pub labels: Option<String>,
    /// The field selector, if every request has one.
    pub fields: Option<String>,
    /// Whether every request is restricted to a namespace.
    pub in_namespaces: bool,
    /// Whether every request asks only for metadata.
    pub is_metadata_only: bool,
    /// Whether lists are streamed on the watch (`sendInitialEvents`).
    pub is_streamed: bool,
    /// Whether lists are read in pages.
    pub is_paged: bool,
}

impl Form {
    /// The restrictions of the requests, or the statement that there are none.
    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.labels.as_ref().map(|text| format!("label selector {text}")));
        parts.extend(self.fields.as_ref().map(|text| format!("field selector {text}")));
        let flags = [(self.in_namespaces, "one namespace"), (self.is_metadata_only, "only metadata")];
        parts.extend(flags.iter().filter(|(is_so, _)| *is_so).map(|(_, words)| (*words).to_owned()));
        if parts.is_empty() { "everything: no selector, no metadata-only form".to_owned() } else { parts.join(", ") }
    }
}

/// A remarkable fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// `memory-worse-than-linear`, `start-worse-than-linear`, `relist-leaks`, `limit-met`, `kind-unrestricted`.
    pub what: String,
    pub sentence: String,
}

impl Row {
    /// The figures of a row to whose end the program lived.
    pub fn whole(&self) -> Option<&Figures> {
        self.figures.as_ref().filter(|_| self.fate == Fate::Lived)
    }
}

/// The scenario's name in a result of `longhaul size -- COMMAND`, which has no scenario file.
pub const WITHOUT_FILE: &str = "size";

impl Sizes {
    /// The name of the scenario as a title; the command if there is no scenario file.
    pub fn title(&self) -> String {
        if self.scenario == WITHOUT_FILE { self.command.join(" ") } else { self.scenario.clone() }
    }
}

/// Fills in curves, shares and findings from the rows.
pub fn conclude(sizes: &mut Sizes) {
    let limit = sizes.limit.as_ref().map(|limit| limit.bytes);
    let mut object_sizes: Vec<u64> = sizes.steps.iter().map(|row| row.object_bytes).collect();
    object_sizes.sort_unstable();
    object_sizes.dedup();
    sizes.curves = object_sizes
        .iter()
        .filter_map(|bytes| {
            curve(&sizes.base, sizes.steps.iter().filter(|row| row.object_bytes == *bytes), *bytes, limit)
        })
        .collect();
    for kind in &mut sizes.kinds {
        let bytes = kind.rows.first().map_or(0, |row| row.object_bytes);
        kind.curve = curve(&sizes.base, kind.rows.iter(), bytes, limit);
    }
    let cost = |kind: &KindCost| kind.curve.as_ref().map_or(0.0, |curve| curve.bytes_per_object.max(0.0));
    let all: f64 = sizes.kinds.iter().map(cost).sum();
    for kind in &mut sizes.kinds {
        kind.share = (all > 0.0 && kind.curve.is_some()).then(|| cost(kind) / all);
    }
    sizes.kinds.sort_by(|a, b| cost(b).total_cmp(&cost(a)).then_with(|| a.resource.cmp(&b.resource)));
    sizes.findings = findings(sizes);
}

fn findings(sizes: &Sizes) -> Vec<Finding> {
    use crate::words::{bytes, count, percent};
    let mut found = Vec::new();
    let mut find = |what: &str, sentence: String| found.push(Finding { what: what.to_owned(), sentence });
    for curve in &sizes.curves {
        let size = bytes(curve.object_bytes);
        if curve.memory == Shape::WorseThanLinear {
            find(
                "memory-worse-than-linear",
                format!("The memory grows faster than the number of objects ({size} each), so forecasts are too low."),
            );
        }
        if curve.start == Shape::WorseThanLinear {
            find(
                "start-worse-than-linear",
                format!("The processor time of the start grows faster than the number of objects ({size} each)."),
            );
        }
    }
    for row in sizes.steps.iter().filter(|row| row.fate == Fate::LimitKilled) {
        let (objects, size) = (count(row.objects), bytes(row.object_bytes));
        find("limit-met", format!("The kernel kills the program at its limit with {objects} objects of {size}."));
    }
    for row in &sizes.steps {
        if let Some(kept) = leaks(&sizes.base, row) {
            let (objects, kept) = (count(row.objects), bytes(kept));
            find(
                "relist-leaks",
                format!(
                    "Each relist leaves about {kept} more memory in use, with {objects} objects of {}.",
                    bytes(row.object_bytes)
                ),
            );
        }
    }
    for kind in &sizes.kinds {
        let (Some(curve), Some(share)) = (&kind.curve, kind.share) else { continue };
        if kind.form.words().starts_with("everything") && share >= 0.3 && curve.bytes_per_object >= 256.0 {
            let uses = if kind.named_requests == 0 { " The program requests none of them by name." } else { "" };
            find(
                "kind-unrestricted",
                format!(
                    "{}: {} each, {} of the memory of all kinds, because the program asks for {}.{uses}",
                    kind.resource,
                    bytes(crate::words::whole(curve.bytes_per_object)),
                    percent(share),
                    kind.form.words()
                ),
            );
        }
    }
    found
}

/// The bytes that each relist keeps, if the relists of a row leak.
fn leaks(base: &Row, row: &Row) -> Option<u64> {
    let figures = row.whole()?;
    let (at_rest, empty) = (figures.steady_bytes?, base.figures.as_ref()?.steady_bytes?);
    let after: Vec<u64> =
        figures.relists.iter().filter(|one| one.took_ms.is_some()).map(|one| one.after_bytes).collect();
    if after.len() < LEAK_RELISTS {
        return None;
    }
    // The first relist often enlarges the heap once, so growth counts from the memory after this relist.
    let objects = at_rest.saturating_sub(empty) as f64;
    let rises = after.windows(2).all(|two| two[1] as f64 - two[0] as f64 >= LEAK_SHARE * objects && two[1] > two[0]);
    let all = after[after.len() - 1].saturating_sub(after[0]);
    let is_large = all >= LEAK_BYTES_MIN && all as f64 >= LEAK_SHARE_ALL * objects;
    (rises && is_large).then(|| all / (after.len() as u64 - 1))
}
