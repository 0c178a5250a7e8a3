//! Objects that belong to an image's digest: signatures, attestations and bills of materials at cosign's tags, and the
//! tag that lists referrers if a registry lacks the referrers API.
//!
//! OCI layouts list these objects among their images: under the tag in a copy by skopeo, or with an annotation for the
//! kind in the output of `cosign save`. `cosign save` of versions 2.5 and 3.1 names neither images nor these objects,
//! and leaves bundles out.

use service_seed::digest::Digest;

use super::manifest::{Descriptor, REF_NAME};

/// Suffixes of cosign's tags for signatures, attestations and bills of materials.
const ENDS: [&str; 3] = ["sig", "att", "sbom"];
/// The annotation with an entry's kind, which `cosign save` writes.
const KIND: &str = "kind";
/// Values of the annotation `kind` for images and for indexes.
const KINDS_OF_IMAGES: [&str; 2] = ["dev.cosignproject.cosign/image", "dev.cosignproject.cosign/imageIndex"];
/// Values of the annotation `kind` for signatures and attestations, with the suffixes of their tags.
const KINDS_BESIDE: [(&str, &str); 2] =
    [("dev.cosignproject.cosign/sigs", "sig"), ("dev.cosignproject.cosign/atts", "att")];

/// The tags at which cosign stores objects of `image`.
pub fn tags(image: &Digest) -> impl Iterator<Item = String> + use<> {
    let image = *image;
    ENDS.iter().map(move |end| format!("sha256-{image}.{end}"))
}

/// The tag with the list of referrers of `image`, for registries without the referrers API (OCI distribution
/// specification).
pub fn list_tag(image: &Digest) -> String {
    format!("sha256-{image}")
}

/// The digest of the image to which a cosign tag belongs.
pub fn image_of(tag: &str) -> Option<Digest> {
    let (image, end) = tag.strip_prefix("sha256-")?.split_once('.')?;
    if ENDS.contains(&end) { Digest::from_hex(image) } else { None }
}

/// Whether `tag` lists the referrers of an image.
pub fn is_list(tag: &str) -> bool {
    tag.strip_prefix("sha256-").and_then(Digest::from_hex).is_some()
}

/// The tag of `entry` in `listed`, if the entry is a signature or similar object and no image.
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
