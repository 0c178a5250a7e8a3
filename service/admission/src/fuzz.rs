//! The part of admission that the fuzz targets call.
//!
//! Owns no logic: it turns the room's own functions into such as take and give text.

use super::unchanged::Stored;
use super::walk::{self, Seen};

pub use super::review::{Decision, answer, parse};

/// Pointer and text of every image of an object; nothing of one that cannot be examined.
pub fn images(object: &str) -> Vec<(String, String)> {
    seen(object, |_| true)
}

/// The images of `new` that `old` does not have at the same place.
pub fn changed(old: &str, new: &str) -> Vec<String> {
    let stored = Stored::read(old);
    seen(new, |seen| !stored.has(seen)).into_iter().map(|(_, image)| image).collect()
}

fn seen(object: &str, wanted: impl Fn(Seen<'_>) -> bool) -> Vec<(String, String)> {
    let mut images = Vec::new();
    let walked = walk::walk(object, &mut |seen| {
        if wanted(seen) {
            images.push((seen.pointer.to_owned(), seen.image.to_owned()));
        }
        Ok(())
    });
    if walked.is_err() {
        images.clear();
    }
    images
}
