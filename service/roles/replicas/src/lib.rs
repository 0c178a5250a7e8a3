//! The API over Deployments: reads replica counts from the watch, and sets them through the API server.
//!
//! This crate owns paths, JSON, rights, rates, and the log line about each change. Listening and TLS belong to `edge`,
//! the view of Deployments to `watch`, requests to the API server to `kube`; the implementation of the interface
//! `Review` judges images.

mod access;
mod answer;
mod api;
mod body;
#[cfg(feature = "certs-dev")]
pub mod certs;
pub mod client;
pub mod command;
pub mod config;
mod cursor;
mod deployment;
pub mod events;
mod image;
mod limits;
mod list;
mod metrics;
mod names;
mod role;
mod route;
mod scale;
mod upstream;

pub use role::ReplicasRole;

/// The served description of the API.
pub const OPENAPI: &str = include_str!("openapi.json");
