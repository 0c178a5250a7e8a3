//! How each review was answered, for whoever compares that with what others were told of it.

use std::fmt::Debug;

use super::expected::Expected;
use super::review::Template;
use crate::seed::UID_LEN;

/// The answer to one review.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The review's uid.
    pub uid: &'a [u8; UID_LEN],
    /// What was asked: `Deployment CREATE shop/cart`.
    pub label: &'a str,
    /// Whether it was let in; none where no valid answer came.
    pub allowed: Option<bool>,
    /// Who is to be told of it.
    pub tells: Tells,
}

/// Whether somebody who wants to know of decisions about images is to be told of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tells {
    /// Nobody: it is a dry run.
    Never,
    /// Of images that it brings: a receiver must be.
    Must,
    /// It brings none, or none that is new: a receiver may be.
    May,
}

/// Whoever wants to know of every answer. Threads that send load call it: it must not wait.
pub trait Answers: Debug + Send + Sync {
    /// A review was answered, or will never be.
    fn answered(&self, answer: &Answer<'_>);
}

impl Tells {
    /// Who is to be told of the answer to a review of this template.
    pub(super) fn of(template: &Template, allowed: Option<bool>) -> Self {
        match (allowed, &template.expected) {
            _ if template.dry_run => Self::Never,
            // To shed an attack is no decision.
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
