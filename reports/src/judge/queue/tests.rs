//! Tests of the judgement of objects that wait at the end of a run. Findings about a queue of objects are undecided and
//! say how much more time the subject needs. A subject that was idle, or that overtook objects, breaks its budgets.

use super::*;
use crate::example::{Example, Judged as _};
use crate::judge::{Judgement, judge};
use crate::record::{Objects, Phase, RequestRow, Verb};

/// A run in which 24 objects waited at the end. `served` has the number of objects that the subject served in each
/// quarter of the drain.
fn behind(served: [u64; 4]) -> Example {
    let mut example = Example::clean();
    let drain = example.intervals.iter().position(|row| row.phase == Phase::Drain).unwrap();
    let (from_ms, to_ms) = (example.intervals[drain].start_ms, example.intervals.last().unwrap().end_ms);
    let resource = "packages.longhaul.dev".to_owned();
    let backlog = Backlog { resource, from_ms, to_ms, served, served_total: 900, waiting: 24, ..Backlog::default() };
    example.objects = Some(Objects { queues: vec![backlog], ..Objects::default() });
    let last = example.intervals.last_mut().unwrap();
    (last.events.missed, last.events.ghost) = (24, 3);
    example
}

fn change(example: &mut Example, change: impl FnOnce(&mut Backlog)) {
    change(&mut example.objects.as_mut().unwrap().queues[0]);
}

fn verdict(judgement: &Judgement, budget: &str) -> (Verdict, String) {
    let finding = judgement.findings.iter().find(|finding| finding.budget == budget).unwrap();
    (finding.verdict, finding.text.clone())
}

/// Requests of the subject in the drain: `in_second` returns their number in each second. Each of these requests is for
/// another object.
fn requests(example: &Example, in_second: impl Fn(u64) -> u64) -> Vec<RequestRow> {
    let backlog = &example.objects.as_ref().unwrap().queues[0];
    let length = (backlog.to_ms - backlog.from_ms) / 1000;
    let of = |second: u64| {
        let (from_ms, number) = (backlog.from_ms + second * 1000, in_second(second));
        (0..number).map(move |at| RequestRow {
            id: 1000 + second * 100 + at,
            t_ms: from_ms + at * 1000 / number,
            method: "POST".into(),
            verb: Verb::Create,
            resource: "configmaps".into(),
            namespace: "default".into(),
            name: format!("{second}-{at}"),
            status: 201,
            ended_ms: Some(from_ms + at * 1000 / number + 1),
            ..RequestRow::default()
        })
    };
    (0..length).flat_map(of).collect()
}

#[test]
fn a_queue_is_not_a_loss() {
    let mut example = behind([10, 9, 11, 10]);
    example.requests.get_or_insert_default().extend(requests(&behind([10; 4]), |_| 5));
    let record = example.opened();
    let judgement = judge(&record);
    assert_eq!(judgement.verdict, Verdict::Inconclusive, "{judgement:#?}");
    assert_eq!(judgement.words, []);
    let drain_s = Queue::of(&record).map(|queue| 40.0 / queue.served.as_per_second()).unwrap();
    let needs = millis(crate::words::whole(24.0 * drain_s / 40.0 * 1000.0).div_ceil(1000) * 1000);
    let (found, text) = verdict(&judgement, "events.missed");
    assert_eq!(found, Verdict::Inconclusive);
    let begins = format!(
        "not decided: 24 objects still waited in the subject's queue, which needs {needs} more at its 5 requests a second; `rate: "
    );
    assert!(text.starts_with(&begins), "{text}");
    assert_eq!(verdict(&judgement, "events.ghost").0, Verdict::Inconclusive);
    assert!(Queue::of(&record).unwrap().is_constant);
    // Findings about wrong work stay.
    example.intervals.last_mut().unwrap().events.regressed = 1;
    assert_eq!(judge(&example.opened()).verdict, Verdict::Fail);
}

