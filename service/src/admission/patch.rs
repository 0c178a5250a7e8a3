//! The patch: one `replace` for each image, which keeps what the user wrote and adds the digest.
//!
//! Pure. Applying it twice changes nothing, because a pinned image is never touched.

use serde::Serialize;

use super::walk::Site;

#[derive(Serialize)]
struct Operation<'a> {
    op: &'static str,
    path: &'a str,
    value: String,
}

/// The RFC 6902 document that pins `sites`, or `None` when nothing changes. `digest` knows the images to pin.
pub fn replace<'a>(sites: &'a [Site], digest: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let operations: Vec<_> = sites
        .iter()
        .filter_map(|site| {
            let value = format!("{}@{}", site.image, digest(&site.image)?);
            Some(Operation { op: "replace", path: &site.pointer, value })
        })
        .collect();
    (!operations.is_empty()).then(|| serde_json::to_string(&operations).expect("strings always serialise"))
}
