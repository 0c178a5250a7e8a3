//! The JSON patch of a review: one `replace` for each image, which keeps the user's text and adds the digest.
//!
//! If a patched object is reviewed again, nothing changes, because pinned images are left as they are. The module
//! `patch` also knows which fields an update may change: if a patch changed an immutable field, the API server would
//! refuse the user's request.

use super::review::Ask;
use super::site::Site;
use super::text::quote;
use super::walk::List;

/// Number of bytes of a patch operation without path and image: JSON and a digest.
const OPERATION_BYTES: usize = 120;

/// The RFC 6902 patch that pins the images in `sites`; `None` if no image changes. `digest` returns the digest of an
/// image to pin, else `None`.
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

/// Whether the API server accepts a changed image in the list `list` for the request `ask`.
///
/// In an update of a Job, the whole template is immutable. In an update of a Pod, only images of containers and init
/// containers may change; ephemeral containers may be added through their subresource. See `ValidatePodUpdate`,
/// `ValidatePodEphemeralContainersUpdate` and `ValidateJobUpdate` in kubernetes/pkg/apis.
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
