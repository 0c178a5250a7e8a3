//! `cargo xtask seed`: builds the injected program as in a release, and checks its size.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cargo;

/// Maximum size of the injected program in bytes. The injected program is sent in a `ConfigMap`, which has at most 1
/// MiB, and must have room to grow.
const BYTES_MAX: u64 = 900 << 10;
/// The Cargo profile of the injected program, which is optimized for size (Cargo.toml).
const PROFILE: &str = "seed";
/// The build target for this machine. The injected program is built for other targets by hand with `--target`, without
/// a C compiler.
const TARGET: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-musl" } else { "x86_64-unknown-linux-musl" };

pub(crate) fn seed() -> Result<ExitCode> {
    let (path, bytes) = built()?;
    println!("{}: {bytes} bytes of {BYTES_MAX}", path.display());
    Ok(ExitCode::SUCCESS)
}

/// Builds and checks the injected program; returns its path and its size in bytes.
pub(crate) fn built() -> Result<(PathBuf, u64)> {
    ensure!(can_build(), "needs Rust's library for {TARGET}: rustup target add {TARGET}");
    let path = build()?;
    let bytes = check(&path)?;
    Ok((path, bytes))
}

/// Builds and checks the injected program for the tests, if this machine can build it. If this machine cannot build the
/// program, prints a message.
pub(crate) fn for_tests() -> Result<()> {
    if can_build() {
        // The one with bugs travels in a ConfigMap too.
        let planted = ["--bin=longhaul-seed-planted", "--features=planted-bugs"];
        cargo::run(compile().args(planted))?;
        return check(&build()?).map(drop);
    }
    eprintln!("test: the seed as it is shipped: skipped: needs {TARGET} (rustup target add {TARGET})");
    Ok(())
}

fn compile() -> Command {
    let mut command = cargo::cargo();
    command.args(["build", "--profile", PROFILE, "--target", TARGET, "--package=service-seed"]);
    command
}

fn build() -> Result<PathBuf> {
    cargo::run(compile().arg("--bin=longhaul-seed"))?;
    Ok(cargo::target().join(TARGET).join(PROFILE).join("longhaul-seed"))
}

/// The size of the injected program in bytes. An error if the injected program is too large or needs libraries of the
/// machine that runs it.
fn check(path: &Path) -> Result<u64> {
    let program = std::fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
    let bytes = program.len() as u64;
    ensure!(bytes <= BYTES_MAX, "the seed has {bytes} bytes, and {BYTES_MAX} are the most");
    // A dynamic program names its loader.
    let loader = program.windows(8).any(|part| part == b"/ld-musl" || part == b"ld-linux");
    ensure!(!loader, "the seed is not static: it names a loader");
    Ok(bytes)
}

fn can_build() -> bool {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let output = rustc.args(["--print=target-libdir", "--target", TARGET]).stderr(Stdio::null()).output();
    output.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}
