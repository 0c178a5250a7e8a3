//! The result of `longhaul hunt` as text for a terminal, as Markdown and as JUnit.
//!
//! Owns the table of what was covered, which the HTML page also shows.

use std::fmt::Write as _;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::terminal::plain;
use super::{Error, table};
use crate::hunt::{Coverage, Ending, Found, Hunt};
use crate::outside::{code, markdown as escaped};
use crate::words::{count, counted, millis, whole};

/// The columns of the table of disturbances.
pub(crate) const DISTURBANCE_HEADS: [&str; 3] = ["disturbance", "trials", "with an effect"];

/// The columns of the table of conditions under which webhooks were asked.
pub(crate) const CONDITION_HEADS: [&str; 3] = ["condition", "answers compared", "without a valid answer"];

/// The questions to the subject's webhooks, as sentences; empty if it has none.
pub(crate) fn asked(hunt: &Hunt) -> Vec<String> {
    let Some(webhooks) = &hunt.webhooks else { return Vec::new() };
    let number = |number: u32, word: &str| counted(u64::from(number), word);
    let mut lines = vec![
        format!(
            "{} about {} were asked of {}.",
            number(webhooks.questions, "question"),
            webhooks.kinds.join(", "),
            webhooks.asked.join(", ")
        ),
        format!(
            "On a quiet system {} allowed and {} denied the request; {} questions had no valid answer.",
            number(webhooks.allowed, "answer"),
            count(u64::from(webhooks.denied)),
            count(u64::from(webhooks.unanswered))
        ),
    ];
    if webhooks.denied == 0 {
        lines.push(
            "No question was denied, so a webhook that allows too much would not show. A sample that must be refused helps.".to_owned(),
        );
    }
    if !webhooks.masked.is_empty() {
        let masked = count(webhooks.masked.len() as u64);
        lines.push(format!("{masked} parts of answers differ on a quiet system and were not compared."));
    }
    if webhooks.unconfirmed > 0 {
        lines.push(format!("{} signs of webhooks were not seen again.", webhooks.unconfirmed));
    }
    lines
}

/// The rows of the table of conditions.
pub(crate) fn conditions(hunt: &Hunt) -> Vec<[String; 3]> {
    let rows = hunt.webhooks.iter().flat_map(|webhooks| &webhooks.conditions);
    rows.map(|(name, compared, none)| [name.clone(), count(u64::from(*compared)), count(u64::from(*none))]).collect()
}

/// Whether the subject only answers reviews, so that no trial was played.
pub(crate) fn is_webhook(hunt: &Hunt) -> bool {
    hunt.webhooks.is_some() && hunt.coverage.singles.1 == 0 && hunt.coverage.trials == 0
}

/// The coverage, as sentences.
pub(crate) fn covered(hunt: &Hunt) -> Vec<String> {
    if is_webhook(hunt) {
        return asked(hunt);
    }
    let Coverage { trials, without_effect, broken, singles, pairs, others, shapes, unconfirmed, .. } = &hunt.coverage;
    let reference = &hunt.reference;
    let time = millis(whole(hunt.seconds * 1000.0));
    let mut lines = vec![
        format!(
            "{} in {time}, after {} plays without disturbances.",
            counted(u64::from(*trials), "trial"),
            reference.plays
        ),
        format!(
            "{} of {} single disturbances, {} pairs and {} larger combinations were tried.",
            singles.0, singles.1, pairs, others
        ),
        format!("{} different courses were seen.", count(u64::from(*shapes))),
        format!(
            "{} points are the same in every play; {} more are not, and were not disturbed.",
            reference.points.len(),
            reference.unsteady_points
        ),
    ];
    if *without_effect > 0 {
        lines.push(format!(
            "In {without_effect} trials no disturbance had an effect, because its point was not reached."
        ));
    }
    if *broken > 0 {
        lines.push(format!("{broken} trials failed and say nothing."));
    }
    if *unconfirmed > 0 {
        lines.push(format!("{unconfirmed} signs were seen once, and no replay showed them again."));
    }
    if !reference.masked.is_empty() || !reference.loose.is_empty() {
        lines.push(format!(
            "{} fields and {} objects differ between plays and were not compared.",
            reference.masked.len(),
            reference.loose.len()
        ));
    }
    if singles.0 < singles.1 {
        lines.push("A longer hunt would try the other single disturbances first.".to_owned());
    } else if hunt.ending == Ending::Done && *trials > 0 {
        lines.push("A longer hunt would try more combinations.".to_owned());
    }
    lines.extend(asked(hunt));
    lines
}

