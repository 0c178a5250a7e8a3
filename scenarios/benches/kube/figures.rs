//! What is measured, and what was.
//!
//! Owns the list of figures with their units and the limits that they are held to, and how they are shown. It must not know how they are
//! measured.

use serde_json::{Value, json};

use super::measure::Subject;
use crate::kit::report::Report;

/// One figure of a server. The order is that of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Figure {
    CreateCpu,
    UpdateCpu,
    /// By number of watchers, written to as fast as the server answers.
    EventCpu(usize),
    /// By number of objects.
    ListTime(usize),
    ListCpu(usize),
    /// By number of objects.
    ObjectMemory(usize),
    /// By number of watchers, after each was sent events.
    WatcherMemory(usize),
}

/// The mock is to cost at most this part of what a real server costs.
const PART_MAX: f64 = 0.1;

impl Figure {
    pub fn label(self) -> String {
        match self {
            Self::CreateCpu => "CPU of a create (1 KiB, 16 connections)".to_owned(),
            Self::UpdateCpu => "CPU of an update (1 KiB, 16 connections)".to_owned(),
            Self::EventCpu(watchers) => format!("CPU of an event to one of {} watchers, flat out", grouped(watchers)),
            Self::ListTime(objects) => format!("list of {} objects", grouped(objects)),
            Self::ListCpu(objects) => format!("CPU of a list of {} objects", grouped(objects)),
            Self::ObjectMemory(objects) => format!("memory of one of {} objects of 1 KiB", grouped(objects)),
            Self::WatcherMemory(watchers) => format!("memory of one of {} watchers", grouped(watchers)),
        }
    }

    pub const fn unit(self) -> &'static str {
        match self {
            Self::CreateCpu | Self::UpdateCpu | Self::EventCpu(_) => "us",
            Self::ListTime(_) | Self::ListCpu(_) => "ms",
            Self::ObjectMemory(_) | Self::WatcherMemory(_) => "KiB",
        }
    }

    /// The name in JSON, with the unit last.
    pub fn key(self) -> String {
        match self {
            Self::CreateCpu => "create_cpu_us".to_owned(),
            Self::UpdateCpu => "update_cpu_us".to_owned(),
            Self::EventCpu(watchers) => format!("event_{watchers}_watchers_cpu_us"),
            Self::ListTime(objects) => format!("list_{objects}_ms"),
            Self::ListCpu(objects) => format!("list_{objects}_cpu_ms"),
            Self::ObjectMemory(objects) => format!("object_of_{objects}_kib"),
            Self::WatcherMemory(watchers) => format!("watcher_of_{watchers}_kib"),
        }
    }

    /// What a kube-apiserver 1.36 was measured to need, on the machine that the requirement was written on.
    const fn reference(self) -> Option<f64> {
        match self {
            Self::CreateCpu | Self::UpdateCpu => Some(396.0),
            Self::EventCpu(_) => Some(12.6),
            // 62 MiB for 5,000 objects.
            Self::ObjectMemory(_) => Some(12.7),
            Self::WatcherMemory(_) => Some(745.0),
            Self::ListTime(_) | Self::ListCpu(_) => None,
        }
    }

    /// The most that is allowed beside a real server that needs `real`.
    ///
    /// How fast a processor is at the moment moves both sides, so that CPU time is held to what the real one needs in the same run,
    /// and memory to what was measured once. Without a real server everything is held to that.
    pub fn limit(self, real: Option<f64>) -> Option<f64> {
        let is_cpu = matches!(self, Self::CreateCpu | Self::UpdateCpu | Self::EventCpu(_));
        Some(real.filter(|_| is_cpu).or(self.reference())? * PART_MAX)
    }
}

/// Prints the table, states what the mock is held to, and keeps all samples with their medians. Says nothing of what was not measured.
pub(crate) fn show(mock: &Subject, real: Option<&Subject>, report: &mut Report) {
    println!("\nmock: {}", mock.server.about);
    if let Some(real) = real {
        println!("real: {}", real.server.about);
    }
    println!("\n{:<62}{:>10}{:>10}{:>11}", "", "mock", "real", "mock/real");
    let mut limits = serde_json::Map::new();
    for &figure in mock.figures.known() {
        let value = mock.figures.median(&figure);
        let other = real.map(|real| real.figures.median(&figure)).filter(|other| !other.is_nan());
        println!(
            "{:<62}{:>10}{:>10}{:>11}",
            figure.label(),
            shown(value, figure),
            other.map_or_else(|| "-".to_owned(), |other| shown(other, figure)),
            other.filter(|other| *other > 0.0).map_or_else(|| "-".to_owned(), |other| format!("{:.3}", value / other)),
        );
        if let Some(limit) = figure.limit(other) {
            let text = format!("{}: at most {} ({})", figure.label(), shown(limit, figure), shown(value, figure));
            report.require(text, value <= limit);
            limits.insert(figure.key(), limit.into());
        }
    }
    println!(
        "\nMedians of samples taken in turn; other work on the machine moves both sides. A limit on CPU time is a tenth of what the \
         real server\nneeds in the same run. Without one, and for memory, it is a tenth of what a kube-apiserver 1.36 needed on the \
         machine of the\nrequirement, as far as that was measured."
    );
    report.add("mock", json(mock));
    report.add("real", real.map(json));
    report.add("limits", limits);
}

fn shown(value: f64, figure: Figure) -> String {
    let digits = if value.abs() < 10.0 { 2 } else { usize::from(value.abs() < 1000.0) };
    format!("{value:.digits$} {}", figure.unit())
}

fn json(subject: &Subject) -> Value {
    let figures: serde_json::Map<String, Value> = subject
        .figures
        .known()
        .map(|figure| {
            let (median, samples) = (subject.figures.median(figure), subject.figures.of(figure));
            (figure.key(), json!({"median": median, "samples": samples}))
        })
        .collect();
    json!({"about": subject.server.about, "idle_cpu_us_per_s": subject.idle_us_per_s, "figures": figures})
}

/// `10000` as `10,000`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
