//! The patch: one `replace` for each image, which keeps the user's text and adds the digest.
//!
//! Pure. Applying it twice changes nothing, because a pinned image is never touched. This module also knows the fields
//! that an update may change: a patch of an immutable one makes the API server refuse the user's request.

use super::review::Ask;
use super::site::Site;
use super::text::quote;
use super::walk::List;

/// Bytes of an operation besides its path and the image: its form, and a digest.
const OPERATION_BYTES: usize = 120;

/// The RFC 6902 document that pins `sites`, or `None` if nothing changes. `digest` knows the images to pin.
pub fn replace<'a>(sites: &'a [Site], digest: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let bytes = sites.iter().map(|site| site.pointer.len() + site.image.len() + OPERATION_BYTES).sum();
    let mut document = String::with_capacity(bytes);
    let mut value = String::new();
    for site in sites.iter().filter(|site| site.mutable) {
        let Some(digest) = digest(&site.image) else { continue };
        value.clear();
        value.extend([&site.image, "@", digest]);
        document.push_str(if document.is_empty() { "[" } else { "," });
        document.push_str(r#"{"op":"replace","path":"#);
        quote(&mut document, &site.pointer);
        document.push_str(r#","value":"#);
        quote(&mut document, &value);
        document.push('}');
    }
    (!document.is_empty()).then(|| document + "]")
}

/// Whether the API server accepts a changed image in `list` in this request.
///
/// On update, everything in a Job's template is immutable. Of a Pod only the images of containers and init containers
/// may change, and ephemeral containers may be added through their subresource (`ValidatePodUpdate`,
/// `ValidatePodEphemeralContainersUpdate` and `ValidateJobUpdate` in kubernetes/pkg/apis).
pub fn is_mutable(ask: &Ask<'_>, list: List) -> bool {
    if ask.operation != "UPDATE" {
        return true;
    }
    let kind = ask.kind.as_ref().map(|kind| (&*kind.group, &*kind.kind));
    match (kind, ask.sub_resource.as_deref().unwrap_or_default()) {
        (Some(("", "Pod")), "") => matches!(list, List::Containers | List::InitContainers),
        (Some(("", "Pod")), "ephemeralcontainers") => list == List::EphemeralContainers,
        (Some(("batch", "Job") | ("", "Pod")), _) => false,
        _ => true,
    }
}
