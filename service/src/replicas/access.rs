//! Who may do what, by the alternative names of certificates.
//!
//! Pure. Common names do not count: an authority need not have checked them.

use crate::config;

use super::route::Verb;

/// The names that each verb is allowed to.
#[derive(Debug, Clone)]
pub struct Access {
    read: Names,
    scale: Names,
    image: Names,
}

/// Absent is everybody.
#[derive(Debug, Clone)]
struct Names(Option<Vec<Pattern>>);

/// A name, or the beginning of names.
#[derive(Debug, Clone)]
enum Pattern {
    Whole(String),
    Beginning(String),
}

impl Access {
    /// What the configuration says.
    pub fn new(allow: &config::Allow) -> Self {
        Self {
            read: Names::new(allow.read.as_ref()),
            scale: Names::new(allow.scale.as_ref()),
            image: Names::new(allow.image.as_ref()),
        }
    }

    /// Whether whoever has `names` may do `verb`.
    pub fn may(&self, verb: Verb, names: &[String]) -> bool {
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

    fn fits(&self, name: &str) -> bool {
        match self {
            Self::Whole(whole) => name == whole,
            // The beginning alone is not a name of whom it stands for.
            Self::Beginning(beginning) => name.len() > beginning.len() && name.starts_with(beginning),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r29_names_are_allowed_by_verb() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let allow = config::Allow {
            read: None,
            scale: Some(names(&["scaler.corp", "spiffe://corp/ns/ops/*"])),
            image: Some(names(&[])),
        };
        let access = Access::new(&allow);
        for (who, read, scale, image) in [
            ("scaler.corp", true, true, false),
            ("spiffe://corp/ns/ops/sa/x", true, true, false),
            ("spiffe://corp/ns/ops/", true, false, false),
            ("spiffe://corp/ns/opsy/sa/x", true, false, false),
            ("xscaler.corp", true, false, false),
            ("scaler.corp.evil", true, false, false),
        ] {
            let who = names(&[who]);
            let may = [Verb::Read, Verb::Scale, Verb::Image].map(|verb| access.may(verb, &who));
            assert_eq!(may, [read, scale, image], "{who:?}");
        }
        assert!(access.may(Verb::Scale, &names(&["other", "scaler.corp"])), "any of its names");
        assert!(!access.may(Verb::Scale, &[]), "a certificate without names");
    }
}
