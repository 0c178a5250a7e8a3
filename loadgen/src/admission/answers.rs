//! The answer to each review, which an observer compares with alerts.

use std::fmt::Debug;

use super::expected::Expected;
use super::review::Template;
use crate::seed::UID_LEN;

#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    pub uid: &'a [u8; UID_LEN],
    /// The request: `Deployment CREATE shop/cart`.
    pub label: &'a str,
    /// Whether the request was allowed; `None` if no valid answer came.
    pub allowed: Option<bool>,
    /// Whether a receiver must get an alert about the review.
    pub tells: Tells,
}

/// Whether a receiver of alerts about image decisions must get an alert about a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tells {
    /// No alert may come: the review is a dry run.
    Never,
    /// An alert must come: the object contains new images.
    Must,
    /// An alert may come: the object contains no image, or no new image.
    May,
}

/// An observer of all answers, which must not wait, because the threads that send load call it.
pub trait Answers: Debug + Send + Sync {
    /// Called after each answer, and for each review that will never be answered.
    fn answered(&self, answer: &Answer<'_>);
}

impl Tells {
    /// Whether a receiver of alerts must get an alert about a review of this template.
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
