//! Finds the subject for a command-line argument: a client by name, a folder with a `subject.yaml`, or a command.
//!
//! Owns the order in which client, folder and command are tried, and passes the timeouts of a scenario to a client.

use super::{Column, Missing, named};
use crate::scenario::Scenario;

#[derive(Debug, Clone)]
pub(crate) enum Chosen {
    /// A client whose features are known.
    Client(Box<Column>),
    Command(Vec<String>),
}

/// The reason why an argument names no subject.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Folder(#[from] super::FolderError),
    #[error("`{word}` has several columns ({columns}): name one, as in `{word}#{first}`")]
    Several { word: String, columns: String, first: String },
    #[error("`{word}` has no column `{column}`; it has {columns}")]
    NoColumn { word: String, column: String, columns: String },
    #[error("`{0}` has a quotation mark that is not closed")]
    Open(String),
    #[error("a subject is missing: name a folder with a `subject.yaml`, a client of ours, or a command")]
    Empty,
}

/// The start command of a subject, and the features that the subject lacks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Start {
    /// Program and arguments; empty for the built-in service.
    pub(crate) command: Vec<String>,
    /// The only HTTP version that the subject is offered.
    pub(crate) http: Option<u8>,
    /// Features that the subject lacks, as for `longhaul soak --cannot`.
    pub(crate) cannot: Vec<String>,
}

impl Chosen {
    /// Finds a client by its name, or a folder or `FOLDER#COLUMN`. Any other text is a command line, split as a shell
    /// would split it.
    pub(crate) fn of(word: &str) -> Result<Self, Error> {
        let (place, column) = match word.rsplit_once('#') {
            Some((place, column)) if named(place)?.is_some() => (place, Some(column)),
            _ => (word, None),
        };
        let Some(columns) = named(place)? else {
            let words = shlex::split(word).ok_or_else(|| Error::Open(word.to_owned()))?;
            return if words.is_empty() { Err(Error::Empty) } else { Ok(Self::Command(words)) };
        };
        let ids: Vec<&str> = columns.iter().map(Column::id).collect();
        let (place, ids, first) = (place.to_owned(), ids.join(", "), ids.first().map_or("", |id| id).to_owned());
        let mut fits = columns.into_iter().filter(|one| column.is_none_or(|column| column == one.id()));
        match (fits.next(), fits.next(), column) {
            (Some(only), None, _) => Ok(Self::Client(Box::new(only))),
            (Some(_), Some(_), _) => Err(Error::Several { word: place, columns: ids, first }),
            (None, _, column) => {
                Err(Error::NoColumn { word: place, column: column.unwrap_or_default().to_owned(), columns: ids })
            }
        }
    }

    /// The default name of the subject in a comparison.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Client(column) => column.id().to_owned(),
            Self::Command(words) => {
                let program = words.first().map(String::as_str).unwrap_or_default();
                program.rsplit('/').next().unwrap_or(program).to_owned()
            }
        }
    }

    /// Installs missing packages. The client gets the timeouts of the scenario (`clocks`) unless it keeps its own
    /// timeouts.
    pub(crate) async fn start(&self, clocks: &[String]) -> Result<Start, Missing> {
        let (mut start, words) = match self {
            Self::Client(column) => {
                let start = Start { command: Vec::new(), http: column.http(), cannot: column.cannot() };
                (start, column.command().await?)
            }
            Self::Command(words) => (Start::default(), words.clone()),
        };
        if !words.is_empty() && !clocks.is_empty() {
            start.command = std::iter::once("env".to_owned()).chain(clocks.iter().cloned()).collect();
        }
        start.command.extend(words);
        Ok(start)
    }
}

/// The silence limit and the list interval that a scenario sets for the built-in service, as environment variables, so
/// that each client with such options gets the same values.
pub(crate) fn clocks(scenario: &Scenario) -> Vec<String> {
    let mut subject = scenario.subject.clone();
    let settings = subject.service_mut().and_then(|service| service.settings.take());
    let watch = settings.as_ref().and_then(|settings| settings.get("watch"));
    let clock = |key: &str| watch.and_then(|watch| watch.get(key)?.as_str()?.parse::<units::Span>().ok());
    [("LONGHAUL_SILENCE_S", "silenceLimit"), ("LONGHAUL_RELIST_S", "relistInterval")]
        .into_iter()
        .filter_map(|(name, key)| Some(format!("{name}={}", clock(key)?.0.as_secs())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_ours_or_a_folder_or_a_command() {
        assert!(matches!(Chosen::of("service").unwrap(), Chosen::Client(_)));
        assert_eq!(Chosen::of("service").unwrap().name(), "service");
        let Chosen::Command(words) = Chosen::of("env A='b c' bin/watch --x").unwrap() else { panic!("a command") };
        assert_eq!(words, ["env", "A=b c", "bin/watch", "--x"]);
        assert_eq!(Chosen::of("bin/watch --x").unwrap().name(), "watch");
        assert!(Chosen::of("'open").unwrap_err().to_string().contains("not closed"));
        assert!(Chosen::of(" ").is_err());
        let folder = tempfile::tempdir().unwrap();
        let two = "client: mine\nrun: {command: [node]}\ncolumns: [{id: a}, {id: b}]\n";
        std::fs::write(folder.path().join("subject.yaml"), two).unwrap();
        let path = folder.path().to_str().unwrap();
        assert!(Chosen::of(path).unwrap_err().to_string().contains("has several columns (a, b): name one"));
        assert_eq!(Chosen::of(&format!("{path}#b")).unwrap().name(), "b");
        assert!(Chosen::of(&format!("{path}#c")).unwrap_err().to_string().contains("has no column `c`"));
    }
}
