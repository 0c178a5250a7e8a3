//! The walk: one pass over an object's raw JSON that finds every image, where it is written, and the names of pull secrets.
//!
//! Owns the list of field paths. It does not look at the kind: any object with the same paths is treated alike, so new
//! kinds and fields of other versions need no code. Pure.

use std::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Longest name of a container or volume that is kept; Kubernetes allows 63.
const NAME_BYTES_MAX: usize = 256;

/// Which list an image was found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum List {
    /// `containers`.
    Containers,
    /// `initContainers`.
    InitContainers,
    /// `ephemeralContainers`.
    EphemeralContainers,
    /// `volumes`.
    Volumes,
}

/// An image that the walk stands at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen<'a> {
    /// JSON pointer (RFC 6901) of the string.
    pub pointer: &'a str,
    /// JSON pointer of the pod spec that it belongs to.
    pub spec: &'a str,
    /// The list in that spec.
    pub list: List,
    /// Name of the container or volume, when it has one.
    pub name: Option<&'a str>,
    /// The string; never empty.
    pub image: &'a str,
}

/// Takes what the walk sees; an error ends the walk with its text.
pub type Visit<'v> = dyn FnMut(Seen<'_>) -> Result<(), String> + 'v;

/// What the walk says about the object as a whole.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Outline {
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// Whose credentials its pods are pulled with.
    pub pullers: Pullers,
}

/// Names in a pod spec that lead to credentials, as they are written; of an object with several pod specs, those of all.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Pullers {
    /// `serviceAccountName`.
    pub accounts: Vec<String>,
    /// `imagePullSecrets`.
    pub secrets: Vec<String>,
}

impl Pullers {
    /// Most names of each kind; real pods have one or two, and each costs a request.
    pub const MAX: usize = 16;
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
    Containers(List),
    Container,
    /// `name` of a container or a volume.
    Name,
    Volumes,
    Volume,
    ImageVolume,
    Image,
    ServiceAccountName,
    PullSecrets,
    PullSecret,
    PullSecretName,
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
            (Self::ObjectSpec | Self::PodSpec, "containers") => Self::Containers(List::Containers),
            (Self::ObjectSpec | Self::PodSpec, "initContainers") => Self::Containers(List::InitContainers),
            (Self::ObjectSpec | Self::PodSpec, "ephemeralContainers") => Self::Containers(List::EphemeralContainers),
            (Self::ObjectSpec | Self::PodSpec, "volumes") => Self::Volumes,
            (Self::ObjectSpec | Self::PodSpec, "serviceAccountName") => Self::ServiceAccountName,
            (Self::ObjectSpec | Self::PodSpec, "imagePullSecrets") => Self::PullSecrets,
            (Self::PullSecret, "name") => Self::PullSecretName,
            (Self::Container, "image") | (Self::ImageVolume, "reference") => Self::Image,
            (Self::Volume, "image") => Self::ImageVolume,
            (Self::Container | Self::Volume, "name") => Self::Name,
            _ => return None,
        })
    }

    fn item(self) -> Option<Self> {
        match self {
            Self::Containers(_) => Some(Self::Container),
            Self::Volumes => Some(Self::Volume),
            Self::PullSecrets => Some(Self::PullSecret),
            _ => None,
        }
    }
}

/// Walks the raw JSON of an object and shows every non-empty image to `visit`, in document order.
///
/// A key that leads to an image or to credentials may be there only once: which of two counts is for each reader to say, and we would not know what
/// the next one sees.
pub fn walk(object: &str, visit: &mut Visit<'_>) -> Result<Outline, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(object);
    let outline = Walk(visit).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(outline)
}

/// The same for an object inside a larger text.
pub struct Walk<'v, 'f>(pub &'v mut Visit<'f>);

impl<'de> DeserializeSeed<'de> for Walk<'_, '_> {
    type Value = Outline;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Outline, D::Error> {
        let (pointer, image, name) = (String::new(), String::new(), String::new());
        let (outline, list) = (Outline::default(), List::Containers);
        let mut walker = Walker { outline, pointer, spec_bytes: 0, list, image, at: None, name, visit: self.0 };
        At { place: Place::Root, walker: &mut walker }.deserialize(deserializer)?;
        Ok(walker.outline)
    }
}

