//! What a run is, and running it.
//!
//! `scenarios` reads scenario files, brings up the outside world and the subject, drives load, churn and faults, and
//! writes the facts into a run record that [`reports`] judges. It is the only crate that knows all the others.
//!
//! Entry points: [`scenario::Scenario`] (the file), `run` (the run), [`cli`] (the binary `longhaul`).

pub mod calibrate;
pub mod cli;
pub mod clients;
mod compare;
pub mod descriptors;
mod envtest;
mod gate;
mod init;
mod itself;
mod live;
mod load;
pub mod matrix;
mod mounted;
mod observe;
mod observer;
mod placed;
mod private;
mod repro;
mod run;
mod secrets;
mod signals;
mod unseen;
pub mod worlds;

pub use ::scenario::scenario;
use ::scenario::{accept, clock, fetch, keeper, machine, metrics, out, shown, subject, witness};

/// Who builds this program and then becomes it says here how that is done again.
const STARTED_AS: &str = "LONGHAUL_STARTED_AS";

/// How this program is started again, as a shell reads it: as it was started, or as `cargo xtask` says.
fn started_as() -> String {
    let said = std::env::var(STARTED_AS).ok().filter(|said| !said.is_empty());
    said.or_else(|| std::env::args().next().map(|program| quoted(&program))).unwrap_or_else(|| "longhaul".to_owned())
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,~".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_are_quoted_as_a_shell_reads_them() {
        assert_eq!(super::quoted("target/debug/longhaul"), "target/debug/longhaul");
        assert_eq!(super::quoted("my runs/it's.yaml"), r"'my runs/it'\''s.yaml'");
        assert_eq!(super::quoted(""), "''");
    }
}
