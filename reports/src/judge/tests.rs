//! Tests that each damage to a clean record leads to exactly its finding, and that a clean record leads to none.

use super::*;
use crate::budgets::{Delivery, Events};
use crate::example::{Example, FAULT_AT_MS, Judged as _, list, watch};
use crate::ledger::Outcome;
use crate::record::{
    ApiRow, End, EndReason, FaultEvent, FaultRow, Lost, Need, PlannedFault, Refused, RequestRow, Sees, StoredRow, Verb,
    WebhookPlan, WebhookRow, file, tag,
};

mod holes;

/// The findings that did not pass, worst first, each as `budget verdict`.
fn fired(example: &Example) -> Vec<String> {
    let judgement = example.judged();
    let mut fired: Vec<_> = judgement
        .crossed()
        .into_iter()
        .map(|finding| format!("{} {}", finding.budget, finding.verdict.word()))
        .collect();
    fired.push(judgement.verdict.word().to_owned());
    fired
}

/// Adds admission load through the control plane, which stored `versions` versions of objects.
fn stored(example: &mut Example, versions: u64, unpinned: u64) {
    example.manifest.budgets.admission.as_mut().unwrap().unpinned = Some(0);
    let examples = vec!["pods n/a was stored with the image r/a:1".to_owned()];
    example.intervals[9].admission.as_mut().unwrap().stored = Some(StoredRow { versions, unpinned, examples });
}

/// Adds two registered webhooks, one of which was called `calls` times.
fn webhooks(example: &mut Example, calls: u64) {
    let plan = |name: &str, unmatched: Option<&str>| WebhookPlan {
        name: name.to_owned(),
        direct: false,
        unmatched: unmatched.map(str::to_owned),
    };
    example.manifest.webhooks = vec![plan("mcache.kb.io", None), plan("vcache.kb.io", Some("its rules match nothing"))];
    let row = |name: &str, calls| WebhookRow { name: name.to_owned(), calls, rejected: 0 };
    example.intervals[9].webhooks = vec![row("mcache.kb.io", 7), row("vcache.kb.io", calls)];
}

fn registry(example: &mut Example, budget: &str) {
    example.manifest.budgets.registry = Some(serde_json::from_str(budget).unwrap());
}

