//! Making a subject's own clock run faster, by a library that stands between it and the C library.
//!
//! Owns which programs that can reach. What it does to a run is written in `docs/decisions/028`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Object as _, ReadCache, elf};

use super::Launch;

/// Where distributions put it: Debian and Ubuntu, Fedora, Arch. The one for programs with threads.
pub(crate) const LIBRARIES: &[&str] = &[
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
    "/usr/local/lib/faketime/libfaketimeMT.so.1",
];
/// A script whose interpreter is a script whose interpreter …: the kernel follows five.
const INTERPRETERS_MAX: usize = 5;
/// The kernel reads so much of the first line of a script.
const FIRST_LINE_BYTES: u64 = 256;
/// Sections that every program of Go's linker has, also when it was stripped.
const OF_GO: [&str; 2] = [".go.buildinfo", ".note.go.buildid"];
/// A nap by which the library is tried.
const NAP: Duration = Duration::from_secs(2);

/// Why a clock cannot be made faster.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(
        "a faster clock needs libfaketime, which is in none of its usual folders: `apt-get install faketime`, or leave `clockRate` out"
    )]
    NoLibrary,
    #[error("a faster clock needs libfaketime, and {path} does not work here: {why}")]
    Broken { path: PathBuf, why: String },
    #[error(
        "the clock of {program} cannot be made faster: it is linked statically and asks the kernel for the time by itself; {REMEDY}"
    )]
    Static { program: PathBuf },
    #[error(
        "the clock of {program} cannot be made faster: it is written in Go, whose programs ask the kernel for the time by themselves; {REMEDY}"
    )]
    Go { program: PathBuf },
    #[error("the clock of {program} cannot be made faster: {why}; {REMEDY}")]
    Unknown { program: PathBuf, why: String },
}

const REMEDY: &str = "leave `clockRate` out, `compress` alone shortens the server's side";

/// Makes the clock of what is launched run so many times faster; nothing has been started yet.
pub(crate) fn make_faster(launch: &mut Launch, rate: u32) -> Result<(), Error> {
    let path = LIBRARIES.iter().map(Path::new).find(|path| path.is_file()).ok_or(Error::NoLibrary)?;
    reachable(&launch.program, &launch.arguments)?;
    works(path, rate)?;
    launch.environment.extend(variables(path, rate).map(|(name, value)| (name.to_owned(), value)));
    Ok(())
}

/// Children go on from the clock of their parent.
fn variables(library: &Path, rate: u32) -> [(&'static str, String); 3] {
    [
        ("LD_PRELOAD", library.display().to_string()),
        ("FAKETIME", format!("+0 x{rate}")),
        ("FAKETIME_DONT_RESET", "1".to_owned()),
    ]
}

/// Tries it on a nap, which must be over early.
fn works(path: &Path, rate: u32) -> Result<(), Error> {
    let broken = |why: String| Error::Broken { path: path.to_owned(), why };
    let began = Instant::now();
    let mut nap = std::process::Command::new("sleep");
    nap.arg(NAP.as_secs().to_string()).envs(variables(path, rate)).stdin(Stdio::null());
    let output = nap.output().map_err(|error| broken(format!("`sleep` could not be started: {error}")))?;
    if !output.status.success() {
        return Err(broken(format!("`sleep` ended with {}", output.status)));
    }
    match began.elapsed() {
        took if took >= NAP => Err(broken(format!("a nap of {} s took as long", NAP.as_secs()))),
        _ => Ok(()),
    }
}

/// Whether the library comes between a program and the clock; of a script, its interpreter.
fn reachable(program: &Path, arguments: &[String]) -> Result<(), Error> {
    let mut program = found(program.as_os_str()).unwrap_or_else(|| program.to_owned());
    // `env` is what people begin commands with: what counts is the program behind it.
    if program.file_name() == Some(OsStr::new("env"))
        && let Some(named) = behind_env(arguments.iter().map(String::as_str))
    {
        program = found(OsStr::new(named)).unwrap_or_else(|| PathBuf::from(named));
    }
    for _ in 0..INTERPRETERS_MAX {
        match interpreter(&program)? {
            Some(next) => program = next,
            None => return dynamic(&program),
        }
    }
    Err(Error::Unknown { program, why: "it is a script of too many scripts".to_owned() })
}

/// The first word behind `env` that is neither an option nor a variable.
fn behind_env<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    words.find(|word| !word.starts_with('-') && !word.contains('='))
}

