//! Real clients as subjects: their list, their installation and their start commands.
//!
//! An adapter is a folder with a `subject.yaml`. Adapters of this repository are in `scenarios/subjects/`, with one
//! line each in this module. A user names an own adapter by its path (module `folder`). This module must not depend on
//! scenarios.

use std::path::{Path, PathBuf};

mod chosen;
mod descriptor;
mod folder;

pub(crate) use chosen::{Chosen, Start, clocks};
pub use folder::{Error as FolderError, named};

use crate::scenario::Need;
use clap::ValueEnum as _;
use descriptor::{Client, Entry, Run};

/// A column of the matrix: one version of a client with one of its functions that watch.
#[derive(Debug, Clone)]
pub struct Column {
    client: Client,
    entry: Entry,
    files: &'static [(&'static str, &'static str)],
    /// The folder of a user's client; `None` for clients of this repository.
    folder: Option<PathBuf>,
}

/// A missing requirement of a client, as a text after the word "needs".
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    /// A program of Longhaul that was not built.
    #[error("{program} (cargo build -p {package})")]
    Program {
        program: String,
        /// The package of the workspace that contains the program.
        package: String,
    },
    /// The installer does not know the package.
    #[error("{client} {version} in the installer")]
    Package { client: String, version: String },
    /// The installer lacks a program or a file.
    #[error(transparent)]
    Installer(#[from] installer::Missing),
    /// The folder of a user's client is invalid.
    #[error(transparent)]
    Own(#[from] FolderError),
    /// The toolchain for programs in Go or Java is missing.
    #[error("{0}")]
    Toolchain(String),
    /// The folder for the adapter's files cannot be created.
    #[error("a folder for {id}: {source}")]
    Folder { id: String, source: std::io::Error },
}

struct Adapter {
    descriptor: &'static str,
    files: &'static [(&'static str, &'static str)],
}

macro_rules! adapter {
    ($folder:literal, [$($file:literal),*]) => {
        Adapter {
            descriptor: include_str!(concat!("../subjects/", $folder, "/subject.yaml")),
            files: &[$(($file, include_str!(concat!("../subjects/", $folder, "/", $file)))),*],
        }
    };
}

const ADAPTERS: [Adapter; 11] = [
    adapter!("service", []),
    adapter!("kube-rs", []),
    adapter!("client-go", ["main.go", "go.mod"]),
    adapter!("controller-runtime", ["main.go", "go.mod"]),
    adapter!("fabric8", ["Subject.java", "pom.xml"]),
    adapter!("java", ["Subject.java", "pom.xml"]),
    adapter!("client-node", ["subject.mjs", "../witness.mjs"]),
    adapter!("kubernetes-fluent-client", ["subject.mjs", "../witness.mjs"]),
    adapter!("pepr", ["subject.mjs", "../witness.mjs"]),
    adapter!("python-kubernetes", ["subject.py", "../witness.py"]),
    adapter!("kopf", ["subject.py", "../witness.py"]),
];

/// All clients of this repository, in the order of the matrix's columns.
pub fn columns() -> Vec<Column> {
    let mut columns = Vec::new();
    for adapter in &ADAPTERS {
        let client: Client = serde_saphyr::from_str(adapter.descriptor).expect("a test reads every descriptor");
        for entry in client.columns.clone() {
            columns.push(Column { client: client.clone(), entry, files: adapter.files, folder: None });
        }
    }
    columns
}

impl Column {
    /// The client's name on the command line.
    pub fn id(&self) -> &str {
        &self.entry.id
    }

    /// The client's name in its package registry.
    pub fn client(&self) -> &str {
        &self.client.name
    }

    pub fn version(&self) -> &str {
        &self.entry.version
    }

    /// The client's function that watches, such as an informer.
    pub fn mode(&self) -> &str {
        &self.entry.mode
    }

    /// Timeouts and intervals that are shorter than the client's defaults.
    pub fn clocks(&self) -> &str {
        &self.client.clocks
    }

    /// The only HTTP version that the client is offered; `None` for HTTP/1.1 and HTTP/2.
    pub fn http(&self) -> Option<u8> {
        match *self.entry.http {
            [version] => Some(version),
            _ => None,
        }
    }

    /// Features that the client lacks, as for `longhaul soak --cannot`.
    pub fn cannot(&self) -> Vec<String> {
        let all = self.client.cannot.iter().chain(&self.entry.cannot);
        all.filter_map(Need::to_possible_value).map(|need| need.get_name().to_owned()).collect()
    }

    /// Installs missing packages and returns the command that starts the adapter, with its environment variables set by
    /// `env`. The command is empty for the built-in service. The error names the missing requirement.
    pub async fn command(&self) -> Result<Vec<String>, Missing> {
        let mut variables: Vec<(String, String)> = self.client.env.clone().into_iter().collect();
        let mut command = match &self.client.run {
            Run::Command(words) => folder::command(self, words).await?,
            Run::Service => {
                return program("longhaul-service", "service").map(|_| Vec::new());
            }
            Run::Program(name) => {
                vec![text(&program(name, name)?)]
            }
            Run::Go(file) => {
                let (name, source, module) = (self.client.name.clone(), self.content(file), self.content("go.mod"));
                let built = tokio::task::spawn_blocking(move || installer::go_program(&name, source, module));
                let built = built.await.unwrap_or_else(|error| Err(error.to_string()));
                vec![text(&built.map_err(Missing::Toolchain)?)]
            }
            Run::Java(file) => {
                let (name, source, pom) = (self.client.name.clone(), self.content(file), self.content("pom.xml"));
                let (class, file) = (file.trim_end_matches(".java").to_owned(), file.clone());
                let built = tokio::task::spawn_blocking(move || installer::java_program(&name, &file, source, pom));
                let built = built.await.unwrap_or_else(|error| Err(error.to_string()));
                let built = built.map_err(Missing::Toolchain)?;
                vec![text(&built.java), "-cp".to_owned(), built.class_path, class]
            }
            Run::Node(file) => {
                let installed = self.install().await?;
                let folder = self.unfold(Some(&installed.folder.join("node_modules")))?;
                vec![text(&installed.interpreter), text(&folder.join(file))]
            }
            Run::Python(arguments) => {
                let installed = self.install().await?;
                let folder = self.unfold(None)?;
                variables.push(("PYTHONPATH".to_owned(), text(&installed.folder)));
                variables.push(("PYTHONUNBUFFERED".to_owned(), "1".to_owned()));
                let is_file = |argument: &str| self.files.iter().any(|(name, _)| *name == argument);
                let here = |argument: &String| {
                    if is_file(argument) { text(&folder.join(argument)) } else { argument.clone() }
                };
                std::iter::once(text(&installed.interpreter)).chain(arguments.iter().map(here)).collect()
            }
        };
        command.extend(self.entry.arguments.iter().cloned());
        let variables = variables.into_iter().map(|(name, value)| format!("{name}={value}"));
        Ok(std::iter::once("env".to_owned()).chain(variables).chain(command).collect())
    }

    /// The content of a file of the adapter.
    fn content(&self, name: &str) -> &'static str {
        self.files.iter().find(|(file, _)| *file == name).map_or("", |(_, content)| *content)
    }

    async fn install(&self) -> Result<installer::Installed, Missing> {
        let package = installer::package(self.client(), self.version());
        let unknown = || Missing::Package { client: self.client().to_owned(), version: self.version().to_owned() };
        Ok(package.ok_or_else(unknown)?.install().await?)
    }

    /// Writes the adapter's files into the cache, beside a link to the adapter's packages, where node looks for
    /// packages.
    fn unfold(&self, packages: Option<&Path>) -> Result<PathBuf, Missing> {
        let folder = installer::cache()?.join("subjects").join(self.id());
        let problem = |source| Missing::Folder { id: self.id().to_owned(), source };
        std::fs::create_dir_all(&folder).map_err(problem)?;
        for (name, content) in self.files {
            let file = folder.join(name.trim_start_matches("../"));
            // Another process may be reading it: a correct file is left alone, and a wrong one is replaced atomically.
            if !std::fs::read_to_string(&file).is_ok_and(|text| text == *content) {
                let fresh = tempfile::NamedTempFile::new_in(&folder).map_err(problem)?;
                std::fs::write(fresh.path(), content).map_err(problem)?;
                fresh.persist(&file).map_err(|error| problem(error.error))?;
            }
        }
        let Some(packages) = packages else { return Ok(folder) };
        let link = folder.join("node_modules");
        if !std::fs::read_link(&link).is_ok_and(|target| target == packages) {
            let _ = std::fs::remove_file(&link);
            match std::os::unix::fs::symlink(packages, &link) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(problem(error)),
                _ => {}
            }
        }
        Ok(folder)
    }
}

