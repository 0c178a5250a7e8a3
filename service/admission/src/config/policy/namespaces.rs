//! The namespaces whose objects are examined. The lists `ignore` and `validate` apply in addition to the webhook's
//! `namespaceSelector`.

use serde::Deserialize;

use super::super::{Checker, Error};
use super::pattern::matches as glob;

/// Maximum number of namespaces in `ignore` or `validate`.
const ENTRIES_MAX: usize = 100;
/// Longest namespace in a list, in bytes: Kubernetes allows 63.
const ENTRY_BYTES_MAX: usize = 63;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Namespaces {
    /// Namespaces whose objects are not examined.
    ignore: Vec<String>,
    /// Namespaces whose objects alone are examined; an empty list means all namespaces.
    validate: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(in crate::config) struct RawNamespaces {
    pub ignore: Vec<String>,
    pub validate: Vec<String>,
}

impl Namespaces {
    /// Whether objects of every namespace are examined.
    pub fn are_all(&self) -> bool {
        self.ignore.is_empty() && self.validate.is_empty()
    }

    /// The configuration key that excludes `namespace`; `None` if its objects are examined.
    pub fn out(&self, namespace: &str) -> Option<&'static str> {
        let one_of = |globs: &[String]| globs.iter().any(|pattern| glob(pattern.as_bytes(), namespace.as_bytes()));
        if one_of(&self.ignore) {
            return Some("policy.namespaces.ignore");
        }
        (!self.validate.is_empty() && !one_of(&self.validate)).then_some("policy.namespaces.validate")
    }
}

impl Checker<'_> {
    pub(in crate::config) fn namespaces(&self, raw: RawNamespaces) -> Result<Namespaces, Error> {
        for (name, entries) in [("ignore", &raw.ignore), ("validate", &raw.validate)] {
            let key = format!("policy.namespaces.{name}");
            self.within(&key, entries.len() as u64, 0, ENTRIES_MAX as u64)?;
            let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-*?".contains(&byte);
            let wrong =
                |entry: &&String| entry.is_empty() || entry.len() > ENTRY_BYTES_MAX || !entry.bytes().all(allowed);
            if let Some(entry) = entries.iter().find(wrong) {
                let what = format!("`{entry}` is no name of a namespace: `*` is any text, `?` any one character");
                return Err(self.value(key, what));
            }
        }
        Ok(Namespaces { ignore: raw.ignore, validate: raw.validate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_out_and_so_is_what_is_not_among_the_validated() {
        let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let none = Namespaces::default();
        assert!(none.are_all() && none.out("any").is_none());
        let some = Namespaces { ignore: list(&["kube-*"]), validate: list(&["team-?", "kube-public"]) };
        for (namespace, out) in [
            ("kube-system", Some("policy.namespaces.ignore")),
            ("kube-public", Some("policy.namespaces.ignore")),
            ("team-a", None),
            ("team-ab", Some("policy.namespaces.validate")),
            ("default", Some("policy.namespaces.validate")),
        ] {
            assert_eq!(some.out(namespace), out, "{namespace}");
        }
    }
}
