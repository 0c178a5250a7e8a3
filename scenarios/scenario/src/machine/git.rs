//! The git revision of the folder in which the harness was started.
//!
//! The folder may be a stranger's, and its configuration names programs that git starts by itself: a file system
//! monitor, hooks, filters, a pager. This module ensures that none of them runs, that nothing is fetched or written,
//! and that git has a time limit.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// Time limit: enough to compare a large checkout on a slow disk. After it the revision is left out of the record.
const LIMIT: Duration = Duration::from_secs(10);
/// Longest output: a name, or a list of settings.
const OUTPUT_BYTES_MAX: u64 = 64 << 10;
/// Settings against programs and network access. The command line takes precedence over every configuration file, the
/// folder's own included.
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
/// Lists filters, which convert files for a comparison with programs that the configuration names.
const FILTERS: [&str; 5] = ["config", "--show-scope", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process)$"];
/// Scopes whose settings are the user's own.
const TRUSTED: [&str; 2] = ["system\t", "global\t"];
/// The comparison. Submodules are left out, because they have their own configurations.
const COMPARE: [&str; 6] = ["diff", "--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "HEAD"];

/// The checked-out revision of a folder. The suffix `-dirty` means that files differ. The suffix `-unchecked` means
/// that the check needs a program that the folder itself names.
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

/// The exit code and the output; `None` if git is missing or took too long.
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

    /// A checkout with one commit; `None` if git is missing.
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

    /// Programs that a stranger's folder names are not started, and the record marks the missing check.
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
