//! The declared types of values in CEL rules, from the schema of a custom resource (Kubernetes documentation, "Custom
//! Resources: validation rules", "Type mapping" and "escaping").
//!
//! Owns the declared types and the names of fields in expressions. The type checker and the evaluation use the same
//! declarations, so that both give a value the same type.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::names::is_reserved;

/// The type that a schema declares for a value.
#[derive(Debug)]
pub enum Decl {
    /// `x-kubernetes-int-or-string`: the type is known only at run time.
    Dyn,
    Bool,
    Int,
    /// A floating-point number.
    Double,
    /// A string without a format.
    Text,
    /// A string with `format: byte`.
    Bytes,
    /// A string with `format: date-time`.
    Time,
    /// A string with `format: date`.
    Date,
    /// A string with `format: duration`.
    Duration,
    List {
        item: Arc<Decl>,
        /// Decides how two lists of this type are compared and joined.
        order: Order,
    },
    /// A map: an object with `additionalProperties`.
    Map(Arc<Decl>),
    /// An object with the fields of its schema.
    Object(Fields),
}

/// How the items of a list are identified: the schema's `x-kubernetes-list-type`.
#[derive(Debug, PartialEq, Eq)]
pub enum Order {
    /// Items are identified by their index.
    Atomic,
    /// Items are identified by their value, in any order.
    Set,
    /// Items are identified by the values of these keys, in any order.
    Keys(Vec<String>),
}

/// The fields of an object, by their escaped names in expressions.
#[derive(Debug, Default)]
pub struct Fields(BTreeMap<String, (String, Arc<Decl>)>);

impl Fields {
    /// Adds a field. If an expression cannot write its name, even escaped, the field is left out.
    pub fn insert(&mut self, name: &str, decl: Arc<Decl>) {
        if let Some(escaped) = escape(name) {
            self.0.insert(escaped, (name.to_owned(), decl));
        }
    }

    /// The original name of a field and its declaration, by its escaped name.
    pub fn find(&self, escaped: &str) -> Option<(&str, &Arc<Decl>)> {
        self.0.get(escaped).map(|(name, decl)| (name.as_str(), decl))
    }

    /// The declaration of a field by its original name.
    pub fn named(&self, name: &str) -> Option<&Arc<Decl>> {
        let (_, decl) = self.find(&escape(name)?)?;
        Some(decl)
    }
}

/// Escapes the name of a field for expressions; `None` if expressions cannot write it.
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

    /// Tests escaping against the table of the Kubernetes documentation.
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
