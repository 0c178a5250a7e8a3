//! A subject that already runs before Longhaul starts: the settings that the run gives to the subject, and their
//! removal at the end.
//!
//! Owns the kubeconfig file that is written for a running subject. The run only observes the process of a running
//! subject.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::deploy::{Deployed, Watched};
use crate::keeper;
use crate::out::err;
use crate::subject::{Attached, Launch, Log, Processes};

/// How the subject will run, as known just before its start.
pub(super) enum Who {
    Started(Vec<Launch>),
    /// A running process, the kubeconfig file written for it, its further settings, and its Pods if the scenario names
    /// them.
    Attached(Attached, Option<Handed>, Vec<(String, String)>, Option<Box<Watched>>),
    Deployed(Box<Deployed>),
}

impl Who {
    /// Starts the subject, or prints how the user starts it.
    pub(super) async fn enter(self, log: &Log) -> Result<(Processes, Option<Handed>)> {
        match self {
            Self::Deployed(deployed) => {
                let (pods, follows) = deployed.enter(log).await?;
                Ok((Processes::Pods { pods, are_theirs: false, _follows: follows }, None))
            }
            Self::Started(launches) => Ok((Processes::start(&launches, log)?, None)),
            Self::Attached(attached, handed, environment, watched) => {
                tell(&environment);
                let Some(watched) = watched else { return Ok((Processes::Theirs(attached), handed)) };
                let (pods, follows) = watched.enter(log);
                Ok((Processes::Pods { pods, are_theirs: true, _follows: follows }, handed))
            }
        }
    }
}

/// A kubeconfig with a token, at a path that the user chose. Dropping this value removes the kubeconfig.
#[derive(Debug)]
pub(super) struct Handed {
    path: PathBuf,
}

impl Handed {
    /// Checks that the kubeconfig file can be created. An existing file is never overwritten.
    pub(super) fn check(path: &Path) -> Result<()> {
        let shown = path.display();
        anyhow::ensure!(
            !path.exists(),
            "`kubeconfig`: {shown}: there is a file already, and it may be needed: remove it, or name another one"
        );
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        anyhow::ensure!(
            folder.is_dir(),
            "`kubeconfig`: {shown}: there is no such folder: make it, or name a file in another one"
        );
        Ok(())
    }

    pub(super) fn write(path: &Path, text: &str) -> Result<Self> {
        Self::check(path)?;
        let path = std::path::absolute(path).with_context(|| format!("failed to resolve {}", path.display()))?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let mut file = file.with_context(|| format!("`kubeconfig`: failed to write {}", path.display()))?;
        let handed = Self { path };
        // If the keeper is gone, a harness that ends in order still removes the file.
        let _ = keeper::tell(&keeper::Order::File(handed.path.clone()));
        file.write_all(text.as_bytes()).with_context(|| format!("failed to write {}", handed.path.display()))?;
        Ok(handed)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                err!("longhaul: {} could not be removed and holds a token: {error}", self.path.display());
            }
            _ => drop(keeper::tell(&keeper::Order::Removed(self.path.clone()))),
        }
    }
}

/// Prints settings, one per line, for a user who starts the subject by hand. The settings are printed even with
/// `--quiet`, because the user needs them to start the subject.
fn tell(environment: &[(String, String)]) {
    err!("longhaul: the subject is not started: it runs already, or you start it now. It is given");
    for (name, value) in environment.iter().filter(|(_, value)| !value.is_empty()) {
        err!("  {name}={value}");
    }
    err!("longhaul: waiting until it is ready; it is left running at the end");
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_file_is_ours_alone_and_goes_with_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let handed = Handed::write(&path, "token").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_to_string(handed.path()).unwrap(), "token");
        let error = Handed::write(&path, "other").unwrap_err().to_string();
        assert!(error.contains("there is a file already"), "{error}");
        drop(handed);
        assert!(!path.exists());
        let error = Handed::write(&folder.path().join("none/kubeconfig"), "token").unwrap_err().to_string();
        assert!(error.contains("there is no such folder"), "{error}");
    }
}
