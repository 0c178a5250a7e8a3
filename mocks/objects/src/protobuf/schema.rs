//! The field numbers of built-in types, as the API publishes them.
//!
//! Owns one table: each text is the name of a message and its fields, `number:name:kind`. The kinds of fields are `s`
//! text, `i` integer, `b` flag, `B` bytes, `T` time, `U` time with microseconds, `Q` quantity, `O` integer or text, `J`
//! raw JSON, `L` a list of texts in its own message, and `D` a floating-point number. A capitalised word is a message.
//! `/` before a message means the content of the message instead of the message (a schema, or an alternative to it).
//! `[k]` is a list, and `{k}` a map with text keys. `k?` is optional, so that zero is a value; `k!` is shown even if it
//! is zero. A field with the name `<inline>` puts the fields of its message into the parent. The table has the messages
//! of Kubernetes 1.33, ordered by API group.

mod core;
mod pods;
mod volumes;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::kinds::{self, Message as Row};

/// The type of a field's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Text,
    Integer,
    Flag,
    /// Bytes, which JSON shows as base64.
    Bytes,
    /// A time in whole seconds.
    Time,
    MicroTime,
    Quantity,
    IntOrText,
    Json,
    /// A list of texts in its own message.
    Texts,
    /// A floating-point number.
    Double,
    /// The content of the only field that is set in this message, or `false` if no field is set.
    Either(&'static str),
    Message(&'static str),
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are the notation's own independent marks")]
pub struct Field {
    /// The number of the field in the protobuf encoding.
    pub number: u64,
    /// The name of the field in JSON.
    pub name: &'static str,
    pub kind: Kind,
    /// Whether the field holds a list.
    pub list: bool,
    /// Whether the field holds a map with texts as keys.
    pub map: bool,
    /// Whether an absent value differs from zero.
    pub optional: bool,
    /// Whether JSON shows the zero value.
    pub shown: bool,
}

static MESSAGES: LazyLock<HashMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    let shared = [core::TABLE, pods::TABLE, volumes::TABLE].into_iter().flatten();
    let own = kinds::ALL.iter().flat_map(|kind| kind.messages);
    let message = |row: &Row| {
        let (name, fields) = row.split_once(' ').unwrap_or((row, ""));
        (name, fields.split_whitespace().map(field).collect())
    };
    shared.chain(own).map(message).collect()
});

pub fn message(name: &str) -> Option<&'static [Field]> {
    MESSAGES.get(name).map(Vec::as_slice)
}

/// The message of the first field, which represents the alternatives of a [`Kind::Either`].
pub fn first(either: &str) -> Option<&'static str> {
    match message(either)?.first()?.kind {
        Kind::Message(inner) => Some(inner),
        _ => None,
    }
}

/// `(apiVersion, kind, message)`, if the message has another name than the kind.
static OTHER_NAMES: LazyLock<Vec<(&'static str, &'static str, &'static str)>> = LazyLock::new(|| {
    let of =
        |kind: &'static kinds::Kind| kind.message_of.iter().map(|(api_version, name)| (*api_version, kind.kind, *name));
    kinds::ALL.iter().flat_map(of).collect()
});

/// The name of a kind's message. Some kinds have the same name in several APIs.
pub fn name<'a>(api_version: &str, kind: &'a str) -> &'a str {
    let other = OTHER_NAMES.iter().find(|(of, known, _)| *of == api_version && *known == kind);
    other.map_or(kind, |(_, _, name)| name)
}

fn field(spec: &'static str) -> Field {
    let mut parts = spec.splitn(3, ':');
    let mut part = || parts.next().expect("an entry of the table has three parts");
    let (number, name, kind) = (part(), part(), part());
    let (optional, shown) = (kind.ends_with('?'), kind.ends_with('!'));
    let kind = kind.trim_end_matches(['?', '!']);
    let (list, map) = (kind.starts_with('['), kind.starts_with('{'));
    let kind = match kind.trim_matches(['[', ']', '{', '}']) {
        "s" => Kind::Text,
        "i" => Kind::Integer,
        "b" => Kind::Flag,
        "B" => Kind::Bytes,
        "T" => Kind::Time,
        "U" => Kind::MicroTime,
        "Q" => Kind::Quantity,
        "O" => Kind::IntOrText,
        "J" => Kind::Json,
        "L" => Kind::Texts,
        "D" => Kind::Double,
        kind => kind.strip_prefix('/').map_or(Kind::Message(kind), Kind::Either),
    };
    let number = number.parse().expect("an entry of the table begins with a number");
    Field { number, name, kind, list, map, optional, shown }
}

/// Checks that every message to which a field refers exists, and that no field number is used twice.
#[cfg(test)]
pub fn check() {
    for (name, fields) in MESSAGES.iter() {
        for field in fields {
            if let Kind::Message(inner) | Kind::Either(inner) = &field.kind {
                assert!(message(inner).is_some(), "{name}.{} is a {inner}", field.name);
            }
            let same = fields.iter().filter(|other| other.number == field.number).count();
            assert_eq!(same, 1, "{name} has {} twice", field.number);
        }
    }
}
