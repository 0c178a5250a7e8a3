//! Measures reading, judging and rendering the record of an hour: 3.4 million events and 900,000 reviews in 720
//! intervals, 3,600 samples and 53 faults. Judging and rendering the record of a soak of four days take the same time
//! as those of an hour.

#![expect(clippy::unwrap_used, reason = "a record that cannot be written or read ends the benchmark")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "bytes and milliseconds of a run"
)]
#![expect(dead_code, reason = "the generator also serves a test")]

use std::hint::black_box;
use std::ops::Range;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use reports::judge::judge;
use reports::record::Record;
use reports::render::{Colour, html, json, junit, markdown, terminal};

#[path = "../tests/generated/long_run.rs"]
mod long_run;

use long_run::{HOUR_MS, Latencies, Run};

const HOUR: Run = Run { length_ms: HOUR_MS, peak_ms: 0 };
/// The first half of the hour, in milliseconds.
const FIRST: Range<u64> = 0..HOUR_MS / 2;
const REST: Range<u64> = HOUR_MS / 2..HOUR_MS;

fn benches(c: &mut Criterion) {
    let (dir, latencies) = (tempfile::tempdir().unwrap(), Latencies::new());
    HOUR.write(dir.path(), &latencies, &[FIRST, REST], |_| ());
    let bytes = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    let record = Record::open(dir.path()).unwrap();
    let judgement = judge(&record);
    let totals = record.totals();

    let mut group = c.benchmark_group("the record of an hour");
    group.sample_size(20);
    group.throughput(Throughput::Elements(720));
    group.bench_function("write, in intervals", |b| {
        b.iter(|| {
            let dir = tempfile::tempdir().unwrap();
            HOUR.write(dir.path(), &latencies, &[FIRST, REST], |_| ());
        });
    });
    group.throughput(Throughput::Bytes(bytes));
    group.bench_function("read", |b| b.iter(|| Record::open(dir.path()).unwrap()));
    group.throughput(Throughput::Elements(totals.commits + totals.observations));
    group.bench_function("judge, in events of the run", |b| b.iter(|| judge(black_box(&record))));
    group.throughput(Throughput::Elements(1));
    group.bench_function("render html", |b| b.iter(|| html(black_box(&record), &judgement).unwrap()));
    group.bench_function("render markdown", |b| b.iter(|| markdown(black_box(&record), &judgement)));
    group.bench_function("render json", |b| b.iter(|| json(black_box(&judgement)).unwrap()));
    group.bench_function("render junit", |b| b.iter(|| junit(black_box(&record), &judgement).unwrap()));
    group.bench_function("render terminal", |b| b.iter(|| terminal(black_box(&record), &judgement, Colour::Never)));
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
