//! Tests that each cause is found from its facts and from no other facts. Facts that a real control plane does not
//! report are not claimed.

use facts::Change;

use super::*;
use crate::judge::Grown;
use crate::record::{EndedBy, Evidence, FaultEvent, FaultRow, ReadOn, Step, Verb};

/// The subject's reports of later versions in the tests of causes.
const LATER: ReadOn = ReadOn { t_ms: 4500, times: 3 };
/// The text about [`LATER`] in the sentence of an explanation.
const READ_ON: &str = "while 3 later versions were reported, the first at 4.5 s";

/// An anomaly of version 17 of an object, written at 4 s.
fn row(outcome: Outcome, steps: &[Step]) -> AnomalyRow {
    let observed = matches!(
        outcome,
        Outcome::Late
            | Outcome::LateGhost
            | Outcome::Duplicate
            | Outcome::Regressed
            | Outcome::Resurrected
            | Outcome::Phantom
    );
    let mut evidence =
        Evidence { until_ms: 30_000, wire: true, steps: steps.to_vec(), left_out: 0, read_on: Some(LATER) };
    evidence.bound("17");
    AnomalyRow {
        t_ms: 30_000,
        outcome,
        resource: "packages.longhaul.dev".to_owned(),
        namespace: "default".to_owned(),
        name: "a".to_owned(),
        uid: "u".to_owned(),
        revision: "17".to_owned(),
        change: if matches!(outcome, Outcome::Ghost | Outcome::LateGhost) { Change::Deleted } else { Change::Modified },
        committed_ms: (!observed || matches!(outcome, Outcome::Late | Outcome::LateGhost)).then_some(4000),
        observed_ms: observed.then_some(12_000),
        delivery: None,
        wire: Vec::new(),
        detail: None,
        evidence: Some(evidence),
    }
}

fn explained(outcome: Outcome, steps: &[Step]) -> (Cause, String) {
    of(&row(outcome, steps), &[])
}

fn of(row: &AnomalyRow, faults: &[FaultRow]) -> (Cause, String) {
    let conduct = Conduct { tells_each: true, ..Conduct::default() };
    under(row, &Facts { faults: Faults::of_rows(faults), conduct })
}

fn under(row: &AnomalyRow, facts: &Facts) -> (Cause, String) {
    let Explained { cause, sentence } = explain(row, facts);
    (cause, sentence)
}

fn says(cause: Cause, sentence: &str) -> (Cause, String) {
    (cause, sentence.to_owned())
}

fn sent(t_ms: u64, revision: u64, watch: u64) -> Step {
    Step::Sent { t_ms, revision: revision.to_string(), watch }
}

fn watched(t_ms: u64, watch: u64, from: u64) -> Step {
    let from = Some(from.to_string());
    Step::Watched { t_ms, watch: Some(watch), from, initial: false, status: 200, error_code: None }
}

fn refused(t_ms: u64, status: u16) -> Step {
    Step::Watched { t_ms, watch: None, from: Some("9".to_owned()), initial: false, status, error_code: None }
}

fn ended(t_ms: u64, watch: u64, by: EndedBy, through: u64) -> Step {
    Step::WatchEnded { t_ms, watch, by, through: Some(through) }
}

fn listed(t_ms: u64, revision: u64) -> Step {
    Step::Listed { t_ms, status: 200, revision: Some(revision), objects: 5, further: false }
}

fn reported(t_ms: u64, revision: u64) -> Step {
    Step::Reported { t_ms, revision: revision.to_string(), change: Change::Modified }
}

fn committed(t_ms: u64, revision: u64, change: Change) -> Step {
    Step::Committed { t_ms, revision: revision.to_string(), change }
}

fn fault(name: &str, from_ms: u64, to_ms: u64) -> [FaultRow; 2] {
    let row = |t_ms, event| {
        let (id, name) = ("0".to_owned(), name.to_owned());
        FaultRow { t_ms, id, name, event, hits: 1, ok: None, detail: None }
    };
    [row(from_ms, FaultEvent::Started), row(to_ms, FaultEvent::Ended)]
}

