//! The run record, the ledger, the judges, the verdicts and the renderers.
//!
//! This crate turns facts into a verdict. It owns the files of a run record (writing and reading them), the ledger that
//! compares commits with observations, and everything that is said about a run afterwards.
//!
//! It must not open a socket, read a clock or start a thread: every time is an argument. A judge reads nothing but a
//! [`record::Record`], so judging the same record again gives the same bytes.

pub mod budgets;
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
pub mod ledger;
pub mod outside;
pub mod record;
pub mod render;
pub use statistics;
pub mod words;
