//! A calibration as Markdown, and as an HTML page that works offline. The Markdown and the HTML report show the same
//! figures in the same wording.

use askama::Template;
use reports::gate::Metric;
use reports::growth::calibration::{Promise, Row as Synthetic, planned_s};
use reports::statistics::proportion::Interval;
use reports::words::{count, millis, percent};

use super::result::{Calibration, Expectation, Row, Share, State};

/// The text in a table cell without a result.
const NOTHING: &str = "–";

/// The calibration as Markdown: the runs with planted bugs, and the judge of growth on generated series.
pub fn markdown(calibration: &Calibration) -> String {
    let mut lines = vec![format!("**{}**: {}", calibration.verdict(), calibration.reason()), String::new()];
    lines.extend([introduction(calibration), String::new()]);
    if !calibration.rows.is_empty() {
        lines.push("| plant | played in | runs | outcome | measured |".to_owned());
        lines.push("|---|---|---|---|---|".to_owned());
        for row in &calibration.rows {
            let Shown { name, about, stage, runs, outcome, says, .. } = Shown::of(row);
            let cells = [format!("`{name}`: {about}"), format!("`{stage}`"), runs, outcome, says];
            lines.push(format!("| {} |", cells.map(|cell| escape(&cell)).join(" | ")));
        }
        lines.extend(
            ["", "| judge | caught its own plants | undecided | false alarms elsewhere |", "|---|---|---|---|"]
                .map(str::to_owned),
        );
        for judge in calibration.judges() {
            let (caught, alarms) = (share(judge.caught), share(judge.false_alarms));
            lines.push(format!("| `{}` | {caught} | {} | {alarms} |", judge.name, count(judge.undecided)));
        }
        lines.push(String::new());
        if calibration.has_gates() {
            lines.extend([
                GATES.to_owned(),
                String::new(),
                "| gate | metric | changed by | could see | called worse | promised |".to_owned(),
                "|---|---|---|---|---|---|".to_owned(),
            ]);
            lines
                .extend(gates(calibration).map(|cells| format!("| {} |", cells.map(|cell| escape(&cell)).join(" | "))));
            lines.push(String::new());
        }
    }
    lines.extend([series(), String::new()]);
    lines.push("| series | grows at | failed | passed | undecided | promised |".to_owned());
    lines.push("|---|---|---|---|---|---|".to_owned());
    for row in &calibration.synthetic {
        let Generated { kind, about, speed, failed, passed, undecided, promise, .. } = Generated::of(row);
        lines.push(format!("| {kind}: {about} | {speed} | {failed} | {passed} | {undecided} | {promise} |"));
    }
    lines.join("\n") + "\n"
}

/// The calibration for a terminal, with the verdict last.
pub fn plain(calibration: &Calibration) -> Vec<String> {
    let mut lines = Vec::new();
    if !calibration.rows.is_empty() {
        lines.push(format!("{:24} {:26} {:>18}  outcome", "plant", "played in", "runs"));
        for row in &calibration.rows {
            let Shown { name, stage, runs, outcome, .. } = Shown::of(row);
            lines.push(format!("{name:24} {stage:26} {runs:>18}  {outcome}"));
        }
        lines.extend([String::new(), format!("{:28} {:30} false alarms elsewhere", "judge", "caught its own plants")]);
        for judge in calibration.judges() {
            let (caught, alarms) = (share(judge.caught), share(judge.false_alarms));
            lines.push(format!("{:28} {caught:30} {alarms}", judge.name));
        }
        lines.push(String::new());
        if calibration.has_gates() {
            let row = |[name, metric, change, smallest, found, promised]: [String; 6]| {
                format!("{name:22} {metric:24} {change:>12} {smallest:>12}  {found:28} {promised}")
            };
            lines.push(row(
                ["gate", "metric", "changed by", "could see", "called worse", "promised"].map(str::to_owned)
            ));
            lines.extend(gates(calibration).map(row));
            lines.push(String::new());
        }
    }
    lines.push(format!("{:20} {:14} {:34} {:34} promised", "series", "grows at", "failed", "passed"));
    for row in &calibration.synthetic {
        let Generated { kind, speed, failed, passed, promise, .. } = Generated::of(row);
        lines.push(format!("{kind:20} {speed:14} {failed:34} {passed:34} {promise}"));
    }
    lines.extend([String::new(), format!("{}: {}", calibration.verdict().to_uppercase(), calibration.reason())]);
    lines
}

