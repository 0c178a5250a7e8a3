//! What a run is, and running it.
//!
//! `scenarios` reads scenario files, brings up the outside world and the subject, drives load, churn and faults, and
//! writes the facts into a run record that [`reports`] judges. It is the only crate that knows all the others.
//!
//! Entry points: [`scenario::Scenario`] (the file), `run` (the run), [`cli`] (the binary `longhaul`).

pub mod calibrate;
pub mod cli;
pub mod clients;
mod clock;
pub mod descriptors;
mod fetch;
mod init;
mod itself;
mod keeper;
mod load;
mod machine;
pub mod matrix;
mod metrics;
mod observer;
mod out;
mod repro;
mod run;
pub mod scenario;
mod secrets;
mod shown;
mod signals;
mod subject;
mod witness;

/// How this program is started again: what is shipped has no workspace beside it.
const STARTED_AS: &str = if cfg!(feature = "dist") { "longhaul" } else { "cargo xtask" };
