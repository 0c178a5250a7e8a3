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
    /// The change that caused the processing. A new object keeps the change `Added` until it was sent once.
    pub change: Change,
    pub object: Arc<Object<Meta>>,
    /// Whether the hook has already agreed to the deletion, so that only a write is left.
    pub approved: bool,
    pub attempts: usize,
}

/// The result of processing an object.
#[derive(Debug, PartialEq, Eq)]
pub enum Visited {
    /// Nothing is left to do; the text is the outcome in metrics.
    Done(&'static str),
    /// The object must be processed again. If the server demanded a delay, that must pass first.
    Later(String, Option<Duration>),
    /// Processing the same state again cannot succeed.
    Never(String),
}

pub struct Tools {
    /// The action's name, which the hook gets.
    pub action: Arc<str>,
    pub resource: Cow<'static, str>,
    pub hook: Hook,
    pub api: Api,
}
