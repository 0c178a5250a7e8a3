//! The part of admission that the fuzz targets call.
//!
//! Owns no logic: it turns the room's own functions into such as take and give text.

use super::walk;

pub use super::review::{Decision, answer, parse};

/// Pointer and text of every image of an object; nothing of one that cannot be examined.
pub fn images(object: &str) -> Vec<(String, String)> {
    let mut images = Vec::new();
    let walked = walk::walk(object, &mut |seen| {
        images.push((seen.pointer.to_owned(), seen.image.to_owned()));
        Ok(())
    });
    if walked.is_err() {
        images.clear();
    }
    images
}
