//! Judges, causes and verdicts of runs, and the renderers of reports. The crate also re-exports the run record and the
//! ledger.
//!
//! This crate turns the facts of a run into a verdict and into reports. Two other crates of this folder work while a
//! run is under way: [`record`] writes and reads the record's files, and [`ledger`] decides the outcome of each
//! version.
//!
//! This crate must not open a socket, read a clock or start a thread: every time is an argument. A judge reads only a
//! [`record::Record`], so judging the same record again gives the same bytes.

pub use record::budgets;
pub use {ledger, record, statistics};

pub mod causes;
pub mod compare;
pub mod diff;
#[cfg(test)]
mod example;
pub mod exit;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod fuzz;
pub mod gate;
pub mod growth;
pub mod history;
pub mod hunt;
pub mod judge;
pub mod outside;
pub mod render;
pub mod size;
pub mod suite;
pub mod words;
