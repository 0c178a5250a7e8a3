//! Reads the fields of an answer as kube-apiserver's decoder does. Unknown fields are skipped. If a key is present
//! twice, the values are merged. A field whose value has the wrong type makes the whole answer invalid.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::Version;
use super::shape::{self, Shape};

#[derive(Debug)]
pub(crate) struct Parts<'a> {
    pub api_version: Cow<'a, str>,
    pub kind: Cow<'a, str>,
    pub response: Option<Answered<'a>>,
}

/// The fields of `response` in an `AdmissionReview`.
#[derive(Debug)]
pub(crate) struct Answered<'a> {
    pub uid: Cow<'a, str>,
    pub allowed: bool,
    /// The patch, encoded in base64.
    pub patch: Option<Cow<'a, str>>,
    pub patch_type: Option<Cow<'a, str>>,
    pub message: Option<Cow<'a, str>>,
    pub reason: Option<Cow<'a, str>>,
    pub code: i32,
    pub warnings: Vec<String>,
}

/// Why an answer's text is no `AdmissionReview` of the expected version.
#[derive(Debug)]
pub(crate) enum Problem {
    Syntax(String),
    Type { api_version: String, kind: String },
}

pub(crate) fn read(text: &str, version: Version) -> Result<Parts<'static>, Problem> {
    let syntax = |error: serde_json::Error| Problem::Syntax(error.to_string());
    let kind = Meant::read(text).map_err(syntax)?;
    if !kind.is(version) {
        return Err(Problem::Type { api_version: kind.api_version, kind: kind.kind });
    }
    let mut review = Value::Null;
    let mut json = serde_json::Deserializer::from_str(text);
    shape::read(&REVIEW, &mut review, &mut json).map_err(syntax)?;
    json.end().map_err(syntax)?;
    let own = |value: &mut Value| match value.take() {
        Value::String(text) => Some(Cow::Owned(text)),
        _ => None,
    };
    let response = review["response"].take();
    let said = response.is_object().then(|| {
        let mut response = response;
        let mut status = response["status"].take();
        let warnings = response["warnings"].as_array().into_iter().flatten();
        Answered {
            warnings: warnings.filter_map(Value::as_str).map(str::to_owned).collect(),
            uid: own(&mut response["uid"]).unwrap_or_default(),
            allowed: response["allowed"] == true,
            patch: own(&mut response["patch"]),
            patch_type: own(&mut response["patchType"]),
            message: own(&mut status["message"]),
            reason: own(&mut status["reason"]),
            code: status["code"].as_i64().and_then(|code| i32::try_from(code).ok()).unwrap_or(0),
        }
    });
    Ok(Parts {
        api_version: own(&mut review["apiVersion"]).unwrap_or_default(),
        kind: own(&mut review["kind"]).unwrap_or_default(),
        response: said,
    })
}

/// `apiVersion` and `kind` of an answer. Go's decoder ignores upper and lower case in these two keys only.
#[derive(Default)]
struct Meant {
    api_version: String,
    kind: String,
}

impl Meant {
    fn read(text: &str) -> Result<Self, serde_json::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Meant;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Meant, A::Error> {
                let mut meant = Meant::default();
                while let Some(key) = map.next_key::<String>()? {
                    let field = match &*folded(&key) {
                        "apiversion" => &mut meant.api_version,
                        "kind" => &mut meant.kind,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    if let Some(text) = map.next_value::<Option<String>>()? {
                        *field = text;
                    }
                }
                Ok(meant)
            }
        }
        let mut json = serde_json::Deserializer::from_str(text);
        let meant = json.deserialize_map(Keys)?;
        json.end()?;
        Ok(meant)
    }

    /// Whether `apiVersion` and `kind` are right for an `AdmissionReview`; missing values count as right.
    fn is(&self, version: Version) -> bool {
        let (group, name) = match self.api_version.split_once('/') {
            _ if self.api_version == "/" => ("", ""),
            Some((group, name)) => (group, name),
            None => ("", &*self.api_version),
        };
        let (wanted_group, wanted) = version.api_version().split_once('/').unwrap_or_default();
        let group_is = (group.is_empty() && name.is_empty()) || group == wanted_group;
        group_is && (name.is_empty() || name == wanted) && (self.kind.is_empty() || self.kind == "AdmissionReview")
    }
}

