//! Finds clients by name, or in a user's folder with a `subject.yaml`.
//!
//! Defines the keys that a user's folder may use: a command and its installation. The keys `node`, `python` and `go`
//! are reserved for adapters in this repository, whose packages are locked.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::descriptor::{Client, Entry, Run};
use super::{Column, columns, text};

/// The file that describes the client in a folder.
const FILE: &str = "subject.yaml";
/// Maximum size of the description file.
const BYTES_MAX: u64 = 64 << 10;
/// Timeout of an installation: enough for all packages of a client on a slow network.
const INSTALL_LIMIT: Duration = Duration::from_mins(15);
/// Maximum number of characters of an installer's output that are kept.
const SAID_MAX: usize = 300;

/// A problem with the folder of a client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The description file cannot be read.
    #[error("failed to read {}: {why}", file.display())]
    Read { file: PathBuf, why: String },
    /// The file uses a feature that is reserved for adapters in this repository.
    #[error("{}: `run` is for Longhaul's own clients: write `run: {{command: [program, argument]}}`, and `install` for what it needs", file.display())]
    Ours { file: PathBuf },
    #[error("{id}: `{command}` in {}: {why}", folder.display())]
    Install { id: String, command: String, folder: PathBuf, why: String },
}

/// The columns of a client by name, or all columns of a folder. `None` if the name is neither a client nor a folder.
pub fn named(name: &str) -> Result<Option<Vec<Column>>, Error> {
    let ours: Vec<Column> = columns().into_iter().filter(|column| column.id() == name).collect();
    if !ours.is_empty() {
        return Ok(Some(ours));
    }
    let path = Path::new(name);
    let file = if path.file_name().is_some_and(|last| last == FILE) { path.to_owned() } else { path.join(FILE) };
    if !file.is_file() {
        return Ok(None);
    }
    read(&file).map(Some)
}

fn read(file: &Path) -> Result<Vec<Column>, Error> {
    let wrong = |why: String| Error::Read { file: file.to_owned(), why };
    let about = std::fs::metadata(file).map_err(|error| wrong(error.to_string()))?;
    if about.len() > BYTES_MAX {
        return Err(wrong(format!("it has more than {BYTES_MAX} bytes")));
    }
    let content = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    let mut client: Client = serde_saphyr::from_str(&content).map_err(|error| wrong(error.to_string()))?;
    match &client.run {
        Run::Command(words) if words.is_empty() => return Err(wrong("`command` has no program".to_owned())),
        Run::Command(_) => {}
        _ => return Err(Error::Ours { file: file.to_owned() }),
    }
    let folder = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let folder = std::path::absolute(folder).map_err(|error| wrong(error.to_string()))?;
    if client.clocks.is_empty() {
        "its own".clone_into(&mut client.clocks);
    }
    let mut entries = client.columns.clone();
    if entries.is_empty() {
        let (version, mode) = (String::new(), String::new());
        let (arguments, cannot, http) = (Vec::new(), Vec::new(), Vec::new());
        entries.push(Entry { id: client.name.clone(), version, mode, arguments, cannot, http });
    }
    // Run records lie in folders with these names.
    let fine = |id: &str| {
        !id.is_empty() && !id.starts_with('.') && id.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
    };
    if let Some(entry) = entries.iter().find(|entry| !fine(&entry.id)) {
        return Err(wrong(format!("`{}` is no name of a column: write letters, digits, `-`, `.` and `_`", entry.id)));
    }
    let column = |entry| Column { client: client.clone(), entry, files: &[], folder: Some(folder.clone()) };
    Ok(entries.into_iter().map(column).collect())
}

/// Installs missing packages. Returns the start command with paths of the client's files.
pub(super) async fn command(column: &Column, words: &[String]) -> Result<Vec<String>, Error> {
    let Some(folder) = &column.folder else { return Ok(words.to_vec()) };
    install(column, folder).await?;
    let here = |word: &String| {
        let path = folder.join(word);
        if path.is_file() { text(&path) } else { word.clone() }
    };
    Ok(words.iter().map(here).collect())
}