#[test]
fn what_was_sent_and_never_reported_is_lost_in_the_client() {
    let steps = [watched(100, 3, 9), sent(4010, 17, 3)];
    let lost = says(Cause::LostInClient, &format!("sent on watch 3 at 4.01 s, never reported, {READ_ON}"));
    assert_eq!(explained(Outcome::Missed, &steps), lost);
    assert_eq!(explained(Outcome::Ghost, &steps), lost);
    let slow = says(Cause::SlowInClient, "sent on watch 3 at 4.01 s, reported only at 12 s");
    assert_eq!(explained(Outcome::Late, &steps), slow);
    // A clean end by the server comes after all sent events.
    let clean = [watched(100, 3, 9), sent(4010, 17, 3), ended(4015, 3, EndedBy::Server, 17)];
    assert_eq!(explained(Outcome::Missed, &clean), lost);
}

#[test]
fn what_broke_off_or_froze_may_not_have_arrived() {
    let steps = [watched(100, 3, 9), sent(4010, 17, 3), ended(4030, 3, EndedBy::Reset, 17)];
    let broken = "sent on watch 3 at 4.01 s, 20 ms before that watch was broken off, never reported";
    assert_eq!(explained(Outcome::Missed, &steps), says(Cause::OnTheWay, broken));
    let frozen = of(&row(Outcome::Missed, &steps[..2]), &fault("net-freeze", 3000, 9000));
    let text = "sent on watch 3 at 4.01 s while the fault net-freeze was active, never reported";
    assert_eq!(frozen, says(Cause::OnTheWay, text));
    // A fault that acts on other resources, or was over, is no excuse.
    for other in [fault("http-error", 3000, 9000), fault("net-freeze", 1000, 3000)] {
        assert_eq!(of(&row(Outcome::Missed, &steps[..2]), &other).0, Cause::LostInClient);
    }
}

#[test]
fn who_resumes_behind_a_version_has_skipped_it() {
    let steps = [watched(100, 3, 9), ended(3900, 3, EndedBy::Server, 16), watched(4500, 4, 20)];
    let skipped = "not sent: watch 3 ended at revision 16, and the client resumed from 20";
    assert_eq!(explained(Outcome::Missed, &steps), says(Cause::SkippedByClient, skipped));
    let mut anywhere = steps.clone();
    anywhere[2] =
        Step::Watched { t_ms: 4500, watch: Some(4), from: None, initial: false, status: 200, error_code: None };
    assert_eq!(explained(Outcome::Ghost, &anywhere).0, Cause::SkippedByClient);
    // If the watch opened before the version, the version had to be sent.
    let before = [steps[0].clone(), steps[1].clone(), watched(4500, 4, 16)];
    assert_eq!(explained(Outcome::Missed, &before).0, Cause::NotSent);
}

#[test]
fn what_a_list_showed_is_lost_from_the_list() {
    let steps = [watched(100, 3, 9), ended(3900, 3, EndedBy::Server, 16), listed(4400, 20), watched(4500, 4, 20)];
    let in_list = "the list of 4.4 s (revision 20) had this version, and it was never reported";
    assert_eq!(explained(Outcome::Missed, &steps), says(Cause::LostFromList, in_list));
    let mut gone = steps.to_vec();
    gone.push(committed(4000, 17, Change::Deleted));
    let text = "the list of 4.4 s (revision 20) no longer had the object, and its deletion was never reported";
    assert_eq!(explained(Outcome::Ghost, &gone), says(Cause::LostFromList, text));
    // A list from before the version shows nothing of it.
    let old = [steps[0].clone(), steps[1].clone(), listed(4400, 16), watched(4500, 4, 20)];
    assert_eq!(explained(Outcome::Missed, &old).0, Cause::SkippedByClient);
}

#[test]
fn what_a_fault_withheld_is_not_the_clients() {
    let withheld = Step::Withheld {
        t_ms: 4010,
        revision: "17".to_owned(),
        watch: 3,
        fault: "event-dropped (2 of the scenario)".to_owned(),
    };
    let steps = [watched(100, 3, 9), withheld, watched(9000, 4, 22)];
    let dropped = "dropped by the fault event-dropped (2 of the scenario) on watch 3 at 4.01 s";
    assert_eq!(explained(Outcome::Missed, &steps), says(Cause::Withheld, dropped));
    let silent = format!("{dropped}, and the client sent no request afterwards");
    assert_eq!(explained(Outcome::Missed, &steps[..2]), says(Cause::Withheld, &silent));
    let mut sent_later = steps[..2].to_vec();
    sent_later.push(sent(11_000, 17, 4));
    let late = "withheld by the fault event-dropped (2 of the scenario), sent only at 11 s";
    assert_eq!(explained(Outcome::Late, &sent_later), says(Cause::Withheld, late));
    // A list afterwards showed it: then the client lost it.
    let mut healed = steps[..2].to_vec();
    healed.push(listed(9000, 22));
    assert_eq!(explained(Outcome::Missed, &healed).0, Cause::LostFromList);
}

