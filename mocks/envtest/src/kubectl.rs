//! The program named `kubectl`: runs the real kubectl if there is one.
//!
//! Owns the search for the real kubectl. Test kits use kubectl to check that a cluster is up (fabric8 reads the
//! namespace `default`), and suites use it too.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use super::Program;
use super::session::Session;

const PROGRAM: &str = "kubectl";

/// The environment variable with the path that was run as the real kubectl. A second copy of this program that is run
/// by mistake reads the variable and stops.
const CALLED: &str = "LONGHAUL_ENVTEST_KUBECTL";

pub(crate) fn main(arguments: &[String]) -> ExitCode {
    let named = Session::of_environment().ok().and_then(|session| session.kubectl);
    let Some(real) = named.or_else(on_path) else {
        eprintln!("{PROGRAM}: there is no real kubectl to hand over to: put one on PATH");
        return ExitCode::from(69);
    };
    let own = std::env::current_exe().and_then(|own| own.canonicalize()).ok();
    if own.is_some() && std::env::var_os(CALLED).map(PathBuf::from) == own {
        eprintln!("{PROGRAM}: what was found as kubectl is another copy of this program: put a real one first on PATH");
        return ExitCode::from(69);
    }
    let called = real.canonicalize().unwrap_or_else(|_| real.clone());
    let error = Command::new(&real).env(CALLED, called).args(arguments).exec();
    eprintln!("{PROGRAM}: failed to run {}: {error}", real.display());
    ExitCode::FAILURE
}

/// The first `kubectl` in `PATH` that is not this program.
fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(PROGRAM)).find(|file| is_real(file))
}

/// Whether a file is an executable other than this program.
pub(crate) fn is_real(file: &Path) -> bool {
    let (Ok(file), Ok(own)) = (file.canonicalize(), std::env::current_exe().and_then(|own| own.canonicalize())) else {
        return false;
    };
    file != own && Program::called(file.as_os_str()) == Some(Program::Kubectl)
}
