//! Reads `strangers.yaml`: the published programs to try, and for sentences of a FAIL the result of reading the
//! program's source. Pure: no I/O.

use serde::Deserialize;

/// The text of `strangers.yaml`.
const TABLE: &str = include_str!("../strangers.yaml");

/// A published operator or webhook.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Stranger {
    /// A short name for the command line.
    pub(crate) name: String,
    /// The program's purpose in a few words.
    pub(crate) does: String,
    #[serde(default)]
    pub(crate) go: Option<Go>,
    #[serde(default)]
    pub(crate) cargo: Option<Crate>,
    #[serde(default)]
    pub(crate) python: Option<Python>,
    /// The packages of the program's envtest suite, as arguments of `go test`.
    #[serde(default)]
    pub(crate) suite: Vec<String>,
    /// The results of reading the program's source by hand.
    #[serde(default)]
    pub(crate) readings: Vec<Reading>,
}

/// A Go module that contains the program's main package.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Go {
    pub(crate) module: String,
    pub(crate) version: String,
    /// The path of the main package: `./cmd/controller`.
    pub(crate) main: String,
    /// Whether the module has several main packages, so that a user must choose one. `longhaul init` gets the chosen
    /// main package as its only argument.
    #[serde(default)]
    pub(crate) chosen: bool,
    /// The version of Go that the program needs, if most machines have an older Go.
    #[serde(default)]
    pub(crate) toolchain: Option<String>,
}

/// A Rust crate that contains the program.
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
    /// The project's folder in the archive; if absent, the whole archive is the project.
    #[serde(default)]
    pub(crate) folder: Option<String>,
    /// Whether the registry has no source archive of the package, only a wheel.
    #[serde(default)]
    pub(crate) wheel: bool,
    /// The program's requirements as arguments of `pip`: `kopf==1.45.2`.
    pub(crate) requires: Vec<String>,
}

/// The result of reading the program's source about one sentence of a FAIL.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Reading {
    /// The name of the broken budget, or a text in the sentence of the FAIL.
    pub(crate) says: String,
    pub(crate) is: Truth,
    /// The reason why the sentence is true or false, with the file and line in the program's source.
    pub(crate) because: String,
}

/// Whether a sentence of a FAIL is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Truth {
    True,
    False,
    /// Reading the source did not decide whether the sentence is true.
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
    /// The program's language, and the usual name of its registry.
    pub(crate) fn language(&self) -> &'static str {
        match (&self.go, &self.cargo) {
            (Some(_), _) => "Go",
            (None, Some(_)) => "Rust",
            (None, None) => "Python",
        }
    }

    /// The program's name in its registry, with the version.
    pub(crate) fn published(&self) -> String {
        let (name, version) = match (&self.go, &self.cargo, &self.python) {
            (Some(go), ..) => (&go.module, &go.version),
            (None, Some(one), _) => (&one.name, &one.version),
            (None, None, Some(python)) => (&python.package, &python.version),
            (None, None, None) => return self.name.clone(),
        };
        format!("{name}@{version}")
    }

    /// The name of the program's folder in the cache.
    pub(crate) fn folder(&self) -> String {
        let (_, version) =
            self.published().rsplit_once('@').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap_or_default();
        format!("{}-{version}", self.name)
    }

    /// The result of reading the source for a budget and a sentence.
    pub(crate) fn reading(&self, budget: &str, sentence: &str) -> Option<&Reading> {
        self.readings.iter().find(|reading| reading.says == budget || sentence.contains(&reading.says))
    }
}

/// All published programs in `strangers.yaml`.
///
/// # Errors
///
/// If the table is invalid, the error names the line.
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

    /// The table has at least twenty programs with fixed versions, at least three of them in another language than Go.
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
