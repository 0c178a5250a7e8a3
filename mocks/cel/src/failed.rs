//! The run-time errors of CEL expressions, with kube-apiserver's messages.

use super::{addresses, re2, semver, url};

/// Why the evaluation of an expression failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Failed {
    #[error("operation cancelled: actual cost limit exceeded")]
    Budget,
    /// No function or operator accepts arguments of these types.
    #[error("no such overload")]
    Overload,
    #[error("no such attribute(s): {0}")]
    Name(String),
    #[error("index out of bounds: {0}")]
    Index(String),
    #[error("no such key: {0}")]
    Key(String),
    /// A value of the named type cannot be the key of a map.
    #[error("unsupported key type: {0}")]
    KeyType(&'static str),
    #[error("insert failed: key {0} already exists")]
    KeyTwice(String),
    /// A value in the object does not have the type that the schema declares for it.
    #[error("invalid data, expected {0}")]
    Data(&'static str),
    #[error("division by zero")]
    Division,
    #[error("modulus by zero")]
    Modulus,
    /// The result is outside the range of the named type.
    #[error("{0} overflow")]
    Overflow(&'static str),
    /// A position in a text is outside the text.
    #[error("index out of range: {0}")]
    Place(i64),
    #[error("invalid substring range. start: {from}, end: {to}")]
    Range {
        /// The first position of the requested substring.
        from: i64,
        /// The position after the requested substring.
        to: i64,
    },
    /// The named function got an empty list.
    #[error("{0} called on empty list")]
    Empty(String),
    /// A value cannot be converted to the named type.
    #[error("type conversion error to '{0}'")]
    Conversion(String),
    #[error("invalid UTF-8 in bytes, cannot convert to string")]
    Utf8,
    /// The expression takes the value of an empty optional.
    #[error("optional.none() dereference")]
    Nothing,
    /// A quantity that must be an integer has a fraction or is too large.
    #[error("cannot convert value to integer")]
    Whole,
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Quantity,
    #[error("unknown time zone {0}")]
    Zone(String),
    #[error("error parsing regexp: {0}")]
    Pattern(#[from] re2::Refused),
    #[error(transparent)]
    Format(#[from] Unfilled),
    #[error(transparent)]
    Url(#[from] url::Error),
    #[error(transparent)]
    Address(#[from] addresses::Error),
    #[error(transparent)]
    Version(#[from] semver::Error),
}

/// Why a call of `format` failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfilled {
    /// The text has more verbs than arguments.
    #[error("index {index} out of range")]
    TooFew {
        /// The index of the first missing argument.
        index: usize,
    },
    /// The text has fewer verbs than arguments.
    #[error("too many arguments supplied to string.format (expected {taken}, got {given})")]
    TooMany {
        /// Number of arguments that the text uses.
        taken: usize,
        /// Number of arguments of the call.
        given: usize,
    },
    #[error("unexpected end of string")]
    End,
    /// The text has an unknown verb.
    #[error("could not parse formatting clause: unrecognized formatting clause \"{0}\"")]
    Verb(char),
    /// A precision such as `.3` has no verb after it.
    #[error(
        "could not parse formatting clause: error while parsing precision: could not find end of precision specifier"
    )]
    PlacesEnd,
    /// A precision is not a number, or is too large.
    #[error(
        "could not parse formatting clause: error while parsing precision: error while converting precision to integer: \
         {0:?}"
    )]
    Places(String),
    /// The verb does not accept a value of this type.
    #[error("error during formatting: {}, was given {given}", takes(*.verb))]
    Misfit { verb: char, given: String },
}

/// The text in the error message about the types that a verb accepts.
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

/// The run-time error of a condition, with the condition's source.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("expression '{expression}' resulted in error: {why}")]
pub struct Unanswered {
    /// The source text of the condition.
    pub expression: String,
    #[source]
    pub why: Why,
}

/// Why a condition has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Why {
    #[error(transparent)]
    Failed(#[from] Failed),
    #[error("cel expression does not evaluate to bool")]
    NotBool,
}
