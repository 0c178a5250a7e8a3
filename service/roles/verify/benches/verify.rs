//! Benchmarks of signature checks: `cargo bench -p service-verify`. The signatures come from the fixtures, which cosign
//! has made.

#[expect(dead_code, reason = "shared with the tests, which use more of it")]
#[path = "../tests/it/fixtures.rs"]
mod fixtures;

use criterion::{Criterion, criterion_group, criterion_main};
use fixtures::{Fixtures, Form};
use service_verify::{Trust, verify};

/// Names of benchmarks, each with the case of the fixtures that it measures.
const MEASURED: [(&str, &str); 8] = [
    ("key P-256, legacy", "key p256, legacy, cosign 2"),
    ("key Ed25519, legacy", "key ed25519, legacy, cosign 2"),
    ("key RSA 2048, legacy", "key rsa2048, legacy, cosign 2"),
    ("key P-256, bundle", "key p256, bundle"),
    ("key P-256, bundle, logged", "key p256, logged, bundle"),
    ("keyless, legacy", "keyless mail, legacy, cosign 2"),
    ("keyless, bundle", "keyless mail, bundle"),
    ("refused: other key", "other key, legacy, cosign 2"),
];

fn verifications(criterion: &mut Criterion) {
    let fixtures = Fixtures::read();
    let mut group = criterion.benchmark_group("verify");
    for (name, case) in MEASURED {
        let case = fixtures.cases.iter().find(|known| known.name == case).expect("a case of the fixtures");
        let (subject, evidence, requirement) = (case.subject(), case.evidence(), case.requirement());
        let trust = case.trust(Form::TrustedRoot);
        let verdict = verify(&subject, &evidence, &requirement, &trust, fixtures.now());
        assert_eq!(verdict.is_verified(), case.is_accepted_by_cosign(), "{name}");
        group.bench_function(name, |bencher| {
            bencher.iter(|| verify(&subject, &evidence, &requirement, &trust, fixtures.now()));
        });
    }
    group.finish();
    let spec = fixtures.cases[0].trust_spec(Form::TrustedRoot);
    criterion.bench_function("trust of a trusted_root.json", |bencher| bencher.iter(|| Trust::compile(&spec)));
}

criterion_group!(benches, verifications);
criterion_main!(benches);
