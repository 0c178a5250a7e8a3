//! The declaration of a value by its schema, as expressions see it (Kubernetes documentation, "Custom Resources:
//! validation rules", "Type mapping" and "escaping").
//!
//! Owns the declared types and the names of fields in expressions. The checker takes types from here, and values are
//! read by the same declaration, so that both agree.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::names::is_reserved;

/// The declared type of a value.
#[derive(Debug)]
pub enum Decl {
    /// `x-kubernetes-int-or-string`: the type is known at run time.
    Dyn,
    Bool,
    Int,
    /// A number with a fraction.
    Double,
    /// A text without a format.
    Text,
    /// `format: byte`.
    Bytes,
    /// `format: date-time`.
    Time,
    /// `format: date`.
    Date,
    /// `format: duration`.
    Duration,
    List {
        item: Arc<Decl>,
        /// How two lists are compared and joined.
        order: Order,
    },
    /// `additionalProperties`.
    Map(Arc<Decl>),
    /// An object with the fields of its schema.
    Object(Fields),
}

/// How the items of a list are identified: `x-kubernetes-list-type`.
#[derive(Debug, PartialEq, Eq)]
pub enum Order {
    /// By index.
    Atomic,
    /// By value, in any order.
    Set,
    /// By the values of these keys, in any order.
    Keys(Vec<String>),
}

/// The fields of an object, by their names in expressions.
#[derive(Debug, Default)]
pub struct Fields(BTreeMap<String, (String, Arc<Decl>)>);

impl Fields {
    /// Adds a field by its own name; a field whose name cannot be written in an expression is left out.
    pub fn insert(&mut self, name: &str, decl: Arc<Decl>) {
        if let Some(escaped) = escape(name) {
            self.0.insert(escaped, (name.to_owned(), decl));
        }
    }

    /// The own name of a field and its declaration.
    pub fn find(&self, escaped: &str) -> Option<(&str, &Arc<Decl>)> {
        self.0.get(escaped).map(|(name, decl)| (name.as_str(), decl))
    }

    /// The declaration of a field by its own name.
    pub fn named(&self, name: &str) -> Option<&Arc<Decl>> {
        let (_, decl) = self.find(&escape(name)?)?;
        Some(decl)
    }
}

/// A name as expressions write it; `None` if they cannot write it.
pub(super) fn escape(name: &str) -> Option<String> {
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-/".contains(&byte);
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) || !name.bytes().all(fits) {
        return None;
    }
    let escaped = name.replace("__", "__underscores__");
    Some(escaped.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the documentation.
    #[test]
    fn names_in_expressions() {
        for (name, escaped) in [
            ("namespace", "__namespace__"),
            ("true", "__true__"),
            ("x-prop", "x__dash__prop"),
            ("redact__d", "redact__underscores__d"),
            ("string", "string"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("-a", "__dash__a"),
            ("a_b", "a_b"),
        ] {
            assert_eq!(escape(name).as_deref(), Some(escaped));
        }
        for name in ["", "1a", "a b", "$ref", "\u{e9}"] {
            assert_eq!(escape(name), None, "{name}");
        }
    }
}
