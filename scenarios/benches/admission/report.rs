//! What was measured, and whether it is enough.

use serde_json::{Map, Value};

/// Collects figures for the JSON file, and requirements for the exit code.
#[derive(Default)]
pub(crate) struct Report {
    json: Map<String, Value>,
    lines: Vec<(String, &'static str)>,
    failed: bool,
}

impl Report {
    /// Keeps a figure for the JSON file.
    pub(crate) fn add(&mut self, key: &str, value: Value) {
        self.json.insert(key.to_owned(), value);
    }

    /// States a requirement and whether it is met.
    pub(crate) fn require(&mut self, text: String, met: bool) {
        self.lines.push((text, if met { "met" } else { "NOT MET" }));
        self.failed |= !met;
    }

    /// States an aim, which decides nothing.
    pub(crate) fn note(&mut self, text: String, met: bool) {
        self.lines.push((text, if met { "reached" } else { "aim" }));
    }

    /// All figures.
    pub(crate) fn json(&self) -> &Map<String, Value> {
        &self.json
    }

    /// Prints the requirements; true when all are met.
    pub(crate) fn finish(self) -> bool {
        println!("\nrequirements:");
        for (text, met) in &self.lines {
            println!("  {met:<8} {text}");
        }
        !self.failed
    }
}

/// The middle value; of an even number of them the mean of the two in the middle.
pub(crate) fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => f64::NAN,
        (length, middle) if length % 2 == 1 => sorted[middle],
        (_, middle) => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}
