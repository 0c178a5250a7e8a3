//! The rights of the API's callers, which depend on the subject alternative names of their certificates.
//!
//! Common names give no rights, because an authority need not have checked them. A pattern matches only names of its
//! own type: the pattern of a host does not match a URI or mail address with the same text, because an authority may
//! have issued such a name to another client.

use crate::config;

use super::route::Verb;
use service_core::wire::Alternative;

/// The names of callers that have each right.
#[derive(Debug, Clone)]
pub struct Access {
    read: Names,
    scale: Names,
    image: Names,
}

/// Patterns of callers' names; `None` gives every caller the right.
#[derive(Debug, Clone)]
struct Names(Option<Vec<Pattern>>);

/// A name that must be equal, or a prefix of names.
#[derive(Debug, Clone)]
enum Pattern {
    Whole(String),
    Beginning(String),
}

impl Access {
    pub fn new(allow: &config::Allow) -> Self {
        Self {
            read: Names::new(allow.read.as_ref()),
            scale: Names::new(allow.scale.as_ref()),
            image: Names::new(allow.image.as_ref()),
        }
    }

    /// Whether a caller with `names` has the right `verb`.
    pub fn may(&self, verb: Verb, names: &[Alternative]) -> bool {
        let allowed = match verb {
            Verb::Read => &self.read,
            Verb::Scale => &self.scale,
            Verb::Image => &self.image,
        };
        let Names(Some(patterns)) = allowed else { return true };
        names.iter().any(|name| patterns.iter().any(|pattern| pattern.fits(name)))
    }
}

impl Names {
    fn new(names: Option<&Vec<String>>) -> Self {
        Self(names.map(|names| names.iter().map(|name| Pattern::new(name)).collect()))
    }
}

impl Pattern {
    fn new(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(beginning) => Self::Beginning(beginning.to_owned()),
            None => Self::Whole(text.to_owned()),
        }
    }

    fn fits(&self, name: &Alternative) -> bool {
        let text = name.text();
        match self {
            Self::Whole(whole) => is_of_kind(whole, name) && text == whole,
            Self::Beginning(beginning) if beginning.is_empty() => true,
            // The prefix alone is no valid name.
            Self::Beginning(beginning) => {
                is_of_kind(beginning, name)
                    && is_plain(name)
                    && text.len() > beginning.len()
                    && text.starts_with(beginning)
            }
        }
    }
}

/// Whether `pattern` applies to names of the type of `name`. A pattern with a colon applies to URIs, a pattern with `@`
/// but no colon to mail addresses, any other pattern to host names.
fn is_of_kind(pattern: &str, name: &Alternative) -> bool {
    match name {
        Alternative::Uri(_) => pattern.contains(':'),
        Alternative::Mail(_) => pattern.contains('@') && !pattern.contains(':'),
        Alternative::Dns(_) => !pattern.contains(['@', ':']),
    }
}

/// Whether a pattern for a prefix may match `name`. A prefix matches no URI whose path contains `..` or another
/// spelling of its components (SPIFFE ID, section 2.2).
fn is_plain(name: &Alternative) -> bool {
    let Alternative::Uri(uri) = name else { return true };
    let path = uri.split_once("://").map_or(uri.as_str(), |(_, rest)| rest);
    !uri.contains(['%', '?', '#', '\\']) && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dns(text: &str) -> Alternative {
        Alternative::Dns(text.to_owned())
    }

    fn uri(text: &str) -> Alternative {
        Alternative::Uri(text.to_owned())
    }

    #[test]
    fn names_are_allowed_by_verb() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let allow = config::Allow {
            read: None,
            scale: Some(names(&["scaler.corp", "spiffe://corp/ns/ops/*"])),
            image: Some(names(&[])),
        };
        let access = Access::new(&allow);
        for (who, read, scale, image) in [
            (dns("scaler.corp"), true, true, false),
            (uri("spiffe://corp/ns/ops/sa/x"), true, true, false),
            (uri("spiffe://corp/ns/ops/"), true, false, false),
            (uri("spiffe://corp/ns/opsy/sa/x"), true, false, false),
            (uri("spiffe://corp/ns/ops/../mon/sa/x"), true, false, false),
            (uri("spiffe://corp/ns/ops/./x"), true, false, false),
            (uri("spiffe://corp/ns/ops//x"), true, false, false),
            (uri("spiffe://corp/ns/ops/%2e%2e/x"), true, false, false),
            (uri("spiffe://corp/ns/ops/x?a"), true, false, false),
            (dns("spiffe://corp/ns/ops/sa/x"), true, false, false),
            (uri("scaler.corp"), true, false, false),
            (Alternative::Mail("scaler.corp".into()), true, false, false),
            (dns("xscaler.corp"), true, false, false),
            (dns("scaler.corp.evil"), true, false, false),
        ] {
            let who = [who];
            let may = [Verb::Read, Verb::Scale, Verb::Image].map(|verb| access.may(verb, &who));
            assert_eq!(may, [read, scale, image], "{who:?}");
        }
        assert!(access.may(Verb::Scale, &[dns("other"), dns("scaler.corp")]), "any of its names");
        assert!(!access.may(Verb::Scale, &[]), "a certificate without names");
    }
}
