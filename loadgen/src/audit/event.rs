//! Watch events and pages of lists as the audit reads them: the object, its version, the kind of change, its
//! controller's progress. Pure: no I/O.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use facts::{Change, Looks, Progress};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub progress: Progress,
    pub images: Vec<String>,
    pub fields: Vec<Value>,
}

/// The properties of an object that are kept besides its identity.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    /// The fields with the progress of the object's controller.
    pub looks: Option<Looks>,
    /// The JSON pointer to the pod spec whose images are kept.
    pub pod_spec: Option<String>,
    /// The paths of fields that are kept unchanged.
    pub fields: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    Object(Change, Object),
    /// A bookmark: every event up to this version was sent.
    Bookmark(String),
    /// The server ends the watch with a `Status`.
    Failed {
        code: i64,
        message: String,
    },
}

#[derive(Debug)]
pub(super) struct Page {
    /// The version of the whole list.
    pub resource_version: String,
    /// The token of the next page; `None` on the last page.
    pub next: Option<String>,
    pub objects: Vec<Object>,
}

/// The error for a line or page that does not follow Kubernetes' format.
#[derive(Debug, thiserror::Error)]
#[error("{what} is not what Kubernetes sends: {problem}")]
pub(super) struct Malformed {
    what: &'static str,
    problem: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
    generation: i64,
}

#[derive(Deserialize)]
struct Whole {
    metadata: Metadata,
}

pub(super) fn event(line: &[u8], wanted: &Wanted) -> Result<Event, Malformed> {
    #[derive(Deserialize)]
    struct Line<'a> {
        #[serde(rename = "type")]
        sort: String,
        #[serde(borrow)]
        object: &'a RawValue,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Status {
        code: i64,
        message: String,
    }
    let bad = |problem: String| Malformed { what: "a line of the watch", problem };
    let line: Line = serde_json::from_slice(line).map_err(|error| bad(error.to_string()))?;
    let change = match line.sort.as_str() {
        "ADDED" => Change::Added,
        "MODIFIED" => Change::Modified,
        "DELETED" => Change::Deleted,
        "BOOKMARK" => {
            let whole: Whole = serde_json::from_str(line.object.get()).map_err(|error| bad(error.to_string()))?;
            if whole.metadata.resource_version.is_empty() {
                return Err(bad("a bookmark without resourceVersion".to_owned()));
            }
            return Ok(Event::Bookmark(whole.metadata.resource_version));
        }
        "ERROR" => {
            let status: Status = serde_json::from_str(line.object.get()).map_err(|error| bad(error.to_string()))?;
            return Ok(Event::Failed { code: status.code, message: status.message });
        }
        other => return Err(bad(format!("an event of type `{other}`"))),
    };
    object(line.object, wanted).map(|object| Event::Object(change, object)).map_err(bad)
}

pub(super) fn page(body: &[u8], wanted: &Wanted) -> Result<Page, Malformed> {
    #[derive(Deserialize)]
    struct List<'a> {
        metadata: Head,
        #[serde(borrow)]
        items: Option<Vec<&'a RawValue>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head {
        resource_version: String,
        #[serde(rename = "continue")]
        next: Option<String>,
    }
    let bad = |problem: String| Malformed { what: "a page of the list", problem };
    let list: List = serde_json::from_slice(body).map_err(|error| bad(error.to_string()))?;
    // Go writes a nil list as null.
    let items = list.items.unwrap_or_default();
    let objects = items.into_iter().map(|item| object(item, wanted)).collect::<Result<_, _>>().map_err(bad)?;
    Ok(Page {
        resource_version: list.metadata.resource_version,
        next: list.metadata.next.filter(|token| !token.is_empty()),
        objects,
    })
}

