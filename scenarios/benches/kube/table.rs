//! Shows the figures: a table for people, JSON for programs.
//!
//! Owns deciding whether a figure keeps its limit, and says nothing about figures that were not measured.

use serde_json::{Value, json};

use crate::figures::Figure;
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
        let limit = limit(figure, real);
        let met = limit.map(|limit| value <= limit);
        all_met &= met != Some(false);
        println!(
            "{:<62}{:>10}{:>10}{:>11}  {:<12}{}",
            figure.label(),
            shown(value, figure),
            other.map_or_else(|| "-".to_owned(), |other| shown(other, figure)),
            other.filter(|other| *other > 0.0).map_or_else(|| "-".to_owned(), |other| format!("{:.3}", value / other)),
            limit.map_or_else(String::new, |limit| format!("<= {}", shown(limit, figure))),
            match met {
                None => "",
                Some(true) => "met",
                Some(false) => "NOT MET",
            },
        );
    }
    println!(
        "\nMedians of samples taken in turn; other work on the machine moves both sides. A limit on CPU time is a tenth of what the \
         real server\nneeds in the same run. Without one, and for memory, it is a tenth of what a kube-apiserver 1.36 needed on the \
         machine of the\nrequirement, as far as that was measured."
    );
    all_met
}

fn shown(value: f64, figure: Figure) -> String {
    let digits = if value.abs() < 10.0 { 2 } else { usize::from(value.abs() < 1000.0) };
    format!("{value:.digits$} {}", figure.unit())
}

/// All samples, with their medians, and what the mock's are held to.
pub(crate) fn json(mock: &Subject, real: Option<&Subject>) -> Value {
    let of = |subject: &Subject| {
        let figures: serde_json::Map<String, Value> = subject
            .figures
            .known()
            .map(|figure| {
                let (median, samples) = (subject.figures.median(figure), subject.figures.samples(figure));
                (figure.key(), json!({"median": median, "samples": samples}))
            })
            .collect();
        json!({"about": subject.server.about, "idle_cpu_us_per_s": subject.idle_us_per_s(), "figures": figures})
    };
    let limits: serde_json::Map<String, Value> =
        mock.figures.known().filter_map(|figure| Some((figure.key(), limit(figure, real)?.into()))).collect();
    json!({"mock": of(mock), "real": real.map(of), "limits": limits})
}

fn limit(figure: Figure, real: Option<&Subject>) -> Option<f64> {
    figure.limit(real.and_then(|real| real.figures.median(figure)))
}