#[test]
fn who_asks_no_more_is_told_no_more() {
    let steps = [watched(100, 3, 9), ended(3900, 3, EndedBy::Server, 16)];
    let silent = "not sent: watch 3 ended at 3.9 s, and the client sent no further request";
    assert_eq!(explained(Outcome::Missed, &steps), says(Cause::NeverAskedAgain, silent));
    let lists = [steps[0].clone(), steps[1].clone(), listed(3950, 16)];
    let only_lists = "not sent: watch 3 ended at revision 16, and the client opened no other watch";
    assert_eq!(explained(Outcome::Missed, &lists), says(Cause::NeverAskedAgain, only_lists));
    assert_eq!(
        explained(Outcome::Missed, &[]),
        says(Cause::NeverAsked, "not sent: the client never asked for this resource")
    );
}

#[test]
fn who_is_refused_again_and_again_asks_in_vain() {
    let steps = [watched(100, 3, 9), ended(3900, 3, EndedBy::Server, 16), refused(3950, 410), refused(5000, 410)];
    let vain = "not sent: watch 3 ended at revision 16, and 2 requests after it were refused, the last with 410";
    assert_eq!(explained(Outcome::Missed, &steps), says(Cause::RefusedInVain, vain));
    // A watch that got only an error is no watch; one that got an error at the end was one.
    let error = |t_ms, watch| {
        let (from, error_code) = (Some("16".to_owned()), Some(410));
        Step::Watched { t_ms, watch: Some(watch), from, initial: false, status: 200, error_code }
    };
    let nothing = Step::WatchEnded { t_ms: 3960, watch: 4, by: EndedBy::Server, through: None };
    let steps = [error(100, 3), ended(3900, 3, EndedBy::Server, 16), error(3950, 4), nothing];
    let vain =
        "not sent: watch 3 ended with ERROR 410 at revision 16, and 1 request after it was refused, the last with 410";
    assert_eq!(explained(Outcome::Missed, &steps), says(Cause::RefusedInVain, vain));
}

#[test]
fn who_comes_back_late_is_told_late() {
    let steps = [
        watched(100, 3, 9),
        ended(3900, 3, EndedBy::Server, 16),
        refused(3950, 500),
        watched(11_000, 4, 16),
        sent(11_010, 17, 4),
    ];
    let away = "no watch was open from 3.9 s to 11 s (1 request refused, the last with 500), sent only at 11 s";
    assert_eq!(explained(Outcome::Late, &steps), says(Cause::NoWatchOpen, away));
    // A watch that ended before the object existed is not in the object's evidence.
    let unknown = "no watch was open when it was written, nor before 11 s (1 request refused, the last with 500), sent only at 11 s";
    assert_eq!(explained(Outcome::Late, &steps[2..]), says(Cause::NoWatchOpen, unknown));
    let list = [watched(100, 3, 9), listed(11_500, 25)];
    let healed = "not sent on watch 3, although it was open; the list of 11.5 s brought it";
    assert_eq!(explained(Outcome::Late, &list), says(Cause::NotSent, healed));
    // A client that comes back with a list was away, so the remedy is not to ask again.
    let back = [watched(100, 3, 9), ended(3900, 3, EndedBy::Server, 16), refused(3950, 410), listed(11_500, 25)];
    let healed = "no watch was open from 3.9 s (1 request refused, the last with 410); the list of 11.5 s brought it";
    assert_eq!(explained(Outcome::Late, &back), says(Cause::NoWatchOpen, healed));
    let behind = [back[0].clone(), back[1].clone(), watched(3950, 4, 20), listed(11_500, 25)];
    assert_eq!(explained(Outcome::Late, &behind).0, Cause::SkippedByClient);
}

#[test]
fn what_an_open_watch_was_not_sent_is_the_control_planes() {
    let open = "not sent on watch 3, although it was open";
    assert_eq!(explained(Outcome::Missed, &[watched(100, 3, 9)]), says(Cause::NotSent, open));
    let under = of(&row(Outcome::Missed, &[watched(100, 3, 9)]), &fault("hold-buffer", 3000, 9000));
    let text = "not sent on watch 3 while the fault hold-buffer was active, although the watch was open";
    assert_eq!(under, says(Cause::Withheld, text));
}

