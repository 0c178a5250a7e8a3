//! The git revision of the folder in which the harness was started.
//!
//! The folder may come from an unknown author, and its git configuration can name programs that git starts: a file
//! system monitor, hooks, filters, a pager. This module ensures that git starts no such program, fetches and writes
//! nothing, and has a time limit.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// Time limit of git: enough to compare a large checkout on a slow disk. If git takes longer, the record has no
/// revision.
const LIMIT: Duration = Duration::from_secs(10);
/// Maximum number of bytes that are read of git's output, which is a name or a list of settings.
const OUTPUT_BYTES_MAX: u64 = 64 << 10;
/// Settings that stop git from starting programs and using the network. Settings on the command line win over every
/// configuration file, including the folder's own.
const SAFELY: [&str; 8] = [
    "--no-pager",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "protocol.allow=never",
];
/// Arguments with which git lists the configured filters. A filter is a program that converts a file before git
/// compares it.
const FILTERS: [&str; 5] = ["config", "--show-scope", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process)$"];
/// Scopes of git settings that belong to the user, not to the folder.
const TRUSTED: [&str; 2] = ["system\t", "global\t"];
/// Arguments with which git compares the files with `HEAD`. Submodules are not compared, because they have
/// configurations of their own.
const COMPARE: [&str; 6] = ["diff", "--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "HEAD"];

/// The checked-out revision of a folder. The suffix `-dirty` means that files differ from the revision. The suffix
/// `-unchecked` means that the comparison would start a program that the folder itself names.
pub(super) fn revision(folder: &Path) -> Option<String> {
    let (0, revision) = git(folder, &["describe", "--always"])? else { return None };
    let filters = match git(folder, &FILTERS) {
        Some((0, filters)) => !filters.lines().all(|line| TRUSTED.iter().any(|scope| line.starts_with(scope))),
        // No filter is named.
        Some((1, _)) => false,
        _ => true,
    };
    let compared = if filters { None } else { git(folder, &COMPARE).map(|(code, _)| code) };
    let suffix = match compared {
        Some(0) => "",
        Some(1) => "-dirty",
        _ => "-unchecked",
    };
    let revision = revision.trim();
    (!revision.is_empty()).then(|| format!("{revision}{suffix}"))
}

/// Exit code and output of git; `None` if git is missing or takes longer than [`LIMIT`].
fn git(folder: &Path, arguments: &[&str]) -> Option<(i32, String)> {
    let mut command = Command::new("git");
    command.args(SAFELY).args(arguments).current_dir(folder);
    command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_TERMINAL_PROMPT", "0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().ok()?;
    let output = child.stdout.take()?;
    let (send, said) = mpsc::channel();
    // It ends with the last program that holds the other end of the pipe.
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = output.take(OUTPUT_BYTES_MAX).read_to_end(&mut text);
        let _ = send.send(read.map(|_| text));
    });
    let Ok(Ok(text)) = said.recv_timeout(LIMIT) else {
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = child.wait();
        return None;
    };
    let code = child.wait().ok()?.code()?;
    Some((code, String::from_utf8(text).ok()?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A git checkout with one commit; `None` if git is missing.
    fn checkout() -> Option<tempfile::TempDir> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "a\n").unwrap();
        let made = "git init -q . && git add . && git -c user.name=a -c user.email=a@b.example commit -q -m a";
        let done = Command::new("sh").args(["-c", made]).current_dir(folder.path()).stdin(Stdio::null()).output();
        if done.is_ok_and(|done| done.status.success()) {
            return Some(folder);
        }
        println!("skipped: needs git");
        None
    }

    #[test]
    fn a_checkout_is_told_with_what_was_changed() {
        let Some(folder) = checkout() else { return };
        let clean = revision(folder.path()).unwrap();
        assert!(clean.len() >= 7 && clean.chars().all(|c| c.is_ascii_hexdigit()), "{clean}");
        std::fs::write(folder.path().join("a.txt"), "b\n").unwrap();
        assert_eq!(revision(folder.path()).unwrap(), format!("{clean}-dirty"));
        assert_eq!(revision(tempfile::tempdir().unwrap().path()), None);
    }

    /// git starts no program that the folder's configuration names, and the record says that files were not compared.
    #[test]
    fn no_program_that_the_folder_names_is_started() {
        let Some(folder) = checkout() else { return };
        let (ran, program) = (folder.path().join("ran"), folder.path().join(".git/program"));
        std::fs::write(&program, format!("#!/bin/sh\ntouch {}\ncat\n", ran.display())).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let set = |key: &str, value: &str| {
            let done = Command::new("git").args(["config", key, value]).current_dir(folder.path()).status();
            assert!(done.unwrap().success());
        };
        let program = program.to_str().unwrap();
        for key in ["core.fsmonitor", "core.pager", "diff.external", "core.sshCommand"] {
            set(key, program);
        }
        set("core.hooksPath", folder.path().join(".git").to_str().unwrap());
        std::fs::write(folder.path().join("a.txt"), "b\n").unwrap();
        assert!(revision(folder.path()).unwrap().ends_with("-dirty"));
        set("filter.evil.clean", program);
        std::fs::write(folder.path().join(".gitattributes"), "* filter=evil diff=evil\n").unwrap();
        assert!(revision(folder.path()).unwrap().ends_with("-unchecked"));
        assert!(!ran.exists(), "a program of the folder was started");
    }
}
