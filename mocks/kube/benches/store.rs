//! What the core of the mock API server costs without sockets: the store, the log, and selectors.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use mock_kube::bench::{Bench, Selection};

const OBJECTS: usize = 5000;
/// Events of a busy moment: what a hundred watches are sent at once at 10,000 writes a second.
const EVENTS: usize = 50;

fn store(c: &mut Criterion) {
    let mut bench = Bench::new(OBJECTS);
    println!("{OBJECTS} objects of {} bytes", bench.state_bytes() / OBJECTS);
    let mut index = 0;
    c.bench_function("store: put, always the same 100 objects", |b| {
        b.iter(|| {
            index += 1;
            bench.update(index % 100);
        });
    });
    c.bench_function("store: put, all objects in turn", |b| {
        b.iter(|| {
            index += 1;
            bench.update(index);
        });
    });
    let bench = Bench::new(OBJECTS);
    assert!(bench.object_bytes(0) > 0 && bench.object_bytes(OBJECTS - 1) > 0, "both objects are there");
    c.bench_function("store: get, just written", |b| b.iter(|| black_box(bench.object_bytes(OBJECTS - 1))));
    c.bench_function("store: get, packed", |b| b.iter(|| black_box(bench.object_bytes(OBJECTS / 2))));
    assert_eq!(bench.page(500), 500);
    c.bench_function("store: list, a page of 500", |b| b.iter(|| black_box(bench.page(500))));
}

fn log(c: &mut Criterion) {
    let mut bench = Bench::new(OBJECTS);
    bench.mark();
    (0..EVENTS).for_each(|index| bench.update(index));
    assert_eq!(bench.pull(), EVENTS);
    c.bench_function("log: pull 50 events", |b| b.iter(|| black_box(bench.pull())));
    c.bench_function("log: 50 events for the first watch", |b| b.iter(|| black_box(bench.batch_bytes(true))));
    c.bench_function("log: 50 events for every further watch", |b| b.iter(|| black_box(bench.batch_bytes(false))));
    c.bench_function("log: append and compact 1000 events", |b| {
        b.iter_batched_ref(
            || Bench::new(100),
            |bench| {
                (0..1000).for_each(|index| bench.update(index));
                bench.compact();
            },
            BatchSize::LargeInput,
        );
    });
}

fn selectors(c: &mut Criterion) {
    let selection = Selection::new();
    assert!(selection.parse() && selection.matches_labels() && selection.matches_fields(), "the Pod is the one meant");
    c.bench_function("selector: parse labels and fields", |b| b.iter(|| black_box(selection.parse())));
    c.bench_function("selector: match labels", |b| b.iter(|| black_box(selection.matches_labels())));
    c.bench_function("selector: match fields", |b| b.iter(|| black_box(selection.matches_fields())));
    let bench = Bench::new(OBJECTS);
    assert!(bench.selected(&selection) > OBJECTS / 2);
    c.bench_function("selector: list 5,000 objects by labels", |b| b.iter(|| black_box(bench.selected(&selection))));
}

criterion_group!(all, store, log, selectors);
criterion_main!(all);
