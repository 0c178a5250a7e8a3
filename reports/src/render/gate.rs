//! A gate as a table for a terminal, as Markdown for a pull request, and as texts of its HTML report
//! (`render::gate_html`). Terminal, Markdown and HTML show the same figures of the gate.

use std::fmt::Write as _;

use super::table;
use crate::gate::decide::Word;
use crate::gate::verdict::{Judgement, Row};
use crate::outside::{code, line, markdown as escaped};
use crate::words::{count, counted, millis, percent};

/// The text in a table cell for an unknown value.
const NOTHING: &str = "–";

/// How the certificate of a gate was computed, for terminal, Markdown and HTML.
pub const HOW: &str = "The certificate is computed from the slices of this very session: the pairs without their common shift, and each build \
     against itself in the same block (A against A, B against B), with a thousand choices of signs drawn from the seed, each decided as \
     the session was; of the two accounts the worse one counts.";

/// The meaning of the columns in the report of a gate, for terminal, Markdown and HTML.
pub const COLUMNS: &str =
    "A and B are medians over all slices; the change is taken pair by pair, so it need not be their quotient.";

/// The texts of a row of the gate's table, for one metric.
pub(crate) struct Shown<'a> {
    pub(crate) name: &'a str,
    pub(crate) a: String,
    pub(crate) b: String,
    pub(crate) change: String,
    pub(crate) between: String,
    pub(crate) word: &'static str,
    pub(crate) class: &'static str,
    pub(crate) seen: String,
    pub(crate) halves: String,
    pub(crate) dots: Option<Dots>,
}

/// The chart in a row of the gate's table: each pair of measurements is a dot beside the zero line.
pub(crate) struct Dots {
    pub(crate) points: Vec<f64>,
    pub(crate) limit: (f64, f64),
    pub(crate) estimate: f64,
    pub(crate) bounds: Option<(f64, f64)>,
    pub(crate) edge: String,
}

impl<'a> Shown<'a> {
    pub(crate) fn of(row: &'a Row) -> Self {
        let rule = row.metric.rule();
        let between = match (row.lower, row.upper) {
            (Some(lower), Some(upper)) => format!("{} to {}", row.shown(lower), row.shown(upper)),
            _ if row.pairs == 0 => "counted".to_owned(),
            _ => NOTHING.to_owned(),
        };
        let class = match row.word {
            Word::Worse => "fail",
            Word::CannotSay => "inconclusive",
            Word::Same | Word::Better => "pass",
        };
        Self {
            name: &row.name,
            a: rule.value(row.a),
            b: rule.value(row.b),
            change: row.shown(row.change),
            between,
            word: row.word.text(),
            class,
            seen: row.smallest.map_or_else(|| NOTHING.to_owned(), |smallest| row.shown(smallest)),
            halves: row.halves.map_or(NOTHING, Word::text).to_owned(),
            dots: Dots::of(row),
        }
    }
}

impl Dots {
    /// The width of the chart, in SVG units.
    const WIDTH: f64 = 240.0;

    fn of(row: &Row) -> Option<Self> {
        if row.points.is_empty() {
            return None;
        }
        let reach = row.points.iter().map(|point| point.abs()).fold(row.limit * 1.5, f64::max);
        let x =
            |change: f64| ((change / reach).clamp(-1.0, 1.0) * (Self::WIDTH / 2.0 - 6.0) + Self::WIDTH / 2.0).round();
        Some(Self {
            points: row.points.iter().copied().map(x).collect(),
            limit: (x(-row.limit), x(row.limit)),
            estimate: x(row.change),
            bounds: row.lower.zip(row.upper).map(|(lower, upper)| (x(lower), x(upper))),
            edge: row.shown(reach),
        })
    }

    pub(crate) fn width_of_limit(&self) -> f64 {
        self.limit.1 - self.limit.0
    }
}

/// The verdict of a gate on one line.
pub fn headline(judgement: &Judgement) -> String {
    format!("{}: {}", judgement.outcome.text().to_uppercase(), judgement.reason)
}

/// The certificate of a gate in one sentence.
pub fn certificate(judgement: &Judgement) -> String {
    match judgement.false_alarm {
        None => "A/A certificate: not computed, because too few pairs are left.".to_owned(),
        Some(alarm) => format!(
            "A/A certificate: on this machine, with these slices, this gate would call identical builds worse in {} of the cases.",
            share(alarm)
        ),
    }
}

fn share(alarm: f64) -> String {
    if alarm < 0.000_5 { "fewer than 0.1 %".to_owned() } else { percent(alarm) }
}

