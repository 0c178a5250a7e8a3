//! The types of a fault's values.
//!
//! Owns how the values are written. If a key takes a number or a word, or a number or a range, the refusal of a wrong
//! value says how to write it.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The kinds of requests that a fault affects: a word for one kind, or a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct On(u8);

#[expect(
    non_upper_case_globals,
    reason = "they are the words of an enumeration, of which several can be taken together"
)]
impl On {
    /// Lists, including each page of a list.
    pub const List: Self = Self(1);
    /// Watches of a resource.
    pub const Watch: Self = Self(1 << 1);
    /// Reads of one object.
    pub const Get: Self = Self(1 << 2);
    /// Creations (POST).
    pub const Create: Self = Self(1 << 3);
    /// Replacements (PUT).
    pub const Update: Self = Self(1 << 4);
    /// Patches of an object.
    pub const Patch: Self = Self(1 << 5);
    /// Deletions, of one object or of many.
    pub const Delete: Self = Self(1 << 6);
    /// All kinds of requests.
    pub const Any: Self = Self(1 << 7);

    /// The words for kinds of requests in scenarios, each with its value and description.
    const WORDS: [(&str, Self, &str); 8] = [
        ("list", Self::List, "Lists, each page of one."),
        ("watch", Self::Watch, "Watches."),
        ("get", Self::Get, "Reads of one object."),
        ("create", Self::Create, "Creations (POST)."),
        ("update", Self::Update, "Replacements (PUT)."),
        ("patch", Self::Patch, "Patches."),
        ("delete", Self::Delete, "Deletions, of one object or of many."),
        ("any", Self::Any, "Requests of every kind."),
    ];

    /// Whether the fault affects requests of the kind `one`.
    pub fn has(self, one: Self) -> bool {
        self.0 & (one.0 | Self::Any.0) != 0
    }

    /// The index of the kind in the list of words; for several kinds, the index of the first one.
    pub fn index(self) -> u32 {
        self.0.trailing_zeros()
    }

    /// Whether the value includes reads: lists, watches or reads of one object.
    pub fn reads(self) -> bool {
        self.0 & (Self::List.0 | Self::Watch.0 | Self::Get.0) != 0
    }

    /// The words of the value, for example `update or patch`.
    pub fn text(self) -> String {
        self.words().collect::<Vec<_>>().join(" or ")
    }

    fn words(self) -> impl Iterator<Item = &'static str> {
        Self::WORDS.into_iter().filter(move |(_, one, _)| self.0 & one.0 != 0).map(|(word, ..)| word)
    }

    fn of<E: de::Error>(word: &str) -> Result<Self, E> {
        let found = Self::WORDS.into_iter().find(|(known, ..)| *known == word);
        found.map(|(_, one, _)| one).ok_or_else(|| {
            let known: Vec<&str> = Self::WORDS.into_iter().map(|(word, ..)| word).collect();
            E::custom(format!("`on: {word}`: write one of {}, or several as a list", known.join(", ")))
        })
    }
}

impl Serialize for On {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let words: Vec<&str> = self.words().collect();
        match words.as_slice() {
            [word] => serializer.serialize_str(word),
            words => words.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for On {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrList;
        impl<'de> Visitor<'de> for WordOrList {
            type Value = On;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word such as `list`, or a list such as `[update, patch]`")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<On, E> {
                On::of(word)
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<On, A::Error> {
                let mut on = On(0);
                while let Some(word) = list.next_element::<String>()? {
                    on.0 |= On::of::<A::Error>(&word)?.0;
                }
                if on.0 == 0 { Err(de::Error::custom("`on: []`: name at least one sort of request")) } else { Ok(on) }
            }
        }
        deserializer.deserialize_any(WordOrList)
    }
}

impl JsonSchema for On {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "On".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let word = |(word, _, about): &(&str, Self, &str)| serde_json::json!({"description": about, "type": "string", "const": word});
        let words: Vec<serde_json::Value> = Self::WORDS.iter().map(word).collect();
        json_schema!({
            "description": "Which requests a fault is about: one sort, or several as a list.",
            "anyOf": [{"oneOf": words}, {"type": "array", "items": {"oneOf": words}}]
        })
    }
}

/// A code: an HTTP status as a number, or an HTTP/2 error as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The HTTP status in a `Status`.
    Status(u16),
    /// The HTTP/2 error code in `RST_STREAM` or GOAWAY.
    Http2(Http2Code),
}

/// Error codes of HTTP/2 (RFC 9113, section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Http2Code {
    /// `NO_ERROR`.
    NoError,
    /// `PROTOCOL_ERROR`.
    ProtocolError,
    /// `INTERNAL_ERROR`.
    InternalError,
    /// `FLOW_CONTROL_ERROR`.
    FlowControlError,
    /// `STREAM_CLOSED`.
    StreamClosed,
    /// `REFUSED_STREAM`.
    RefusedStream,
    /// `CANCEL`.
    Cancel,
    /// `CONNECT_ERROR`.
    ConnectError,
    /// `ENHANCE_YOUR_CALM`.
    EnhanceYourCalm,
    /// `INADEQUATE_SECURITY`.
    InadequateSecurity,
}

