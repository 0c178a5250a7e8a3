//! The functions of admission that fuzz targets call.
//!
//! The functions only pass the fuzz input to functions of this crate.

use super::walk;

pub use super::review::{Decision, answer, parse};

/// JSON pointer and text of every image of an object; empty if the JSON cannot be parsed.
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
