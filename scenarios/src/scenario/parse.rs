//! From text to a checked [`Scenario`], with errors that name place, key and remedy.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_saphyr::DeserializeError;

use super::{Scenario, library, validate};

/// A scenario file may not be larger: every real one is below 10 KiB.
const BYTES_MAX: u64 = 1 << 20;
/// Suggestions further away than this are noise.
const SIMILARITY_MIN: f64 = 0.7;

/// A scenario with the text it came from.
#[derive(Debug, Clone)]
pub struct Source {
    /// The checked scenario.
    pub scenario: Scenario,
    /// Where it was read, as the user named it.
    pub origin: String,
    /// The folder that relative paths in it count from.
    pub directory: PathBuf,
}

/// Why a scenario could not be used. Prints as `file:line:column: what is wrong` and what to write instead.
#[derive(Debug)]
pub struct Error {
    origin: String,
    place: Option<(u64, u64)>,
    text: String,
    snippet: Option<String>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.origin)?;
        if let Some((line, column)) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.text)?;
        self.snippet.as_ref().map_or(Ok(()), |snippet| write!(f, "\n{snippet}"))
    }
}

impl std::error::Error for Error {}

impl Source {
    /// Reads a scenario by the name of a library entry or the path of a file.
    pub fn read(name_or_path: &str) -> Result<Self, Error> {
        if let Some(text) = library::text(name_or_path) {
            return Self::parse(text, &format!("library/{name_or_path}.yaml"), Path::new("."));
        }
        let path = Path::new(name_or_path);
        let fail = |text: String| Error { origin: name_or_path.to_owned(), place: None, text, snippet: None };
        let size = std::fs::metadata(path).map_err(|error| fail(not_readable(name_or_path, &error)))?.len();
        if size > BYTES_MAX {
            return Err(fail(format!("is {size} bytes long: a scenario file has at most {BYTES_MAX}")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| fail(not_readable(name_or_path, &error)))?;
        Self::parse(&text, name_or_path, path.parent().unwrap_or(Path::new(".")))
    }

    /// Parses and checks the text of a scenario. `origin` is how errors name it.
    pub fn parse(text: &str, origin: &str, directory: &Path) -> Result<Self, Error> {
        let scenario: Scenario = serde_saphyr::from_str(text).map_err(|error| explain(&error, origin, text))?;
        validate::validate(&scenario).map_err(|problem| Error {
            origin: origin.to_owned(),
            place: problem.section.and_then(|section| place_of(text, section)),
            text: problem.text,
            snippet: None,
        })?;
        Ok(Self { scenario, origin: origin.to_owned(), directory: directory.to_owned() })
    }
}

fn not_readable(name: &str, error: &std::io::Error) -> String {
    if error.kind() != std::io::ErrorKind::NotFound {
        return format!("cannot be read: {error}");
    }
    let known = library::names().collect::<Vec<_>>();
    let near = nearest(name, &known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    format!("no such file, and no scenario of that name in the library ({}){near}", known.join(", "))
}

/// Says what serde found in our own words where its own would not help, and shows the lines.
fn explain(error: &DeserializeError, origin: &str, source: &str) -> Error {
    let bare = error.without_snippet();
    let place = bare.location().map(|location| (location.line(), location.column()));
    let text = match bare {
        DeserializeError::SerdeUnknownField { field, expected, .. } => unknown("key", field, expected),
        DeserializeError::SerdeUnknownVariant { variant, expected, .. } => unknown("value", variant, expected),
        DeserializeError::SerdeMissingField { field, .. } => {
            format!("the key `{field}` is missing in the mapping that starts here")
        }
        DeserializeError::MultipleDocuments { .. } => "a scenario file holds one document: remove the `---`".to_owned(),
        DeserializeError::DuplicateMappingKey { key, .. } => {
            format!("the key `{}` stands here a second time: keep one", key.as_deref().unwrap_or("?"))
        }
        DeserializeError::Eof { .. } => "the file is empty or ends too early".to_owned(),
        other => {
            let text = other.to_string();
            text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text).to_owned()
        }
    };
    let snippet = place.and_then(|(line, column)| snippet(source, line, column));
    Error { origin: origin.to_owned(), place, text, snippet }
}

/// The offending line with a mark below it.
fn snippet(source: &str, line: u64, column: u64) -> Option<String> {
    let text = source.lines().nth(usize::try_from(line.checked_sub(1)?).ok()?)?;
    let number = line.to_string();
    let pad = usize::try_from(column.saturating_sub(1)).ok()?;
    Some(format!("  {number} | {text}\n  {:width$} | {:pad$}^", "", "", width = number.len()))
}

fn unknown(what: &str, found: &str, known: &[&'static str]) -> String {
    match nearest(found, known) {
        Some(near) => format!("unknown {what} `{found}`: did you mean `{near}`? Known: {}", known.join(", ")),
        None => format!("unknown {what} `{found}`. Known: {}", known.join(", ")),
    }
}

/// The known word that a misspelled one most likely meant.
fn nearest<'a>(found: &str, known: &[&'a str]) -> Option<&'a str> {
    let scored = known.iter().map(|word| (strsim::jaro_winkler(&found.to_lowercase(), &word.to_lowercase()), *word));
    scored.filter(|(score, _)| *score >= SIMILARITY_MIN).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, word)| word)
}

/// Line and column of a top-level key.
fn place_of(text: &str, section: &str) -> Option<(u64, u64)> {
    let has_key = |line: &str| line.strip_prefix(section).is_some_and(|rest| rest.trim_start().starts_with(':'));
    let index = text.lines().position(has_key)?;
    Some((index as u64 + 1, 1))
}