/// A program as the system would find it.
fn found(name: &OsStr) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The interpreter of a script; none of what is no script.
fn interpreter(program: &Path) -> Result<Option<PathBuf>, Error> {
    let unknown = |why: String| Error::Unknown { program: program.to_owned(), why };
    let file = File::open(program).map_err(|error| unknown(format!("it cannot be read: {error}")))?;
    let mut first = Vec::new();
    file.take(FIRST_LINE_BYTES).read_to_end(&mut first).map_err(|error| unknown(error.to_string()))?;
    let Some(line) = first.strip_prefix(b"#!") else { return Ok(None) };
    let line = String::from_utf8_lossy(line.split(|byte| *byte == b'\n').next().unwrap_or_default()).into_owned();
    let mut words = line.split_whitespace();
    let named = words.next().ok_or_else(|| unknown("its first line names no interpreter".to_owned()))?;
    if Path::new(named).file_name() == Some(OsStr::new("env"))
        && let Some(behind) = behind_env(words)
    {
        return found(OsStr::new(behind))
            .map(Some)
            .ok_or_else(|| unknown(format!("its interpreter `{behind}` is not in $PATH")));
    }
    Ok(Some(PathBuf::from(named)))
}

/// Whether a program loads shared libraries and asks them for the time.
fn dynamic(program: &Path) -> Result<(), Error> {
    let unknown = |why: String| Error::Unknown { program: program.to_owned(), why };
    let file = File::open(program).map_err(|error| unknown(format!("it cannot be read: {error}")))?;
    let data = ReadCache::new(file);
    let parsed = object::File::parse(&data).map_err(|_| unknown("it is no program of this system".to_owned()))?;
    let object::File::Elf64(parsed) = &parsed else {
        return Err(unknown("it is no program of 64 bits".to_owned()));
    };
    if OF_GO.iter().any(|name| parsed.section_by_name(name).is_some()) {
        return Err(Error::Go { program: program.to_owned() });
    }
    let (endian, header) = (parsed.endian(), parsed.elf_header());
    let segments = header.program_headers(endian, &data).map_err(|error| unknown(error.to_string()))?;
    if segments.iter().any(|segment| segment.p_type(endian) == elf::PT_INTERP) {
        return Ok(());
    }
    Err(Error::Static { program: program.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn launch(program: &str, arguments: &[&str]) -> Launch {
        Launch {
            name: None,
            program: PathBuf::from(program),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            environment: Vec::new(),
            directory: None,
            awaited: None,
        }
    }

    /// Whether there is something to try it with.
    fn is_installed() -> bool {
        let is_there = LIBRARIES.iter().any(|path| Path::new(path).is_file());
        if !is_there {
            println!("skipped: needs faketime");
        }
        is_there
    }

    fn script(text: &str) -> tempfile::TempPath {
        let file = tempfile::Builder::new().suffix(".sh").tempfile().unwrap();
        std::fs::write(file.path(), text).unwrap();
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        file.into_temp_path()
    }

    #[test]
    fn scripts_are_what_their_interpreter_is() {
        for text in ["#!/bin/sh\nexit\n", "#! /usr/bin/env sh\n", "#!/usr/bin/env -S LANG=C sh -e\n"] {
            reachable(&script(text), &[]).unwrap();
        }
        reachable(Path::new("env"), &["A=1".to_owned(), "sh".to_owned()]).unwrap();
        let lost = reachable(&script("#!/usr/bin/env no-such-interpreter\n"), &[]).unwrap_err().to_string();
        assert!(lost.contains("`no-such-interpreter` is not in $PATH"), "{lost}");
        let text = reachable(&script("hello\n"), &[]).unwrap_err().to_string();
        assert!(text.contains("it is no program of this system; leave `clockRate` out"), "{text}");
    }

    /// The smallest program there is: a header and nothing that loads a library.
    #[test]
    fn a_program_without_an_interpreter_is_static() {
        let mut bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        // No program headers at all.
        bytes[56..58].fill(0);
        bytes.truncate(64);
        // No sections either.
        bytes[40..48].fill(0);
        bytes[60..64].fill(0);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let error = reachable(file.path(), &[]).unwrap_err();
        assert!(matches!(error, Error::Static { .. }), "{error}");
        reachable(&std::env::current_exe().unwrap(), &[]).unwrap();
    }

    /// The toolchain is itself written in Go.
    #[test]
    fn programs_of_go_are_refused() {
        let Some(go) = found(OsStr::new("gofmt")) else {
            println!("skipped: needs gofmt");
            return;
        };
        let error = reachable(&go, &[]).unwrap_err();
        assert!(matches!(error, Error::Go { .. }), "{error}");
    }

    #[test]
    fn a_minute_is_over_in_seconds() {
        if !is_installed() {
            return;
        }
        let mut launch = launch("sleep", &["60"]);
        make_faster(&mut launch, 60).unwrap();
        let mut command = std::process::Command::new(&launch.program);
        command.args(&launch.arguments).envs(launch.environment);
        let began = Instant::now();
        assert!(command.status().unwrap().success());
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}