/// The rows of the table of disturbances.
pub(crate) fn disturbances(hunt: &Hunt) -> Vec<[String; 3]> {
    let rows = hunt.coverage.disturbances.iter();
    rows.map(|(name, trials, hits)| [name.clone(), count(u64::from(*trials)), count(u64::from(*hits))]).collect()
}

/// How often the finding was shown, and by which disturbances.
pub(crate) fn shown(found: &Found) -> String {
    let by = match found.shown_by.as_slice() {
        [] => "no disturbance is needed".to_owned(),
        names => format!("shown by: {}", names.join(", ")),
    };
    let healing = found.healing.iter().fold(String::new(), |text, healed| text + " " + healed);
    format!("{}; {by}.{healing}", found.odds.words())
}

/// The result for a terminal.
pub fn hunt_text(hunt: &Hunt) -> String {
    let mut text = String::new();
    for (number, found) in hunt.findings.iter().enumerate() {
        let _ = writeln!(text, "{}. {}", number + 1, plain(&found.title));
        for disturbance in &found.disturbances {
            let _ = writeln!(text, "   {}", plain(disturbance));
        }
        let _ = writeln!(text, "   {}", plain(&shown(found)));
        if let Some(play) = &found.play {
            let _ = writeln!(text, "   play it: {}", plain(play));
        }
    }
    for line in covered(hunt) {
        let _ = writeln!(text, "{}", plain(&line));
    }
    for note in &hunt.notes {
        let _ = writeln!(text, "note: {}", plain(note));
    }
    let _ = writeln!(text, "{}", plain(&hunt.sentence()));
    text
}

/// The result in Markdown.
pub fn hunt_markdown(hunt: &Hunt) -> String {
    let mut text = format!("## Hunt: {}\n\n{}\n\n", escaped(&hunt.scenario), escaped(&hunt.sentence()));
    for (number, found) in hunt.findings.iter().enumerate() {
        let _ = writeln!(text, "### {}. {}\n", number + 1, escaped(&found.title));
        for disturbance in &found.disturbances {
            let _ = writeln!(text, "- {}", escaped(disturbance));
        }
        let _ = writeln!(text, "- {}", escaped(&shown(found)));
        for sign in &found.also {
            let _ = writeln!(text, "- also: {}", escaped(&sign.sentence()));
        }
        if let Some(play) = &found.play {
            let _ = writeln!(text, "- play it: {}", code(play));
        }
        let _ = writeln!(text, "\n<details><summary>The course</summary>\n");
        for line in &found.story {
            let _ = writeln!(text, "- {}", escaped(line));
        }
        if !found.without.is_empty() {
            let _ = writeln!(text, "\nWithout the disturbance:\n");
        }
        for line in &found.without {
            let _ = writeln!(text, "- {}", escaped(line));
        }
        let _ = writeln!(text, "\n</details>\n");
    }
    let _ = writeln!(text, "### What was covered\n");
    for line in covered(hunt).iter().chain(&hunt.notes) {
        let _ = writeln!(text, "- {}", escaped(line));
    }
    let cells = |rows: Vec<[String; 3]>| rows.into_iter().map(|row| row.map(|cell| escaped(&cell)));
    if hunt.webhooks.is_some() {
        let _ = writeln!(text, "\n{}", table::markdown(CONDITION_HEADS, cells(conditions(hunt))));
    }
    if !is_webhook(hunt) {
        let _ = writeln!(text, "\n{}", table::markdown(DISTURBANCE_HEADS, cells(disturbances(hunt))));
    }
    let _ = writeln!(text, "Repeat: {}", code(&hunt.repeat));
    text
}

