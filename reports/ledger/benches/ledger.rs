//! Measures how many commits and observations the ledger processes in a second on one core. The ledger must process
//! 100,000 commits and observations a second.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use facts::{Change, Commit, Observation, Order, Revision, Uid};
use ledger::{Config, Ledger};

const PAIRS: u64 = 20_000;

/// 2,000 live objects, updated one after another. Every twentieth commit replaces an object by an object with a new
/// name.
fn pairs() -> Vec<(Commit, Observation)> {
    (0..PAIRS)
        .map(|n| {
            let (slot, round) = (n % 2000, n / 2000);
            let change = match (round, n % 20) {
                (0, _) => Change::Added,
                (9, 0) => Change::Deleted,
                _ => Change::Modified,
            };
            let name = format!("00000000-0000-0000-0000-{slot:012}");
            let revision = Revision::of_number(1_000_000 + n);
            let (order, uid) = (Order::of_numbered(n), Uid::from(name.as_str()));
            let seen = Observation { t_ms: n + 3, uid: uid.clone(), revision: revision.clone(), change };
            let (resource, namespace, name) = ("packages.longhaul.dev".into(), "default".into(), name.into());
            (Commit { order, resource, namespace, name, uid, revision, change }, seen)
        })
        .collect()
}

fn ledger(c: &mut Criterion) {
    let pairs = pairs();
    let mut group = c.benchmark_group("ledger");
    group.throughput(Throughput::Elements(PAIRS * 2));
    group.bench_function("commits and observations", |b| {
        b.iter(|| {
            let mut ledger = Ledger::new(Config::default());
            for (n, (commit, seen)) in (0u64..).zip(&pairs) {
                ledger.commit(n, commit);
                ledger.observe(seen);
                if n % 1000 == 0 {
                    ledger.advance(n).for_each(drop);
                }
            }
            assert_eq!(ledger.counts().observed, PAIRS);
            ledger.counts()
        });
    });
    group.finish();
}

criterion_group!(benches, ledger);
criterion_main!(benches);
