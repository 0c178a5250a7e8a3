//! Go programs whose source travels with us: built once into the user's cache, and again when the source is another.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What of a module's folder is read to know whether it is another: more than any program of ours has.
const FILES_MAX: usize = 1000;

/// Why a Go program is not there.
#[derive(Debug, thiserror::Error)]
pub enum GoError {
    /// To say after `skipped: needs`.
    #[error("{0}")]
    Needs(String),
    /// All that it needs is there, and it does not compile.
    #[error("it does not compile: {0}")]
    Source(String),
}

/// Builds the program `name` from its one source file and its `go.mod`, unless the cache has it. Modules come through Go's own proxy. Those who
/// want it at the same time build it once.
///
/// # Errors
///
/// What is missing, to say after `skipped: needs`: a Go toolchain, a folder to build in, or a module that the proxy does not have.
pub fn go_program(name: &str, source: &str, module: &str) -> Result<PathBuf, String> {
    let (go, folder) = (go()?, folder(name)?);
    let lock = File::create(folder.join("lock")).map_err(|error| failed(&error))?;
    lock.lock().map_err(|error| failed(&error))?;
    let program = folder.join(name);
    // Go adds to `go.mod`, so what was asked for stands in a file of its own, written when the program is there.
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

/// Builds the program of `package` (such as `./cmd`) of the Go module in `module`, unless the cache has it from the same files. Those who
/// want it at the same time build it once.
///
/// # Errors
///
/// What is missing; or that the module does not compile, which is nobody's machine's fault.
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
    // Fetched by itself, so that a proxy out of reach is told from a mistake in the source.
    let mut fetch = Command::new(&go);
    fetch.args(["mod", "download"]).current_dir(module);
    run(&mut fetch).map_err(|said| GoError::Needs(format!("the Go modules of {name}: {said}")))?;
    // Built beside it and renamed: whoever runs the old one keeps it.
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

/// Where `name` is built.
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

/// Every source file of a module, with its name, in order.
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

/// Runs it to its end; the error is what it said.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| failed(&error))?;
    if output.status.success() {
        return Ok(());
    }
    // Maven says what is wrong on its standard output.
    let said = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    Err(String::from_utf8_lossy(said).trim().to_owned())
}
