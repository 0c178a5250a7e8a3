//! A visit: what it is about, what it needs, and how it ends. What is done is said by each kind of action.

use std::sync::Arc;
use std::time::Duration;

use service_watch::{Change, Object};

use crate::api::Api;
use crate::hook::Hook;
use crate::meta::Meta;

/// An object that waits.
#[derive(Debug, Clone)]
pub struct Pending {
    /// The change that made it wait; a first sight stays one until it was brought.
    pub change: Change,
    /// Its latest state.
    pub object: Arc<Object<Meta>>,
    /// Its hook has said yes already, and only a write is left.
    pub approved: bool,
    /// Failed visits in a row.
    pub attempts: usize,
}

/// The end of a visit.
#[derive(Debug, PartialEq, Eq)]
pub enum Visited {
    /// Nothing is left to do; how it is counted.
    Done(&'static str),
    /// It has to be visited again, not before so long if somebody asks for that.
    Later(String, Option<Duration>),
    /// It is of no use to visit it again like this.
    Never(String),
}

/// Everything that a visit needs.
pub struct Tools {
    /// As the hook is told.
    pub action: Arc<str>,
    pub resource: &'static str,
    pub hook: Hook,
    /// The objects.
    pub api: Api,
}
