//! What was measured, and what must hold of it. Shared by the benchmarks that have requirements.

use serde_json::{Map, Value};

/// The middle one.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Figures and requirements.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) figures: Map<String, Value>,
    required: Vec<(String, bool)>,
}

impl Report {
    /// A figure, for who reads them all.
    pub(crate) fn add(&mut self, subject: &str, figure: &str, value: Value) {
        self.figures.insert(format!("{subject}.{figure}"), value);
    }

    /// What must hold.
    pub(crate) fn require(&mut self, text: String, is_met: bool) {
        self.required.push((text, is_met));
    }

    /// Prints the requirements; whether all are met.
    pub(crate) fn finish(&self) -> bool {
        println!();
        for (text, is_met) in &self.required {
            println!("{}  {text}", if *is_met { "met    " } else { "NOT MET" });
        }
        self.required.iter().all(|(_, is_met)| *is_met)
    }
}
