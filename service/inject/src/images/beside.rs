//! The companions of an image, found by its digest: signatures, attestations and bills of materials at cosign's tags,
//! and lists of referrers at the tag that replaces the referrers API.
//!
//! Pure. Layouts list companions among their images: under the tag, as skopeo copies them, or with a kind, as `cosign
//! save` does (2.5 and 3.1 name neither the images nor the companions, and leave bundles out).

use service_seed::digest::Digest;

use super::manifest::{Descriptor, REF_NAME};

/// Suffixes of the tags that cosign makes of a digest: signatures, attestations, bills of materials.
const ENDS: [&str; 3] = ["sig", "att", "sbom"];
/// The annotation in which `cosign save` states the kind of an entry.
const KIND: &str = "kind";
/// Its values for an image and for an index.
const KINDS_OF_IMAGES: [&str; 2] = ["dev.cosignproject.cosign/image", "dev.cosignproject.cosign/imageIndex"];
/// Its values for companions, and the suffixes of their tags.
const KINDS_BESIDE: [(&str, &str); 2] =
    [("dev.cosignproject.cosign/sigs", "sig"), ("dev.cosignproject.cosign/atts", "att")];

/// The possible tags of companions of `image`.
pub fn tags(image: &Digest) -> impl Iterator<Item = String> + use<> {
    let image = *image;
    ENDS.iter().map(move |end| format!("sha256-{image}.{end}"))
}

/// The tag with the list of referrers of `image`, for registries without the referrers API (OCI distribution
/// specification).
pub fn list_tag(image: &Digest) -> String {
    format!("sha256-{image}")
}

/// The image whose companion is at `tag`.
pub fn image_of(tag: &str) -> Option<Digest> {
    let (image, end) = tag.strip_prefix("sha256-")?.split_once('.')?;
    if ENDS.contains(&end) { Digest::from_hex(image) } else { None }
}

/// Whether `tag` lists the referrers of an image.
pub fn is_list(tag: &str) -> bool {
    tag.strip_prefix("sha256-").and_then(Digest::from_hex).is_some()
}

/// The tag of an entry of `listed` that is no image itself.
pub fn tag_of(entry: &Descriptor, listed: &[Descriptor]) -> Option<String> {
    let name = entry.annotations.get(REF_NAME);
    let tag = name.and_then(|name| name.rsplit(':').next());
    if let Some(tag) = tag.filter(|tag| image_of(tag).is_some() || is_list(tag)) {
        return Some(tag.to_owned());
    }
    let kind = entry.annotations.get(KIND)?;
    let (_, end) = KINDS_BESIDE.iter().find(|(known, _)| known == kind)?;
    let is_its_image = |other: &&Descriptor| {
        other.annotations.get(KIND).is_some_and(|kind| KINDS_OF_IMAGES.contains(&kind.as_str()))
            && other.annotations.get(REF_NAME) == name
    };
    let image = Digest::from_oci(&listed.iter().find(is_its_image)?.digest)?;
    Some(format!("sha256-{image}.{end}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(content: &[u8], annotations: &[(&str, &str)]) -> Descriptor {
        let annotations = annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Descriptor { digest: format!("sha256:{}", Digest::of(content)), annotations, ..Descriptor::default() }
    }

    #[test]
    fn what_belongs_to_an_image_is_told_apart_from_images() {
        let image = Digest::of(b"image");
        let of = |name: &str| tag_of(&entry(b"x", &[(REF_NAME, name)]), &[]);
        for tag in tags(&image).chain([list_tag(&image)]) {
            assert_eq!((of(&tag), of(&format!("127.0.0.1:5000/a:{tag}"))), (Some(tag.clone()), Some(tag.clone())));
            assert_eq!(image_of(&tag).is_some(), !is_list(&tag), "{tag}");
        }
        for image in ["a:1", "a", "1.0.sig", "sha256-short.sig", &format!("a:sha256-{image}.exe")] {
            assert_eq!(of(image), None, "{image}");
        }
    }

    #[test]
    fn what_cosign_saves_is_found_by_its_kind() {
        let of = |content, kind| entry(content, &[(KIND, kind)]);
        let listed = [
            entry(b"other", &[(REF_NAME, "r/b:1"), (KIND, KINDS_OF_IMAGES[0])]),
            of(b"image", KINDS_OF_IMAGES[1]),
            of(b"sigs", KINDS_BESIDE[0].0),
            of(b"atts", KINDS_BESIDE[1].0),
        ];
        let image = Digest::of(b"image");
        let tags: Vec<_> = listed.iter().map(|entry| tag_of(entry, &listed)).collect();
        assert_eq!(tags, [None, None, Some(format!("sha256-{image}.sig")), Some(format!("sha256-{image}.att"))]);
        assert_eq!(tag_of(&listed[2], &listed[2..]), None, "without its image");
    }
}
