//! A visit: its object, its inputs, and its outcome. Each kind of action has its own steps.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use service_watch::{Change, Object};

use crate::api::Api;
use crate::hook::Hook;
use crate::meta::Meta;

#[derive(Debug, Clone)]
pub struct Pending {
    /// The change that caused the visit; a first sight stays one until it was sent.
    pub change: Change,
    pub object: Arc<Object<Meta>>,
    /// The hook has agreed already, and only a write is left.
    pub approved: bool,
    pub attempts: usize,
}

/// The outcome of a visit.
#[derive(Debug, PartialEq, Eq)]
pub enum Visited {
    /// Nothing is left to do; the text is the metric's outcome.
    Done(&'static str),
    /// The object must be visited again, not before this time if the server requested one.
    Later(String, Option<Duration>),
    /// Another visit of the same state cannot succeed.
    Never(String),
}

pub struct Tools {
    /// The action's name for the hook.
    pub action: Arc<str>,
    pub resource: Cow<'static, str>,
    pub hook: Hook,
    pub api: Api,
}