/// The form of an answer: a 410 (`http`, `stream`, `both`) or a 504 (`modern`, `old`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// 410 as the HTTP status of the response.
    Http,
    /// 410 in an `ERROR` event after an answer of 200.
    Stream,
    /// Both forms of 410, alternately.
    Both,
    /// 504 with the `details.causes` entry `ResourceVersionTooLarge`.
    Modern,
    /// 504 with only a message.
    Old,
}

/// The body of an HTTP error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorBody {
    /// A `Status` object.
    Status,
    /// Plain text, as from a proxy.
    Text,
    /// No body.
    Empty,
}

/// The behaviour of a stream after an `ERROR` event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Then {
    /// The stream ends cleanly.
    End,
    /// The stream stays open without a byte.
    Hold,
}

/// The behaviour of watches that open while others are silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NewStreams {
    /// The new watches work.
    Healthy,
    /// The new watches are silent too.
    Silent,
}

/// The behaviour of connections that open while others are frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NewConnections {
    /// The new connections work.
    Healthy,
    /// The new connections are frozen too.
    Frozen,
}

/// The connections that see an old state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// All connections.
    All,
    /// Connections that opened after the fault began.
    New,
}

/// The answer to a watch that resumes from a revision which the restored store has not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Newer {
    /// The watch is accepted and gets no event until the revision counter has passed that revision.
    Silent,
    /// The watch is refused with 410.
    Gone,
    /// The watch is refused with 504 and the `details.causes` entry `ResourceVersionTooLarge`.
    TooLarge,
}

/// The treatment of watches that are open during a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Watches {
    /// The watches stay open and get no event until the revision counter has passed the revisions that they know.
    Kept,
    /// All watches of every user are reset.
    Cut,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// The connection is reset (RST).
    Reset,
    /// The connection is closed (FIN).
    Close,
    /// The connection stays open and nothing happens on it.
    Hang,
}

/// The direction in which no bytes pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Direction {
    /// Both directions.
    Both,
    /// From the control plane to the subject.
    ToSubject,
    /// From the subject to the control plane.
    ToServer,
}

/// The kind of certificate that a connection gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The certificate has expired.
    Expired,
    /// An unknown authority has signed the certificate.
    UnknownCa,
    /// Another valid certificate of the same authority.
    Rotated,
}

impl Form {
    /// The error that refuses this HTTP/2 code, with advice for the user.
    pub(crate) fn wrong(self, instead: &'static str) -> super::Error {
        super::Error::Value { key: "form", given: format!("{self:?}").to_lowercase(), instead }
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Code;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a status such as `410`, or an HTTP/2 error such as `internal-error`")
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Code, E> {
                let wrong = || E::invalid_value(de::Unexpected::Unsigned(number), &self);
                u16::try_from(number).map(Code::Status).map_err(|_| wrong())
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Code, E> {
                let wrong = || E::invalid_value(de::Unexpected::Signed(number), &self);
                u16::try_from(number).map(Code::Status).map_err(|_| wrong())
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<Code, E> {
                Http2Code::deserialize(de::value::StrDeserializer::new(word)).map(Code::Http2)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Status(status) => serializer.serialize_u16(*status),
            Self::Http2(code) => code.serialize(serializer),
        }
    }
}

impl JsonSchema for Code {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Code".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let word = generator.subschema_for::<Http2Code>();
        json_schema!({
            "description": "A status as a number, or an error of HTTP/2 as a word.",
            "anyOf": [{"type": "integer", "minimum": 400, "maximum": 599}, word],
        })
    }
}

impl Http2Code {
    /// The number of the error code in HTTP/2 frames.
    pub fn number(self) -> u32 {
        match self {
            Self::NoError => 0x0,
            Self::ProtocolError => 0x1,
            Self::InternalError => 0x2,
            Self::FlowControlError => 0x3,
            Self::StreamClosed => 0x5,
            Self::RefusedStream => 0x7,
            Self::Cancel => 0x8,
            Self::ConnectError => 0xa,
            Self::EnhanceYourCalm => 0xb,
            Self::InadequateSecurity => 0xc,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Several kinds of requests are written as a list, and one kind as a word.
    #[test]
    fn several_sorts_of_requests_are_a_list() {
        let read = |text: &str| serde_json::from_str::<On>(text);
        let writes = read(r#"["update", "patch"]"#).unwrap();
        assert!(writes.has(On::Update) && writes.has(On::Patch) && !writes.has(On::Get));
        assert_eq!(serde_json::to_string(&writes).unwrap(), r#"["update","patch"]"#);
        assert_eq!(
            (read(r#""any""#).unwrap(), serde_json::to_string(&On::List).unwrap()),
            (On::Any, r#""list""#.to_owned())
        );
        assert!(On::Any.has(On::Get) && !On::List.has(On::Watch) && !On::Get.has(On::Any));
        assert!(read(r#""updates""#).unwrap_err().to_string().contains("write one of list, watch, get"));
        assert!(read("[]").unwrap_err().to_string().contains("at least one"));
    }
}
