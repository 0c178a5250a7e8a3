//! Why an expression that runs has no value, in kube-apiserver's words.

use super::{addresses, re2, semver, url};

/// Why an expression has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Failed {
    /// It costs too much.
    #[error("operation cancelled: actual cost limit exceeded")]
    Budget,
    /// No function or operator takes such values.
    #[error("no such overload")]
    Overload,
    /// A name that means nothing here.
    #[error("no such attribute(s): {0}")]
    Name(String),
    /// A list has no such place.
    #[error("index out of bounds: {0}")]
    Index(String),
    /// A map has no such key.
    #[error("no such key: {0}")]
    Key(String),
    /// A value of this type is no key.
    #[error("unsupported key type: {0}")]
    KeyType(&'static str),
    /// A map would have a key twice.
    #[error("insert failed: key {0} already exists")]
    KeyTwice(String),
    /// What stands in the object is not what its schema declares.
    #[error("invalid data, expected {0}")]
    Data(&'static str),
    /// `1 / 0`.
    #[error("division by zero")]
    Division,
    /// `1 % 0`.
    #[error("modulus by zero")]
    Modulus,
    /// A value of this type would be too large or too small.
    #[error("{0} overflow")]
    Overflow(&'static str),
    /// A text has no such place.
    #[error("index out of range: {0}")]
    Place(i64),
    /// A part of a text ends before it begins.
    #[error("invalid substring range. start: {from}, end: {to}")]
    Range {
        /// The first letter.
        from: i64,
        /// The one behind the last.
        to: i64,
    },
    /// This function needs an item.
    #[error("{0} called on empty list")]
    Empty(String),
    /// A value of this type cannot be made.
    #[error("type conversion error to '{0}'")]
    Conversion(String),
    /// Bytes that are no text.
    #[error("invalid UTF-8 in bytes, cannot convert to string")]
    Utf8,
    /// The value of nothing.
    #[error("optional.none() dereference")]
    Nothing,
    /// A quantity that is no whole number.
    #[error("cannot convert value to integer")]
    Whole,
    /// A text that is no quantity.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Quantity,
    /// No time zone has this name.
    #[error("unknown time zone {0}")]
    Zone(String),
    /// A pattern that does not compile.
    #[error("error parsing regexp: {0}")]
    Pattern(#[from] re2::Refused),
    /// A text that cannot be filled in.
    #[error(transparent)]
    Format(#[from] Unfilled),
    /// A text that is no URL.
    #[error(transparent)]
    Url(#[from] url::Error),
    /// A text that is no address or network.
    #[error(transparent)]
    Address(#[from] addresses::Error),
    /// A text that is no version.
    #[error(transparent)]
    Version(#[from] semver::Error),
}

/// Why a text cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfilled {
    /// There are fewer arguments than it takes.
    #[error("index {index} out of range")]
    TooFew {
        /// The first that is missing.
        index: usize,
    },
    /// There are more arguments than it takes.
    #[error("too many arguments supplied to string.format (expected {taken}, got {given})")]
    TooMany {
        /// How many it takes.
        taken: usize,
        /// How many there are.
        given: usize,
    },
    /// It ends with a sign.
    #[error("unexpected end of string")]
    End,
    /// A verb that nobody knows.
    #[error("could not parse formatting clause: unrecognized formatting clause \"{0}\"")]
    Verb(char),
    /// A number of places that nothing follows.
    #[error(
        "could not parse formatting clause: error while parsing precision: could not find end of precision specifier"
    )]
    PlacesEnd,
    /// A number of places that is none, or too large.
    #[error(
        "could not parse formatting clause: error while parsing precision: error while converting precision to integer: \
         {0:?}"
    )]
    Places(String),
    /// A verb that does not take such a value.
    #[error("error during formatting: {}, was given {given}", takes(*.verb))]
    Misfit {
        /// The verb.
        verb: char,
        /// The type of the value.
        given: String,
    },
}

/// What a verb says to a value of another type.
fn takes(verb: char) -> &'static str {
    match verb {
        'd' => "decimal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'o' => "octal clause can only be used on integers",
        'x' | 'X' => "only integers, byte buffers, and strings can be formatted as hex",
        _ => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and \
              timestamps"
        }
    }
}

/// Why a condition has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("expression '{expression}' resulted in error: {why}")]
pub struct Unanswered {
    /// The condition as it was written.
    pub expression: String,
    /// What stopped it.
    #[source]
    pub why: Why,
}

/// What stopped a condition.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Why {
    /// It has no value.
    #[error(transparent)]
    Failed(#[from] Failed),
    /// Its value is neither true nor false.
    #[error("cel expression does not evaluate to bool")]
    NotBool,
}
