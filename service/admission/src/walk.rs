//! The walk: one pass over an object's JSON that finds every image, its position, and the names of pull secrets.
//!
//! This module owns the list of field paths and ignores the kind: objects with the same paths are treated alike, so new
//! kinds and versions need no code.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::json::{self, Cursor};

/// Longest name of a container or volume that is stored, in bytes; Kubernetes allows 63.
const NAME_BYTES_MAX: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum List {
    Containers,
    InitContainers,
    EphemeralContainers,
    Volumes,
}

/// An image at the present position of the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundImage<'a> {
    /// JSON pointer (RFC 6901) of the image string.
    pub pointer: &'a str,
    /// JSON pointer of the pod spec that contains the image.
    pub spec: &'a str,
    pub list: List,
    /// Name of the container or volume; `None` if it has none.
    pub name: Option<&'a str>,
    pub image: &'a str,
}

/// A function that takes each image; an error ends the walk.
pub type Visit<'v> = dyn FnMut(FoundImage<'_>) -> Result<(), TooMany> + 'v;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Outline {
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// The service accounts and Secrets for pulling the images.
    pub pullers: Pullers,
}

/// Names of Secrets and service accounts in pod specs, which lead to registry credentials. The names in all pod specs
/// of an object are collected.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Pullers {
    pub accounts: Vec<String>,
    pub secrets: Vec<String>,
}

impl Pullers {
    /// Maximum number of service accounts and of Secrets; usual Pods have one or two, and each name costs a request.
    pub const MAX: usize = 16;
}

/// The position of the walk in the object. The walk enters only the listed fields and skips all other fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Root,
    Metadata,
    DeletionTimestamp,
    /// `spec` of the object: a Pod's own spec, or a spec that contains a template.
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

impl Field {
    fn enter(self, key: &str) -> Option<Self> {
        match self {
            Self::Root => match key {
                "metadata" => Some(Self::Metadata),
                "spec" => Some(Self::ObjectSpec),
                // PodTemplate has its template at the root; workloads and Knative objects have it in the spec.
                "template" => Some(Self::Template),
                _ => None,
            },
            Self::Metadata => (key == "deletionTimestamp").then_some(Self::DeletionTimestamp),
            Self::ObjectSpec => match key {
                "template" => Some(Self::Template),
                "jobTemplate" => Some(Self::JobTemplate),
                _ => Self::PodSpec.enter(key),
            },
            Self::JobTemplate => (key == "spec").then_some(Self::JobSpec),
            Self::JobSpec => (key == "template").then_some(Self::Template),
            Self::Template => (key == "spec").then_some(Self::PodSpec),
            Self::PodSpec => match key {
                "containers" => Some(Self::Containers(List::Containers)),
                "initContainers" => Some(Self::Containers(List::InitContainers)),
                "ephemeralContainers" => Some(Self::Containers(List::EphemeralContainers)),
                "volumes" => Some(Self::Volumes),
                "serviceAccountName" => Some(Self::ServiceAccountName),
                "imagePullSecrets" => Some(Self::PullSecrets),
                _ => None,
            },
            Self::Container => match key {
                "image" => Some(Self::Image),
                "name" => Some(Self::Name),
                _ => None,
            },
            Self::Volume => match key {
                "image" => Some(Self::ImageVolume),
                "name" => Some(Self::Name),
                _ => None,
            },
            Self::ImageVolume => (key == "reference").then_some(Self::Image),
            Self::PullSecret => (key == "name").then_some(Self::PullSecretName),
            _ => None,
        }
    }

    /// Whether the walk enters the value of this key.
    fn is_entered(self) -> bool {
        !self.is_text() && self.item().is_none()
    }

