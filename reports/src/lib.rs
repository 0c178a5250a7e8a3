//! The judges, causes, verdicts and renderers, and re-exports of the run record and the ledger.
//!
//! This crate turns facts into a verdict, and owns everything that is reported about a run afterwards. The memory
//! during a run is in crates of its own: [`record`] has its files, [`ledger`] the outcome of each version.
//!
//! This crate must not open a socket, read a clock or start a thread: every time is an argument. A judge reads nothing
//! but a [`record::Record`], so judging the same record again gives the same bytes.

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
pub mod judge;
pub mod outside;
pub mod render;
pub mod suite;
pub mod words;