#[test]
fn what_is_told_twice_was_sent_once_or_twice() {
    let steps = [watched(100, 3, 9), sent(4010, 17, 3), reported(4020, 17), reported(12_000, 17)];
    let twice = "sent once, on watch 3 at 4.01 s, reported at 4.02 s and again at 12 s";
    assert_eq!(explained(Outcome::Duplicate, &steps), says(Cause::ToldTwice, twice));
    let mut again = steps.to_vec();
    again.extend([watched(11_900, 4, 10), sent(11_990, 17, 4)]);
    let text = "sent on watch 3 at 4.01 s and again on watch 4 at 12 s, which the client opened from revision 10";
    assert_eq!(explained(Outcome::Duplicate, &again), says(Cause::SentAgain, text));
    let mut relisted = steps.to_vec();
    relisted.push(listed(11_900, 30));
    assert!(explained(Outcome::Duplicate, &relisted).1.ends_with("after the list of 11.9 s held it unchanged"));
}

#[test]
fn what_goes_back_was_overtaken_or_believed() {
    let steps = [sent(4010, 17, 3), sent(4200, 18, 3), reported(4300, 18), reported(12_000, 17)];
    let overtaken = "sent before revision 18 (at 4.01 s and 4.2 s), but reported after it";
    assert_eq!(explained(Outcome::Regressed, &steps), says(Cause::Overtaken, overtaken));
    assert_eq!(explained(Outcome::Resurrected, &steps).0, Cause::Overtaken);
    let stale = [steps.to_vec(), vec![listed(11_900, 12)]].concat();
    assert_eq!(explained(Outcome::Regressed, &stale).0, Cause::OlderStateBelieved);
    let sent_again = [steps.to_vec(), vec![sent(11_900, 17, 4)]].concat();
    assert_eq!(explained(Outcome::Regressed, &sent_again).0, Cause::OlderStateBelieved);
}

#[test]
fn what_was_never_written_is_made_up() {
    let mut status = row(Outcome::Phantom, &[]);
    (status.name, status.resource) = (String::new(), String::new());
    assert_eq!(of(&status, &[]), says(Cause::MadeUp, "revision 17 was reported at 12 s, but never written"));
    let mut gone = row(Outcome::Phantom, &[committed(4000, 17, Change::Added), listed(11_000, 16)]);
    gone.change = Change::Deleted;
    assert_eq!(of(&gone, &[]).0, Cause::OlderStateBelieved);
    let edited = of(&status, &fault("event-edited", 11_000, 13_000));
    assert_eq!(edited.0, Cause::OnTheWay);
}

/// Multiplied watches are the cause of reports after they multiplied. Multiplied watches are not the cause of earlier
/// reports, or of reports about another resource.
#[test]
fn what_watches_tell_that_multiplied_has_that_cause() {
    let grown = Grown {
        resource: "packages.longhaul.dev".to_owned(),
        scope: "packages.longhaul.dev in default".to_owned(),
        first: 1,
        most: 8,
        most_ms: 11_000,
        from_ms: 9000,
        ends: 7,
    };
    let steps = [sent(4010, 17, 3), reported(4020, 17), sent(4010, 18, 3), reported(5000, 18)];
    for outcome in [Outcome::Duplicate, Outcome::Regressed, Outcome::Resurrected] {
        let row = row(outcome, &steps);
        let own = explain(&row, &Facts::default());
        let Explained { cause, sentence } = multiplied::explain(&row, own.clone(), Some(&grown));
        assert_eq!(cause, Cause::Multiplied, "{outcome}: {own:?}");
        let end = "; 8 watches of packages.longhaul.dev in default were open at once after 7 ends, compared with 1 before the first end";
        assert_eq!(sentence, format!("{}{end}", own.sentence));
        for other in
            [Grown { from_ms: 12_001, ..grown.clone() }, Grown { resource: "pods".to_owned(), ..grown.clone() }]
        {
            assert_eq!(multiplied::explain(&row, own.clone(), Some(&other)), own);
        }
        assert_eq!(multiplied::explain(&row, own.clone(), None), own);
    }
    let missed = row(Outcome::Missed, &steps);
    let own = explain(&missed, &Facts::default());
    assert_eq!(multiplied::explain(&missed, own.clone(), Some(&grown)), own);
}

