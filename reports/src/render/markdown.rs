//! The Markdown report of a run for a pull request. The verdict comes first, then findings that are not a pass; all
//! other findings are in a section that the reader can open.
//!
//! Owns the choice of findings that are shown or folded away. Text that comes from the record is escaped by
//! [`crate::outside`], so that it becomes no table cell, link, mention or HTML.

use std::fmt::Write;

use super::terminal::figures;
use super::{Renderer, table};
use crate::causes;
use crate::judge::{Finding, Judgement, Verdict};
use crate::outside::{code, markdown as escaped};
use crate::record::{Record, file};
use crate::words::{counted, millis};

pub(super) const ROW: Renderer = Renderer {
    file: file::MARKDOWN,
    doc: "for a pull request or the summary of a job",
    render: |record, judgement| Ok(markdown(record, judgement)),
};

/// The report of a run in Markdown, which ends with a line end.
pub fn markdown(record: &Record, judgement: &Judgement) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_report(&mut text, record, judgement);
    text
}

fn write_report(out: &mut String, record: &Record, judgement: &Judgement) -> std::fmt::Result {
    let (name, word) = (escaped(&judgement.name), judgement.verdict.word());
    writeln!(out, "## {} {name}: {word}\n", sign(judgement.verdict))?;
    writeln!(out, "{}\n", escaped(&judgement.reason))?;
    let crossed = judgement.crossed();
    if !crossed.is_empty() {
        writeln!(out, "{}", findings(crossed))?;
    }
    let summary = causes::summary(record);
    if let Some(first) = summary.first().first() {
        for group in summary.first() {
            writeln!(out, "- {}", escaped(&group.line()))?;
        }
        writeln!(out, "\nWhat to do next: {}\n", escaped(first.cause.remedy()))?;
    }
    let met: Vec<&Finding> = judgement.findings.iter().filter(|finding| finding.verdict == Verdict::Pass).collect();
    if !met.is_empty() {
        writeln!(out, "<details><summary>{} met</summary>\n", counted(met.len() as u64, "limit"))?;
        writeln!(out, "{}", findings(met))?;
        writeln!(out, "</details>\n")?;
    }
    writeln!(out, "<details><summary>The run</summary>\n")?;
    writeln!(out, "- {}", escaped(&record.manifest.question))?;
    writeln!(
        out,
        "- seed {}, {}, {} control plane, subject {}",
        judgement.seed,
        millis(record.length_ms()),
        escaped(&record.manifest.control_plane),
        escaped(&record.manifest.subject.kind)
    )?;
    for (title, line) in figures(record) {
        writeln!(out, "- {title}: {}", escaped(&line))?;
    }
    for note in &judgement.notes {
        writeln!(out, "- note: {}", escaped(note))?;
    }
    writeln!(out, "- repeat: {}\n", code(&record.manifest.repeat))?;
    writeln!(out, "</details>")
}

fn findings<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> String {
    let rows = findings.into_iter().map(|finding| {
        let verdict = format!("{} {}", sign(finding.verdict), finding.verdict.word());
        let Finding { budget, observed, limit, text, .. } = finding;
        [verdict, escaped(budget), escaped(observed), escaped(limit), escaped(text)]
    });
    table::markdown(["", "budget", "measured", "limit", ""], rows)
}

fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "✅",
        Verdict::Fail => "❌",
        Verdict::Inconclusive => "❔",
        Verdict::Invalid => "⚠️",
    }
}
