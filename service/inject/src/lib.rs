//! Images into a cluster that has no registry: `inject plan`, `apply`, `status` and `clean`.
//!
//! Owns the payload (images to chunks), the objects that carry it, the pace at which they are sent, the choice of a node and an
//! image to run the seed with, and the explanation of what went wrong. The other end is the package `service-seed`.
//!
//! What decides anything (`pace`, `place`, `explain`, `objects`) is pure; requests are made in `cluster` alone.

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
