//! Alerts about decisions of reviews, one for each decision. Dry runs and exempt objects cause no alert. For an
//! admitted object, only the mutating webhook sends an alert.

use std::collections::BTreeSet;
use std::sync::Arc;

use service_core::alert::{Alert, AlertSink, IMAGE_BYTES_MAX, IMAGES_MAX, NAME_BYTES_MAX};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::Pipeline;
use crate::decide::Hook;
use crate::review::{Ask, Decision, Notes};
use crate::text::printable;
use crate::walk;

/// Maximum number of images of an object that are compared to find equal images; each further image counts as
/// different.
const TOLD_APART_MAX: usize = 500;

impl Pipeline {
    /// Makes the pipeline send an alert for every decision to `alerts`.
    #[must_use]
    pub fn telling(mut self, alerts: Option<Arc<dyn AlertSink>>) -> Self {
        self.alerts = alerts;
        self
    }

    /// Returns `decision` if every receiver for which reviews wait got the alert, else a denial with the reason.
    pub async fn alerted(&self, hook: Hook, ask: &Ask<'_>, decision: Decision, deadline: Instant) -> Decision {
        let Some(alerts) = &self.alerts else { return decision };
        let Some(alert) = alert(hook, ask, &decision) else { return decision };
        match (alerts.tell(alert, deadline).await, decision) {
            (Err(why), Decision::Allow { .. }) => {
                self.recorded(ask, Decision::Deny { message: why, notes: Notes::default() })
            }
            // A refusal keeps its first reason.
            (_, decision) => decision,
        }
    }
}

/// The alert about a decision; `None` if the decision causes no alert.
fn alert(hook: Hook, ask: &Ask<'_>, decision: &Decision) -> Option<Alert> {
    let (admitted, message) = match decision {
        Decision::Allow { notes, .. } if notes.annotations.contains_key("exempt") => return None,
        Decision::Allow { .. } if hook == Hook::Validating => return None,
        Decision::Allow { notes, .. } => (true, notes.warnings.first().map_or("it was let in", String::as_str)),
        Decision::Deny { message, .. } | Decision::Error { message } => (false, message.as_str()),
    };
    if ask.dry_run {
        return None;
    }
    let (images, more_images) = images(ask);
    if images.is_empty() && admitted {
        return None;
    }
    let name = |text: Option<&str>| printable(text.unwrap_or_default(), NAME_BYTES_MAX).into_owned();
    let kind = name(ask.kind.as_ref().map(|kind| &*kind.kind));
    let object = name(ask.name.as_deref());
    let outcome = if admitted { "admitted" } else { "refused" };
    let alert = Alert {
        admitted,
        message: format!("{} was {outcome}: {message}", format!("{kind} {object}").trim_end()),
        kind,
        namespace: name(ask.namespace.as_deref()),
        name: object,
        request_id: name(Some(&ask.uid)),
        images,
        more_images,
    };
    Some(alert.cut())
}

/// The first images of the object without repetition, and the number of further images.
fn images(ask: &Ask<'_>) -> (Vec<String>, usize) {
    let mut named: Vec<String> = Vec::new();
    let (mut seen, mut more) = (BTreeSet::<[u8; 32]>::new(), 0);
    let mut take = |image: &str| {
        let digest: [u8; 32] = Sha256::digest(image).into();
        if seen.contains(&digest) {
            return;
        }
        if seen.len() < TOLD_APART_MAX {
            seen.insert(digest);
        }
        if named.len() < IMAGES_MAX {
            named.push(printable(image, IMAGE_BYTES_MAX).into_owned());
        } else {
            more += 1;
        }
    };
    if let Some(sites) = &ask.sites {
        for site in sites {
            take(&site.image);
        }
    } else if let Some(object) = ask.object {
        // An object that cannot be examined was refused; there is no image to name.
        let _ = walk::walk(object, &mut |seen| {
            take(seen.image);
            Ok(())
        });
    }
    (named, more)
}
