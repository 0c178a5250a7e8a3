//! The run-time errors of expressions, in kube-apiserver's words.

use super::{addresses, re2, semver, url};

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Failed {
    /// The budget is used up.
    #[error("operation cancelled: actual cost limit exceeded")]
    Budget,
    /// No function or operator takes such values.
    #[error("no such overload")]
    Overload,
    /// An unknown name.
    #[error("no such attribute(s): {0}")]
    Name(String),
    /// An index outside the list.
    #[error("index out of bounds: {0}")]
    Index(String),
    /// A key that the map does not have.
    #[error("no such key: {0}")]
    Key(String),
    /// A value of this type cannot be a key.
    #[error("unsupported key type: {0}")]
    KeyType(&'static str),
    /// A map would have a duplicate key.
    #[error("insert failed: key {0} already exists")]
    KeyTwice(String),
    /// A value of the object differs from its schema's declaration.
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
    /// A position outside the text.
    #[error("index out of range: {0}")]
    Place(i64),
    /// A range of a text ends before it begins.
    #[error("invalid substring range. start: {from}, end: {to}")]
    Range {
        /// The position of the first letter.
        from: i64,
        /// The position behind the last letter.
        to: i64,
    },
    /// This function needs an item.
    #[error("{0} called on empty list")]
    Empty(String),
    /// A value of this type cannot be made.
    #[error("type conversion error to '{0}'")]
    Conversion(String),
    /// Bytes that are not UTF-8.
    #[error("invalid UTF-8 in bytes, cannot convert to string")]
    Utf8,
    /// The value of an empty optional.
    #[error("optional.none() dereference")]
    Nothing,
    /// A quantity that is no whole number.
    #[error("cannot convert value to integer")]
    Whole,
    /// A text that is no quantity.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Quantity,
    /// An unknown time zone.
    #[error("unknown time zone {0}")]
    Zone(String),
    /// A pattern that does not compile.
    #[error("error parsing regexp: {0}")]
    Pattern(#[from] re2::Refused),
    /// A text that cannot be formatted.
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

/// Why a text cannot be formatted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfilled {
    /// There are fewer arguments than the text takes.
    #[error("index {index} out of range")]
    TooFew {
        /// The index of the first missing argument.
        index: usize,
    },
    /// There are more arguments than the text takes.
    #[error("too many arguments supplied to string.format (expected {taken}, got {given})")]
    TooMany {
        /// Number of used arguments.
        taken: usize,
        /// Number of given arguments.
        given: usize,
    },
    /// The text ends with a percent sign.
    #[error("unexpected end of string")]
    End,
    /// An unknown verb.
    #[error("could not parse formatting clause: unrecognized formatting clause \"{0}\"")]
    Verb(char),
    /// A precision without a verb behind it.
    #[error(
        "could not parse formatting clause: error while parsing precision: could not find end of precision specifier"
    )]
    PlacesEnd,
    /// A precision that is no number, or too large.
    #[error(
        "could not parse formatting clause: error while parsing precision: error while converting precision to integer: \
         {0:?}"
    )]
    Places(String),
    /// A verb that does not take such a value.
    #[error("error during formatting: {}, was given {given}", takes(*.verb))]
    Misfit { verb: char, given: String },
}

/// The message of a verb for a value of another type.
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

/// Why a condition has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("expression '{expression}' resulted in error: {why}")]
pub struct Unanswered {
    /// The condition as it was written.
    pub expression: String,
    #[source]
    pub why: Why,
}

/// The error of a condition.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Why {
    /// The condition has no value.
    #[error(transparent)]
    Failed(#[from] Failed),
    /// The value is neither true nor false.
    #[error("cel expression does not evaluate to bool")]
    NotBool,
}