async fn install(column: &Column, folder: &Path) -> Result<(), Error> {
    let Some(install) = column.client.install.as_ref().filter(|install| !folder.join(&install.makes).exists()) else {
        return Ok(());
    };
    let failed = |why: String| Error::Install {
        id: column.id().to_owned(),
        command: install.run.join(" "),
        folder: folder.to_owned(),
        why,
    };
    let Some((program, arguments)) = install.run.split_first() else {
        return Err(failed("`install.run` has no program".to_owned()));
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(INSTALL_LIMIT, command.output()).await;
    let output = output.map_err(|_| failed(format!("not done in {} s", INSTALL_LIMIT.as_secs())))?;
    let output = output.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said: String = crate::shown::text(said.trim()).chars().take(SAID_MAX).collect();
        return Err(failed(format!("{}: {said}", output.status)));
    }
    if folder.join(&install.makes).exists() {
        return Ok(());
    }
    Err(failed(format!("it did not make `{}`, which `install.makes` names", install.makes.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(content: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), content).unwrap();
        folder
    }

    fn all(folder: &tempfile::TempDir) -> Result<Option<Vec<Column>>, Error> {
        named(folder.path().to_str().unwrap())
    }

    #[test]
    fn a_folder_is_one_column_or_several() {
        let one = folder("client: mine\nrun: {command: [node, subject.mjs]}\n");
        let columns = all(&one).unwrap().unwrap();
        assert_eq!(columns.iter().map(Column::id).collect::<Vec<_>>(), ["mine"]);
        let two = folder(
            "client: mine\nrun: {command: [node]}\ncannot: [many-kinds]\ncolumns:\n  - {id: a, version: 1.0.0, mode: watch, http: [1]}\n  - {id: b}\n",
        );
        let columns = all(&two).unwrap().unwrap();
        assert_eq!(
            columns.iter().map(|column| (column.id(), column.http())).collect::<Vec<_>>(),
            [("a", Some(1)), ("b", None)]
        );
        assert_eq!(columns[1].cannot(), ["many-kinds"]);
        assert!(named("service").unwrap().is_some() && named("nobody").unwrap().is_none());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_file() {
        let said = |content: &str| all(&folder(content)).unwrap_err().to_string();
        assert!(
            said("client: mine\nrun: {node: subject.mjs}\n")
                .contains("subject.yaml: `run` is for Longhaul's own clients")
        );
        assert!(said("client: mine\nrun: {command: []}\n").contains("`command` has no program"));
        assert!(said("client: ../mine\nrun: {command: [node]}\n").contains("`../mine` is no name of a column"));
        assert!(said("client: mine\nrun: {command: [node]}\nclock: x\n").contains("clock"));
    }

    #[tokio::test]
    async fn it_is_installed_once_and_its_files_are_found() {
        let one = folder(
            "client: mine\nrun: {command: [node, subject.mjs, --fast]}\ninstall: {run: [sh, -c, 'echo x >> made'], makes: made}\n",
        );
        std::fs::write(one.path().join("subject.mjs"), "").unwrap();
        let column = all(&one).unwrap().unwrap().remove(0);
        let file = one.path().join("subject.mjs").display().to_string();
        for _ in 0..2 {
            assert_eq!(column.command().await.unwrap(), ["env", "node", file.as_str(), "--fast"]);
        }
        assert_eq!(std::fs::read_to_string(one.path().join("made")).unwrap(), "x\n");
        let bad = folder(
            "client: mine\nrun: {command: [node]}\ninstall: {run: [sh, -c, 'echo no >&2; exit 3'], makes: made}\n",
        );
        let said = all(&bad).unwrap().unwrap().remove(0).command().await.unwrap_err().to_string();
        assert!(said.contains("mine: `sh -c") && said.ends_with("exit status: 3: no"), "{said}");
    }
}
