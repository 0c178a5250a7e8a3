//! Bootstrap images: the images of the validators themselves. A bootstrap image with a listed digest starts before the
//! service can verify signatures.

use serde::Deserialize;

use super::super::{Checker, Error};

/// Maximum number of digests: images of the roles validator, admission and alerting for each architecture, before and
/// after a rollout.
const DIGESTS_MAX: usize = 32;

/// Images that start without verified signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bootstrap {
    namespace: String,
    digests: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::config) struct RawBootstrap {
    pub namespace: String,
    pub digests: Vec<String>,
}

impl Bootstrap {
    /// Whether `image` has a listed digest and `namespace` is the configured namespace.
    pub fn lists(&self, namespace: Option<&str>, image: &str) -> bool {
        let digest = image.rsplit_once('@').map(|(_, digest)| digest);
        namespace == Some(&*self.namespace)
            && digest.is_some_and(|digest| self.digests.iter().any(|listed| listed == digest))
    }
}

impl Checker<'_> {
    pub(in crate::config) fn bootstrap(&self, raw: RawBootstrap) -> Result<Bootstrap, Error> {
        self.object_name("policy.bootstrap.namespace", Some(&raw.namespace))?;
        self.within("policy.bootstrap.digests", raw.digests.len() as u64, 1, DIGESTS_MAX as u64)?;
        let is_digest = |text: &str| {
            let hex = text.strip_prefix("sha256:").unwrap_or_default();
            hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        if let Some(wrong) = raw.digests.iter().find(|text| !is_digest(text)) {
            let what = format!("`{wrong}` is no digest: write sha256: and 64 digits, as the registry has them");
            return Err(self.value("policy.bootstrap.digests", what));
        }
        Ok(Bootstrap { namespace: raw.namespace, digests: raw.digests })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_of_the_list_starts_in_its_namespace_and_nothing_else_does() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let bootstrap = Bootstrap { namespace: "longhaul".into(), digests: vec![digest.clone()] };
        let lists = |namespace, image: &str| bootstrap.lists(namespace, image);
        assert!(lists(Some("longhaul"), &format!("r/validator:1@{digest}")));
        assert!(lists(Some("longhaul"), &format!("r/validator@{digest}")));
        assert!(!lists(Some("default"), &format!("r/validator@{digest}")));
        assert!(!lists(None, &format!("r/validator@{digest}")));
        assert!(!lists(Some("longhaul"), "r/validator:1"));
        assert!(!lists(Some("longhaul"), &format!("r/validator@sha256:{}", "b".repeat(64))));
        assert!(!lists(Some("longhaul"), &digest), "a digest alone names no image");
    }
}