struct Walker<'v, 'f> {
    outline: Outline,
    pointer: String,
    /// Where in `pointer` the path of the pod spec ends.
    spec_bytes: usize,
    list: List,
    /// Image of the container or volume under way; shown at its end, when its name is known as well.
    image: String,
    /// How `pointer` goes on from the container to that image; `None` while it has none.
    at: Option<&'static str>,
    name: String,
    visit: &'v mut Visit<'f>,
}

impl Walker<'_, '_> {
    fn begin(&mut self) {
        self.at = None;
        self.name.clear();
    }

    fn end<E: serde::de::Error>(&mut self) -> Result<(), E> {
        let Some(rest) = self.at.take() else { return Ok(()) };
        let length = self.pointer.len();
        self.pointer.push_str(rest);
        let seen = Seen {
            pointer: &self.pointer,
            spec: &self.pointer[..self.spec_bytes],
            list: self.list,
            name: (!self.name.is_empty()).then_some(&self.name),
            image: &self.image,
        };
        let shown = (self.visit)(seen).map_err(E::custom);
        self.pointer.truncate(length);
        shown
    }
}

struct At<'w, 'v, 'f> {
    place: Place,
    walker: &'w mut Walker<'v, 'f>,
}

impl<'de> DeserializeSeed<'de> for At<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for At<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let holds_image = matches!(self.place, Place::Container | Place::Volume);
        if holds_image {
            self.walker.begin();
        }
        let mut known = 0u16;
        while let Some(key) = map.next_key_seed(KnownKey(self.place))? {
            let Some((index, place)) = key else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let name = KEYS[index];
            if known & 1 << index != 0 {
                let at = &self.walker.pointer;
                return Err(A::Error::custom(format_args!(
                    "the key `{name}` is there twice at `{at}/`: write it once"
                )));
            }
            known |= 1 << index;
            if let Place::Containers(list) = place {
                (self.walker.list, self.walker.spec_bytes) = (list, self.walker.pointer.len());
            } else if place == Place::Volumes {
                (self.walker.list, self.walker.spec_bytes) = (List::Volumes, self.walker.pointer.len());
            }
            let length = self.walker.pointer.len();
            self.walker.pointer.push('/');
            self.walker.pointer.push_str(name);
            map.next_value_seed(At { place, walker: &mut *self.walker })?;
            self.walker.pointer.truncate(length);
        }
        if holds_image { self.walker.end() } else { Ok(()) }
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
                self.walker.image.clear();
                self.walker.image.push_str(text);
                self.walker.at = Some(if self.walker.list == List::Volumes { "/image/reference" } else { "/image" });
            }
            Place::Name => self.walker.name.push_str(beginning(text)),
            Place::ServiceAccountName => keep(&mut self.walker.outline.pullers.accounts, text),
            Place::PullSecretName => keep(&mut self.walker.outline.pullers.secrets, text),
            Place::DeletionTimestamp => self.walker.outline.deleting = true,
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

/// Enough of a name to tell it from others.
fn beginning(text: &str) -> &str {
    let end = (0..=NAME_BYTES_MAX.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

fn keep(names: &mut Vec<String>, text: &str) {
    let name = beginning(text);
    if names.len() < Pullers::MAX && !name.is_empty() && !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

/// Every key that leads to an image or to credentials; their number is the number of bits that `visit_map` needs.
const KEYS: [&str; 14] = [
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
    "name",
    "serviceAccountName",
    "imagePullSecrets",
];

/// Reads a key and answers its index and the place behind it, without allocating for keys that lead nowhere.
struct KnownKey(Place);

impl<'de> DeserializeSeed<'de> for KnownKey {
    type Value = Option<(usize, Place)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for KnownKey {
    type Value = Option<(usize, Place)>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<Self::Value, E> {
        let index = KEYS.iter().position(|known| *known == key);
        Ok(index.and_then(|index| self.0.enter(key).map(|place| (index, place))))
    }
}

#[cfg(test)]
mod tests;
