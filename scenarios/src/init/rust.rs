//! Facts from the sources of a kube-rs program: the finalizer, and whether the program writes the observed generation.
//! Does no I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

/// The call `kube::runtime::finalizer(&api, NAME, object, …)`.
static FINALIZER: LazyLock<Regex> =
    LazyLock::new(|| super::pattern(r#"\bfinalizer\(\s*&[\w.]+\s*,\s*("(?u:[^"\\\n]+)"|&?[\w:.]+)\s*,"#));
static CONSTANT: LazyLock<Regex> = LazyLock::new(|| {
    super::pattern(
        r#"(?m)^\s*(?:pub(?:\([a-z]+\))?\s+)?(?:const|static)\s+(\w+)\s*:\s*&(?:'static\s+)?str\s*=\s*"((?u:[^"\\\n]+))"\s*;"#,
    )
});
static OBSERVES: LazyLock<Regex> = LazyLock::new(|| {
    super::pattern(r"\bobserved_generation\s*:|\.observed_generation\s*=(?u:[^=])|\bobservedGeneration\b")
});
/// Maximum number of names from the sources that are kept; a usual program has fewer.
const NAMES_MAX: usize = 10_000;
/// Maximum length of a name that an API server accepts.
const NAME_MAX: usize = 253;

#[derive(Debug, Default)]
pub(crate) struct Sources {
    finalizers: BTreeSet<String>,
    constants: BTreeMap<String, String>,
    /// Whether the program writes the observed generation.
    pub(super) observes: bool,
}

pub(super) fn is_telling(name: &str) -> bool {
    std::path::Path::new(name).extension().is_some_and(|ending| ending == "rs") && name != "build.rs"
}

impl Sources {
    pub(super) fn take(&mut self, text: &str) {
        for found in FINALIZER.captures_iter(text) {
            if self.finalizers.len() < NAMES_MAX {
                self.finalizers.insert(found[1].to_owned());
            }
        }
        for found in CONSTANT.captures_iter(text) {
            if self.constants.len() < NAMES_MAX {
                self.constants.insert(found[1].to_owned(), found[2].to_owned());
            }
        }
        self.observes |= OBSERVES.is_match(text);
    }

    /// The finalizer of the program, if there is exactly one.
    pub(super) fn finalizer(&self) -> Option<String> {
        let value = |text: &String| {
            if let Some(quoted) = text.strip_prefix('"') {
                return quoted.strip_suffix('"').map(str::to_owned);
            }
            self.constants.get(text.rsplit([':', '&', '.']).next().unwrap_or(text)).cloned()
        };
        let names: BTreeSet<String> = self.finalizers.iter().filter_map(value).collect();
        names
            .into_iter()
            .next()
            .filter(|name| self.finalizers.len() == 1 && name.contains(['/', '.']) && name.len() <= NAME_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finalizer_is_a_text_or_a_constant() {
        let mut sources = Sources::default();
        sources.take("pub static HOLD: &str = \"baskets.example.com\";\nasync fn a() { finalizer(&api, HOLD, object, |event| async {}).await }\n");
        assert_eq!(sources.finalizer().as_deref(), Some("baskets.example.com"));
        assert!(!sources.observes);
        sources.take("let status = BasketStatus { observed_generation: object.metadata.generation };\nfinalizer(&api, \"b/c\", object, f)");
        assert_eq!(sources.finalizer(), None, "two are none");
        assert!(sources.observes);
    }
}
