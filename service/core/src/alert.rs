//! Alerts about the outcomes of reviews: admission passes them to alert receivers.
//!
//! This module limits how much of an object an alert carries: alerts wait in memory while receivers hang, and anybody
//! with the right to create an object chooses its text.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use tokio::time::Instant;

/// Maximum number of images that an alert names; further images are only counted.
pub const IMAGES_MAX: usize = 20;
/// Maximum number of bytes of an image reference in an alert. No valid reference with a digest is longer.
pub const IMAGE_BYTES_MAX: usize = 512;
/// Maximum number of bytes of an object's name in an alert; Kubernetes allows 253.
pub const NAME_BYTES_MAX: usize = 256;
pub const MESSAGE_BYTES_MAX: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "Written")]
pub struct Alert {
    pub admitted: bool,
    /// The reason why the object was refused, or a sentence that says that it was admitted.
    pub message: String,
    pub kind: String,
    /// The object's namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// The object's name, or the prefix from which the API server makes it.
    pub name: String,
    /// The uid of the review that caused the alert.
    pub request_id: String,
    /// The first images of the object without repetition, spelled as in the object.
    pub images: Vec<String>,
    /// The number of the object's images that are not in `images`.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_images: usize,
}

/// The JSON form in which another process sends an alert.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    admitted: bool,
    message: String,
    kind: String,
    namespace: String,
    name: String,
    request_id: String,
    images: First,
    #[serde(default)]
    more_images: usize,
}

/// The first images of an alert that is being parsed from JSON. A parsed list of empty strings would take eight times
/// the memory of its text, so images beyond [`IMAGES_MAX`] are dropped.
struct First {
    images: Vec<String>,
    more: usize,
}

impl<'de> Deserialize<'de> for First {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Images;
        impl<'de> Visitor<'de> for Images {
            type Value = First;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("a list of images")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<First, A::Error> {
                let mut first = First { images: Vec::new(), more: 0 };
                while first.images.len() < IMAGES_MAX {
                    let Some(image) = items.next_element()? else { return Ok(first) };
                    first.images.push(image);
                }
                while items.next_element::<IgnoredAny>()?.is_some() {
                    first.more += 1;
                }
                Ok(first)
            }
        }
        deserializer.deserialize_seq(Images)
    }
}

impl From<Written> for Alert {
    fn from(written: Written) -> Self {
        Self {
            admitted: written.admitted,
            message: written.message,
            kind: written.kind,
            namespace: written.namespace,
            name: written.name,
            request_id: written.request_id,
            images: written.images.images,
            more_images: written.images.more.saturating_add(written.more_images),
        }
    }
}

impl Alert {
    /// Cuts every text to its limit, and drops images beyond [`IMAGES_MAX`].
    #[must_use]
    pub fn cut(mut self) -> Self {
        let left_out = self.images.len().saturating_sub(IMAGES_MAX);
        self.images.truncate(IMAGES_MAX);
        self.more_images = self.more_images.saturating_add(left_out);
        cut(&mut self.message, MESSAGE_BYTES_MAX);
        for name in [&mut self.kind, &mut self.namespace, &mut self.name, &mut self.request_id] {
            cut(name, NAME_BYTES_MAX);
        }
        for image in &mut self.images {
            cut(image, IMAGE_BYTES_MAX);
        }
        // The parts that remain must not keep the memory of the parts that were cut.
        self.images.shrink_to_fit();
        self
    }

    pub fn bytes(&self) -> usize {
        let texts = [&self.message, &self.kind, &self.namespace, &self.name, &self.request_id];
        let images = self.images.iter().map(|image| size_of::<String>() + image.capacity()).sum::<usize>();
        size_of::<Self>() + texts.map(String::capacity).iter().sum::<usize>() + images
    }

    /// The images as text for a sentence: as many names as fit into `bytes_max`, then the number of the remaining
    /// images.
    pub fn images_text(&self, bytes_max: usize) -> String {
        let (mut text, mut named) = (String::new(), 0);
        for image in &self.images {
            let between = if text.is_empty() { "" } else { ", " };
            if text.len() + between.len() + image.len() > bytes_max {
                break;
            }
            text.extend([between, image]);
            named += 1;
        }
        match self.more_images.saturating_add(self.images.len() - named) {
            0 => text,
            more => format!("{text} and {more} more"),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Cuts `text` to at most `bytes_max` bytes, including a mark at the end of a cut text.
fn cut(text: &mut String, bytes_max: usize) {
    const SIGN: &str = "…";
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max - SIGN.len()));
        text.push_str(SIGN);
    }
    text.shrink_to_fit();
}

/// A sink of alerts: passes them to all configured receivers.
pub trait AlertSink: Send + Sync + 'static {
    /// Sends an alert. An error means that a receiver for which admission waits did not get the alert by `deadline`.
    fn tell(&self, alert: Alert, deadline: Instant) -> BoxFuture<'static, Result<(), String>>;

    /// Sends the alerts that are still in memory, for at most `grace`.
    fn stop(&self, grace: Duration) -> BoxFuture<'_, ()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(images: &str) -> String {
        format!(
            r#"{{"admitted":false,"message":"m","kind":"Pod","namespace":"n","name":"p","requestId":"u","images":[{images}]}}"#
        )
    }

    #[test]
    fn twenty_images_are_named_and_the_others_counted() {
        let images: Vec<_> = (0..500).map(|number| format!("\"i{number}\"")).collect();
        let alert: Alert = serde_json::from_str(&written(&images.join(","))).unwrap();
        assert_eq!((alert.images.len(), alert.more_images), (20, 480));
        assert!(alert.images_text(1000).ends_with("i18, i19 and 480 more"), "{}", alert.images_text(1000));
        assert_eq!(alert.images_text(10), "i0, i1, i2 and 497 more");
        let again: Alert = serde_json::from_str(&serde_json::to_string(&alert).unwrap()).unwrap();
        assert_eq!(again, alert);
        let few: Alert = serde_json::from_str(&written("\"a\"")).unwrap();
        assert!(!serde_json::to_string(&few).unwrap().contains("moreImages"));
    }

    /// An alert uses little memory, however long the texts of its object are.
    #[test]
    fn an_alert_holds_little() {
        let long = "ä".repeat(1 << 20);
        let alert = Alert {
            admitted: false,
            message: long.clone(),
            kind: long.clone(),
            namespace: long.clone(),
            name: long.clone(),
            request_id: long.clone(),
            images: vec![long; 30],
            more_images: 5,
        };
        let alert = alert.cut();
        assert!(alert.bytes() < 17 << 10, "{}", alert.bytes());
        assert_eq!((alert.images.len(), alert.more_images), (20, 15));
        assert!(alert.message.len() <= MESSAGE_BYTES_MAX && alert.message.ends_with('…'));
    }
}
