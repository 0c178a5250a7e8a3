//! Makes objects larger in the same fields in which real objects are large. Pure: no I/O.
//!
//! Pod specs grow by containers, environment, volumes and mounts; `ConfigMaps` by files, Secrets by keys, definitions
//! by properties, and all other kinds by annotations. The copy of `kubectl apply` and the managed fields grow with the
//! object. Therefore the requested growth of a manifest is smaller than the growth of its review.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::admission::pods;
use crate::seed;

/// Maximum number of bytes of all annotations. Kubernetes allows 256 KiB (`TotalAnnotationSizeLimitB` of
/// k8s.io/apimachinery), of which other annotations use some.
const MOST_ANNOTATION_BYTES: usize = 224 << 10;
/// Bytes of environment variables for which one more container is added.
const BYTES_PER_CONTAINER: usize = 24 << 10;
/// Maximum number of containers; real Pods have a few dozen.
const MOST_CONTAINERS: usize = 24;
/// Minimum number of bytes of an added entry, because its name takes some bytes.
const SMALLEST: usize = 64;

#[derive(Debug, Clone, Copy)]
pub(in crate::admission) struct Growth {
    /// Bytes of JSON that are added to the manifest.
    pub bytes: usize,
    /// Whether the object is written by a client-side `kubectl apply`, which keeps a copy of the manifest in an
    /// annotation.
    pub applied: bool,
}

impl Growth {
    /// No growth: the object has its natural size.
    pub(in crate::admission) const NATURAL: Self = Self { bytes: 0, applied: true };

    /// Whether the copy of `kubectl apply` is small enough for an annotation.
    pub(super) fn applies(&self) -> bool {
        self.applied && self.bytes < MOST_ANNOTATION_BYTES / 2
    }

    /// Adds containers, environment variables, volumes and mounts to a pod spec.
    pub(super) fn pod_spec(&self, spec: &mut Value, rng: &mut ChaCha8Rng) {
        let mut left = self.bytes;
        let Some(containers) = spec["containers"].as_array_mut() else { return };
        let images: Vec<String> =
            containers.iter().filter_map(|container| Some(container["image"].as_str()?.to_owned())).collect();
        if images.is_empty() {
            return;
        }
        for i in 0..(self.bytes / BYTES_PER_CONTAINER).min(MOST_CONTAINERS) {
            let more = pods::sidecar(rng, containers.len(), &images[i % images.len()]);
            left = left.saturating_sub(more.to_string().len() + 1);
            containers.push(more);
        }
        let mut volumes = Vec::new();
        let count = containers.len();
        let mut number = 0;
        while left >= SMALLEST {
            let container = &mut containers[number % count];
            // One volume for a dozen variables; the last entry is a variable, because that can have any length.
            if number % 12 == 11 && left > 1024 {
                let (volume, mount) = pods::volume(rng, number);
                left -= volume.to_string().len() + mount.to_string().len() + 2;
                volumes.push(volume);
                append(&mut container["volumeMounts"], mount);
            } else {
                let entry = variable(rng, number, left);
                left = left.saturating_sub(entry.to_string().len() + 1);
                append(&mut container["env"], entry);
            }
            number += 1;
        }
        if let Some(text) = containers.last_mut().and_then(|container| container["args"].as_array_mut()?.last_mut()) {
            lengthen(text, left, rng);
        }
        for volume in volumes {
            append(&mut spec["volumes"], volume);
        }
    }

    /// Adds files to a `ConfigMap`.
    pub(super) fn files(&self, data: &mut Value, rng: &mut ChaCha8Rng) {
        self.members(data, rng, 6 << 10, |rng, number, length| {
            let name = format!("{}-{number}.properties", pods::word(rng));
            (name, lines(rng, length))
        });
    }

    pub(super) fn secrets(&self, data: &mut Value, rng: &mut ChaCha8Rng) {
        self.members(data, rng, 3 << 10, |rng, number, length| {
            // Four characters at a time, as in base64.
            (format!("{}-{number}.key", pods::word(rng)), seed::suffix(rng, (length / 4 * 4).max(4)))
        });
    }