fn object(raw: &RawValue, wanted: &Wanted) -> Result<Object, String> {
    let Whole { metadata } = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
    if metadata.name.is_empty() || metadata.uid.is_empty() || metadata.resource_version.is_empty() {
        return Err(format!("the object `{}` lacks name, uid or resourceVersion", metadata.name));
    }
    let mut progress = Progress { generation: metadata.generation, ..Progress::default() };
    let mut fields = Vec::new();
    if wanted.looks.is_some() || !wanted.fields.is_empty() {
        let parts = parts(raw, wanted)?;
        progress = wanted.looks.as_ref().map_or(progress, |looks| looks.at(&parts));
        fields.extend(wanted.fields.iter().map(|path| facts::seek(&parts, path).cloned().unwrap_or_default()));
    }
    Ok(Object {
        namespace: metadata.namespace,
        name: metadata.name,
        uid: metadata.uid,
        resource_version: metadata.resource_version,
        progress,
        images: wanted.pod_spec.as_ref().map(|pointer| images(raw, pointer)).unwrap_or_default(),
        fields,
    })
}

/// The object with only the fields in which paths are looked up.
fn parts(raw: &RawValue, wanted: &Wanted) -> Result<Value, String> {
    let looked = wanted.looks.iter().flat_map(|looks| ["/metadata", looks.observed.as_str()]);
    let first = |path: &str| path.split('/').nth(1).unwrap_or_default().replace("~1", "/").replace("~0", "~");
    if wanted.fields.iter().any(String::is_empty) {
        return serde_json::from_str(raw.get()).map_err(|error| error.to_string());
    }
    let wanted: BTreeSet<String> = looked.chain(wanted.fields.iter().map(String::as_str)).map(first).collect();
    let map: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
    let parts = map.into_iter().filter(|(key, _)| wanted.contains(key));
    let read = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).map_err(|error| error.to_string());
    parts.map(|(key, raw)| Ok((key, read(raw)?))).collect::<Result<serde_json::Map<_, _>, String>>().map(Value::Object)
}

