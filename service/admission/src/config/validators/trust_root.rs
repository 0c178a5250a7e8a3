//! Trust roots of signatures: a key, or a signer's identity in a certificate.

use std::path::PathBuf;

use serde::Deserialize;

use super::super::{Checker, Error};
use super::Text;

/// Longest regular expression for an issuer or a subject; its compiled size is limited too.
const EXPRESSION_BYTES_MAX: usize = 2048;
/// Prefixes of references to keys in other systems, such as cloud key stores. Configurations with such references are
/// refused.
const REMOTE_KEYS: [&str; 8] =
    ["awskms://", "gcpkms://", "azurekms://", "hashivault://", "k8s://", "pkcs11:", "gitlab://", "github://"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustRoot {
    pub name: String,
    pub root: Root,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    Key(Text),
    /// Every signer whose certificate has this identity from this issuer is accepted.
    Keyless {
        /// The issuer of the identity, such as `https://token.actions.githubusercontent.com`.
        issuer: Constraint,
        /// The identity: an e-mail address or a URI.
        subject: Constraint,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Constraint {
    Exact(String),
    /// A text that the expression matches as a whole.
    Regex(String),
    /// A text that starts with this prefix.
    Prefix(String),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::config) struct RawTrustRoot {
    pub name: String,
    pub key: Option<String>,
    pub key_file: Option<PathBuf>,
    pub cert: Option<String>,
    pub keyless: Option<RawKeyless>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::config) struct RawKeyless {
    pub issuer: Option<String>,
    pub issuer_regex: Option<String>,
    pub subject: Option<String>,
    pub subject_regex: Option<String>,
    pub subject_prefix: Option<String>,
}

impl TrustRoot {
    /// The texts or files with the root's keys or certificates.
    pub fn texts(&self) -> impl Iterator<Item = &Text> {
        match &self.root {
            Root::Key(text) => Some(text),
            Root::Keyless { .. } => None,
        }
        .into_iter()
    }
}

impl Checker<'_> {
    pub(in crate::config) fn trust_root(&self, key: &str, raw: RawTrustRoot) -> Result<TrustRoot, Error> {
        let key = |name: &str| format!("{key}.{name}");
        if raw.name.is_empty() || raw.name == "*" {
            return Err(self.value(key("name"), "is empty or `*`, which means all of them"));
        }
        if let Some(scheme) =
            raw.key.as_deref().and_then(|text| REMOTE_KEYS.into_iter().find(|scheme| text.trim().starts_with(scheme)))
        {
            let what = format!("keys at {scheme} are not built in: write the public key itself, or keyFile");
            return Err(self.value(key("key"), what));
        }
        if raw.cert.is_some() {
            let what = "is for notation, which is not built in: name authorities in host.fulcioCert or trustedRootFile";
            return Err(self.value(key("cert"), what));
        }
        let root = match (one_of(self, &key, "key", raw.key, raw.key_file)?, raw.keyless) {
            (Some(text), None) => Root::Key(text),
            (None, Some(keyless)) => self.keyless(&key, keyless)?,
            (None, None) => return Err(self.value(key("key"), "is missing: write one of key, keyFile, keyless")),
            (Some(_), Some(_)) => {
                return Err(self.value(key("key"), "a trust root is a key or keyless, not both: make it two roots"));
            }
        };
        Ok(TrustRoot { name: raw.name, root })
    }

    fn keyless(&self, key: &dyn Fn(&str) -> String, raw: RawKeyless) -> Result<Root, Error> {
        let constraint = |name: &str, forms: [Option<Constraint>; 3]| {
            let mut written = forms.into_iter().flatten();
            let one = written.next();
            let Some(one) = one.filter(|_| written.next().is_none()) else {
                let what = format!("needs one of {name}, {name}Regex and, for subjects, {name}Prefix");
                return Err(self.value(key("keyless"), what));
            };
            let (Constraint::Exact(text) | Constraint::Regex(text) | Constraint::Prefix(text)) = &one;
            if text.is_empty() || text.len() > EXPRESSION_BYTES_MAX {
                let what = format!("{name} is empty or longer than {EXPRESSION_BYTES_MAX} bytes");
                return Err(self.value(key("keyless"), what));
            }
            Ok(one)
        };
        let exact = |text: Option<String>| text.map(Constraint::Exact);
        let regex = |text: Option<String>| text.map(Constraint::Regex);
        Ok(Root::Keyless {
            issuer: constraint("issuer", [exact(raw.issuer), regex(raw.issuer_regex), None])?,
            subject: constraint(
                "subject",
                [exact(raw.subject), regex(raw.subject_regex), raw.subject_prefix.map(Constraint::Prefix)],
            )?,
        })
    }
}

/// The value of the key `name`, or the file that `nameFile` names; `None` without these keys.
pub(super) fn one_of(
    checker: &Checker<'_>,
    key: &dyn Fn(&str) -> String,
    name: &str,
    inline: Option<String>,
    file: Option<PathBuf>,
) -> Result<Option<Text>, Error> {
    match (inline, file) {
        (Some(_), Some(_)) => Err(checker.value(key(name), format!("is there beside {name}File: remove one of them"))),
        (Some(text), None) if !text.contains("-----BEGIN ") => {
            Err(checker.value(key(name), "is no PEM text: write -----BEGIN …, or name a file that has it"))
        }
        (Some(text), None) => Ok(Some(Text::Inline(text))),
        (None, Some(path)) => Ok(Some(Text::File(checker.folder.join(path)))),
        (None, None) => Ok(None),
    }
}