    /// Adds annotations of the requested size, but not more than Kubernetes allows.
    pub(super) fn annotations(&self, annotations: &mut Value, rng: &mut ChaCha8Rng) {
        // The copy of the manifest contains them once more.
        let most = if self.applies() { MOST_ANNOTATION_BYTES / 2 } else { MOST_ANNOTATION_BYTES };
        let allowed = Self { bytes: self.bytes.min(most), ..*self };
        allowed.members(annotations, rng, 2 << 10, |rng, number, length| {
            (format!("{}.example.com/policy-{number}", pods::word(rng)), phrase(rng, length))
        });
    }

    /// Adds properties to the schema of a definition, as objects in objects.
    pub(super) fn schema(&self, schema: &mut Value, rng: &mut ChaCha8Rng) {
        const PER_OBJECT: usize = 8;
        let mut left = self.bytes;
        let mut number = 0;
        while left >= SMALLEST * 2 {
            let name = format!("{}{number}", pods::word(rng));
            let mut object = json!({"type": "object", "properties": {}});
            left = left.saturating_sub(object.to_string().len() + name.len() + 4);
            for _ in 0..PER_OBJECT {
                if left < SMALLEST {
                    break;
                }
                number += 1;
                let name = format!("{}{number}", pods::word(rng));
                let fixed = json!({"type": "string", "description": ""}).to_string().len() + name.len() + 4;
                let length = rng.random_range(40..220).min(left.saturating_sub(fixed));
                left = left.saturating_sub(fixed + length);
                object["properties"][name] = json!({"type": "string", "description": phrase(rng, length)});
            }
            number += 1;
            schema["properties"][name] = object;
        }
        lengthen(&mut schema["description"], left, rng);
    }

    /// Entries of a map with texts as values, of up to `most` bytes each.
    fn members(
        &self,
        map: &mut Value,
        rng: &mut ChaCha8Rng,
        most: usize,
        mut member: impl FnMut(&mut ChaCha8Rng, usize, usize) -> (String, String),
    ) {
        let mut left = self.bytes;
        for number in 0.. {
            if left < SMALLEST {
                break;
            }
            let wanted = rng.random_range(most / 4..most);
            // The last entry takes the rest.
            let length = if left < wanted + 2 * SMALLEST { left - SMALLEST / 2 } else { wanted };
            let (name, text) = member(rng, number, length);
            left = left.saturating_sub(name.len() + json!(text).to_string().len() + 4);
            map[name] = json!(text);
        }
        // Four at a time, as in base64.
        if let Some(text) = map.as_object_mut().and_then(|map| map.values_mut().next()) {
            lengthen(text, left / 4 * 4, rng);
        }
    }
}

/// An environment variable of up to `left` bytes.
fn variable(rng: &mut ChaCha8Rng, number: usize, left: usize) -> Value {
    let name = format!("{}_{}_{number}", pods::word(rng).to_uppercase(), pods::word(rng).to_uppercase());
    let fixed = json!({"name": name, "value": ""}).to_string().len() + 1;
    let usual = rng.random_range(16..320);
    let room = left.saturating_sub(fixed);
    let length = if room < usual + 2 * SMALLEST { room } else { usual };
    json!({"name": name, "value": phrase(rng, length)})
}

/// Words, as in URLs and lists, with exactly `length` bytes in sum.
fn phrase(rng: &mut ChaCha8Rng, length: usize) -> String {
    words(rng, length, |_| '/')
}

/// Lines `key = value` with exactly `length` bytes in sum.
fn lines(rng: &mut ChaCha8Rng, length: usize) -> String {
    words(rng, length, |number| match number % 6 {
        5 => '\n',
        2 => '=',
        _ => '.',
    })
}

fn words(rng: &mut ChaCha8Rng, length: usize, separator: impl Fn(usize) -> char) -> String {
    let mut text = String::with_capacity(length + 16);
    let mut number = 0;
    while text.len() < length {
        text.push_str(pods::word(rng));
        text.push(separator(number));
        number += 1;
    }
    // The words are ASCII.
    text.truncate(length);
    text
}

/// Adds the bytes to an existing text, if they are too few for an entry.
fn lengthen(text: &mut Value, bytes: usize, rng: &mut ChaCha8Rng) {
    if let Value::String(text) = text {
        text.push_str(&phrase(rng, bytes.min(SMALLEST * 2)));
    }
}

fn append(list: &mut Value, item: Value) {
    if list.is_null() {
        *list = json!([]);
    }
    if let Some(list) = list.as_array_mut() {
        list.push(item);
    }
}
