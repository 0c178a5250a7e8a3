//! `strangers.yaml`: the published programs to play, and the results of reading the source behind their FAIL sentences.
//! Pure.

use serde::Deserialize;

/// The table, built in.
const TABLE: &str = include_str!("../strangers.yaml");

/// A published operator or webhook.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Stranger {
    /// Short, for the command line.
    pub(crate) name: String,
    /// Its purpose, in a few words.
    pub(crate) does: String,
    #[serde(default)]
    pub(crate) go: Option<Go>,
    #[serde(default)]
    pub(crate) cargo: Option<Crate>,
    #[serde(default)]
    pub(crate) python: Option<Python>,
    /// The packages of its envtest suite, as arguments of `go test`.
    #[serde(default)]
    pub(crate) suite: Vec<String>,
    /// The results of reading its source, by hand.
    #[serde(default)]
    pub(crate) readings: Vec<Reading>,
}

/// A Go module with a main package.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Go {
    pub(crate) module: String,
    pub(crate) version: String,
    /// The main package: `./cmd/controller`.
    pub(crate) main: String,
    /// Whether its user has to choose: the module has several such programs. Then `init` gets this one as its only
    /// argument.
    #[serde(default)]
    pub(crate) chosen: bool,
    /// The version of Go that it needs, if that is newer than the version on most machines.
    #[serde(default)]
    pub(crate) toolchain: Option<String>,
}

/// A crate with a program.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Crate {
    #[serde(rename = "crate")]
    pub(crate) name: String,
    pub(crate) version: String,
}

/// The source archive of a Python package.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Python {
    pub(crate) package: String,
    pub(crate) version: String,
    /// The project's folder in the archive; the whole archive without it.
    #[serde(default)]
    pub(crate) folder: Option<String>,
    /// Whether the registry has no source archive of it, only a wheel.
    #[serde(default)]
    pub(crate) wheel: bool,
    /// Its requirements, as arguments of `pip`: `kopf==1.45.2`.
    pub(crate) requires: Vec<String>,
}

/// The result of reading the source for one sentence.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Reading {
    /// The budget, or a part of the sentence.
    pub(crate) says: String,
    pub(crate) is: Truth,
    /// The reason, with the place in the source.
    pub(crate) because: String,
}

/// Whether a sentence is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Truth {
    True,
    False,
    /// Reading did not decide it.
    Open,
}

impl Truth {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::True => "true",
            Self::False => "false",
            Self::Open => "open",
        }
    }
}

impl Stranger {
    /// Its language, and the usual name of its registry.
    pub(crate) fn language(&self) -> &'static str {
        match (&self.go, &self.cargo) {
            (Some(_), _) => "Go",
            (None, Some(_)) => "Rust",
            (None, None) => "Python",
        }
    }

    /// Its name in its registry, with the version.
    pub(crate) fn published(&self) -> String {
        let (name, version) = match (&self.go, &self.cargo, &self.python) {
            (Some(go), ..) => (&go.module, &go.version),
            (None, Some(one), _) => (&one.name, &one.version),
            (None, None, Some(python)) => (&python.package, &python.version),
            (None, None, None) => return self.name.clone(),
        };
        format!("{name}@{version}")
    }

    /// The name of its folder.
    pub(crate) fn folder(&self) -> String {
        let (_, version) =
            self.published().rsplit_once('@').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap_or_default();
        format!("{}-{version}", self.name)
    }

    /// The reading of a sentence of this budget.
    pub(crate) fn reading(&self, budget: &str, sentence: &str) -> Option<&Reading> {
        self.readings.iter().find(|reading| reading.says == budget || sentence.contains(&reading.says))
    }
}

/// All of them.
///
/// # Errors
///
/// The table is invalid, with the line.
pub(crate) fn strangers() -> Result<Vec<Stranger>, String> {
    read(TABLE)
}

fn read(text: &str) -> Result<Vec<Stranger>, String> {
    let strangers: Vec<Stranger> = serde_saphyr::from_str(text).map_err(|error| format!("strangers.yaml: {error}"))?;
    for (at, one) in strangers.iter().enumerate() {
        let sources =
            usize::from(one.go.is_some()) + usize::from(one.cargo.is_some()) + usize::from(one.python.is_some());
        if sources != 1 {
            return Err(format!("strangers.yaml: {}: write one of go, cargo and python", one.name));
        }
        if strangers[..at].iter().any(|other| other.name == one.name) {
            return Err(format!("strangers.yaml: {} is there twice", one.name));
        }
    }
    Ok(strangers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The promises of the page: twenty or more, three of another language, each pinned.
    #[test]
    fn the_table_is_what_the_page_says() {
        let all = strangers().unwrap();
        assert!(all.len() >= 20, "{}", all.len());
        assert!(all.iter().filter(|one| one.go.is_none()).count() >= 3);
        for one in &all {
            let named = one.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            assert!(named && !one.does.is_empty(), "{}", one.name);
            let published = one.published();
            let version = published.rsplit_once('@').unwrap().1.trim_start_matches('v');
            assert!(version.starts_with(|c: char| c.is_ascii_digit()) && version.contains('.'), "{published}");
            if let Some(go) = &one.go {
                assert!(go.main.starts_with('.') && go.version.starts_with('v'), "{}", one.name);
            }
            for reading in &one.readings {
                assert!(reading.because.len() > 20, "{}: a reading says why", one.name);
            }
        }
    }

    #[test]
    fn a_table_with_a_mistake_is_refused_with_its_name() {
        let go = "go: {module: example.com/a, version: v1.0.0, main: .}";
        let one = format!("- {{name: a, does: nothing, {go}}}\n");
        assert_eq!(read(&one).unwrap()[0].folder(), "a-v1.0.0");
        assert!(read(&one.repeat(2)).unwrap_err().contains("a is there twice"));
        assert!(read("- {name: a, does: nothing}\n").unwrap_err().contains("a: write one of go"));
        assert!(read("- {name: a, does: nothing, arguments: [--x]}\n").unwrap_err().contains("arguments"));
    }

    #[test]
    fn a_reading_is_found_by_budget_and_by_words() {
        let go = "go: {module: example.com/a, version: v1.0.0, main: .}";
        let readings = "readings: [{says: events.missed, is: false, because: x}, {says: twice, is: true, because: y}]";
        let one = &read(&format!("- {{name: a, does: nothing, {go}, {readings}}}\n")).unwrap()[0];
        assert_eq!(one.reading("events.missed", "").unwrap().is.word(), "false");
        assert_eq!(one.reading("writes.steady", "it wrote twice").unwrap().is, Truth::True);
        assert!(one.reading("writes.steady", "").is_none());
    }
}