/// The path of a program of Longhaul beside the running program.
fn program(name: &str, package: &str) -> Result<PathBuf, Missing> {
    crate::subject::sibling(name)
        .map_err(|_| Missing::Program { program: name.to_owned(), package: package.to_owned() })
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_descriptor_is_read_and_names_a_locked_package() {
        let columns = columns();
        let ids: BTreeSet<&str> = columns.iter().map(Column::id).collect();
        assert_eq!(ids.len(), columns.len(), "ids are unique");
        for column in &columns {
            let built = match &column.client.run {
                Run::Program(_) | Run::Service => true,
                Run::Go(file) => !column.content(file).is_empty() && !column.content("go.mod").is_empty(),
                Run::Java(file) => !column.content(file).is_empty() && !column.content("pom.xml").is_empty(),
                _ => false,
            };
            let locked = installer::package(column.client(), column.version()).is_some();
            assert!(built || locked, "{} is locked", column.id());
            assert!(column.entry.http.iter().all(|version| [1, 2].contains(version)), "{}", column.id());
            assert!(!column.clocks().is_empty() && !column.mode().is_empty());
        }
    }

    /// The column of kube-rs names the version in the lock file, because its adapter is built in this workspace.
    #[test]
    fn the_version_of_kube_is_the_one_that_is_built() {
        let lock = include_str!("../../Cargo.lock");
        for column in columns().iter().filter(|column| column.client() == "kube-rs") {
            assert!(lock.contains(&format!("name = \"kube\"\nversion = \"{}\"", column.version())));
        }
    }

    /// The column of a Go client names the version in the module file with which the adapter is built.
    #[test]
    fn the_version_of_what_is_built_is_the_one_of_its_module() {
        for column in columns() {
            let version = column.version();
            let (file, named) = match column.client() {
                "client-go" => ("go.mod", format!("k8s.io/client-go v{version}\n")),
                "controller-runtime" => ("go.mod", format!("sigs.k8s.io/controller-runtime v{version}\n")),
                "fabric8" | "client-java" => ("pom.xml", format!("<version>{version}</version>")),
                _ => continue,
            };
            assert!(column.content(file).contains(&named), "{} {version}", column.id());
        }
    }

    #[test]
    fn the_version_of_the_service_is_ours() {
        for column in columns().iter().filter(|column| column.client() == "longhaul-service") {
            assert_eq!(column.version(), env!("CARGO_PKG_VERSION"));
        }
    }

    /// An adapter is short enough to read on one screen, because users copy it.
    #[test]
    fn adapters_are_at_most_a_screen() {
        for adapter in &ADAPTERS {
            for (name, content) in adapter.files {
                assert!(content.lines().count() <= 75, "{name} has {} lines", content.lines().count());
            }
        }
    }
}
