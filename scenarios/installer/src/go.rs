//! Go programs whose source travels with us: built once into the user's cache, and again when the source is another.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Builds the program `name` from its one source file and its `go.mod`, unless the cache has it. Modules come through Go's own proxy.
///
/// # Errors
///
/// What is missing, to say after `skipped: needs`: a Go toolchain, a folder to build in, or a module that the proxy does not have.
pub fn go_program(name: &str, source: &str, module: &str) -> Result<PathBuf, String> {
    let go = crate::on_path("go").ok_or("a Go toolchain")?;
    let folder = crate::cache().map_err(|missing| missing.to_string())?.join("go").join(name);
    let failed = |error: std::io::Error| format!("a folder to build in ({error})");
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let program = folder.join(name);
    // Go adds to `go.mod`, so what was asked for stands in a file of its own, written when the program is there.
    let (stamp, asked) = (folder.join("built-from"), format!("{module}\n{source}"));
    if std::fs::read_to_string(&stamp).is_ok_and(|text| text == asked) && program.is_file() {
        return Ok(program);
    }
    println!("building {name} with Go, some minutes the first time …");
    std::fs::write(folder.join("main.go"), source).map_err(failed)?;
    std::fs::write(folder.join("go.mod"), module).map_err(failed)?;
    let mut command = Command::new(go);
    command.args(["build", "-mod=mod", "-buildvcs=false", "-o"]).arg(&program).arg(".").current_dir(&folder);
    let output = command.stdin(Stdio::null()).output().map_err(failed)?;
    if output.status.success() {
        std::fs::write(&stamp, asked).map_err(failed)?;
        return Ok(program);
    }
    Err(format!("a Go toolchain that builds it: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
