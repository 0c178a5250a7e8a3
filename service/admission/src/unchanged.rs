//! The images of a stored object. If an update of the object leaves an image unchanged, the image is not judged again.
//!
//! An image is compared with the image of the container or volume of the same name in the same pod spec. Containers,
//! init containers and ephemeral containers share one set of names. Only hashes of images are stored, so that an object
//! with thousands of containers costs little memory.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use super::walk::{self, FoundImage, List};

/// Maximum number of images of a stored object that are remembered. A stored object cannot have more images: a
/// container has some 150 bytes, an object at most 1.5 MiB.
const REMEMBERED_MAX: usize = 16_384;

#[derive(Debug, Default)]
pub struct Stored {
    keys: RandomState,
    images: HashSet<u64>,
    /// Whether the object is being deleted; updates that remove its finalizers must succeed.
    pub deleting: bool,
}

impl Stored {
    /// Reads the JSON of a stored object. Images in unreadable values count as changed.
    pub fn read(object: &str) -> Self {
        let mut stored = Self::default();
        let (keys, images) = (&stored.keys, &mut stored.images);
        let outline = walk::walk(object, &mut |seen| {
            if images.len() < REMEMBERED_MAX {
                images.insert(fingerprint(keys, seen));
            }
            Ok(())
        });
        match outline {
            Ok(outline) => stored.deleting = outline.deleting,
            Err(_) => stored.images.clear(),
        }
        stored
    }

    /// Whether the stored object has the image `seen` at the same position.
    pub fn has(&self, seen: FoundImage<'_>) -> bool {
        !self.images.is_empty() && self.images.contains(&fingerprint(&self.keys, seen))
    }
}

/// A hash of an image and its position. The hash keys are random for each object, so that no user can construct a
/// collision.
fn fingerprint(keys: &RandomState, seen: FoundImage<'_>) -> u64 {
    // Without a name only the position identifies the container.
    let place = seen.name.ok_or((seen.list, seen.pointer));
    keys.hash_one((seen.spec, seen.list == List::Volumes, place, seen.image))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The images of `new` that count as changed in comparison with `old`.
    fn changed(old: &Value, new: &Value) -> Vec<String> {
        let stored = Stored::read(&old.to_string());
        let mut changed = Vec::new();
        let visit = &mut |seen: FoundImage<'_>| {
            if !stored.has(seen) {
                changed.push(seen.image.to_owned());
            }
            Ok(())
        };
        walk::walk(&new.to_string(), visit).unwrap();
        changed
    }

    fn pod(containers: &Value) -> Value {
        json!({"spec": {"containers": containers}})
    }

    #[test]
    fn containers_are_matched_by_name_in_all_lists_of_their_spec() {
        let old = json!({"spec": {
            "containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}],
            "initContainers": [{"name": "i", "image": "i:1"}],
            "volumes": [{"name": "v", "image": {"reference": "v:1"}}],
        }});
        let new = json!({"spec": {
            "containers": [{"image": "b:1", "name": "b"}, {"image": "i:1", "name": "i"}, {"name": "new", "image": "a:1"}],
            "initContainers": [{"name": "a", "image": "a:2"}],
            "volumes": [{"image": {"reference": "v:1"}, "name": "v"}, {"name": "a", "image": {"reference": "a:1"}}],
        }});
        assert_eq!(changed(&old, &new), ["a:1", "a:2", "a:1"], "moved and reordered ones are as they were");
        assert_eq!(changed(&old, &old), <[String; 0]>::default());
    }

    #[test]
    fn the_same_name_in_another_spec_is_another_place() {
        let old = pod(&json!([{"name": "a", "image": "a:1"}]));
        let new = json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "a:1"}]}}}});
        assert_eq!(changed(&old, &new), ["a:1"]);
    }

    #[test]
    fn without_a_name_the_position_counts() {
        let old = pod(&json!([{"image": "a:1"}, {"image": "b:1"}]));
        assert_eq!(changed(&old, &pod(&json!([{"image": "a:1"}, {"image": "c:1"}]))), ["c:1"]);
        assert_eq!(changed(&old, &pod(&json!([{"image": "b:1"}, {"image": "a:1"}]))), ["b:1", "a:1"]);
    }

    #[test]
    fn what_cannot_be_read_is_no_excuse() {
        let new = pod(&json!([{"name": "a", "image": "a:1"}]));
        let twice = r#"{"spec":{"containers":[{"name":"a","image":"a:1"}],"containers":[]}}"#;
        let mut changed = 0;
        let stored = Stored::read(twice);
        walk::walk(&new.to_string(), &mut |seen| {
            changed += usize::from(!stored.has(seen));
            Ok(())
        })
        .unwrap();
        assert_eq!(changed, 1);
    }
}
