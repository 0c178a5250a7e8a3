//! A fuzzer that changes valid signatures and reports every change that this crate accepts.
//!
//! Usage: `cargo run -p service-verify --example mutate --release -- 1000000 [SEED]`; the exit code is 1 if a change
//! was accepted. With `--second-opinion` before the number of changes, only bundles are changed, and the fuzzer reports
//! changes that this crate accepts and sigstore's own client refuses.

#[expect(dead_code, reason = "shared with the tests, which use more of it")]
#[path = "../tests/it/fixtures.rs"]
mod fixtures;
#[path = "../tests/it/mutation.rs"]
mod mutation;
#[expect(dead_code, reason = "shared with the tests, which use more of it")]
#[path = "../tests/it/theirs.rs"]
mod theirs;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    let is_compared = arguments.next_if_eq("--second-opinion").is_some();
    let mut arguments = arguments.map(|text| text.parse::<u64>());
    let (Some(Ok(tries)), seed) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: mutate [--second-opinion] TRIES [SEED]");
        return ExitCode::from(2);
    };
    let Ok(seed) = seed.unwrap_or(Ok(1)) else {
        eprintln!("a seed is a number");
        return ExitCode::from(2);
    };
    let fixtures = fixtures::Fixtures::read();
    let golden = mutation::golden(&fixtures);
    let found =
        if is_compared { compared(&fixtures, golden, seed, tries) } else { forged(&fixtures, &golden, seed, tries) };
    for one in found.iter().take(10) {
        println!("{one}");
    }
    if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn forged(fixtures: &fixtures::Fixtures, golden: &[mutation::Golden], seed: u64, tries: u64) -> Vec<String> {
    let tally = mutation::run(golden, fixtures.now(), seed, tries);
    println!(
        "{} changes of {} golden pieces, seed {seed}: {} refused, {} accepted with every bound fact as it was, {} accepted forgeries",
        tally.tries,
        golden.len(),
        tally.refused,
        tally.harmless,
        tally.forged.len()
    );
    tally.forged
}

/// Returns the changes of bundles that this crate accepts and sigstore's own client refuses.
fn compared(fixtures: &fixtures::Fixtures, golden: Vec<mutation::Golden>, seed: u64, tries: u64) -> Vec<String> {
    let readable = mutation::compared::readable(fixtures, golden);
    let tally = mutation::compared::run(&readable, fixtures.now(), seed, tries);
    println!(
        "{} changes of {} bundles, seed {seed}: {} refused by both, {} accepted by both, {} by them alone, {} by us alone for a known reason, {} by us alone",
        tally.tries,
        readable.len(),
        tally.neither,
        tally.both,
        tally.only_theirs,
        tally.excepted.values().sum::<u64>(),
        tally.only_ours.len()
    );
    for (name, count) in &tally.excepted {
        println!("by us alone, {count} times: {name}");
    }
    tally.only_ours
}
