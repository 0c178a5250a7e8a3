//! Tests the comparison with writes and commits of random runs, in any order, complete or with missing commits.

use proptest::prelude::*;

use super::*;
use crate::audit::Source;
use facts::{Order, Progress};

fn commit(at: Instant, number: u64, change: Change) -> Entry {
    let commit = Commit {
        order: Order::of_numbered(number),
        resource: "packages.longhaul.dev".into(),
        namespace: "n".into(),
        name: format!("object-{}", number / 4).into(),
        uid: format!("uid-{}", number / 4).into(),
        revision: Revision::of_number(number),
        change,
    };
    Entry { at, commit, progress: Progress::default(), images: Vec::new(), fields: Vec::new(), source: Source::Watched }
}

/// The write whose answer confirms a commit.
fn write(entry: &Entry) -> Write {
    let commit = &entry.commit;
    let gone = commit.change == Change::Deleted;
    Write {
        at: entry.at,
        namespace: commit.namespace.to_string(),
        name: commit.name.to_string(),
        uid: (!gone).then(|| commit.uid.to_string()),
        resource_version: (!gone).then(|| commit.revision.to_string()),
        change: commit.change,
    }
}

/// Commits of objects with four commits each: added, changed twice, deleted.
fn commits(begin: Instant, count: u64, spacing: Duration) -> Vec<Entry> {
    let changes = [Change::Added, Change::Modified, Change::Modified, Change::Deleted];
    let at = |number: u64| begin + spacing * u32::try_from(number).unwrap();
    (0..count).map(|number| commit(at(number), number, changes[(number % 4) as usize])).collect()
}

proptest! {
    /// If writes and commits come in any order within the grace time, writes with commits are confirmed, and all others
    /// are reported. Commits of other clients do not change the result.
    #[test]
    fn exactly_what_was_not_shown_is_named(
        count in 1_u64..60,
        ours in proptest::collection::vec(any::<bool>(), 60),
        lost in proptest::collection::vec(prop::bool::weighted(0.1), 60),
        writes_lag_s in 0_u64..30,
        commits_lag_s in 0_u64..30,
    ) {
        let begin = Instant::now();
        let all = commits(begin, count, Duration::from_secs(20));
        let (commits_lag, writes_lag) = (Duration::from_secs(commits_lag_s), Duration::from_secs(writes_lag_s));
        let mut agreement = Agreement::default();
        let (mut shown, mut written, mut now) = (0, 0, begin);
        while written < all.len() || shown < all.len() {
            while shown < all.len() && all[shown].at + commits_lag <= now {
                if !lost[shown] {
                    let seen = Entry { at: now, ..all[shown].clone() };
                    agreement.commit(&seen);
                }
                shown += 1;
            }
            while written < all.len() && all[written].at + writes_lag <= now {
                if ours[written] {
                    let answered = Write { at: now, ..write(&all[written]) };
                    agreement.writes(Writes { writes: vec![answered], lost: 0 });
                }
                written += 1;
            }
            agreement.advance(now);
            now += Duration::from_secs(7);
        }
        let outcome = agreement.finish();
        let expected: Vec<String> = (0..all.len())
            .filter(|&index| ours[index] && lost[index])
            .map(|index| write(&all[index]).to_string())
            .collect();
        let mut named: Vec<String> = outcome.unseen.iter().map(ToString::to_string).collect();
        named.sort();
        let mut sorted = expected.clone();
        sorted.sort();
        prop_assert_eq!(named, sorted);
        prop_assert_eq!(outcome.unseen_total, expected.len() as u64);
        let ours = ours.iter().take(all.len()).filter(|&&ours| ours).count();
        prop_assert_eq!(outcome.confirmed + expected.len() as u64, ours as u64);
        prop_assert_eq!(outcome.agrees(), expected.is_empty());
    }
}

#[test]
fn memory_is_that_of_the_grace() {
    let begin = Instant::now();
    let mut agreement = Agreement::default();
    for each in commits(begin, 10_000, Duration::from_secs(1)) {
        agreement.commit(&each);
        agreement.writes(Writes { writes: vec![write(&each)], lost: 0 });
        agreement.advance(each.at);
        assert!(agreement.order.len() <= 100 && agreement.shown.len() <= 100);
    }
    assert_eq!(agreement.outcome().confirmed, 10_000);
    assert!(agreement.finish().agrees());
}

#[test]
fn too_many_commits_are_said_to_be_forgotten() {
    let begin = Instant::now();
    let mut agreement = Agreement::default();
    for each in commits(begin, COMMITS_MAX as u64 + 2, Duration::ZERO) {
        agreement.commit(&each);
    }
    assert_eq!(agreement.outcome().forgotten, 2);
    assert_eq!(agreement.order.len(), COMMITS_MAX);
    assert!(!agreement.finish().agrees());
}

/// A patch without a change is answered with the existing version, which the watch showed once, as added.
#[test]
fn a_write_that_changed_nothing_is_confirmed() {
    let added = commit(Instant::now(), 0, Change::Added);
    let patched = Write { change: Change::Modified, ..write(&added) };
    assert!(agree(std::slice::from_ref(&added), &[write(&added), patched.clone(), patched]).agrees());
}

#[test]
fn the_outcome_reads_well() {
    let all = commits(Instant::now(), 4, Duration::ZERO);
    let writes: Vec<Write> = all.iter().map(write).collect();
    let outcome = agree(&all[..1], &writes);
    assert_eq!(
        outcome.to_string(),
        "1 writes were confirmed by the audit, 3 were not\n  MODIFIED n/object-0 (uid uid-0) at version 1\n  \
         MODIFIED n/object-0 (uid uid-0) at version 2\n  DELETED n/object-0"
    );
    let mut agreement = Agreement::default();
    agreement.writes(Writes { writes: vec![], lost: 2 });
    assert!(!agreement.outcome().agrees());
    assert!(agreement.finish().to_string().ends_with("0 were not, 2 could not be compared"));
}
