//! The ledger: commits against observations, online, in bounded memory.

pub mod outcome;

pub use outcome::{Change, Outcome};
