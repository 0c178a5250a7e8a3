//! The role `watcher`: informs other systems about changes of any resource, and lets their hooks process objects. So
//! these systems need no watch of their own.
//!
//! This crate owns the actions on events. Filters choose events; each chosen event is sent (`watch`), or its object is
//! sent to a hook (`reconcile`), or the object's deletion waits for a hook (`finalize`). `service-watch` owns the view
//! of existing objects. The view contains only metadata; whole objects are read when they are sent to a hook.

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
