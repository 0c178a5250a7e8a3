//! The processing of one object by an action: its inputs and its result. Each kind of action has its own steps.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use service_watch::{Change, Object};

use crate::api::Api;
use crate::hook::Hook;
use crate::meta::Meta;

#[derive(Debug, Clone)]
pub struct Pending {
    /// The change of the object that caused the processing. A new object keeps the change `Added` until it was sent to
    /// the hook once.
    pub change: Change,
    pub object: Arc<Object<Meta>>,
    /// Whether the hook has already agreed to the deletion, so that only the finalizer must be removed.
    pub approved: bool,
    pub attempts: usize,
}

/// The result of processing an object.
#[derive(Debug, PartialEq, Eq)]
pub enum Visited {
    /// Nothing is left to do; the text is the outcome in metrics.
    Done(&'static str),
    /// The object must be processed again, and the text says why. If the server or hook demanded a delay, that time
    /// must pass first.
    Later(String, Option<Duration>),
    /// Processing the same state of the object again cannot succeed.
    Never(String),
}

pub struct Tools {
    /// The action's name, which the hook gets.
    pub action: Arc<str>,
    pub resource: Cow<'static, str>,
    pub hook: Hook,
    pub api: Api,
}
