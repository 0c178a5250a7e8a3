//! Writes `docs/measured/strangers.md`: a table of all programs, and every sentence of a FAIL with the result of
//! reading the program's source. Pure: no I/O.

use std::fmt::Write as _;

use crate::facts::{Facts, Sentence};
use crate::play::Played;
use crate::table::{Stranger, Truth};

const HEAD: &str = "# Strangers

Published operators and webhooks that are no part of this project, unmodified, from package registries. Each is fetched, `longhaul init` writes its file, and
`longhaul soak` plays that file as it stands. `cargo xtask strangers` writes this page. Whether a FAIL sentence is true is found out by hand, in the source, and kept in
[`strangers.yaml`](../../xtask/strangers/strangers.yaml).

*Started*: it became ready, and asked for something. *Exercised*: it wrote objects that are no Leases and events, or its webhook was called.
*Time* is from nothing to the verdict; what was fetched or built before is taken from the cache, so that a second time is shorter.

";

/// Maximum number of characters of a sentence in the document.
const SENTENCE_MAX: usize = 600;

/// The whole document, in the order of `strangers.yaml`.
pub(crate) fn page(strangers: &[Stranger], played: &[Played]) -> String {
    let mut text = HEAD.to_owned();
    total(&mut text, strangers, played);
    text.push_str("| what | language | time | started | exercised | verdict | FAIL sentences | its suite |\n|---|---|---|---|---|---|---|---|\n");
    for stranger in strangers {
        row(&mut text, stranger, find(stranger, played));
    }
    for stranger in strangers {
        if let Some(played) = find(stranger, played) {
            section(&mut text, stranger, played);
        }
    }
    text
}

/// The figures of a published program in the version that `strangers.yaml` names.
fn find<'p>(one: &Stranger, played: &'p [Played]) -> Option<&'p Played> {
    played.iter().find(|played| played.name == one.name && played.published == one.published())
}

/// Appends the number of published programs that reached each of the steps fetch, init, build and soak.
fn total(text: &mut String, strangers: &[Stranger], played: &[Played]) {
    let known: Vec<(&Stranger, &Played)> = strangers
        .iter()
        .filter_map(|one| find(one, played).map(|played| (one, played)))
        .filter(|(_, played)| played.needs.is_none())
        .collect();
    let started = known.iter().filter(|(_, played)| is_started(played)).count();
    let exercised = known.iter().filter(|(_, played)| is_exercised(played)).count();
    let (mut truths, mut unread) = ([0_usize; 3], 0_usize);
    for (stranger, played) in &known {
        for sentence in failed(played) {
            match stranger.reading(&sentence.budget, &sentence.text) {
                Some(reading) => truths[reading.is as usize] += 1,
                None => unread += 1,
            }
        }
    }
    let [fine, wrong, open] = truths;
    let _ = writeln!(
        text,
        "Of {} in the table {} were played: {started} started, {exercised} were exercised. Of their FAIL sentences {fine} are true, {wrong} are false, {open} \
         are open and {unread} are not read yet.\n",
        strangers.len(),
        known.len()
    );
}

fn is_started(played: &Played) -> bool {
    played.stopped.is_none() && played.facts.as_ref().is_some_and(Facts::is_started)
}

fn is_exercised(played: &Played) -> bool {
    played.facts.as_ref().is_some_and(Facts::is_exercised)
}

fn failed(played: &Played) -> &[Sentence] {
    played.facts.as_ref().map(|facts| facts.failed.as_slice()).unwrap_or_default()
}

fn row(text: &mut String, stranger: &Stranger, played: Option<&Played>) {
    let name = format!("[{}](#{}) {}", stranger.name, stranger.name, cell(&stranger.published()));
    let language = stranger.language();
    let Some(played) = played else {
        let _ =
            writeln!(text, "| {} {} | {language} | | | | not played | | |", stranger.name, cell(&stranger.published()));
        return;
    };
    if let Some(needs) = &played.needs {
        let _ = writeln!(text, "| {} | {language} | | | | skipped: needs {} | | |", stranger.name, cell(needs));
        return;
    }
    let seconds = played.fetch_s + played.init_s + played.build_s + played.soak_s;
    let yes = |is: bool| if is { "yes" } else { "no" };
    let verdict = match (&played.stopped, &played.facts) {
        (Some(stopped), _) => format!("none ({})", stopped.step),
        (None, Some(facts)) => facts.verdict.to_uppercase(),
        (None, None) => "none".to_owned(),
    };
    let mut truths: Vec<&str> = Vec::new();
    for sentence in failed(played) {
        truths.push(stranger.reading(&sentence.budget, &sentence.text).map_or("unread", |reading| reading.is.word()));
    }
    let suite = played.suite.as_deref().unwrap_or_default();
    let _ = writeln!(
        text,
        "| {name} | {language} | {}:{:02} | {} | {} | {verdict} | {} | {} |",
        seconds / 60,
        seconds % 60,
        yes(is_started(played)),
        yes(is_exercised(played)),
        counted(&truths),
        cell(suite)
    );
}

