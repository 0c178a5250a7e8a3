//! What was measured, and whether it is enough.

use serde_json::{Map, Value};

/// Collects figures for the JSON file, and requirements for the exit code.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) json: Map<String, Value>,
    requirements: Vec<(String, bool)>,
}

impl Report {
    /// States a requirement and whether it is met.
    pub(crate) fn require(&mut self, text: String, met: bool) {
        self.requirements.push((text, met));
    }

    /// Prints the requirements; true when all are met.
    pub(crate) fn finish(self) -> bool {
        println!("\nrequirements:");
        for (text, met) in &self.requirements {
            println!("  {:<8} {text}", if *met { "met" } else { "NOT MET" });
        }
        self.requirements.iter().all(|(_, met)| *met)
    }
}

/// The middle value; of an even number of them the lower one of the two in the middle.
pub(crate) fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}
