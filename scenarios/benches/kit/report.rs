//! Keeps the figures of a benchmark, its requirements, and whether they are met.

use std::collections::BTreeMap;

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
    pub(crate) fn add(&mut self, key: &str, value: impl Into<Value>) {
        self.json.insert(key.to_owned(), value.into());
    }

    /// Adds a requirement and whether it is met.
    pub(crate) fn require(&mut self, text: String, met: bool) {
        self.lines.push((text, if met { "met" } else { "NOT MET" }));
        self.failed |= !met;
    }

    /// Adds a requirement that cannot be checked on this machine.
    pub(crate) fn skip(&mut self, text: String) {
        self.lines.push((text, "skipped"));
    }

    /// Adds a figure that is aimed for, and whether it was reached. A missed aim does not change the exit code.
    pub(crate) fn note(&mut self, text: String, met: bool) {
        self.lines.push((text, if met { "reached" } else { "aim" }));
    }

    pub(crate) fn json(&self) -> &Map<String, Value> {
        &self.json
    }

    /// Prints the requirements. Returns true if all requirements are met.
    pub(crate) fn finish(&self) -> bool {
        if !self.lines.is_empty() {
            println!("\nrequirements:");
        }
        for (text, met) in &self.lines {
            println!("  {met:<8} {text}");
        }
        !self.failed
    }
}

/// Samples of figures that are measured alternately, so that a slow moment of the machine affects all compared figures.
pub(crate) struct Samples<K>(BTreeMap<K, Vec<f64>>);

impl<K: Ord> Samples<K> {
    pub(crate) const fn none() -> Self {
        Self(BTreeMap::new())
    }

    pub(crate) fn add(&mut self, figure: K, value: f64) {
        self.0.entry(figure).or_default().push(value);
    }

    /// The samples of one figure; empty if it was not measured.
    pub(crate) fn of(&self, figure: &K) -> &[f64] {
        self.0.get(figure).map_or(&[], Vec::as_slice)
    }

    /// The median of one figure; NaN if it was not measured.
    pub(crate) fn median(&self, figure: &K) -> f64 {
        median(self.of(figure))
    }

    /// The measured figures, in order.
    pub(crate) fn known(&self) -> impl Iterator<Item = &K> {
        self.0.keys()
    }
}

/// The median of the samples; for an even number of samples, the mean of the two samples in the middle.
pub(crate) fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => f64::NAN,
        (length, middle) if length % 2 == 1 => sorted[middle],
        (_, middle) => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}
