//! The judges, what they say of causes, verdicts and renderers; and, under one roof, the run record and the ledger.
//!
//! This crate turns facts into a verdict, and owns everything that is said about a run afterwards. What is remembered while it lasts are
//! crates of their own: [`record`] its files, [`ledger`] what became of each version.
//!
//! It must not open a socket, read a clock or start a thread: every time is an argument. A judge reads nothing but a
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
pub mod judge;
pub mod outside;
pub mod render;
pub mod suite;
pub mod words;
