//! Changes golden signatures a number of times and says whether a forgery was accepted.
//!
//! `cargo run -p service-verify --example mutate --release -- 1000000 [SEED]`; exit code 1 when one was.

#[expect(dead_code, reason = "shared with the tests, which use more of it")]
#[path = "../tests/it/fixtures.rs"]
mod fixtures;
#[path = "../tests/it/mutation.rs"]
mod mutation;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let (Some(Ok(tries)), seed) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: mutate TRIES [SEED]");
        return ExitCode::from(2);
    };
    let Ok(seed) = seed.unwrap_or(Ok(1)) else {
        eprintln!("a seed is a number");
        return ExitCode::from(2);
    };
    let fixtures = fixtures::Fixtures::read();
    let golden = mutation::golden(&fixtures);
    let tally = mutation::run(&golden, fixtures.now(), seed, tries);
    println!(
        "{} changes of {} golden pieces, seed {seed}: {} refused, {} accepted with every bound fact as it was, {} accepted forgeries",
        tally.tries,
        golden.len(),
        tally.refused,
        tally.harmless,
        tally.forged.len()
    );
    for forgery in tally.forged.iter().take(10) {
        println!("{forgery}");
    }
    if tally.forged.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
