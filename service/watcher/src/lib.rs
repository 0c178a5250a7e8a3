//! The role `watcher`: whoever is told what happens to objects of any resource, and works on them, without a program of their own.
//!
//! Owns actions: which events are due to whom (filters), and what is done with them: told (`watch`), brought to a hook one object at a time
//! (`reconcile`), or waited for by the object itself (`finalize`). The view of what exists belongs to `service-watch`; it holds metadata
//! alone, and whole objects are read at the moment they are brought to a hook.

mod action;
mod api;
mod board;
pub mod config;
mod filter;
mod finalize;
mod hook;
mod meta;
mod metrics;
mod reconcile;
mod role;
mod tell;
mod visit;
mod work;

pub use config::Watcher;
pub use role::Watching;
