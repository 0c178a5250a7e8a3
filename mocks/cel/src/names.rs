//! Words that CEL expressions cannot use as names.

/// Words that cannot be names of variables.
pub(super) const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Words with a meaning in CEL; fields with these names are escaped.
const KEYWORDS: &[&str] = &["true", "false", "null", "in"];

/// Whether a word cannot be the name of a variable.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word) || KEYWORDS.contains(&word)
}
