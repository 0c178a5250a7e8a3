//! What one call costs the generator outside the sockets, and what a plan costs before the clock starts.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use loadgen::admission::{Config, Image, Interval, Mix, Plan, Through};

fn plan() -> Plan {
    let image = |name: &str, c: char| {
        let digest = format!("sha256:{}", c.to_string().repeat(64));
        Image::new(format!("registry.test:5000/shop/{name}:1"), Some(digest))
    };
    let config = Config {
        rate: units::Rate::per_second(1000.0),
        arrivals: loadgen::Arrivals::Poisson,
        shape: None,
        replay: None,
        through: Through::Webhook,
        client: loadgen::admission::Client::Apiserver,
        mix: Mix::usual(),
        timeout: loadgen::admission::DEFAULT_TIMEOUT,
        size: None,
        max_in_flight: loadgen::admission::DEFAULT_MAX_IN_FLIGHT,
        threads: 1,
        tls_resumption: false,
        calls_per_connection: None,
        connections: None,
        objects: Vec::new(),
    };
    Plan::build(&config, 7, Duration::from_mins(1), &[image("cart", 'a'), image("ledger", 'b')])
        .expect("the configuration is valid")
}

fn benches(c: &mut Criterion) {
    c.bench_function("plan: build", |b| b.iter(|| black_box(plan())));
    let plan = plan();
    c.bench_function("plan: 1000 requests", |b| b.iter(|| black_box(plan.preview(1000))));
    let mut call = loadgen::bench::Call::to_patch(&plan).expect("the mix has Pods that need a pin");
    assert!(call.judge(), "the benchmark judges a right answer");
    c.bench_function("splice: uid into body", |b| b.iter(|| black_box(call.splice())));
    c.bench_function("judge: a right answer", |b| b.iter(|| black_box(call.judge())));
    let mut us = 0;
    c.bench_function("record: one call", |b| {
        b.iter(|| {
            us = (us + 37) % 100_000;
            call.record(Duration::from_micros(us));
        });
    });
    let (mut total, interval) = (Interval::default(), Interval::default());
    c.bench_function("interval: add", |b| b.iter(|| total.add(black_box(&interval))));
}

criterion_group!(all, benches);
criterion_main!(all);