/// Text above the table of gates.
const GATES: &str = "Each gate compares two builds side by side. “Could see” is the smallest change that a gate finds in four of five cases \
     (the median of its certificates). “Promised” is the rate of its certificates; for identical builds, the false alarms that they expect \
     of all gates together.";

/// The table rows of gates: planted bug, metric, measured change, smallest change that gates can find, how often the
/// build was called worse, promised rate.
fn gates(calibration: &Calibration) -> impl Iterator<Item = [String; 6]> {
    calibration.rows.iter().filter(|row| row.is_gated()).filter_map(|row| {
        if let Some(found) = row.found() {
            let rule = found.judge.strip_prefix("gate.").and_then(Metric::of_key).map(Metric::rule)?;
            let promised = match found.promised {
                Some(promised) if found.is_broken() => format!("BROKEN: ≥ {}", percent(promised)),
                Some(promised) => format!("≥ {}", percent(promised)),
                None => "nothing: below the smallest visible change".to_owned(),
            };
            let smallest = found.smallest.map_or_else(|| NOTHING.to_owned(), |smallest| rule.change_text(smallest));
            return Some([
                row.name().to_owned(),
                rule.name.to_owned(),
                rule.change_text(found.change),
                smallest,
                share(found.found),
                promised,
            ]);
        }
        let alarms = row.alarms()?;
        let stated = format!("{:.2} of {} by the certificates", alarms.stated, alarms.alarms.of);
        let promised = if alarms.is_broken() {
            format!("BROKEN: ≤ 1 of 20; {stated}")
        } else {
            format!("≤ 1 of 20; {stated}")
        };
        let nothing = || NOTHING.to_owned();
        let builds = format!("identical builds, {}", row.stage);
        Some([builds, "any".to_owned(), nothing(), nothing(), share(alarms.alarms), promised])
    })
}

fn introduction(calibration: &Calibration) -> String {
    let canary = match calibration.canary() {
        Some(true) => "The canary was caught",
        Some(false) => "The canary lived",
        None => "The canary was not run",
    };
    format!(
        "Measured on {} with Longhaul {} on {} processors. {canary}. Shares have Wilson's 95 % interval; invalid runs are \
         not counted.",
        calibration.date, calibration.longhaul, calibration.processors
    )
}

/// Text above the table of generated series.
fn series() -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "hours, and positive")]
    let planned = millis((planned_s() * 1000.0) as u64);
    format!(
        "Generated series: first-order autoregression with σ = 2 MiB and τ = 50 s, a sample every 2 s, and a budget of 1 MiB/h. A series \
         lasts {planned}, the planned length, unless its row says otherwise."
    )
}

/// A number of runs out of all runs as text, with Wilson's interval: `19 of 20, 76 to 99 %`.
fn share(share: Share) -> String {
    match share.interval() {
        None => NOTHING.to_owned(),
        Some(interval) => format!("{} of {} ({})", count(share.hits), count(share.of), between(interval)),
    }
}

fn between(interval: Interval) -> String {
    let (lower, upper) = (percent(interval.lower), percent(interval.upper));
    format!("{} to {upper}", lower.trim_end_matches(" %"))
}

/// Escapes text from other programs for a Markdown table.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "\\<").replace(['\n', '\r'], " ")
}

/// A row of the calibration as the HTML report shows it.
struct Shown<'a> {
    class: &'static str,
    name: &'a str,
    about: &'a str,
    stage: &'a str,
    runs: String,
    outcome: String,
    says: String,
    records: Vec<&'a str>,
}

