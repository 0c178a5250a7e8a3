//! The API that scales Deployments: reads replica counts from a watch, and sets them through the API server.
//!
//! This crate owns paths, JSON, rights and rates of calls, and the log line about each change. `edge` owns listeners
//! and TLS, `watch` the view of Deployments, `kube` requests to the API server. The interface `Review` judges images.

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

/// The OpenAPI description, which the API serves.
pub const OPENAPI: &str = include_str!("openapi.json");