/// A name, the changes that damage a clean record, and all findings that must not pass afterwards.
type Planted = (&'static str, &'static [fn(&mut Example)], &'static str);

/// The budgets of the clean example that are undecided if the machine was suspended.
const SUSPENDED: &str = "events.missed inconclusive, events.ghost inconclusive, events.late inconclusive, events.lagP99 inconclusive, \
    events.heal inconclusive, requests.blind inconclusive, requests.hotLoop inconclusive, \
    requests.staleResume inconclusive, requests.openWatches inconclusive, admission.p99 inconclusive, \
    admission.errors inconclusive, descriptors.growth inconclusive, validity.suspended inconclusive, inconclusive";
/// The budgets that are undecided or broken if the machine was suspended, a version was lost long before, and an answer
/// was wrong.
const SUSPENDED_AND_FAILED: &str = "events.missed fail, admission.wrongVerdicts fail, events.ghost inconclusive, events.late inconclusive, \
    events.lagP99 inconclusive, events.heal inconclusive, requests.blind inconclusive, \
    requests.hotLoop inconclusive, requests.staleResume inconclusive, requests.openWatches inconclusive, \
    admission.p99 inconclusive, admission.errors inconclusive, descriptors.growth inconclusive, \
    validity.suspended inconclusive, fail";
/// The budgets of the clean example that need samples, and are undecided if samples are missing.
const SAMPLES_MISSING: &str = "memory.ceiling inconclusive, descriptors.ceiling inconclusive, descriptors.growth inconclusive, \
    threads.ceiling inconclusive, validity.samples inconclusive, inconclusive";

const PLANTED: [Planted; 73] = [
    ("clean", &[], "pass"),
    ("webhooks", &[|e| webhooks(e, 1)], "pass"),
    ("nobody asked", &[|e| webhooks(e, 0)], "webhooks.asked.vcache.kb.io inconclusive, inconclusive"),
    ("missed", &[|e| e.miss(2, 61_000)], "events.missed fail, fail"),
    (
        "missed while the harness stood still",
        &[|e| e.miss(2, 101_000), |e| e.intervals[20].end_ms += 10_001],
        "events.missed inconclusive, validity.pace inconclusive, inconclusive",
    ),
    (
        "missed long before the harness stood still",
        &[|e| e.miss(2, 61_000), |e| e.intervals[20].end_ms += 10_001],
        "events.missed fail, fail",
    ),
    (
        "missed, and what was open was decided slowly",
        &[|e| e.miss(2, 61_000), |e| e.intervals.last_mut().unwrap().end_ms += 102_000],
        "events.missed fail, fail",
    ),
    (
        "missed after changes that came late",
        &[|e| e.miss(2, 101_000), |e| e.churn_was_late(2600)],
        "events.missed inconclusive, validity.pace inconclusive, inconclusive",
    ),
    (
        "missed long before changes came late",
        &[|e| e.miss(2, 61_000), |e| e.churn_was_late(2600)],
        "events.missed fail, fail",
    ),
    (
        "a ceiling broken while the harness stood still",
        &[
            |e| e.samples[102].subject.as_mut().unwrap().rss_bytes = (64 << 20) + 1,
            |e| e.intervals[20].end_ms += 10_001,
        ],
        "memory.ceiling fail, fail",
    ),
    (
        "a ceiling broken before the harness was killed",
        &[|e| e.samples[50].subject.as_mut().unwrap().rss_bytes = (64 << 20) + 1, |e| e.end = None],
        "memory.ceiling fail, validity.completed invalid, fail",
    ),
    (
        "rows lost on a full disk",
        &[|e| e.end.as_mut().unwrap().lost = Some(Lost { rows: 12, from_ms: 30_000, to_ms: Some(45_000) })],
        "validity.record invalid, invalid",
    ),
    (
        "a machine that slept",
        &[|e| e.samples[40..].iter_mut().for_each(|row| row.machine.suspended_ms = Some(30_000))],
        SUSPENDED,
    ),
    (
        "missed before a machine slept",
        &[
            |e| e.samples[90..].iter_mut().for_each(|row| row.machine.suspended_ms = Some(30_000)),
            |e| e.miss(2, 61_000),
            |e| e.intervals[9].admission.as_mut().unwrap().wrong_verdicts = 1,
        ],
        SUSPENDED_AND_FAILED,
    ),
    (
        "missed before a clock was set back",
        &[|e| e.samples[90..].iter_mut().for_each(|row| row.machine.clock_set_ms = Some(-7000)), |e| e.miss(2, 61_000)],
        "events.missed fail, fail",
    ),
    (
        "a clock that was set back",
        &[|e| e.samples[40..].iter_mut().for_each(|row| row.machine.clock_set_ms = Some(-7000))],
        "pass",
    ),
    (
        "missed by who reads a clock that was set back",
        &[|e| e.samples[40..].iter_mut().for_each(|row| row.machine.clock_set_ms = Some(-7000)), |e| e.miss(2, 61_000)],
        "events.missed inconclusive, validity.clock inconclusive, inconclusive",
    ),
    (
        "a clock that is set right little by little",
        &[|e| (0..).zip(&mut e.samples).for_each(|(n, row)| row.machine.clock_set_ms = Some(20 * n))],
        "pass",
    ),
    ("a sample that was kept for its peak", &[|e| e.samples[40].peak = true], "pass"),
    ("passed although changes came late", &[|e| e.churn_was_late(2600)], "pass"),
    ("passed although the harness stood still", &[|e| e.intervals[31].end_ms += 10_001], "pass"),
    ("ghost", &[|e| e.intervals[30].events.ghost = 1], "events.ghost fail, fail"),
    ("regressed", &[|e| e.intervals[9].events.regressed = 1], "events.regressed fail, fail"),
    ("phantom", &[|e| e.intervals[9].events.phantom = 1], "events.phantom fail, fail"),
    ("resurrected", &[|e| e.intervals[9].events.resurrected = 1], "events.resurrected fail, fail"),
    ("identity swap", &[|e| e.intervals[9].events.identity_swap = 1], "events.identitySwap fail, fail"),
    ("late", &[|e| e.intervals[9].events.late = 1], "events.late fail, fail"),
    ("late ghost", &[|e| e.intervals[9].events.late_ghost = 1], "events.late fail, fail"),
    ("duplicates are only counted without a budget", &[|e| e.intervals[9].events.duplicate = 100], "pass"),
    ("slow lag", &[|e| e.record(tag::LAG, 30_000, 2_500_000, 200)], "events.lagP99 fail, fail"),
    ("slow lag under a fault is not lag", &[|e| e.record(tag::LAG_FAULTED, 60_000, 2_500_000, 400)], "pass"),
    ("slow to heal", &[|e| e.record(tag::HEAL, 60_000, 61_000_000, 1)], "events.heal fail, fail"),
    ("healed in time", &[|e| e.record(tag::HEAL, 60_000, 59_000_000, 1)], "pass"),
    ("blind", &[|e| e.intervals[29].api.subject_idle_ms = Some(121_000)], "events.blind fail, fail"),
    (
        "blind at the end",
        &[|e| e.miss(1, 130_000), |e| e.intervals.last_mut().unwrap().api.subject_idle_ms = Some(31_000)],
        "events.missed fail, events.blind fail, fail",
    ),
    ("idle at the end with nothing to see", &[|e| e.intervals[31].api.subject_idle_ms = Some(31_000)], "pass"),
    (
        "hot loop that only counts tell",
        &[|e| (e.requests, e.manifest.budgets.requests) = (None, None), |e| e.intervals[30].api.subject_watches = 11],
        "events.hotLoop fail, fail",
    ),
    (
        "watches that live ten times shorter and are remade as often",
        &[
            |e| (e.requests, e.manifest.budgets.requests) = (None, None),
            |e| (e.intervals[30].api.subject_watches, e.manifest.compress) = (11, 10),
        ],
        "pass",
    ),
    (
        "hot loop on what is judged, of which each request was counted",
        &[
            |e| (e.requests, e.manifest.budgets.requests) = (None, None),
            |e| e.intervals[30].api.subject_follows = Some(11),
        ],
        "events.hotLoop fail, fail",
    ),
    (
        "a controller that lists for its work while its watch is silent",
        &[
            |e| (e.requests, e.manifest.budgets.requests) = (None, None),
            |e| (e.intervals[30].api.subject_lists, e.intervals[30].api.subject_follows) = (500, Some(1)),
        ],
        "pass",
    ),
    (
        "hot loop",
        &[|e| e.requests.as_mut().unwrap().extend((0..11).map(|n| list(10 + n, 120_000 + 100 * n, 4400)))],
        "events.hotLoop fail, requests.hotLoop fail, fail",
    ),
    (
        "a write that is refused again and again, which is no way of following",
        &[|e| {
            let patch = |n: u64| RequestRow {
                verb: Verb::Patch,
                method: "PATCH".into(),
                status: 404,
                ..list(10 + n, 120_000 + 100 * n, 0)
            };
            e.requests.as_mut().unwrap().extend((0..11).map(patch));
        }],
        "requests.hotLoop fail, fail",
    ),
    (
        "lists that a watch follows, as of many informers",
        &[|e| {
            let rows = (0..11).flat_map(|n| {
                let at_ms = FAULT_AT_MS + 8000;
                [list(10 + n, at_ms, 4400), watch(40 + n, at_ms + 1, at_ms + 2, 4400, 4401)]
            });
            e.requests.as_mut().unwrap().extend(rows);
            e.manifest.budgets.requests.as_mut().unwrap().open_watches = None;
        }],
        "pass",
    ),
    ("many watches with progress", &[|e| e.intervals[9].api.subject_watches = 11], "pass"),
    ("slow", &[|e| e.record(tag::RESPONSE_DENIED, 30_000, 30_000, 300)], "admission.p99 fail, fail"),
    ("slow in warm-up only", &[|e| e.record(tag::RESPONSE_DENIED, 5000, 30_000, 300)], "pass"),
    (
        "wrong",
        &[|e| e.intervals[9].admission.as_mut().unwrap().wrong_verdicts = 1],
        "admission.wrongVerdicts fail, fail",
    ),
    ("everything stored is pinned", &[|e| stored(e, 900, 0)], "pass"),
    ("unpinned", &[|e| stored(e, 900, 1)], "admission.unpinned fail, fail"),
    ("nothing stored", &[|e| stored(e, 0, 0)], "admission.unpinned inconclusive, inconclusive"),
    (
        "the registry is asked no more than it may be",
        &[|e| registry(e, r#"{"requests": 336, "requestsPerImage": 5}"#)],
        "pass",
    ),
    (
        "the registry is asked too often",
        &[
            |e| registry(e, r#"{"requests": 336, "requestsPerImage": 5}"#),
            |e| e.intervals[9].registry.as_mut().unwrap().requests += 1,
        ],
        "registry.requests fail, fail",
    ),
    (
        "the registry is asked for one image too often",
        &[
            |e| registry(e, r#"{"requests": 336, "requestsPerImage": 5}"#),
            |e| e.intervals[9].registry.as_mut().unwrap().most_of_one_tag = 6,
        ],
        "registry.requestsPerImage fail, fail",
    ),
    (
        "the registry is not asked at all",
        &[
            |e| registry(e, r#"{"requests": 336, "requestsPerImage": 5}"#),
            |e| e.intervals.iter_mut().for_each(|row| row.registry = None),
        ],
        "registry.requests inconclusive, registry.requestsPerImage inconclusive, inconclusive",
    ),
    (
        "refused what a cache could have known",
        &[|e| registry(e, r#"{"unavailable": 10}"#), |e| e.intervals[9].admission.as_mut().unwrap().unavailable = 11],
        "registry.unavailable fail, fail",
    ),
    ("errors", &[|e| e.intervals[9].admission.as_mut().unwrap().timeout = 1], "admission.errors fail, fail"),
    (
        "too much memory",
        &[|e| e.samples[50].subject.as_mut().unwrap().rss_bytes = (64 << 20) + 1],
        "memory.ceiling fail, fail",
    ),
    (
        "descriptors leak",
        &[|e| e.samples[21..].iter_mut().for_each(|s| s.subject.as_mut().unwrap().fds.socket += s.t_ms / 40_000)],
        "descriptors.growth fail, fail",
    ),
    (
        "one sample with too many descriptors",
        &[
            |e| e.manifest.budgets.descriptors.get_or_insert_default().ceiling = Some(200),
            |e| e.samples[50].subject.as_mut().unwrap().fds.socket = 201,
        ],
        "descriptors.ceiling fail, fail",
    ),
    ("one sample with more", &[|e| e.samples[130].subject.as_mut().unwrap().fds.socket += 1], "pass"),
    ("threads", &[|e| e.samples[5].subject.as_mut().unwrap().threads = 17], "threads.ceiling fail, fail"),
    (
        "fault without a hit",
        &[|e| e.faults.iter_mut().for_each(|row| row.hits = 0)],
        "validity.faults inconclusive, inconclusive",
    ),
    (
        "probe before the fault not healthy",
        &[|e| {
            let before = |row: &&mut FaultRow| row.event == FaultEvent::CanaryBefore;
            e.faults.iter_mut().find(before).unwrap().ok = Some(false);
        }],
        "validity.fault.1 inconclusive, inconclusive",
    ),
    (
        "generator off its rate",
        &[|e| e.intervals[9].admission.as_mut().unwrap().sent -= 300],
        "admission.p99 inconclusive, descriptors.growth inconclusive, validity.admissionRate inconclusive, inconclusive",
    ),
    (
        "generator off its rate, and wrong",
        &[
            |e| e.intervals[9].admission.as_mut().unwrap().sent -= 300,
            |e| e.intervals[9].admission.as_mut().unwrap().wrong_verdicts = 1,
        ],
        "admission.wrongVerdicts fail, admission.p99 inconclusive, descriptors.growth inconclusive, validity.admissionRate inconclusive, fail",
    ),
    (
        "a generator that hardly sent anything",
        &[|e| e.intervals.iter_mut().filter_map(|row| row.admission.as_mut()).for_each(|row| row.sent /= 3)],
        "validity.admissionRate invalid, invalid",
    ),
    (
        "fewer object changes than planned, and all of them seen",
        &[|e| e.intervals.iter_mut().filter_map(|row| row.churn.as_mut()).for_each(|row| row.created -= 10)],
        "events.lagP99 inconclusive, descriptors.growth inconclusive, validity.churnRate inconclusive, inconclusive",
    ),
    ("generator late, every budget met", &[|e| e.record(tag::LATENESS, 30_000, 11_000, 400)], "pass"),
    (
        "generator late and a latency budget broken",
        &[|e| e.record(tag::LATENESS, 30_000, 11_000, 400), |e| e.record(tag::RESPONSE_DENIED, 30_000, 30_000, 300)],
        "admission.p99 inconclusive, validity.lateness inconclusive, inconclusive",
    ),
    (
        "generator late, and the subject slow by itself",
        &[
            |e| e.record(tag::LATENESS, 30_000, 11_000, 400),
            |e| e.record(tag::RESPONSE_DENIED, 30_000, 60_000, 300),
            |e| e.record(tag::SERVICE, 30_000, 49_000, 300),
        ],
        "admission.p99 fail, fail",
    ),
    (
        "fault without a hit on a subject that was deaf before",
        &[|e| e.miss(2, 61_000), |e| e.faults.iter_mut().for_each(|row| row.hits = 0)],
        "events.missed fail, validity.faults inconclusive, fail",
    ),
    (
        "fault without a hit on a subject that had stopped asking",
        &[|e| e.requests.as_mut().unwrap().truncate(1), |e| e.faults.iter_mut().for_each(|row| row.hits = 0)],
        "requests.blind fail, validity.faults inconclusive, fail",
    ),
    ("samples missing", &[|e| e.samples[60..100].iter_mut().for_each(|s| s.subject = None)], SAMPLES_MISSING),
];

#[test]
#[ignore = "slow"]
fn each_planted_fault_fires_exactly_its_finding() {
    let mut wrong = Vec::new();
    for (name, spoil, expected) in PLANTED {
        let mut example = Example::clean();
        for spoil in spoil {
            spoil(&mut example);
        }
        let fired = fired(&example).join(", ");
        if fired != expected {
            wrong.push(format!("{name}: {fired:?} instead of {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn how_a_run_ended_decides_whether_it_counts() {
    let ended = |reason: EndReason| {
        let mut example = Example::clean();
        example.end = Some(End { ended_ms: 90_000, reason, lost: None, holes: Vec::new() });
        fired(&example)
    };
    let detail = String::from("nothing listened on 127.0.0.1:8443");
    let invalid = ["validity.completed invalid", "invalid"];
    assert_eq!(ended(EndReason::Interrupted { signal: "SIGINT".into() }), invalid);
    assert_eq!(ended(EndReason::SubjectNotReady { detail: detail.clone(), waited_ms: None }), invalid);
    let silent = ended(EndReason::WitnessSilent { detail: detail.clone() });
    assert!(silent.contains(&"events.missed inconclusive".to_owned()), "{silent:?}");
    assert!(silent.contains(&"validity.completed inconclusive".to_owned()), "{silent:?}");
    assert_eq!(silent.last().map(String::as_str), Some("inconclusive"), "what does not need the witness is judged");
    assert_eq!(ended(EndReason::HarnessError { detail: detail.clone() }), invalid);
    assert_eq!(
        ended(EndReason::LoadLost { detail: detail.clone() }),
        ["validity.completed inconclusive", "inconclusive"]
    );
    assert_eq!(ended(EndReason::SubjectExited { status: "signal 11".into(), detail }), ["subject.exited fail", "fail"]);
}

/// A silent witness decides nothing, unless the scenario says that it must report something.
#[test]
fn a_witness_that_must_report_something_fails_the_run_if_it_is_silent() {
    let ended = |is_silent: bool| {
        let mut example = Example::clean();
        example.manifest.budgets.events.as_mut().unwrap().reported = Some(crate::budgets::AtLeast { min: 1 });
        if is_silent {
            example.intervals.iter_mut().for_each(|row| row.events.observations = 0);
            let reason = EndReason::WitnessSilent { detail: "it reported nothing".to_owned() };
            example.end = Some(End { ended_ms: 160_000, reason, lost: None, holes: Vec::new() });
        }
        fired(&example)
    };
    assert_eq!(ended(false), ["pass"]);
    let silent = ended(true);
    assert!(silent.contains(&"events.reported fail".to_owned()), "{silent:?}");
    assert_eq!(silent.last().map(String::as_str), Some("fail"));
}

/// A subject that requested no churned resource has no findings: "went blind" would be wrong for a subject that never
/// watched.
#[test]
fn a_subject_that_never_asked_is_not_judged() {
    let mut example = Example::clean();
    example.miss(2, 61_000);
    example.requests.as_mut().unwrap().truncate(1);
    let detail = "within 20 s it requested no churned objects (widgets.example.com).".to_owned();
    example.end = Some(End {
        ended_ms: 20_000,
        reason: EndReason::NeverAsked { detail: detail.clone() },
        lost: None,
        holes: Vec::new(),
    });
    let judgement = example.judged();
    assert_eq!(judgement.verdict, Verdict::Invalid, "{:?}", judgement.crossed());
    assert_eq!(judgement.reason, format!("the run was ended at 20 s: {detail}"));
    assert!(judgement.words.is_empty(), "{:?}", judgement.words);
}

/// A subject that never requested a churned resource, but sent too many other requests, fails: the control plane
/// recorded these requests.
#[test]
fn a_subject_that_never_asked_and_asked_too_much_of_something_else_fails() {
    let mut example = Example::clean();
    example.manifest.budgets.requests = Some(serde_json::from_str(r#"{"hotLoop": "2/s", "blind": "5s"}"#).unwrap());
    example.requests = Some((0..100).map(|n| list(10 + n, 10_000 + n * 50, 3100)).collect());
    let reason = EndReason::NeverAsked { detail: "it asked for nothing that is churned.".to_owned() };
    example.end = Some(End { ended_ms: 20_000, reason, lost: None, holes: Vec::new() });
    assert_eq!(example.judged().words, [Word::HotLoop]);
}

#[test]
fn a_subject_that_crashed_before_a_fault_is_not_excused_by_it() {
    let mut example = Example::clean();
    example.faults.truncate(1);
    let reason = EndReason::SubjectExited { status: "exit status 101".into(), detail: String::new() };
    example.end = Some(End { ended_ms: 30_000, reason, lost: None, holes: Vec::new() });
    assert_eq!(fired(&example), ["subject.exited fail", "fail"]);
}

#[test]
fn a_killed_run_is_invalid_and_says_what_is_undecided() {
    let fired = fired(&Example::killed());
    assert_eq!(fired.first().map(String::as_str), Some("validity.completed invalid"));
    assert_eq!(fired.last().map(String::as_str), Some("invalid"));
    assert!(fired.contains(&"events.missed inconclusive".to_owned()), "{fired:?}");
}

#[test]
fn broken_budgets_decide_although_the_run_was_not_finished() {
    let mut example = Example::failing();
    example.end = None;
    let fired = fired(&example);
    assert!(fired.contains(&"events.missed fail".to_owned()), "{fired:?}");
    assert!(fired.contains(&"validity.completed invalid".to_owned()), "the report says both: {fired:?}");
    assert_eq!(fired.last().map(String::as_str), Some("fail"));
}

/// The reason for a verdict is one line: the finding that decides comes first, then gaps in the measurement.
#[test]
fn a_reason_is_one_sentence_and_says_both() {
    let mut example = Example::failing();
    example.end = None;
    let dir = tempfile::tempdir().unwrap();
    let reason = judge(&example.open(dir.path())).reason;
    assert!(reason.starts_with("2 versions of "), "{reason}");
    assert!(reason.ends_with("more, 1 not decided)"), "{reason}");
    assert!(!reason.contains('\n') && reason.chars().count() < 300, "{reason}");
}

#[test]
fn unreadable_witness_lines_excuse_misses_but_not_a_clean_run() {
    let mut example = Example::clean();
    example.intervals[9].witness.malformed = 3;
    assert_eq!(fired(&example), ["pass"]);
    example.miss(1, 50_000);
    assert_eq!(fired(&example), ["events.missed inconclusive", "validity.witness inconclusive", "inconclusive"]);
    // Three lines are not more than three objects.
    let mut example = Example::clean();
    example.intervals[9].witness.malformed = 3;
    example.miss(4, 50_000);
    assert_eq!(fired(&example), ["events.missed fail", "fail"]);
}

/// If a line of the witness could not be read, a finding shows the line. If no budget is judged, a note shows the
/// unreadable line.
#[test]
fn an_unreadable_witness_line_is_shown() {
    let mut example = Example::clean();
    let shown = "line 2 of a post, `uid` or `resourceVersion` is missing: {\"change\":\"added\"}";
    example.intervals[9].witness.malformed = 3;
    example.intervals[9].witness.example = Some(shown.to_owned());
    example.manifest.witness_tolerates = Some(2);
    let judgement = example.judged();
    let finding = judgement.findings.iter().find(|finding| finding.budget == "validity.witness").unwrap();
    assert_eq!(finding.text, format!("3 lines of the witness could not be read, and 2 are tolerated; first: {shown}."));
    let note = format!("3 lines of the witness could not be read; first: {shown}.");
    assert!(judgement.notes.contains(&note), "{:?}", judgement.notes);
}

/// The number of unreadable lines that the scenario tolerates applies, whether or not a version looks missed.
#[test]
fn unreadable_witness_lines_are_tolerated_up_to_what_the_scenario_says() {
    let mut example = Example::clean();
    example.intervals[9].witness.malformed = 3;
    example.manifest.witness_tolerates = Some(2);
    let fired_of = fired(&example);
    assert!(fired_of.contains(&"validity.witness inconclusive".to_owned()), "{fired_of:?}");
    assert_eq!(fired_of.last().map(String::as_str), Some("inconclusive"));
    example.manifest.witness_tolerates = Some(3);
    assert_eq!(fired(&example), ["pass"]);
    example.miss(1, 50_000);
    assert_eq!(fired(&example), ["events.missed fail", "fail"]);
}

/// If the witness does not report a fact, limits on this fact are neither met nor broken. The same run with a witness
/// that reports the fact passes.
#[test]
fn what_the_witness_cannot_tell_is_not_decided() {
    let mut example = Example::clean();
    let events = example.manifest.budgets.events.as_mut().unwrap();
    (events.missed, events.ghost, events.regressed, events.heal, events.late) = (Some(0), Some(0), None, None, None);
    assert_eq!(fired(&example), ["pass"]);
    example.manifest.witness_sees = Some(Sees { created: true, updated: true, ..Sees::NOTHING });
    assert_eq!(fired(&example), ["events.ghost inconclusive", "inconclusive"]);
    let judgement = example.judged();
    let ghost = judgement.findings.iter().find(|finding| finding.budget == "events.ghost").unwrap();
    assert_eq!((ghost.observed.as_str(), ghost.limit.as_str()), ("not seen", "0"));
    let note = "events.regressed, events.phantom, events.resurrected, events.identitySwap were not judged: the witness `http` does not \
        report deletions and not each event by itself.";
    assert!(judgement.notes.iter().any(|said| said == note), "{:?}", judgement.notes);
    assert!(judgement.findings.iter().all(|finding| finding.budget != "events.regressed"));
    // Older records without this field are judged as before.
    example.manifest.witness_sees = None;
    assert_eq!(fired(&example), ["pass"]);
}

/// If a witness reports objects without versions, the objects are judged, with or without a budget.
#[test]
fn objects_are_judged_where_versions_cannot_be() {
    let mut example = Example::clean();
    example.manifest.budgets.events = Some(Events::default());
    example.intervals[9].events.unseen = 1;
    assert_eq!(fired(&example), ["pass"], "nobody asked, and `missed` is judged");
    example.manifest.witness_sees = Some(Sees { created: true, deleted: true, ..Sees::NOTHING });
    assert_eq!(fired(&example), ["events.unseen fail", "fail"]);
    example.intervals[9].events.unseen = 0;
    assert_eq!(fired(&example), ["pass"]);
    example.manifest.budgets.events.as_mut().unwrap().unseen = Some(0);
    example.manifest.witness_sees = Some(Sees { deleted: true, ..Sees::NOTHING });
    assert_eq!(fired(&example), ["events.unseen inconclusive", "inconclusive"]);
}

/// A witness that does not report superseded versions leaves a budget undecided only if the scenario requires every
/// version.
#[test]
fn every_version_needs_a_witness_that_tells_them() {
    let mut example = Example::clean();
    example.manifest.witness_sees = Some(Sees { intermediate: false, ..Sees::ALL });
    let asks =
        |example: &mut Example, delivery| example.manifest.budgets.events.as_mut().unwrap().delivery = Some(delivery);
    asks(&mut example, Delivery::Latest);
    assert_eq!(fired(&example), ["pass"]);
    asks(&mut example, Delivery::EveryVersion);
    assert_eq!(fired(&example), ["events.delivery inconclusive", "inconclusive"]);
}

#[test]
fn a_probe_after_a_fault_that_was_seen_late_does_not_hide_a_failure() {
    let mut example = Example::clean();
    example.faults.last_mut().unwrap().ok = Some(false);
    assert_eq!(fired(&example), ["pass"]);
    example.miss(1, 61_000);
    assert_eq!(fired(&example), ["events.missed fail", "validity.fault.1 fail", "fail"]);
}

#[test]
fn too_few_samples_are_inconclusive_and_say_how_many_more() {
    let mut example = Example::clean();
    example.manifest.budgets.admission.as_mut().unwrap().p999 = Some(units::Span::from_millis(50));
    example.manifest.budgets.memory.as_mut().unwrap().growth = Some("1MiB/h".parse().unwrap());
    let judgement = example.judged();
    assert_eq!(judgement.verdict, Verdict::Inconclusive);
    let text = |budget: &str| judgement.findings.iter().find(|f| f.budget == budget).unwrap().text.clone();
    assert!(text("admission.p999").ends_with("76,000 more would decide it."), "{}", text("admission.p999"));
    assert!(text("memory.growth").contains("too short"), "{}", text("memory.growth"));
}

#[test]
fn nothing_judged_is_no_pass() {
    let mut example = Example::clean();
    example.manifest.budgets = crate::budgets::Budgets::default();
    assert_eq!(fired(&example), ["inconclusive"]);
}

#[test]
fn absent_budgets_of_a_present_section_are_zero_for_broken_promises() {
    let mut example = Example::clean();
    example.manifest.budgets.events = Some(Events::default());
    example.intervals[9].events.late = 5;
    assert_eq!(fired(&example), ["pass"]);
    example.miss(1, 50_000);
    example.intervals[9].events.identity_swap = 1;
    assert_eq!(fired(&example), ["events.missed fail", "events.identitySwap fail", "fail"]);
}

#[test]
fn texts_name_the_cause() {
    let judgement = Example::failing().judged();
    let missed = judgement.findings.iter().find(|finding| finding.budget == "events.missed").unwrap();
    assert!(missed.text.contains("first: default/package-0 at 1 min 1 s, during silent-watch"), "{}", missed.text);
    assert!(missed.text.contains("already been refused with 410 Gone (6 times)"), "{}", missed.text);
    assert_eq!(Outcome::ALL.len(), Outcome::COUNT);
}

#[test]
fn judging_again_gives_the_same() {
    let dir = tempfile::tempdir().unwrap();
    Example::failing().write(dir.path());
    let once = judge(&Record::open(dir.path()).unwrap());
    assert_eq!(judge(&Record::open(dir.path()).unwrap()), once);
}

#[test]
fn rights_that_are_missing_are_named_once_and_break_nothing() {
    let mut example = Example::clean();
    let refused = |what: &str, times| Refused { what: what.to_owned(), times };
    example.intervals[3].refused = vec![refused("list leases of coordination.k8s.io", 2), refused("get secrets", 1)];
    example.intervals[7].refused = vec![refused("list leases of coordination.k8s.io", 5)];
    let judgement = example.judged();
    assert_eq!(judgement.verdict, Verdict::Pass);
    let named = "403 to 8 requests of the subject, because its roles do not allow it: list leases of coordination.k8s.io (7 times), get secrets (1 times)";
    assert!(judgement.notes.iter().any(|note| note.contains(named)), "{:?}", judgement.notes);
}

/// In the report on a hundred hours with a fault each minute, faults that were hit are grouped by name, other faults
/// are listed one by one.
#[test]
fn thousands_of_faults_are_told_by_name() {
    let mut example = Example::clean();
    let (planned, rows) = (example.manifest.faults[0].clone(), std::mem::take(&mut example.faults));
    example.manifest.faults.clear();
    for n in 0..6000 {
        let id = format!("{n}");
        let name = ["watch-reset", "silent-watch"][n % 2].to_owned();
        let hit = n != 4000;
        example.faults.extend(rows.iter().filter(|row| hit || row.hits == 0).map(|row| FaultRow {
            id: id.clone(),
            name: name.clone(),
            ..row.clone()
        }));
        example.manifest.faults.push(PlannedFault { id, name, ..planned.clone() });
    }
    let dir = tempfile::tempdir().unwrap();
    let record = example.open(dir.path());
    let judgement = judge(&record);
    let faults: Vec<&Finding> =
        judgement.findings.iter().filter(|finding| finding.budget.starts_with("validity.fault")).collect();
    let told: Vec<_> = faults.iter().map(|finding| (finding.budget.as_str(), finding.verdict)).collect();
    let expected = [
        ("validity.fault.silent-watch", Verdict::Pass),
        ("validity.fault.watch-reset", Verdict::Pass),
        ("validity.faults", Verdict::Inconclusive),
    ];
    assert_eq!(told, expected);
    assert!(faults[0].text.starts_with("the fault silent-watch struck 3,000 times"), "{}", faults[0].text);
    crate::render::write_reports(dir.path(), &record, &judgement).unwrap();
    let bytes = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().len();
    assert!(bytes(file::HTML) < 2 << 20, "{}", bytes(file::HTML));
    assert!(bytes(file::VERDICT) + bytes(file::MARKDOWN) + bytes(file::JUNIT) < 1 << 17);
}

/// If one of four drawn (random) faults finds no target, the run still counts. If two of four drawn faults find no
/// target, the run is undecided. A fault with a planned time must always be hit.
#[test]
fn a_lot_may_find_nothing_to_hit_now_and_then() {
    let told = |never_hit: usize, drawn: bool| {
        let mut example = Example::clean();
        let (planned, rows) = (example.manifest.faults[0].clone(), std::mem::take(&mut example.faults));
        example.manifest.faults.clear();
        for n in 0..4 {
            let id = format!("{n}");
            let rows = rows.iter().filter(|row| n >= never_hit || row.hits == 0);
            example.faults.extend(rows.map(|row| FaultRow { id: id.clone(), ..row.clone() }));
            example.manifest.faults.push(PlannedFault { id, drawn, ..planned.clone() });
        }
        let judgement = example.judged();
        let text =
            judgement.findings.iter().find(|finding| finding.budget == "validity.faults").map(|one| one.text.clone());
        (judgement.verdict, text.unwrap_or_else(|| judgement.notes.join(" ")))
    };
    let (verdict, text) = told(1, true);
    assert_eq!(verdict, Verdict::Pass, "{text}");
    assert!(text.contains("1 fault of the drawn faults hit nothing (silent-watch)"), "{text}");
    let (verdict, text) = told(2, true);
    assert_eq!(verdict, Verdict::Inconclusive);
    assert!(text.starts_with("2 of 4 faults were never hit: silent-watch 2 times (while it was active"), "{text}");
    assert_eq!(told(1, false).0, Verdict::Inconclusive);
    assert_eq!(told(0, true).0, Verdict::Pass);
}

/// The report on an interrupted run does not list faults that were planned for a time after the interruption.
#[test]
fn faults_after_the_end_of_an_interrupted_run_are_not_told() {
    let mut example = Example::clean();
    let later = PlannedFault { id: "9".into(), at_ms: 100_000, ..example.manifest.faults[0].clone() };
    example.manifest.faults.push(later);
    let told = |example: &Example| {
        let record = example.opened();
        let named = never_hit(&record).iter().any(|fault| fault.id == "9");
        assert_eq!(judge(&record).findings.iter().any(|finding| finding.budget == "validity.faults"), named);
        named
    };
    assert!(told(&example), "a run that was played to its end has to show it");
    example.end = Some(End {
        ended_ms: 70_000,
        reason: EndReason::Interrupted { signal: "SIGINT".into() },
        lost: None,
        holes: Vec::new(),
    });
    example.intervals.truncate(14);
    example.samples.truncate(70);
    assert!(!told(&example));
}

/// Each limit in a report is in the scenario file, or the report says that it is a default.
#[test]
fn limits_that_the_scenario_does_not_name_say_so() {
    let mut example = Example::clean();
    example.manifest.budgets = serde_json::from_str(r#"{"events": {"missed": 0, "late": 9}}"#).unwrap();
    let judgement = example.judged();
    let limit =
        |budget: &str| judgement.findings.iter().find(|finding| finding.budget == budget).unwrap().limit.clone();
    assert_eq!((limit("events.missed"), limit("events.late")), ("0".to_owned(), "9".to_owned()));
    assert_eq!(limit("events.ghost"), "0, by default");
    assert!(limit("events.hotLoop").ends_with(", by default"), "{}", limit("events.hotLoop"));
    let named = |finding: &&Finding| finding.judge != doubt::JUDGE && !finding.limit.ends_with(", by default");
    assert_eq!(judgement.findings.iter().filter(named).count(), 2);
    let unnamed = judgement.findings.iter().filter(|finding| finding.limit.ends_with(", by default")).count();
    assert_eq!(
        judgement.reason,
        format!("all {} budgets were met, {unnamed} of them that the scenario does not name.", unnamed + 2)
    );
}

/// The finding about a late version does not claim that a list corrected it, because there may have been no list.
#[test]
fn a_late_version_is_said_to_be_late_and_no_more() {
    let judgement = Example::failing().judged();
    let late = judgement.findings.iter().find(|finding| finding.budget == "events.late").unwrap();
    assert!(late.text.starts_with("4 versions observed only after the deadline"), "{}", late.text);
    for word in ["relist", "resync", "saved"] {
        assert!(!late.text.contains(word), "{}", late.text);
    }
}

/// The finding about a fault without a target does not claim that no watch was open before the fault.
#[test]
fn a_fault_that_found_nothing_says_nothing_of_the_watches_before() {
    let mut example = Example::clean();
    example.faults.retain(|row| row.event == FaultEvent::Started);
    example.faults.iter_mut().for_each(|row| row.hits = 0);
    let judgement = example.judged();
    let fault = judgement.findings.iter().find(|finding| finding.text.contains("was never hit")).unwrap();
    assert!(fault.text.contains("while it was active"), "{}", fault.text);
    assert!(!fault.text.contains("never held"), "{}", fault.text);
}

/// Faults that need requests which a client never sends share one note and decide nothing, as long as other faults were
/// hit.
#[test]
fn faults_that_cannot_concern_a_subject_are_told_once() {
    let mut example = Example::clean();
    let planned = example.manifest.faults[0].clone();
    for n in 0..20 {
        let (needs, name) = (vec![Need::Watch, Need::InitialEvents], "initial-end-missing".to_owned());
        example.manifest.faults.push(PlannedFault { id: format!("x{n}"), name, needs, ..planned.clone() });
    }
    let judgement = example.judged();
    assert_eq!(judgement.verdict, Verdict::Pass, "{:?}", judgement.findings);
    let told = "20 of 21 faults cannot affect this subject, which sends no such request: initial-end-missing 20 times";
    assert_eq!(judgement.notes.iter().filter(|note| note.starts_with(told)).count(), 1, "{:?}", judgement.notes);
    // A subject that sends such requests should have been hit.
    let asks = &mut example.requests.as_mut().unwrap()[1];
    asks.send_initial_events = Some(true);
    let judgement = example.judged();
    assert_eq!(judgement.verdict, Verdict::Inconclusive, "{:?}", judgement.findings);
    assert_eq!(judgement.findings.iter().filter(|finding| finding.verdict != Verdict::Pass).count(), 1);
    assert!(
        judgement.reason.starts_with("20 of 21 faults were never hit: initial-end-missing 20 times"),
        "{}",
        judgement.reason
    );
}

/// A fault on updates never hits a program that patches. The finding about such a fault names the kind of write that
/// the fault would hit.
#[test]
fn a_fault_on_updates_of_a_program_that_patches_names_the_remedy() {
    let mut example = Example::clean();
    let planned = example.manifest.faults[0].clone();
    let fault = |on: &str, needs: Need| PlannedFault {
        id: on.to_owned(),
        name: "http-error".to_owned(),
        detail: format!("packages: {on} is answered with 409"),
        needs: vec![needs],
        ..planned.clone()
    };
    example.manifest.faults.push(fault("update", Need::Update));
    let patch = RequestRow { verb: Verb::Patch, method: "PATCH".into(), ..list(9, 30_000, 2000) };
    example.requests.as_mut().unwrap().push(patch);
    let said = "http-error waits for `on: update`, and the subject sent none and 1 patch: write `on: patch`.";
    let judgement = example.judged();
    assert!(judgement.notes.iter().any(|note| note.ends_with(said)), "{:?}", judgement.notes);
    // If no fault was hit, the remedy is beside the verdict.
    example.faults.retain(|row| row.hits == 0);
    example.manifest.faults.remove(0);
    let judgement = example.judged();
    let finding = judgement.findings.iter().find(|finding| finding.budget == "validity.faults").unwrap();
    assert!(finding.verdict == Verdict::Inconclusive && finding.text.ends_with(said), "{finding:?}");
}

/// If requests were not counted, the record proves neither that the subject sent requests nor that it had no loop.
#[test]
fn what_was_asked_is_judged_only_where_somebody_counted_it() {
    let mut example = Example::clean();
    example.manifest.control_plane = "kind".into();
    example.requests = None;
    let judged = |example: &Example, name: &str| example.judged().findings.iter().any(|found| found.budget == name);
    assert!(judged(&example, "events.blind") && judged(&example, "events.hotLoop"));
    example.intervals.iter_mut().for_each(|row| row.api = ApiRow::default());
    assert!(!judged(&example, "events.blind") && !judged(&example, "events.hotLoop"));
    let notes = example.judged().notes.join("\n");
    for name in ["events.blind", "events.hotLoop"] {
        assert!(notes.contains(&format!("{name} was not judged: this control plane does not report")), "{notes}");
    }
}
