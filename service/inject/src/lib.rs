//! The injection of images into a cluster without a registry: `inject plan`, `apply`, `status` and `clean`.
//!
//! This crate owns the payload (images to chunks), the objects that carry it, the pace of sending, the choice of a node
//! and an image to run the seed with, and the explanation of failures. The other end is the package `service-seed`.
//!
//! All decisions (`pace`, `place`, `explain`, `objects`) are pure; only `cluster` sends requests.

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
