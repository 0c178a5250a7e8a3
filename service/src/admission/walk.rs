//! The walk: one pass over an object's raw JSON that finds every image and where it is written.
//!
//! Owns the list of field paths. It does not look at the kind: any object with the same paths is treated alike, so new
//! kinds and fields of other versions need no code. Pure.

use std::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Most images in one object. A pod with more does not fit etcd's object limit with useful content.
const SITES_MAX: usize = 500;

/// An image and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// JSON pointer (RFC 6901) of the string.
    pub pointer: String,
    /// The string.
    pub image: String,
}

/// What the walk found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Every non-empty image, in document order.
    pub sites: Vec<Site>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
}

/// Where in the object the walk is. Only these places are entered; everything else is skipped unread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Metadata,
    DeletionTimestamp,
    /// `spec` of the object: a pod's own, or one that holds a template.
    ObjectSpec,
    /// `jobTemplate` of a `CronJob`.
    JobTemplate,
    JobSpec,
    Template,
    PodSpec,
    Containers,
    Container,
    Volumes,
    Volume,
    ImageVolume,
    Image,
}

impl Place {
    fn enter(self, key: &str) -> Option<Self> {
        Some(match (self, key) {
            (Self::Root, "metadata") => Self::Metadata,
            (Self::Metadata, "deletionTimestamp") => Self::DeletionTimestamp,
            (Self::Root, "spec") => Self::ObjectSpec,
            // PodTemplate has its template at the root; workloads and Knative objects have it in the spec.
            (Self::Root | Self::ObjectSpec | Self::JobSpec, "template") => Self::Template,
            (Self::ObjectSpec, "jobTemplate") => Self::JobTemplate,
            (Self::JobTemplate, "spec") => Self::JobSpec,
            (Self::Template, "spec") => Self::PodSpec,
            (Self::ObjectSpec | Self::PodSpec, "containers" | "initContainers" | "ephemeralContainers") => {
                Self::Containers
            }
            (Self::ObjectSpec | Self::PodSpec, "volumes") => Self::Volumes,
            (Self::Container, "image") | (Self::ImageVolume, "reference") => Self::Image,
            (Self::Volume, "image") => Self::ImageVolume,
            _ => return None,
        })
    }

    fn item(self) -> Option<Self> {
        match self {
            Self::Containers => Some(Self::Container),
            Self::Volumes => Some(Self::Volume),
            _ => None,
        }
    }
}

/// Walks the raw JSON of an object.
pub fn walk(object: &str) -> Result<Found, serde_json::Error> {
    let mut walker = Walker { found: Found::default(), pointer: String::new() };
    let mut deserializer = serde_json::Deserializer::from_str(object);
    At { place: Place::Root, walker: &mut walker }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(walker.found)
}

struct Walker {
    found: Found,
    pointer: String,
}

struct At<'w> {
    place: Place,
    walker: &'w mut Walker,
}

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for At<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(KnownKey(self.place))? {
            let Some((name, place)) = key else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let length = self.walker.pointer.len();
            self.walker.pointer.push('/');
            self.walker.pointer.push_str(name);
            map.next_value_seed(At { place, walker: &mut *self.walker })?;
            self.walker.pointer.truncate(length);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Some(place) = self.place.item() else {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        let length = self.walker.pointer.len();
        for index in 0u32.. {
            write!(self.walker.pointer, "/{index}").expect("a String takes all text");
            let more = items.next_element_seed(At { place, walker: &mut *self.walker })?.is_some();
            self.walker.pointer.truncate(length);
            if !more {
                break;
            }
        }
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        match self.place {
            // Workload templates may leave the image out; the API server or another webhook fills it in.
            Place::Image if !text.is_empty() => {
                if self.walker.found.sites.len() == SITES_MAX {
                    return Err(E::custom(format_args!("more than {SITES_MAX} images in one object")));
                }
                self.walker.found.sites.push(Site { pointer: self.walker.pointer.clone(), image: text.to_owned() });
            }
            Place::DeletionTimestamp => self.walker.found.deleting = true,
            _ => {}
        }
        Ok(())
    }

    // A wrong type at a known place is the API server's to refuse; the walk steps over it.
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
}

/// Reads a key and answers the place behind it, without allocating for keys that lead nowhere.
struct KnownKey(Place);

impl<'de> DeserializeSeed<'de> for KnownKey {
    type Value = Option<(&'static str, Place)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for KnownKey {
    type Value = Option<(&'static str, Place)>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<Self::Value, E> {
        const KEYS: [&str; 11] = [
            "metadata",
            "deletionTimestamp",
            "spec",
            "template",
            "jobTemplate",
            "containers",
            "initContainers",
            "ephemeralContainers",
            "volumes",
            "image",
            "reference",
        ];
        let name = KEYS.iter().find(|known| **known == key);
        Ok(name.and_then(|name| self.0.enter(name).map(|place| (*name, place))))
    }
}

#[cfg(test)]
mod tests;
