//! The benchmark of a warm review's steps: the walk over an object, the patch that pins its images, and the whole path
//! without sockets.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use service_admission::bench::{Webhook, patch, pod, review, walk};

/// Numbers of images in the Pods.
const SIZES: [usize; 2] = [1, 8];

fn steps(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    for images in SIZES {
        let object = pod(images);
        let text = object.to_string();
        let sites = walk(&text);
        criterion.bench_function(&format!("walk/{images}"), |bencher| bencher.iter(|| walk(black_box(&text))));
        criterion.bench_function(&format!("patch/{images}"), |bencher| bencher.iter(|| patch(black_box(&sites))));
        let (webhook, body) = (Webhook::new(), review(&object));
        criterion.bench_function(&format!("review/{images}"), |bencher| {
            bencher.iter(|| runtime.block_on(webhook.answer(body.clone())));
        });
    }
}

criterion_group!(benches, steps);
criterion_main!(benches);