/// Converts a key to lower case as Go does to compare keys: ASCII letters, and the two other letters that Go treats as
/// `k` and `s`.
fn folded(key: &str) -> String {
    let fold = |letter: char| match letter {
        '\u{212a}' => 'k',
        '\u{17f}' => 's',
        letter => letter.to_ascii_lowercase(),
    };
    key.chars().map(fold).collect()
}

const TEXTS: Shape = Shape::List(&Shape::Text);
const TEXT_MAP: Shape = Shape::Map(&Shape::Text);

const REVIEW: Shape = Shape::Fields(&[
    ("apiVersion", Shape::Text),
    ("kind", Shape::Text),
    ("request", Shape::Pointer(&REQUEST)),
    ("response", Shape::Pointer(&RESPONSE)),
]);

const RESPONSE: Shape = Shape::Fields(&[
    ("uid", Shape::Text),
    ("allowed", Shape::Flag),
    ("status", Shape::Pointer(&STATUS)),
    ("patch", Shape::Bytes),
    ("patchType", Shape::Pointer(&Shape::Text)),
    ("auditAnnotations", TEXT_MAP),
    ("warnings", TEXTS),
]);

const STATUS: Shape = Shape::Fields(&[
    ("apiVersion", Shape::Text),
    ("kind", Shape::Text),
    ("metadata", LIST_META),
    ("status", Shape::Text),
    ("message", Shape::Text),
    ("reason", Shape::Text),
    ("details", Shape::Pointer(&DETAILS)),
    ("code", Shape::Integer { bits: 32 }),
]);

const LIST_META: Shape = Shape::Fields(&[
    ("selfLink", Shape::Text),
    ("resourceVersion", Shape::Text),
    ("continue", Shape::Text),
    ("remainingItemCount", Shape::Pointer(&Shape::Integer { bits: 64 })),
]);

const DETAILS: Shape = Shape::Fields(&[
    ("name", Shape::Text),
    ("group", Shape::Text),
    ("kind", Shape::Text),
    ("uid", Shape::Text),
    ("causes", Shape::List(&CAUSE)),
    ("retryAfterSeconds", Shape::Integer { bits: 32 }),
]);

const CAUSE: Shape = Shape::Fields(&[("reason", Shape::Text), ("message", Shape::Text), ("field", Shape::Text)]);

/// The fields of `request` in an `AdmissionReview`, which some webhooks send back.
const REQUEST: Shape = Shape::Fields(&[
    ("uid", Shape::Text),
    ("kind", KIND),
    ("resource", RESOURCE),
    ("subResource", Shape::Text),
    ("requestKind", Shape::Pointer(&KIND)),
    ("requestResource", Shape::Pointer(&RESOURCE)),
    ("requestSubResource", Shape::Text),
    ("name", Shape::Text),
    ("namespace", Shape::Text),
    ("operation", Shape::Text),
    ("userInfo", USER),
    ("object", Shape::Any),
    ("oldObject", Shape::Any),
    ("dryRun", Shape::Pointer(&Shape::Flag)),
    ("options", Shape::Any),
]);

const KIND: Shape = Shape::Fields(&[("group", Shape::Text), ("version", Shape::Text), ("kind", Shape::Text)]);
const RESOURCE: Shape = Shape::Fields(&[("group", Shape::Text), ("version", Shape::Text), ("resource", Shape::Text)]);
const USER: Shape =
    Shape::Fields(&[("username", Shape::Text), ("uid", Shape::Text), ("groups", TEXTS), ("extra", Shape::Map(&TEXTS))]);
