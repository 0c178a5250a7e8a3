//! Brings images into a cluster without a registry: `inject plan`, `apply`, `status` and `clean`.
//!
//! This crate owns the payload (images as chunks), the objects that contain it, the rate of sending, the choice of node
//! and image for the injected program, and the explanation of failures. The package `service-seed` is the injected
//! program, which runs in the cluster.
//!
//! The modules `pace`, `place`, `explain` and `objects` make all decisions without I/O; only `cluster` sends requests.

mod apply;
mod clean;
mod cluster;
pub mod command;
mod explain;
mod images;
mod metadata;
mod objects;
mod pace;
mod payload;
mod place;
mod progress;
mod quantity;
mod send;
mod signed;
mod status;

pub use images::ImagesError;
pub use payload::PayloadError;
pub use signed::{Judge, Verdict};
