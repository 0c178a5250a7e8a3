//! Results of lookups and checks of images, and the time for which each result may be used again.
//!
//! This module owns the failure classes and a cache of limited size, and lets equal lookups share one lookup. The
//! module sends no requests.

mod cache;
mod class;
mod flight;

pub use cache::Cache;
pub use class::{Class, Failure};
pub use flight::{Flights, Joined};
