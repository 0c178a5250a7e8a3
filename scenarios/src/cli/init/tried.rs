//! `longhaul init --try`: runs the written scenario once and prints one screen: whether the program started, its
//! requests, the verdict, and values to check.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use reports::judge::{Judgement, Verdict};
use reports::record::{Record, RequestRow, Verb};

use crate::run::Options;
use crate::scenario::Source;
use crate::{out, run, shown};

/// Maximum number of findings, and of log lines, that are printed. The report files have all findings and log lines.
const FINDINGS: usize = 5;
const CHECKS: usize = 12;
/// Maximum number of characters of a line that are printed.
const CHARS: usize = 160;
/// Resources that a program uses for itself (leader election, events) and not for its work.
const ASIDE: [&str; 3] = ["leases.coordination.k8s.io", "events", "events.events.k8s.io"];

/// Runs the scenario once and prints the result. Returns the exit code of the run.
pub(super) fn play(source: Source, file: &Path) -> Result<u8> {
    let text = std::fs::read_to_string(file)?;
    let runs = file.parent().unwrap_or(Path::new(".")).join("runs");
    let repeat = format!("{} soak {}", crate::started_as(), crate::quoted(&file.display().to_string()));
    let options = Options { quiet: false, ..Options::new(source, runs, repeat) };
    let directory = crate::cli::block_on(run::record(options))?;
    let (record, judgement) = run::judge_record(&directory)?;
    for line in screen(&record, &judgement, &text) {
        out::out!("{}", shown::line(&line));
    }
    out::out!("report    {}", directory.join("report.html").display());
    Ok(judgement.exit_code)
}

fn screen(record: &Record, judgement: &Judgement, text: &str) -> Vec<String> {
    let mut lines = vec![format!("tried     {} s, seed {}", record.length_ms() / 1000, judgement.seed)];
    let rows = &record.requests.rows;
    lines.push(started(rows));
    lines.extend(exercised(rows, !record.requests.summaries.is_empty()));
    lines.push(format!("verdict   {}: {}", judgement.verdict.word(), judgement.reason));
    let wrong = judgement.findings.iter().filter(|finding| finding.verdict != Verdict::Pass);
    lines.extend(wrong.take(FINDINGS).map(|finding| format!("          {}: {}", finding.budget, cut(&finding.text))));
    let checks: Vec<&str> = text.lines().map(str::trim).filter(|line| line.starts_with("# check:")).collect();
    lines.push(format!("check     {} lines of the file need your confirmation:", checks.len()));
    let named = checks.iter().take(CHECKS);
    lines.extend(named.map(|line| format!("          {}", cut(line.trim_start_matches("# check: ")))));
    if checks.len() > CHECKS {
        lines.push(format!("          … and {} more", checks.len() - CHECKS));
    }
    lines
}

fn started(rows: &[RequestRow]) -> String {
    match rows.iter().find(|row| !row.resource.is_empty()) {
        Some(first) => {
            let tenths = first.t_ms / 100;
            format!("started   yes: it asked for {} after {}.{} s", first.resource, tenths / 10, tenths % 10)
        }
        None => "started   no: it sent no request to the API server".to_owned(),
    }
}

/// The subject's requests for one kind of object.
#[derive(Default)]
struct Kind<'r> {
    requests: u64,
    verbs: BTreeMap<&'static str, u64>,
    /// Namespace and name of each requested object.
    objects: BTreeSet<(&'r str, &'r str)>,
}

/// One line for each kind with the subject's requests, the most frequent kind first.
fn exercised(rows: &[RequestRow], is_cut: bool) -> Vec<String> {
    let mut kinds: BTreeMap<&str, Kind<'_>> = BTreeMap::new();
    let of_work = rows.iter().filter(|row| !row.resource.is_empty() && !ASIDE.contains(&row.resource.as_str()));
    for row in of_work.filter(|row| !row.follows()) {
        let kind = kinds.entry(&row.resource).or_default();
        kind.requests += 1;
        *kind.verbs.entry(word(row.verb)).or_default() += 1;
        if !row.name.is_empty() {
            kind.objects.insert((&row.namespace, &row.name));
        }
    }
    let total: u64 = kinds.values().map(|kind| kind.requests).sum();
    let least = if is_cut { "at least " } else { "" };
    let mut sorted: Vec<_> = kinds.into_iter().collect();
    sorted.sort_by_key(|(_, kind)| std::cmp::Reverse(kind.requests));
    let mut lines = vec![format!("exercised {least}{total} requests about objects, of {} kinds", sorted.len())];
    for (resource, Kind { requests, verbs, objects }) in sorted.into_iter().take(FINDINGS) {
        let verbs: Vec<String> = verbs.into_iter().map(|(verb, count)| format!("{verb} {count}")).collect();
        lines.push(format!("          {resource}: {requests} about {} objects ({})", objects.len(), verbs.join(", ")));
    }
    lines
}

fn word(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "get",
        Verb::Create => "create",
        Verb::Update => "update",
        Verb::Patch => "patch",
        Verb::Delete => "delete",
        Verb::DeleteCollection => "deletecollection",
        Verb::List => "list",
        Verb::Watch => "watch",
        Verb::Other => "other",
    }
}

fn cut(text: &str) -> String {
    let mut short: String = text.chars().take(CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(verb: Verb, resource: &str, name: &str) -> RequestRow {
        RequestRow { verb, resource: resource.to_owned(), name: name.to_owned(), t_ms: 420, ..RequestRow::default() }
    }

    #[test]
    fn what_it_asked_about_is_counted_by_kind() {
        let rows = [
            row(Verb::List, "baskets.shop.example.com", ""),
            row(Verb::Update, "leases.coordination.k8s.io", "x"),
            row(Verb::Update, "baskets.shop.example.com", "a"),
            row(Verb::Patch, "baskets.shop.example.com", "a"),
            row(Verb::Create, "configmaps", ""),
        ];
        assert_eq!(started(&rows), "started   yes: it asked for baskets.shop.example.com after 0.4 s");
        assert_eq!(
            exercised(&rows, true),
            [
                "exercised at least 3 requests about objects, of 2 kinds",
                "          baskets.shop.example.com: 2 about 1 objects (patch 1, update 1)",
                "          configmaps: 1 about 0 objects (create 1)",
            ]
        );
        assert_eq!(started(&[]), "started   no: it sent no request to the API server");
    }
}
