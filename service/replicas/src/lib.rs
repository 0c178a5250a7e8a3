//! The API over Deployments: how many replicas one has, answered from the watch, and set through the API server.
//!
//! Owns paths, JSON, who may do what and how often, and the line about each change. Listening and TLS belong to `edge`, the view of
//! Deployments to `watch`, requests to the API server to `kube`; what becomes of an image decides whoever is behind the seam `Review`.

mod access;
mod answer;
mod api;
mod body;
pub mod client;
pub mod config;
mod cursor;
mod deployment;
mod image;
mod limits;
mod list;
mod metrics;
mod names;
mod role;
mod route;
mod scale;
mod upstream;

pub use role::Replicas;

/// The description of the API, as it is served.
pub const OPENAPI: &str = include_str!("openapi.json");
