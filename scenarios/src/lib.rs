//! Defines and executes runs.
//!
//! `scenarios` reads scenario files, starts the control plane and the subject, drives load, churn and faults, and
//! writes a run record, which [`reports`] judges. `scenarios` is the only crate that depends on all other crates.
//!
//! Entry points: [`scenario::Scenario`] (the scenario file), `run` (the run), [`cli`] (the program `longhaul`).

pub mod calibrate;
pub mod cli;
pub mod clients;
mod compare;
pub mod descriptors;
mod envtest;
mod gate;
mod hunt;
mod init;
mod itself;
mod live;
mod load;
pub mod matrix;
mod observe;
mod observer;
mod placed;
mod private;
mod repro;
mod run;
mod secrets;
mod signals;
mod size;
mod unseen;
pub mod worlds;

pub use ::scenario::scenario;
use ::scenario::{accept, clock, fetch, keeper, machine, metrics, out, shown, subject, witness};

/// Environment variable that `cargo xtask` sets, so that messages show the command that the user typed.
const STARTED_AS: &str = "LONGHAUL_STARTED_AS";

/// The command that starts this program again, for a shell: the value from `cargo xtask`, or the path of this program.
fn started_as() -> String {
    let said = std::env::var(STARTED_AS).ok().filter(|said| !said.is_empty());
    said.or_else(|| std::env::args().next().map(|program| typed(&program))).unwrap_or_else(|| "longhaul".to_owned())
}

/// The name by which kubectl finds this program as its plug-in.
const PLUGIN: &str = "kubectl-longhaul";
/// The command with which a user starts the plug-in.
const AS_PLUGIN: &str = "kubectl longhaul";

/// Whether kubectl started the program with this path as its plug-in.
fn is_plugin(program: &std::ffi::OsStr) -> bool {
    std::path::Path::new(program).file_name().is_some_and(|name| name == PLUGIN)
}

/// The command with which a user starts the program with this path.
fn typed(program: &str) -> String {
    if is_plugin(program.as_ref()) { AS_PLUGIN.to_owned() } else { quoted(program) }
}

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

    /// As a plug-in, the program shows `kubectl longhaul` in messages, and not its path.
    #[test]
    fn a_plug_in_is_typed_as_a_command_of_kubectl() {
        assert_eq!(super::typed("/home/me/.krew/bin/kubectl-longhaul"), "kubectl longhaul");
        assert_eq!(super::typed("bin/longhaul"), "bin/longhaul");
    }
}