/// How often each word occurs, for example `2 true, 1 unread`.
fn counted(words: &[&str]) -> String {
    let known = [Truth::True.word(), Truth::False.word(), Truth::Open.word(), "unread"];
    let counts = known.map(|word| (word, words.iter().filter(|one| **one == word).count()));
    let shown: Vec<String> =
        counts.iter().filter(|(_, times)| *times > 0).map(|(word, times)| format!("{times} {word}")).collect();
    shown.join(", ")
}

fn section(text: &mut String, stranger: &Stranger, played: &Played) {
    if played.needs.is_some() {
        return;
    }
    let _ = writeln!(text, "\n## {}\n\n{}. ", stranger.name, stranger.does);
    let by_hand = format!(", then built as its file says in {} s", played.build_s);
    let by_hand = if played.built_by_hand { by_hand.as_str() } else { "" };
    let by = format!("; Longhaul {}", played.revision);
    let by = if played.revision.is_empty() { "" } else { by.as_str() };
    let _ = writeln!(
        text,
        "Fetched in {} s, init in {} s{by_hand}, soak in {} s; {} lines to check{by}.\n",
        played.fetch_s, played.init_s, played.soak_s, played.checks
    );
    if let Some(stopped) = &played.stopped {
        let _ = writeln!(text, "It came no further than {}: {}\n", stopped.step, cell(&stopped.why));
    }
    let Some(facts) = &played.facts else { return };
    let _ = writeln!(
        text,
        "{}: {} For {} versions of {} it sent {} requests, wrote {} times{} and proved {} observations.",
        facts.verdict.to_uppercase(),
        cell(&facts.reason),
        facts.commits,
        if facts.judged.is_empty() { "nothing".to_owned() } else { facts.judged.join(", ") },
        facts.requests,
        facts.written(),
        if facts.writes.is_empty() { String::new() } else { format!(" ({})", facts.most_written()) },
        facts.observed,
    );
    if !facts.refused.is_empty() {
        let _ = writeln!(text, "Refused to it: {}.", facts.most_refused());
    }
    text.push('\n');
    for sentence in &facts.invalid {
        let _ = writeln!(text, "- `{}`: {}", sentence.budget, cell(&short(&sentence.text)));
    }
    for sentence in &facts.failed {
        let _ = writeln!(text, "- `{}`: {}", sentence.budget, cell(&short(&sentence.text)));
        match stranger.reading(&sentence.budget, &sentence.text) {
            Some(reading) => {
                let _ = writeln!(text, "  - **{}**: {}", reading.is.word(), reading.because.trim());
            }
            None => text.push_str("  - not read yet\n"),
        }
    }
}

/// The beginning of a sentence, because some sentences end with a program's last lines of output.
fn short(text: &str) -> String {
    let mut short: String = text.chars().take(SENTENCE_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Text from other programs as a cell of a Markdown table: one line that cannot end the cell and contains no link or
/// tag.
fn cell(text: &str) -> String {
    let mut shown = String::new();
    for char in text.chars() {
        match char {
            '|' | '<' | '[' | ']' | '*' | '_' | '`' => {
                shown.push('\\');
                shown.push(char);
            }
            _ if char.is_control() => shown.push(' '),
            _ => shown.push(char),
        }
    }
    // An e-mail address must not become a mention.
    shown.replace('@', "@\u{200b}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::play::Stopped;
    use crate::table::strangers;

    #[test]
    fn the_page_tells_what_is_known_and_what_is_not() {
        let all = strangers().unwrap();
        let of = |at: usize| Played { name: all[at].name.clone(), published: all[at].published(), ..Played::default() };
        let sentence = Sentence { budget: "no.such".to_owned(), text: "a|b".to_owned() };
        let facts =
            Facts { verdict: "fail".to_owned(), failed: vec![sentence], requests: 1, called: 1, ..Facts::default() };
        let ran = Played { facts: Some(facts), soak_s: 95, ..of(0) };
        let ended = Stopped { step: "build".to_owned(), why: "exit code 1".to_owned() };
        let text = page(
            &all,
            &[ran, Played { needs: Some("go".to_owned()), ..of(1) }, Played { stopped: Some(ended), ..of(2) }],
        );
        assert!(text.contains("2 were played: 1 started, 1 were exercised"), "{text}");
        assert!(text.contains("| 1:35 | yes | yes | FAIL | 1 unread |"), "{text}");
        assert!(
            text.contains("skipped: needs go") && text.contains("none (build)") && text.contains("a\\|b"),
            "{text}"
        );
        assert!(text.contains("not played"));
    }

    #[test]
    fn truths_are_counted() {
        assert_eq!(counted(&["true", "unread", "true"]), "2 true, 1 unread");
        assert_eq!(counted(&[]), "");
    }
}
