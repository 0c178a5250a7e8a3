//! Folders that a program finds where a kubelet mounts them, in a mount namespace of its own.
//!
//! Owns the command that makes the namespace. The content of the folders belongs to the run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Run by `/bin/sh`; it becomes the program.
const SCRIPT: &str = include_str!("mounts.sh");
/// The variable by which the script starts itself again in another root.
const SCRIPT_VARIABLE: &str = "LONGHAUL_MOUNTS";
/// Of util-linux, which every distribution has.
const UNSHARE: &str = "unshare";

/// The mounts of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounts {
    /// An empty folder for the copies of folders that get another entry.
    pub scratch: PathBuf,
    /// Each absolute path and the folder that is mounted there.
    pub folders: Vec<(PathBuf, PathBuf)>,
}

impl Mounts {
    /// Whether this machine lets a program have its own mounts; otherwise the reason.
    pub fn check() -> Result<(), String> {
        let mut tried = std::process::Command::new(unshare());
        let tried = tried.args(options()).arg("true").stdin(Stdio::null()).output();
        match tried {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(format!("{UNSHARE}: {error}")),
        }
    }

    /// The words before those of a program.
    pub(super) fn words(&self) -> (PathBuf, Vec<OsString>) {
        let mut folders: Vec<&(PathBuf, PathBuf)> = self.folders.iter().collect();
        folders.sort_by_key(|(target, _)| first(target).exists());
        let mut words: Vec<OsString> = options().iter().map(OsString::from).collect();
        words.extend(["/bin/sh", "-c", SCRIPT, "longhaul-mounts"].map(OsString::from));
        words.extend([self.scratch.clone().into(), folders.len().to_string().into()]);
        words.extend(folders.into_iter().flat_map(|(target, source)| [target.into(), source.into()]));
        (unshare(), words)
    }

    /// A variable that the script needs.
    pub(super) fn variable() -> (&'static str, &'static str) {
        (SCRIPT_VARIABLE, SCRIPT)
    }
}

/// The program, on the PATH of this process: a subject may have another one.
fn unshare() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(UNSHARE)).find(|program| program.is_file());
    found.unwrap_or_else(|| PathBuf::from(UNSHARE))
}

/// Without root's rights a mount namespace needs a user namespace.
fn options() -> &'static [&'static str] {
    if rustix::process::geteuid().is_root() { &["--mount"] } else { &["--mount", "--map-root-user"] }
}

/// `/etc` of `/etc/config/a`.
fn first(path: &Path) -> PathBuf {
    path.components().take(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folders that exist, folders whose parents exist, and folders of which nothing exists.
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
