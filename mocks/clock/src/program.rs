//! Checks whether a program can run under another clock; the error says why not.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// `SUID` and `SGID` of a file's mode.
const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2010;
/// Number of bytes of a script's first line that the kernel reads.
const FIRST_LINE_BYTES: u64 = 256;
/// Number of nested script interpreters that the kernel follows.
const INTERPRETERS_MAX: usize = 5;

/// The reasons why a program cannot run under another clock.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the program {} is not there: check its path, or `$PATH`", .0.display())]
    Missing(PathBuf),
    #[error("the program {} cannot be started: {source}", program.display())]
    Unreadable { program: PathBuf, source: std::io::Error },
    #[error("the program {} needs the interpreter {}, which is not there", program.display(), interpreter.display())]
    NoInterpreter { program: PathBuf, interpreter: PathBuf },
    #[error("{} is a program of 32 bits, whose clock cannot be made faster: build it for 64 bits", .0.display())]
    Narrow(PathBuf),
    #[error("{} is a program for another processor", .0.display())]
    Foreign(PathBuf),
    #[error(
        "{} is a set-user-id program, which the kernel does not let be watched: start what it starts, as that user",
        .0.display()
    )]
    SetUser(PathBuf),
    #[error(
        "{} has capabilities of its own (`getcap`), which the kernel does not give to what is watched: start it as root, or take them off \
         (`setcap -r`) and do without what they allow",
        .0.display()
    )]
    Capable(PathBuf),
}

/// The file that a shell starts under this name.
pub fn find(name: &OsStr) -> Result<PathBuf, Error> {
    let missing = || Error::Missing(PathBuf::from(name));
    if name.as_encoded_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return if path.exists() { Ok(path) } else { Err(missing()) };
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let is_program = |path: &PathBuf| path.metadata().is_ok_and(|file| file.is_file() && file.mode() & 0o111 != 0);
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(is_program).ok_or_else(missing)
}

/// Checks that a program, and the interpreter of a script, can run under another clock.
pub fn check(name: &OsStr) -> Result<(), Error> {
    let mut program = find(name)?;
    for _ in 0..=INTERPRETERS_MAX {
        let unreadable = |source| Error::Unreadable { program: program.clone(), source };
        let file = File::open(&program).map_err(unreadable)?;
        if is_set_user(&file.metadata().map_err(unreadable)?) {
            return Err(Error::SetUser(program));
        }
        if is_capable(&program) && !rustix::process::geteuid().is_root() {
            return Err(Error::Capable(program));
        }
        let mut first = Vec::new();
        file.take(FIRST_LINE_BYTES).read_to_end(&mut first).map_err(unreadable)?;
        let Some(line) = first.strip_prefix(b"#!") else { return is_of_this_machine(program, &first) };
        let line = String::from_utf8_lossy(line.split(|byte| *byte == b'\n').next().unwrap_or_default());
        let interpreter = PathBuf::from(line.split_whitespace().next().unwrap_or_default());
        if !interpreter.is_file() {
            return Err(Error::NoInterpreter { program, interpreter });
        }
        program = interpreter;
    }
    Ok(())
}

/// Whether a file runs as another user than its starter (set-user-id or set-group-id).
pub fn is_set_user(file: &std::fs::Metadata) -> bool {
    file.mode() & SET_USER != 0 || file.mode() & SET_GROUP == SET_GROUP
}

/// Whether a program file has capabilities, which the kernel ignores without an error under a filter of system calls.
fn is_capable(path: &Path) -> bool {
    // The largest form of the attribute (`struct vfs_ns_cap_data`).
    let mut value = [0_u8; 24];
    rustix::fs::getxattr(path, "security.capability", &mut value).is_ok_and(|bytes| bytes > 0)
}

/// Refuses an ELF file for another CPU type. All other files pass, because a shell may run them as scripts.
fn is_of_this_machine(program: PathBuf, first: &[u8]) -> Result<(), Error> {
    let machine = if cfg!(target_arch = "aarch64") { object::elf::EM_AARCH64 } else { object::elf::EM_X86_64 };
    match first {
        [0x7f, b'E', b'L', b'F', 1, ..] => Err(Error::Narrow(program)),
        [0x7f, b'E', b'L', b'F', 2, ..] if first.get(18..20) != Some(&machine.to_le_bytes()) => {
            Err(Error::Foreign(program))
        }
        _ => Ok(()),
    }
}

/// The path of a process's program, as the kernel names it.
pub fn of_process(pid: i32) -> PathBuf {
    std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_else(|_| Path::new("a program").to_owned())
}

/// The reason to refuse a program that a traced process has just started to run.
pub fn refusal(pid: i32, is_narrow: bool) -> Option<Error> {
    if is_narrow {
        return Some(Error::Narrow(of_process(pid)));
    }
    let file = std::fs::metadata(format!("/proc/{pid}/exe")).ok()?;
    is_set_user(&file).then(|| Error::SetUser(of_process(pid)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn file(bytes: &[u8], mode: u32) -> tempfile::TempPath {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        file.into_temp_path()
    }

    fn outcome(bytes: &[u8], mode: u32) -> String {
        let file = file(bytes, mode);
        check(file.as_os_str()).map_or_else(|error| error.to_string(), |()| "taken".to_owned())
    }

    #[test]
    fn capabilities_of_a_file_are_seen() {
        let file = file(b"\x7fELF\x02\x01\x01", 0o755);
        assert!(!is_capable(&file));
        // `cap_net_bind_service+ep`, version 2 (linux/capability.h).
        let value = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        if rustix::fs::setxattr(&*file, "security.capability", &value, rustix::fs::XattrFlags::empty()).is_err() {
            return println!("skipped: needs the right to give capabilities to a file");
        }
        assert!(is_capable(&file));
    }

    #[test]
    fn programs_are_refused_by_name() {
        check(OsStr::new("sh")).unwrap();
        assert_eq!(outcome(b"#!/bin/sh\n", 0o755), "taken");
        assert_eq!(outcome(b"echo without a first line\n", 0o755), "taken");
        assert!(
            outcome(b"#!/no/such/thing -x\n", 0o755)
                .ends_with("needs the interpreter /no/such/thing, which is not there")
        );
        assert!(outcome(b"\x7fELF\x01\x01\x01", 0o755).contains("is a program of 32 bits"));
        assert!(outcome(b"\x7fELF\x02\x01\x01", 0o755).contains("is a program for another processor"));
        assert!(outcome(b"#!/bin/sh\n", 0o4755).contains("is a set-user-id program"));
        let missing = check(OsStr::new("no-such-program")).unwrap_err().to_string();
        assert!(missing.starts_with("the program no-such-program is not there"), "{missing}");
    }
}
