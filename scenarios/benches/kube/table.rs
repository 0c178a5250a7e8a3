//! Shows the figures: a table for people, JSON for programs.
//!
//! Owns deciding whether a figure keeps its limit, and says nothing about figures that were not measured.

use serde_json::{Value, json};

use crate::figures::{Figure, PART_MAX};
use crate::measure::Subject;

/// Prints the table; true when every limit is kept.
pub(crate) fn print(mock: &Subject, real: Option<&Subject>) -> bool {
    println!("\nmock: {}", mock.server.about);
    match real {
        Some(real) => println!("real: {}", real.server.about),
        None => println!("real: not measured (set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver)"),
    }
    println!("\n{:<62}{:>10}{:>10}{:>11}  {:<12}requirement", "", "mock", "real", "mock/real", "limit");
    let mut all_met = true;
    for figure in mock.figures.known() {
        let Some(value) = mock.figures.median(figure) else { continue };
        let other = real.and_then(|real| real.figures.median(figure));
        let met = met(figure, value, other.filter(|_| real.is_some_and(|real| real.server.is_reference)));
        all_met &= met != Some(false);
        println!(
            "{:<62}{:>10}{:>10}{:>11}  {:<12}{}",
            figure.label(),
            shown(value, figure),
            other.map_or_else(|| "-".to_owned(), |other| shown(other, figure)),
            other.filter(|other| *other > 0.0).map_or_else(|| "-".to_owned(), |other| format!("{:.3}", value / other)),
            figure.limit().map_or_else(String::new, |limit| format!("<= {}", shown(limit, figure))),
            match met {
                None => "",
                Some(true) => "met",
                Some(false) => "NOT MET",
            },
        );
    }
    println!(
        "\nMedians of samples taken in turn; other work on the machine moves both sides. A limit is a tenth of what a \
         kube-apiserver\n1.36 needed on the machine of the requirement. Where one of that version is measured here, a \
         tenth of that counts as well;\nbeside another version the ratio is only shown."
    );
    all_met
}

/// Both the fixed limit and, beside a real server of the same version, a tenth of that one. None for what is only shown.
fn met(figure: Figure, mock: f64, real: Option<f64>) -> Option<bool> {
    let limit = figure.limit()?;
    Some(mock <= limit && real.is_none_or(|real| mock <= real * PART_MAX))
}

fn shown(value: f64, figure: Figure) -> String {
    let digits = if value.abs() < 10.0 { 2 } else { usize::from(value.abs() < 1000.0) };
    format!("{value:.digits$} {}", figure.unit())
}

/// All samples, with their medians.
pub(crate) fn json(mock: &Subject, real: Option<&Subject>) -> Value {
    let of = |subject: &Subject| {
        let figures: serde_json::Map<String, Value> = subject
            .figures
            .known()
            .map(|figure| {
                let (median, samples) = (subject.figures.median(figure), subject.figures.samples(figure));
                (figure.key(), json!({"median": median, "samples": samples, "limit": figure.limit()}))
            })
            .collect();
        json!({"about": subject.server.about, "idle_cpu_us_per_s": subject.idle_us_per_s(), "figures": figures})
    };
    json!({"mock": of(mock), "real": real.map(of)})
}
