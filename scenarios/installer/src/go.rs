//! Builds Go programs from source that is shipped with Longhaul, into the user's cache folder; builds again only if the
//! source changes.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Maximum number of files in a module's folder that are read to detect a change. Longhaul's own Go programs have fewer
/// files.
const FILES_MAX: usize = 1000;

/// The reason why a Go program could not be built.
#[derive(Debug, thiserror::Error)]
pub enum GoError {
    /// A requirement of the build is missing. The text of a missing requirement follows the words `skipped: needs` in a
    /// message.
    #[error("{0}")]
    Needs(String),
    /// The requirements are met, but the source does not compile.
    #[error("it does not compile: {0}")]
    Source(String),
}

/// Builds the program `name` from one source file and its `go.mod`, unless the cache has it. Go downloads the modules
/// through Go's module proxy. Simultaneous callers share one build.
///
/// # Errors
///
/// The error is a missing requirement, as text that continues `skipped: needs`: a Go toolchain, a folder for the build,
/// or a module that the proxy does not have.
pub fn go_program(name: &str, source: &str, module: &str) -> Result<PathBuf, String> {
    let (go, folder) = (go()?, folder(name)?);
    let lock = File::create(folder.join("lock")).map_err(|error| failed(&error))?;
    lock.lock().map_err(|error| failed(&error))?;
    let program = folder.join(name);
    // Go adds to `go.mod`, so the original text stands in a separate file, written when the program is there.
    let (stamp, asked) = (folder.join("built-from"), format!("{module}\n{source}"));
    if is_built(&program, &stamp, &asked) {
        return Ok(program);
    }
    println!("building {name} with Go, some minutes the first time …");
    std::fs::write(folder.join("main.go"), source).map_err(|error| failed(&error))?;
    std::fs::write(folder.join("go.mod"), module).map_err(|error| failed(&error))?;
    let mut command = Command::new(go);
    command.args(["build", "-mod=mod", "-buildvcs=false", "-o"]).arg(&program).arg(".").current_dir(&folder);
    run(&mut command).map_err(|said| format!("a Go toolchain that builds it: {said}"))?;
    std::fs::write(&stamp, asked).map_err(|error| failed(&error))?;
    Ok(program)
}

/// Builds the program of `package` (such as `./cmd`) of the Go module in the folder `module`. If the cache has a build
/// of the same files, uses that build. Simultaneous callers share one build.
///
/// # Errors
///
/// The error is a missing requirement, or a compile error, which is the fault of the source and not of the machine.
pub fn go_module(name: &str, module: &Path, package: &str) -> Result<PathBuf, GoError> {
    let needs = GoError::Needs;
    let (go, folder) = (go().map_err(needs)?, folder(name).map_err(needs)?);
    let cannot = |error: std::io::Error| GoError::Needs(failed(&error));
    let asked = sources(module).map_err(cannot)?;
    let lock = File::create(folder.join("lock")).map_err(cannot)?;
    lock.lock().map_err(cannot)?;
    let (program, stamp) = (folder.join(name), folder.join("built-from"));
    if is_built(&program, &stamp, &asked) {
        return Ok(program);
    }
    println!("building {name} with Go, some minutes the first time …");
    // Modules are downloaded in a separate step, to distinguish an unreachable proxy from a mistake in the source.
    let mut fetch = Command::new(&go);
    fetch.args(["mod", "download"]).current_dir(module);
    run(&mut fetch).map_err(|said| GoError::Needs(format!("the Go modules of {name}: {said}")))?;
    // Built beside the old one and renamed, so that a running old one stays intact.
    let fresh = folder.join("fresh");
    let mut build = Command::new(go);
    build.args(["build", "-mod=readonly", "-buildvcs=false", "-o"]).arg(&fresh).arg(package).current_dir(module);
    run(&mut build).map_err(GoError::Source)?;
    std::fs::rename(&fresh, &program).map_err(cannot)?;
    std::fs::write(&stamp, asked).map_err(cannot)?;
    Ok(program)
}

fn go() -> Result<PathBuf, String> {
    crate::on_path("go").ok_or_else(|| "a Go toolchain".to_owned())
}

/// The cache folder in which the Go program `name` is built.
fn folder(name: &str) -> Result<PathBuf, String> {
    let folder = crate::cache().map_err(|missing| missing.to_string())?.join("go").join(name);
    std::fs::create_dir_all(&folder).map_err(|error| failed(&error))?;
    Ok(folder)
}

pub(crate) fn failed(error: &std::io::Error) -> String {
    format!("a folder to build in ({error})")
}

pub(crate) fn is_built(program: &Path, stamp: &Path, asked: &str) -> bool {
    std::fs::read_to_string(stamp).is_ok_and(|text| text == asked) && program.is_file()
}

/// The names and texts of all source files of a module, in order of their names.
fn sources(module: &Path) -> std::io::Result<String> {
    let (mut folders, mut files) = (vec![module.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let (entry, path) = entry.map(|entry| (entry.file_type(), entry.path()))?;
            let is_source = path.extension().is_some_and(|ending| ["go", "mod", "sum"].iter().any(|of| ending == *of));
            match entry? {
                kind if kind.is_dir() => folders.push(path),
                kind if kind.is_file() && is_source => files.push(path),
                _ => {}
            }
        }
        if files.len() > FILES_MAX {
            return Err(std::io::Error::other(format!("{} has more than {FILES_MAX} files", module.display())));
        }
    }
    files.sort();
    let mut text = String::new();
    for file in files {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "// {}\n{}", file.display(), std::fs::read_to_string(&file)?);
    }
    Ok(text)
}

/// Runs a command to its end. If the command fails, the error is the command's output.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| failed(&error))?;
    if output.status.success() {
        return Ok(());
    }
    // Maven prints errors on its standard output.
    let said = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    Err(String::from_utf8_lossy(said).trim().to_owned())
}
