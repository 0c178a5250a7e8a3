//! Mounts folders for one program only, as a kubelet does, in a mount namespace of the program.
//!
//! This module builds the command that creates this namespace. The crate `scenarios` writes the files in these folders.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A script for `/bin/sh` that mounts the folders and then becomes the program.
const SCRIPT: &str = include_str!("mounts.sh");
/// The environment variable by which the script knows that it runs for the second time, in another root folder.
const SCRIPT_VARIABLE: &str = "LONGHAUL_MOUNTS";
/// The program that creates the mount namespace. Every Linux distribution has `unshare`.
const UNSHARE: &str = "unshare";

/// The folders to mount for a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounts {
    /// An empty folder for the script. The script copies into this folder those folders that need an additional entry.
    pub scratch: PathBuf,
    /// The absolute paths at which folders are mounted, each with the folder to mount.
    pub folders: Vec<(PathBuf, PathBuf)>,
}

impl Mounts {
    /// Checks whether this machine lets a program have its own mounts. The error is the reason why not.
    pub fn check() -> Result<(), String> {
        let mut tried = std::process::Command::new(unshare());
        let tried = tried.args(options()).arg("true").stdin(Stdio::null()).output();
        match tried {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(format!("{UNSHARE}: {error}")),
        }
    }

    /// The program and arguments to put before the subject's own command.
    pub(super) fn words(&self) -> (PathBuf, Vec<OsString>) {
        let mut folders: Vec<&(PathBuf, PathBuf)> = self.folders.iter().collect();
        folders.sort_by_key(|(target, _)| first(target).exists());
        let mut words: Vec<OsString> = options().iter().map(OsString::from).collect();
        words.extend(["/bin/sh", "-c", SCRIPT, "longhaul-mounts"].map(OsString::from));
        words.extend([self.scratch.clone().into(), folders.len().to_string().into()]);
        words.extend(folders.into_iter().flat_map(|(target, source)| [target.into(), source.into()]));
        (unshare(), words)
    }

    /// Name and value of an environment variable that the script needs.
    pub(super) fn variable() -> (&'static str, &'static str) {
        (SCRIPT_VARIABLE, SCRIPT)
    }
}

/// The path of `unshare`, from the PATH of this process, because the subject may have another PATH.
fn unshare() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(UNSHARE)).find(|program| program.is_file());
    found.unwrap_or_else(|| PathBuf::from(UNSHARE))
}

/// The options of `unshare` for a mount namespace. Without root's rights a mount namespace also needs a user namespace.
fn options() -> &'static [&'static str] {
    if rustix::process::geteuid().is_root() { &["--mount"] } else { &["--mount", "--map-root-user"] }
}

/// The first folder of a path: `/etc` of `/etc/config/a`.
fn first(path: &Path) -> PathBuf {
    path.components().take(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder can be mounted at a path that exists, at a path of which only the parent exists, and at a path without
    /// a parent.
    #[test]
    fn a_program_alone_finds_what_is_mounted() {
        if let Err(why) = Mounts::check() {
            println!("skipped: needs mount namespaces: {why}");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["scratch", "source", "there"] {
            std::fs::create_dir(path(name)).unwrap();
        }
        std::fs::write(path("source").join("token"), "abc\n").unwrap();
        let targets = [
            path("there"),
            "/etc/longhaul-test/a".into(),
            "/longhaul-test/b".into(),
            "/usr/share/longhaul-test".into(),
        ];
        let folders = targets.iter().map(|target| (target.clone(), path("source"))).collect();
        let (program, words) = Mounts { scratch: path("scratch"), folders }.words();
        let mut command = std::process::Command::new(program);
        let (name, script) = Mounts::variable();
        command.args(words).arg("cat").args(targets.iter().map(|target| target.join("token"))).env(name, script);
        let output = command.current_dir(folder.path()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "abc\n".repeat(4), "{output:?}");
        assert!(!targets[1].exists() && !targets[2].exists() && !path("there").join("token").exists());
    }
}
