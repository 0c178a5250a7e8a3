//! Tests of ranks, and of the reasons why a subject is behind, with records of known results.

use super::*;
use crate::example::Example;
use crate::judge::judge;

fn entrant(name: &str, examples: &[Example]) -> Entrant {
    let runs = examples.iter().map(|example| {
        let record = example.opened();
        let judgement = judge(&record);
        (record, judgement)
    });
    Entrant {
        name: name.to_owned(),
        command: name.to_owned(),
        runs: runs.collect(),
        folders: Vec::new(),
        failure: None,
    }
}

fn compared(entrants: &[Entrant]) -> Comparison {
    comparison(About { scenario: "smoke".to_owned(), ..About::default() }, entrants)
}

fn rank(comparison: &Comparison, at: usize, key: &str) -> Option<usize> {
    comparison.rows[at].figures[key].rank
}

/// A subject that missed versions in many separate outages of its watch.
fn loses() -> Example {
    let mut example = Example::clean();
    for burst in 0..10 {
        example.miss(8, 41_000 + burst * 8_000);
    }
    example
}

fn died() -> Example {
    let mut example = Example::clean();
    example.intervals.truncate(15);
    example.samples.truncate(76);
    example.latencies.retain(|(_, start_ms, ..)| *start_ms < 75_000);
    let (status, detail) = ("signal: 9 (SIGKILL)".to_owned(), "first\nheap exhausted\n".to_owned());
    example.end = Some(record::End {
        ended_ms: 75_400,
        reason: EndReason::SubjectExited { status, detail },
        lost: None,
        holes: Vec::new(),
    });
    example
}

#[test]
fn who_loses_is_behind_and_who_died_has_no_rank() {
    let all = [entrant("right", &[Example::clean()]), entrant("loses", &[loses()]), entrant("dies", &[died()])];
    let comparison = compared(&all);
    assert_eq!(comparison.rows.iter().map(|row| row.fate).collect::<Vec<_>>(), [Fate::Ran, Fate::Ran, Fate::Died]);
    assert_eq!([0, 1, 2].map(|at| rank(&comparison, at, "missed")), [Some(1), Some(2), None]);
    // Both used the same.
    assert_eq!([0, 1].map(|at| rank(&comparison, at, "memory")), [None, None]);
    let why = |at: usize| comparison.rows[at].why.as_ref().map(|why| why.sentence.as_str());
    assert_eq!(why(0), None);
    let lost = why(1).unwrap();
    assert!(lost.starts_with("80 missed: 80 anomalies lost in the client, first default/package-0"), "{lost}");
    assert!(comparison.rows[1].why.as_ref().unwrap().remedy.is_some());
    let died = why(2).unwrap();
    assert_eq!(died, "it ended by itself at 1 min 15 s with signal: 9 (SIGKILL); its last words: heap exhausted");
}

/// One outage does not rank a subject, however many versions were lost in it, because it may not happen again.
#[test]
fn one_burst_ranks_nobody() {
    // Nor does half a minute, nor a hundred at once.
    let long: Vec<(u64, u64)> = (0..6).map(|index| (12, 41_000 + index * 5_000)).collect();
    for losses in [vec![(72, 61_000)], vec![(99, 61_000)], long] {
        let mut once = Example::clean();
        for (number, at_ms) in &losses {
            once.miss(*number, *at_ms);
        }
        let comparison = compared(&[entrant("right", &[Example::clean()]), entrant("once", &[once])]);
        assert_eq!([0, 1].map(|at| rank(&comparison, at, "missed")), [None, None], "{losses:?}");
        assert!(comparison.rows[1].why.is_some(), "it is told all the same");
    }
}

#[test]
fn more_memory_in_every_sample_is_a_rank() {
    let mut fat = Example::clean();
    for sample in &mut fat.samples {
        sample.subject.as_mut().unwrap().rss_bytes *= 3;
    }
    fat.manifest.budgets.memory = None;
    let comparison = compared(&[entrant("fat", &[fat]), entrant("lean", &[Example::clean()])]);
    assert_eq!([0, 1].map(|at| rank(&comparison, at, "memory")), [Some(2), Some(1)]);
    let why = &comparison.rows[0].why.as_ref().unwrap().sentence;
    assert!(why.starts_with("it kept every limit; its memory is ") && why.contains(", that of lean "), "{why}");
}

/// The interval over several runs contains the intervals of all these runs.
#[test]
fn a_rank_must_hold_in_every_round() {
    let rounds =
        [entrant("right", &[Example::clean(), Example::clean()]), entrant("half", &[loses(), Example::clean()])];
    let comparison = compared(&rounds);
    assert!((comparison.rows[1].figures["missed"].value - 40.0).abs() < f64::EPSILON);
    assert_eq!([0, 1].map(|at| rank(&comparison, at, "missed")), [None, None]);
    assert_eq!(comparison.rows[1].verdict, Some(Verdict::Fail), "the worst counts");
}

#[test]
fn who_never_began_is_a_row() {
    let mut absent = entrant("absent", &[]);
    absent.failure = Some("there is no program `nobody`".to_owned());
    let comparison = compared(&[entrant("right", &[Example::clean()]), absent]);
    let row = &comparison.rows[1];
    assert_eq!((row.fate, row.verdict, row.figures.len()), (Fate::NeverBegan, None, 0));
    assert_eq!(row.why.as_ref().unwrap().sentence, "there is no program `nobody`");
}

/// If two runs have different seeds, the comparison notes that their conditions differ.
#[test]
fn another_seed_is_said() {
    let mut other = Example::clean();
    other.manifest.seed += 1;
    let comparison = compared(&[entrant("a", &[Example::clean()]), entrant("b", &[other])]);
    assert_eq!(
        comparison.notes,
        ["the runs have different seeds: what differs between the subjects may come from that"]
    );
}