/// A fault withheld an event and later sent it on the same watch. If the client then reports the event late, the cause
/// is the client and not the fault.
#[test]
fn what_came_late_and_waited_in_the_client_is_the_clients() {
    let withheld =
        Step::Withheld { t_ms: 4010, revision: "17".to_owned(), watch: 3, fault: "event-delayed".to_owned() };
    let came = |t_ms| explained(Outcome::Late, &[watched(100, 3, 9), withheld.clone(), sent(t_ms, 17, 3)]);
    let waited = "withheld by the fault event-delayed from 4.01 s on, sent on watch 3 at 10 s, reported only at 12 s";
    assert_eq!(came(10_000), says(Cause::SlowInClient, waited));
    assert_eq!(came(11_500), says(Cause::Withheld, "withheld by the fault event-delayed, sent only at 11.5 s"));
}

#[test]
fn names_that_come_back_and_gaps_have_their_words() {
    assert_eq!(explained(Outcome::IdentitySwap, &[]).0, Cause::TakenForUpdate);
    assert_eq!(explained(Outcome::Unobservable, &[]).0, Cause::LegallyUnseen);
}

/// A real control plane does not record sent events: neither subject nor control plane is blamed, and only known facts
/// are reported.
#[test]
fn where_the_wire_is_unknown_nobody_is_blamed() {
    for outcome in [Outcome::Missed, Outcome::Late, Outcome::Ghost, Outcome::Duplicate, Outcome::Regressed] {
        let mut row = row(outcome, &[reported(4020, 17)]);
        row.evidence.iter_mut().for_each(|evidence| evidence.wire = false);
        let (cause, sentence) = of(&row, &[]);
        assert_eq!(cause, Cause::NotTold, "{sentence}");
        assert!(!sentence.contains("sent on"), "{sentence}");
    }
    let mut missed = row(Outcome::Missed, &[]);
    missed.evidence.iter_mut().for_each(|evidence| evidence.wire = false);
    let text = "written at 4 s, never reported; what was sent to the client is not known";
    assert_eq!(of(&missed, &[]), says(Cause::NotTold, text));
}

/// An anomaly of an older record without evidence is explained by its field `delivery`.
#[test]
fn an_older_record_is_explained_by_its_delivery() {
    let mut older = row(Outcome::Missed, &[]);
    older.evidence = None;
    older.delivery = Some("sent on watch 3 at 4010 ms".to_owned());
    assert_eq!(of(&older, &[]), says(Cause::Unknown, "sent on watch 3 at 4010 ms, never reported"));
    older.delivery = Some("withheld by the fault silent-watch".to_owned());
    assert_eq!(of(&older, &[]).0, Cause::Withheld);
    older.delivery = None;
    assert_eq!(of(&older, &[]).0, Cause::NotTold);
}

mod proven;

#[test]
fn every_cause_has_a_remedy() {
    let mut labels: Vec<&str> = Cause::ALL.iter().map(|cause| cause.label()).collect();
    for cause in Cause::ALL {
        assert!(!cause.label().is_empty() && !cause.label().ends_with('.'), "{cause:?}");
        assert!(cause.remedy().len() > 60 && cause.remedy().ends_with('.'), "{cause:?}: {}", cause.remedy());
        assert!(!cause.remedy().contains("  "), "{cause:?} has a gap in its remedy");
    }
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), Cause::ALL.len(), "two causes have the same words");
}

/// `docs/causes.md` contains the table of causes. `UPDATE_DOCS=1` writes the table of causes there.
#[test]
fn the_page_on_causes_is_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/causes.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (begin, end) = ("<!-- causes: written by reports/src/causes/tests.rs -->\n", "<!-- end of causes -->\n");
    let (before, rest) = text.split_once(begin).unwrap();
    let (table, after) = rest.split_once(end).unwrap();
    let rows: Vec<String> = Cause::ALL.iter().map(|cause| format!("| {cause} | {} |\n", cause.remedy())).collect();
    let rows = rows.concat();
    let right = format!("| Cause | What to do next |\n|---|---|\n{rows}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, format!("{before}{begin}{right}{end}{after}")).unwrap();
    } else {
        assert_eq!(table, right, "run this test with UPDATE_DOCS=1");
    }
}