#[test]
fn who_came_to_rest_or_passed_an_object_by_has_lost_it() {
    let lost = |served, waiting: u64, passed: u64| {
        let mut example = behind(served);
        change(&mut example, |backlog| (backlog.waiting, backlog.passed) = (waiting, passed));
        judge(&example.opened())
    };
    for judgement in [
        // Idle from the first quarter on, from the middle on, and all the time.
        lost([40, 0, 0, 0], 24, 0),
        lost([20, 20, 0, 0], 24, 0),
        lost([0; 4], 24, 0),
        lost([4, 0, 0, 0], 24, 0),
        // At work until the end, past one of them.
        lost([10, 10, 10, 10], 24, 1),
    ] {
        assert_eq!(judgement.verdict, Verdict::Fail, "{judgement:#?}");
        assert!(verdict(&judgement, "events.missed").1.starts_with("24 versions of"));
    }
    // At work on one resource until the end, and without any work on another one.
    let mut deaf = behind([10; 4]);
    let written = requests(&deaf, |_| 5);
    deaf.requests.get_or_insert_default().extend(written);
    let queues = &mut deaf.objects.as_mut().unwrap().queues;
    let other = Backlog { resource: "others.longhaul.dev".into(), served: [0; 4], waiting: 3, ..queues[0].clone() };
    queues.push(other);
    assert_eq!(judge(&deaf.opened()).verdict, Verdict::Fail);
    // A record without queues is judged as before.
    let mut example = behind([10; 4]);
    example.objects = None;
    assert_eq!(judge(&example.opened()).verdict, Verdict::Fail);
}

/// A subject that makes fourteen children for an object serves few objects in a short drain. The writes of such a
/// subject show that it continues to work.
#[test]
fn few_that_are_served_are_judged_by_what_is_written() {
    let mut example = behind([1, 0, 0, 1]);
    let written = requests(&example, |_| 5);
    example.requests.get_or_insert_default().extend(written.clone());
    assert_eq!(judge(&example.opened()).verdict, Verdict::Inconclusive);
    // A subject that writes the same object over and over is in a loop, and not behind.
    let looping = written.iter().map(|row| RequestRow { name: "same".into(), verb: Verb::Update, ..row.clone() });
    let mut example = behind([1, 0, 0, 1]);
    example.requests.get_or_insert_default().extend(looping);
    assert_eq!(judge(&example.opened()).verdict, Verdict::Fail);
    // A subject that ended its work is not behind either.
    let mut example = behind([1, 0, 0, 1]);
    example.requests.get_or_insert_default().extend(written.into_iter().take(20));
    assert_eq!(judge(&example.opened()).verdict, Verdict::Fail);
}

#[test]
fn a_rate_that_fits_is_half_of_what_is_served_in_one_digit() {
    for (served, fits) in [(7.4, "3/s"), (2.0, "1/s"), (0.9, "0.4/s"), (0.1, "3/m"), (120.0, "60/s")] {
        assert_eq!(spelled(fitting(Rate::per_second(served))), fits, "{served}");
    }
    assert!(fitting(Rate::default()).as_per_second() > 0.0);
}

#[test]
fn a_constant_rate_is_the_same_in_each_second() {
    assert!(is_constant(&[5, 5, 6, 5, 4, 5, 5]));
    assert!(!is_constant(&[5, 5, 5, 5]), "too short");
    assert!(!is_constant(&[5, 5, 9, 5, 5, 5, 5]) && !is_constant(&[0, 1, 0, 1, 0, 0]));
}

/// Versions that were deleted in the subject's queue leave `missed` undecided if they are more than a twentieth of all,
/// and never hide a missed version.
#[test]
fn many_versions_that_were_deleted_in_the_queue_leave_missed_undecided() {
    let judged = |queued: fn(u64) -> u64, missed: u64| {
        let mut example = Example::clean();
        let commits: u64 = example.intervals.iter().map(|row| row.events.commits).sum();
        let last = example.intervals.last_mut().unwrap();
        (last.events.queued, last.events.missed) = (queued(commits), missed);
        verdict(&example.judged(), "events.missed")
    };
    assert_eq!(judged(|commits| commits / 20, 0).0, Verdict::Pass);
    let (found, text) = judged(|commits| commits / 20 + 1, 0);
    assert_eq!(found, Verdict::Inconclusive, "{text}");
    assert!(text.contains("were deleted while they waited in the subject's queue; `rate: "), "{text}");
    assert_eq!(judged(|commits| commits / 2, 1).0, Verdict::Fail);
}