impl<'a> Shown<'a> {
    fn of(row: &'a Row) -> Self {
        let (valid, all) = (row.valid().count() as u64, row.plays.len() as u64);
        let right = row.valid().filter(|play| match &row.expected {
            Expectation::Caught { judge, .. } => play.fired.contains(judge),
            _ => play.fired.is_empty(),
        });
        let right = Share { hits: right.count() as u64, of: valid };
        let invalid = if all > valid { format!(", {} invalid", count(all - valid)) } else { String::new() };
        let class = match row.state() {
            State::Right => "passed",
            State::Waiting => "none",
            State::Undecided | State::Unknown => "open",
            State::FalseAlarm | State::Missed => "failed",
        };
        // A valid run tells more than an invalid one.
        let last = row.valid().last().or(row.plays.last());
        Self {
            class,
            name: row.name(),
            about: &row.about,
            stage: &row.stage,
            runs: if all == 0 { NOTHING.to_owned() } else { format!("{} of {}{invalid}", right.hits, right.of) },
            outcome: row.outcome(),
            says: last.map_or(NOTHING, |play| play.says.as_str()).to_owned(),
            records: row.plays.iter().map(|play| play.record.as_str()).filter(|record| !record.is_empty()).collect(),
        }
    }
}

/// The result for generated series of one kind and one speed of growth, as the HTML report shows it.
struct Generated<'a> {
    class: &'static str,
    kind: &'a str,
    about: &'a str,
    speed: String,
    failed: String,
    passed: String,
    undecided: String,
    promise: String,
}

impl<'a> Generated<'a> {
    fn of(row: &'a Synthetic) -> Self {
        let shown = |hits: u64| share(Share { hits, of: row.runs });
        let promised = promise(&row.promise);
        let broken = row.broken();
        Self {
            class: if broken { "failed" } else { "passed" },
            kind: &row.kind,
            about: &row.about,
            speed: if row.times_budget > 0.0 { format!("{} × budget", row.times_budget) } else { "clean".to_owned() },
            failed: shown(row.failed),
            passed: shown(row.passed),
            undecided: count(row.undecided + row.invalid),
            promise: if broken { format!("BROKEN: {promised}") } else { promised },
        }
    }
}

fn promise(promise: &Promise) -> String {
    let said = |share: Option<f64>, what: &str, how: &str| match share {
        Some(share) if share <= 0.0 => Some(format!("never {what}")),
        share => share.map(|share| format!("{what} {how} {}", percent(share))),
    };
    let all = [
        said(promise.failed_least, "fails", "≥"),
        said(promise.failed_most, "fails", "≤"),
        said(promise.passed_least, "passes", "≥"),
        said(promise.passed_most, "passes", "≤"),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    if all.is_empty() { NOTHING.to_owned() } else { all.join(", ") }
}

#[derive(Template)]
#[template(path = "calibration.html")]
struct Page<'a> {
    verdict: &'static str,
    reason: String,
    introduction: String,
    series: String,
    rows: Vec<Shown<'a>>,
    judges: Vec<[String; 4]>,
    about_gates: &'static str,
    gates: Vec<[String; 6]>,
    generated: Vec<Generated<'a>>,
}

/// The calibration as an HTML page that loads nothing.
pub fn html(calibration: &Calibration) -> Result<String, askama::Error> {
    let judge =
        |judge: super::Judge| [judge.name, share(judge.caught), count(judge.undecided), share(judge.false_alarms)];
    let page = Page {
        verdict: calibration.verdict(),
        reason: calibration.reason(),
        introduction: introduction(calibration),
        series: series(),
        rows: calibration.rows.iter().map(Shown::of).collect(),
        judges: calibration.judges().into_iter().map(judge).collect(),
        about_gates: GATES,
        gates: gates(calibration).collect(),
        generated: calibration.synthetic.iter().map(Generated::of).collect(),
    };
    page.render()
}

#[cfg(test)]
mod tests;
