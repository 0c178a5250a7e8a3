//! Results of lookups and checks of images, and the time for which each result may be reused.
//!
//! This module owns the failure classes, a cache of limited size, and the sharing of equal lookups. The module does no
//! I/O.

mod cache;
mod class;
mod flight;

pub use cache::Cache;
pub use class::{Class, Failure};
pub use flight::{Flights, Joined};