    /// Whether the walk reads a string at this position.
    fn is_text(self) -> bool {
        matches!(
            self,
            Self::DeletionTimestamp | Self::Name | Self::Image | Self::ServiceAccountName | Self::PullSecretName
        )
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

/// Why a walk ends before the end of the object.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Json(#[from] json::Error),
    #[error("the key `{key}` is there twice at `{at}/`: write it once")]
    Twice {
        key: String,
        /// JSON pointer of the object with the repeated key.
        at: String,
    },
    /// The object has more images than the visitor accepts.
    #[error(transparent)]
    TooMany(#[from] TooMany),
}

/// An object has more images than the visitor accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {most} images in one object")]
pub struct TooMany {
    /// Maximum number of images that the visitor accepts.
    pub most: usize,
}

/// Walks the JSON of an object and passes every non-empty image to `visit`, in document order.
///
/// A key that leads to an image or to credentials may occur only once in its object, because programs differ in which
/// of two values they use.
pub fn walk(object: &str, visit: &mut Visit<'_>) -> Result<Outline, Error> {
    let mut json = Cursor::new(object);
    let outline = walk_in(&mut json, visit)?;
    json.end()?;
    Ok(outline)
}

/// Like [`walk`], for the object at the cursor `json` inside a larger text.
pub fn walk_in(json: &mut Cursor<'_>, visit: &mut Visit<'_>) -> Result<Outline, Error> {
    let mut walker = Walker {
        json,
        outline: Outline::default(),
        pointer: String::new(),
        spec_bytes: 0,
        list: List::Containers,
        image: None,
        name: Cow::Borrowed(""),
        visit,
    };
    walker.value(Field::Root)?;
    Ok(walker.outline)
}

struct Walker<'w, 'a, 'f> {
    json: &'w mut Cursor<'a>,
    outline: Outline,
    pointer: String,
    /// Number of bytes of the pod spec's path in `pointer`.
    spec_bytes: usize,
    list: List,
    /// Image of the present container or volume. The visitor gets the image at the end of the container, when the
    /// container's name is known.
    image: Option<Cow<'a, str>>,
    name: Cow<'a, str>,
    visit: &'w mut Visit<'f>,
}

impl Walker<'_, '_, '_> {
    /// Reads the value at the position `place` of the walk. Values of a wrong type are skipped; the API server refuses
    /// them.
    fn value(&mut self, place: Field) -> Result<(), Error> {
        match (self.json.peek(), place.item()) {
            (Some(b'{'), _) if place.is_entered() => self.object(place),
            (Some(b'['), Some(item)) => self.list(item),
            (Some(b'"'), _) if place.is_text() => self.text(place),
            _ => Ok(self.json.skip()?),
        }
    }

    fn object(&mut self, place: Field) -> Result<(), Error> {
        let holds_image = matches!(place, Field::Container | Field::Volume);
        if holds_image {
            (self.image, self.name) = (None, Cow::Borrowed(""));
        }
        let mut known = 0u16;
        let mut inside = self.json.enter(b'{')?;
        while let Some(key) = self.json.key(&mut inside)? {
            let Some(place) = place.enter(&key) else {
                self.json.skip()?;
                continue;
            };
            let bit = KEYS.iter().position(|known| *known == key).map_or(0, |index| 1 << index);
            if known & bit != 0 {
                return Err(Error::Twice { key: key.into_owned(), at: self.pointer.clone() });
            }
            known |= bit;
            if let Field::Containers(list) = place {
                (self.list, self.spec_bytes) = (list, self.pointer.len());
            } else if place == Field::Volumes {
                (self.list, self.spec_bytes) = (List::Volumes, self.pointer.len());
            }
            if place.is_text() {
                self.value(place)?;
                continue;
            }
            let length = self.pointer.len();
            self.pointer.push('/');
            self.pointer.push_str(&key);
            self.value(place)?;
            self.pointer.truncate(length);
        }
        if holds_image { self.show() } else { Ok(()) }
    }

    fn list(&mut self, place: Field) -> Result<(), Error> {
        let length = self.pointer.len();
        let mut inside = self.json.enter(b'[')?;
        for index in 0u32.. {
            if !self.json.item(&mut inside)? {
                break;
            }
            write!(self.pointer, "/{index}").expect("a String takes all text");
            self.value(place)?;
            self.pointer.truncate(length);
        }
        Ok(())
    }

    fn text(&mut self, place: Field) -> Result<(), Error> {
        let text = self.json.string()?;
        match place {
            // Workload templates may leave the image out; the API server or another webhook fills it in.
            Field::Image => self.image = Some(text).filter(|image| !image.is_empty()),
            Field::Name => self.name = text,
            Field::ServiceAccountName => keep(&mut self.outline.pullers.accounts, &text),
            Field::PullSecretName => keep(&mut self.outline.pullers.secrets, &text),
            Field::DeletionTimestamp => self.outline.deleting = true,
            _ => {}
        }
        Ok(())
    }

    fn show(&mut self) -> Result<(), Error> {
        let Some(image) = self.image.take() else { return Ok(()) };
        let length = self.pointer.len();
        self.pointer.push_str(if self.list == List::Volumes { "/image/reference" } else { "/image" });
        let name = beginning(&self.name);
        let seen = FoundImage {
            pointer: &self.pointer,
            spec: &self.pointer[..self.spec_bytes],
            list: self.list,
            name: (!name.is_empty()).then_some(name),
            image: &image,
        };
        let shown = (self.visit)(seen).map_err(Error::TooMany);
        self.pointer.truncate(length);
        shown
    }
}

/// The beginning of a name, long enough to distinguish valid names.
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

/// Every key that leads to an image or to credentials. Each key has one bit in the set of keys that occurred.
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

#[cfg(test)]
mod tests;