/// The images of the pod spec at a JSON pointer: of all kinds of containers and of image volumes; empty without images.
fn images(raw: &RawValue, pointer: &str) -> Vec<String> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct PodSpec {
        containers: Vec<Container>,
        init_containers: Vec<Container>,
        ephemeral_containers: Vec<Container>,
        volumes: Vec<Volume>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Container {
        image: String,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Volume {
        image: Option<ImageVolume>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct ImageVolume {
        reference: String,
    }
    let spec: PodSpec = at(raw, pointer).unwrap_or_default();
    let PodSpec { containers, init_containers, ephemeral_containers, volumes } = spec;
    let containers = containers.into_iter().chain(init_containers).chain(ephemeral_containers);
    let volumes = volumes.into_iter().filter_map(|volume| volume.image).map(|image| image.reference);
    containers.map(|container| container.image).chain(volumes).filter(|image| !image.is_empty()).collect()
}

/// The value at a JSON pointer (RFC 6901). Only objects on the path are parsed. `None` if the value has another type.
fn at<T: DeserializeOwned>(raw: &RawValue, pointer: &str) -> Option<T> {
    let mut text = raw.get();
    for word in pointer.split('/').skip(1) {
        let word = word.replace("~1", "/").replace("~0", "~");
        let next: &RawValue = if text.starts_with('[') {
            let list: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            list.get(word.parse::<usize>().ok()?).copied()?
        } else {
            // Keys may hold escapes, so they cannot always be borrowed.
            let map: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
            map.get(&word).copied()?
        };
        text = next.get();
    }
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation() -> Wanted {
        Wanted { looks: Some(Looks::default()), fields: vec!["/metadata/labels".to_owned()], ..Wanted::default() }
    }

    fn nothing() -> Wanted {
        Wanted::default()
    }

    #[test]
    fn lines_are_read() {
        let line = br#"{"type":"MODIFIED","object":{"kind":"Package","metadata":{"namespace":"n","name":"a","uid":"u",
            "resourceVersion":"12","generation":3,"labels":{"a\"b":"c"}},"status":{"observedGeneration":2}}}"#;
        let object = Object {
            namespace: "n".into(),
            name: "a".into(),
            uid: "u".into(),
            resource_version: "12".into(),
            progress: Progress { generation: 3, observed: Some(2), ..Progress::default() },
            images: Vec::new(),
            fields: vec![serde_json::json!({"a\"b": "c"})],
        };
        assert_eq!(event(line, &generation()).unwrap(), Event::Object(Change::Modified, object.clone()));
        let progress = Progress { generation: 3, ..Progress::default() };
        let without = Object { progress, fields: Vec::new(), ..object };
        assert_eq!(event(line, &nothing()).unwrap(), Event::Object(Change::Modified, without));
        let whole = Wanted { fields: vec![String::new()], ..Wanted::default() };
        let Event::Object(_, object) = event(line, &whole).unwrap() else { panic!("no object") };
        assert_eq!(
            (&object.fields[0]["kind"], &object.fields[0]["status"]["observedGeneration"]),
            (&"Package".into(), &2.into())
        );
        let bookmark = br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}"#;
        assert_eq!(event(bookmark, &nothing()).unwrap(), Event::Bookmark("9".into()));
        let gone = br#"{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}"#;
        assert_eq!(event(gone, &nothing()).unwrap(), Event::Failed { code: 410, message: "too old".into() });
        for bad in [
            &b"{"[..],
            br#"{"type":"PUT","object":{}}"#,
            br#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#,
            br#"{"type":"BOOKMARK","object":{"metadata":{}}}"#,
        ] {
            assert!(event(bad, &nothing()).unwrap_err().to_string().starts_with("a line of the watch is not what"));
        }
    }

    #[test]
    fn pages_are_read() {
        let first = page(br#"{"metadata":{"resourceVersion":"5","continue":"t"},"items":null}"#, &nothing()).unwrap();
        assert_eq!((first.resource_version.as_str(), first.next.as_deref(), first.objects.len()), ("5", Some("t"), 0));
        let last = br#"{"metadata":{"resourceVersion":"5","continue":""},
            "items":[{"metadata":{"name":"a","uid":"u","resourceVersion":"1"}}]}"#;
        let last = page(last, &nothing()).unwrap();
        assert_eq!((last.next, last.objects[0].namespace.as_str()), (None, ""));
        assert!(page(b"{}", &nothing()).is_err());
    }

    #[test]
    fn images_of_all_sorts_are_told() {
        let wanted = Wanted { pod_spec: Some("/spec/template/spec".to_owned()), ..Wanted::default() };
        let line =
            br#"{"type":"ADDED","object":{"metadata":{"name":"a","uid":"u","resourceVersion":"1"},"spec":{"template":
            {"spec":{"containers":[{"name":"a","image":"x:1"},{"name":"b"}],"initContainers":[{"image":"i:1"}],
            "ephemeralContainers":[{"image":"e:1"}],"volumes":[{"name":"v"},{"image":{"reference":"v:1"}}]}}}}}"#;
        let Event::Object(_, object) = event(line, &wanted).unwrap() else { panic!("no object") };
        assert_eq!(object.images, ["x:1", "i:1", "e:1", "v:1"]);
        let Event::Object(_, object) = event(line, &nothing()).unwrap() else { panic!("no object") };
        assert!(object.images.is_empty(), "only where they are asked for");
    }

    #[test]
    fn pointers_follow_the_rfc() {
        let raw: &RawValue = serde_json::from_str(r#"{"a/b":{"~":[1,{"x":7}]},"s":"7"}"#).unwrap();
        assert_eq!(at(raw, "/a~1b/~0/1/x"), Some(7i64));
        assert_eq!(at(raw, "/a~1b/~0/0"), Some(1i64));
        for nothing in ["/s", "/a~1b/~0/2", "/a~1b", "/none/x", ""] {
            assert_eq!(at::<i64>(raw, nothing), None, "{nothing}");
        }
    }
}
