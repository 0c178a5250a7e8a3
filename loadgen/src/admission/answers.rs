//! The answer to each review, for an observer that compares it with alerts.

use std::fmt::Debug;

use super::expected::Expected;
use super::review::Template;
use crate::seed::UID_LEN;

/// The answer to one review.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    pub uid: &'a [u8; UID_LEN],
    /// The request: `Deployment CREATE shop/cart`.
    pub label: &'a str,
    /// Whether it was allowed; none if no valid answer came.
    pub allowed: Option<bool>,
    /// Whether it must be reported.
    pub tells: Tells,
}

/// Whether a receiver of decisions about images must get an alert about a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tells {
    /// Must not: the review is a dry run.
    Never,
    /// Must: the review brings images.
    Must,
    /// May: the review brings no image, or no new one.
    May,
}

/// An observer of all answers. The threads that send load call it: it must not wait.
pub trait Answers: Debug + Send + Sync {
    /// A review was answered, or never will be.
    fn answered(&self, answer: &Answer<'_>);
}

impl Tells {
    /// Whether the answer to a review of this template must be reported.
    pub(super) fn of(template: &Template, allowed: Option<bool>) -> Self {
        match (allowed, &template.expected) {
            _ if template.dry_run => Self::Never,
            // Shedding an attack is no decision.
            _ if template.hostile => Self::May,
            (Some(false), _) => Self::Must,
            (Some(true), Expected::Allow { images }) if template.examined => {
                let is_new = !template.updates || images.iter().any(|field| field.asked);
                if is_new && !images.is_empty() { Self::Must } else { Self::May }
            }
            _ => Self::May,
        }
    }
}