/// The result for CI systems: a failed test case for each finding, and one test case for the hunt itself.
pub fn hunt_junit(hunt: &Hunt) -> Result<String, Error> {
    let length = Duration::from_secs_f64(hunt.seconds.max(0.0));
    let mut suite = TestSuite::new(hunt.scenario.as_str());
    suite.set_time(length);
    suite.add_property(("seed", hunt.seed.to_string().as_str()));
    suite.add_property(("repeat", hunt.repeat.as_str()));
    for found in &hunt.findings {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_message(found.title.as_str());
        let lines: Vec<&str> = found.disturbances.iter().chain(&found.story).map(String::as_str).collect();
        status.set_description(lines.join("\n"));
        let mut case = TestCase::new(found.title.as_str(), status);
        case.set_classname(format!("longhaul.hunt.{}", hunt.scenario));
        suite.add_test_case(case);
    }
    let status = if hunt.exit_code() == crate::exit::INCONCLUSIVE {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_message(hunt.sentence());
        status
    } else {
        TestCaseStatus::success()
    };
    let what = if is_webhook(hunt) { "all questions were asked" } else { "all single disturbances were tried" };
    let mut case = TestCase::new(what, status);
    case.set_classname(format!("longhaul.hunt.{}", hunt.scenario));
    suite.add_test_case(case);
    let mut report = Report::new("longhaul");
    report.set_time(length);
    report.add_test_suite(suite);
    Ok(report.to_string()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::tests::{found, hunt, webhook};

    #[test]
    fn findings_come_first_in_every_form() {
        let hunt = hunt(vec![found()]);
        let text = hunt_text(&hunt);
        assert!(text.starts_with("1. caches default/a: status.created is absent"), "{text}");
        assert!(text.contains("play it: longhaul soak hunt-1.yaml") && text.contains("30 of 30 single"), "{text}");
        let markdown = hunt_markdown(&hunt);
        assert!(markdown.contains("### 1. ") && markdown.contains("| hold own | 5 | 4 |"), "{markdown}");
        let junit = hunt_junit(&hunt).unwrap();
        assert!(junit.contains("failures=\"1\"") && junit.contains("tests=\"2\""), "{junit}");
    }

    /// Text of the subject becomes neither Markdown nor control characters.
    #[test]
    fn text_from_outside_is_escaped() {
        let mut found = found();
        found.title = "a | b @all \u{1b}[31m <b>".to_owned();
        let hunt = hunt(vec![found]);
        assert!(!hunt_text(&hunt).contains('\u{1b}'));
        let markdown = hunt_markdown(&hunt);
        assert!(!markdown.contains("<b>") && !markdown.contains('\u{1b}'), "{markdown}");
    }

    /// The result of a subject that only answers reviews has no words about trials.
    #[test]
    fn a_webhook_has_questions_instead_of_trials() {
        let mut hunt = webhook();
        let text = hunt_text(&hunt);
        assert!(text.contains("12 questions about Cache were asked of /mutate, /validate."), "{text}");
        assert!(text.contains("No finding in 12 questions to 2 webhooks.") && !text.contains("trial"), "{text}");
        let markdown = hunt_markdown(&hunt);
        assert!(markdown.contains("| side by side | 40 | 1 |") && !markdown.contains("disturbance"), "{markdown}");
        assert!(hunt_junit(&hunt).unwrap().contains("all questions were asked"));
        if let Some(webhooks) = &mut hunt.webhooks {
            webhooks.denied = 0;
        }
        assert!(hunt_text(&hunt).contains("No question was denied"));
    }

    #[test]
    fn too_little_is_an_error_of_the_job() {
        let mut short = hunt(Vec::new());
        short.coverage.singles = (3, 30);
        assert!(hunt_junit(&short).unwrap().contains("errors=\"1\""));
        assert!(covered(&short).iter().any(|line| line.contains("the other single disturbances")));
    }
}
