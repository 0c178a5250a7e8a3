//! Prints the figures as a table, adds the limits as requirements, and writes the samples into the report.

use serde_json::{Value, json};

use super::figures::{CPU_PART_MAX, Figure, Limit, Row};
use super::measure::{MANY, Subject};
use crate::kit::report::Report;

/// Prints the table of figures, adds the mock's limits to the requirements, and keeps all samples with their medians.
/// The table has no figures that were not measured.
pub(crate) fn show(mock: &Subject, real: Option<&Subject>, report: &mut Report) {
    println!("\nmock: {}", mock.server.about);
    if let Some(real) = real {
        println!("real: {}", real.server.about);
    }
    println!("\n{:<62}{:>10}{:>10}{:>11}", "", "mock", "real", "mock/real");
    let mut limits = serde_json::Map::new();
    for &figure in mock.figures.known() {
        let Row { label, key, unit, held } = figure.row();
        let shown = |value: f64| shown(value, unit);
        let of_real = |figure| Some(real?.figures.median(&figure)).filter(|other| other.is_finite() && *other > 0.0);
        let (value, other) = (mock.figures.median(&figure), of_real(figure));
        println!(
            "{label:<62}{:>10}{:>10}{:>11}",
            shown(value),
            other.map_or_else(|| "-".to_owned(), shown),
            other.map_or_else(|| "-".to_owned(), |other| format!("{:.3}", value / other)),
        );
        let limit = match (held, figure) {
            (Limit::AtMost(limit), _) => Some(limit),
            // A real server does not bear the crowd.
            (Limit::Compared, Figure::EventCpu(_)) => {
                other.or_else(|| of_real(Figure::EventCpu(MANY))).map(|real| real * CPU_PART_MAX)
            }
            (Limit::Compared, _) => other.map(|real| real * CPU_PART_MAX),
            (Limit::Free | Limit::Aim(_), _) => None,
        };
        if let Some(limit) = limit {
            report.require(format!("{label}: at most {} ({})", shown(limit), shown(value)), value <= limit);
            limits.insert(key, limit.into());
        } else if let Limit::Aim(aim) = held {
            report.note(format!("{label}: {} ({})", shown(aim), shown(value)), value >= aim);
        } else if matches!(held, Limit::Compared) {
            report.skip(format!("{label}: at most 1/20 of a real server's in the same run: needs KUBEBUILDER_ASSETS"));
        }
    }
    println!(
        "\nMedians of samples taken in turn; other work on the machine moves both sides. CPU time is held to 1/20 of what the real server and its etcd need in the same run."
    );
    report.add("mock", json(mock));
    report.add("real", real.map(json));
    report.add("limits", limits);
}

fn shown(value: f64, unit: &str) -> String {
    let digits = if value.abs() < 10.0 { 2 } else { usize::from(value.abs() < 1000.0) };
    format!("{value:.digits$} {unit}")
}

fn json(subject: &Subject) -> Value {
    let figures: serde_json::Map<String, Value> = subject
        .figures
        .known()
        .map(|figure| {
            let (median, samples) = (subject.figures.median(figure), subject.figures.of(figure));
            (figure.row().key, json!({"median": median, "samples": samples}))
        })
        .collect();
    json!({"about": subject.server.about, "idle_cpu_us_per_s": subject.idle_us_per_s, "figures": figures})
}
