//! Facts about images with their lifetimes.
//!
//! This module owns the error classes, the digest cache bounded in bytes, and the single flight. It does no I/O.

mod cache;
mod class;
mod flight;

pub use cache::Cache;
pub use class::{Class, Failure};
pub use flight::{Flights, Joined};
