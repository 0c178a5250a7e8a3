//! The functions of admission that the fuzz targets call.
//!
//! No logic: this module wraps the crate's own functions so that they take and return text.

use super::walk;

pub use super::review::{Decision, answer, parse};

/// Pointer and text of every image of an object; empty if the object cannot be examined.
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