/// The number of measurements and of sessions of the gate, in one sentence.
pub fn played(judgement: &Judgement) -> String {
    let header = &judgement.header;
    let saturation = header
        .saturation
        .map_or_else(String::new, |[a, b]| format!(" (A can take {}/s, B {}/s)", count(whole(a)), count(whole(b))));
    let rates = [(header.rate, "request"), (header.events, "event")];
    let rates = rates.into_iter().filter(|(rate, _)| *rate > 0.0);
    let rates: Vec<String> = rates.map(|(rate, what)| format!("{} a second", counted(whole(rate), what))).collect();
    format!(
        "{} of {} with {}{saturation}, each after {} of settling, in {}, seed {}; {} left out.",
        counted(judgement.slices as u64, "slice"),
        millis(header.slice_ms),
        rates.join(" and "),
        millis(header.settle_ms),
        counted(u64::from(judgement.sessions), "session"),
        header.seed,
        counted(judgement.dropped.len() as u64, "slice"),
    )
}

fn whole(number: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate, and positive")]
    let whole = number.round() as u64;
    whole
}

/// The table of a gate for a terminal. The verdict is the last line, because a reader looks at the last line of a
/// terminal first.
pub fn plain(judgement: &Judgement) -> String {
    let header = &judgement.header;
    let mut text = format!("A  {}\nB  {}\n{}\n\n", line(&header.a.command), line(&header.b.command), played(judgement));
    let rows = judgement.rows.iter().map(Shown::of);
    let rows: Vec<_> = rows
        .map(|row| [row.name.to_owned(), row.a, row.b, row.change, row.between, row.word.to_owned(), row.seen])
        .collect();
    text += &table::columns(["", "A", "B", "change", "surely", "word", "could see"], &rows, &[]);
    let _ = writeln!(text, "\n{COLUMNS}\n{}", certificate(judgement));
    for note in &judgement.notes {
        let _ = writeln!(text, "{note}");
    }
    let _ = writeln!(text, "\n{}", headline(judgement));
    text
}

/// The report of a gate in Markdown, for a pull request or for the summary of a CI job.
pub fn markdown(judgement: &Judgement) -> String {
    let header = &judgement.header;
    let mut text = format!("## Gate: {}\n\n{}\n\n", judgement.outcome.text(), escaped(&judgement.reason));
    let head = ["metric", "A", "B", "change", "surely", "verdict", "could have seen", "each build against itself"];
    let rows = judgement.rows.iter().map(Shown::of).map(|row| {
        let word = if row.class == "fail" { format!("**{}**", row.word) } else { row.word.to_owned() };
        let cells = [row.name.to_owned(), row.a, row.b, row.change, row.between, word, row.seen, row.halves];
        cells.map(|cell| cell.replace('|', "\\|"))
    });
    text += &table::markdown(head, rows);
    let _ = writeln!(text, "\n{}\n\n<details><summary>What was played</summary>\n", certificate(judgement));
    let _ = writeln!(text, "- {}", played(judgement));
    let _ = writeln!(text, "- A: {}", code(&header.a.command));
    let _ = writeln!(text, "- B: {}", code(&header.b.command));
    let _ = writeln!(text, "- {COLUMNS}");
    let _ = writeln!(text, "- {HOW}");
    for note in &judgement.notes {
        let _ = writeln!(text, "- {}", escaped(note));
    }
    for dropped in judgement.dropped.iter().take(DROPPED_SHOWN) {
        let _ = writeln!(
            text,
            "- left out: session {}, block {}: {}",
            dropped.session,
            dropped.block,
            escaped(&dropped.why)
        );
    }
    let _ = writeln!(text, "- again: {}\n\n</details>", code(&header.repeat));
    text
}

/// Maximum number of dropped measurements that the report lists one by one.
const DROPPED_SHOWN: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::simulation::{FEW, QUIET, record};
    use crate::gate::verdict::judge_by;

    /// Terminal, Markdown and HTML show the same figures of a gate. The table of a gate fits a terminal.
    #[test]
    fn all_pages_show_the_same_figures() {
        let record = record(5, 10, QUIET, 1.1);
        let mut judgement = judge_by(&record, FEW);
        judgement.notes.push("instructions: skipped: needs valgrind".to_owned());
        judgement.header.b.command = "new/<b>|service`".to_owned();
        let (plain, markdown) = (plain(&judgement), markdown(&judgement));
        let html = crate::render::gate_html(&record, &judgement).unwrap();
        for row in &judgement.rows {
            for page in [&plain, &markdown, &html] {
                assert!(page.contains(&row.shown(row.change)), "{} is missing in\n{page}", row.shown(row.change));
            }
        }
        for page in [&plain, &markdown, &html] {
            assert!(page.contains("A/A certificate: on this machine") && page.contains("needs valgrind"), "{page}");
            assert!(page.contains("CPU time a request +"), "{page}");
        }
        assert!(plain.ends_with("against 2 ms)\n") || plain.contains("\nWORSE: B is worse than A: "), "{plain}");
        assert!(!html.contains("<b>|service") && html.contains("&#60;b&#62;"), "{html}");
        assert!(markdown.contains("`` new/<b>|service` ``"), "{markdown}");
        for line in plain.lines().filter(|line| line.starts_with("CPU")) {
            assert!(line.chars().count() <= 110, "{line}");
        }
    }
}
