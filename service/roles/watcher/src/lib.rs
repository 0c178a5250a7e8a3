//! The role `watcher`: tells other systems about changes of any resource, and lets their hooks work on objects, without
//! a program of their own.
//!
//! This crate owns actions: filters decide which events are due, and each due event is sent (`watch`), brought to a
//! hook one object at a time (`reconcile`), or makes the object's deletion wait (`finalize`). The view of existing
//! objects belongs to `service-watch`; it holds only metadata, and whole objects are read at the moment they are sent
//! to a hook.

mod action;
mod api;
pub mod config;
pub mod events;
mod filter;
mod finalize;
mod hook;
mod meta;
mod metrics;
mod problems;
mod reconcile;
mod role;
mod tell;
mod visit;
mod work;

pub use config::Watcher;
pub use role::WatcherRole;
