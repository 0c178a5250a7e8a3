//! The targets of a release, and whether this machine can build them. Before anything is built, this module prints
//! missing tools with advice.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail, ensure};

use crate::output_of;

/// A target. All targets are Linux with static linking, so that programs need no libraries of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Target {
    /// 64-bit x86.
    #[value(name = "x86_64-unknown-linux-musl")]
    X86_64,
    /// 64-bit ARM.
    #[value(name = "aarch64-unknown-linux-musl")]
    Aarch64,
}

impl Target {
    pub(crate) const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// The target's name in rustc.
    pub(crate) fn triple(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-musl",
            Self::Aarch64 => "aarch64-unknown-linux-musl",
        }
    }

    /// The CPU's name in rustc and in compilers.
    pub(crate) fn processor(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The CPU's name in images: `GOARCH`.
    pub(crate) fn architecture(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// The CPU's number in ELF files.
    pub(crate) fn machine(self) -> u16 {
        match self {
            Self::X86_64 => 62,
            Self::Aarch64 => 183,
        }
    }

    /// Whether this machine can run programs of the target.
    pub(crate) fn runs_here(self) -> bool {
        std::env::consts::OS == "linux" && std::env::consts::ARCH == self.processor()
    }

    /// The target's name in rustc, as part of an environment variable's name.
    pub(crate) fn variable(self) -> String {
        self.triple().replace('-', "_")
    }
}

/// The tools that build a target on this machine.
#[derive(Debug)]
pub(crate) struct Toolchain {
    pub(crate) target: Target,
    /// The C compiler, which builds cryptography, memory allocator and compression.
    pub(crate) compiler: String,
}

/// The targets that this machine can build. A requested target that cannot be built is an error; for any other target
/// that cannot be built a message is printed.
pub(crate) fn usable(asked: &[Target]) -> Result<Vec<Toolchain>> {
    if !program_works("make", &["--version"]) {
        bail!("needs `make`, for the allocator: apt-get install make");
    }
    let mut found = Vec::new();
    for target in Target::ALL.into_iter().filter(|target| asked.is_empty() || asked.contains(target)) {
        match toolchain(target) {
            Ok(toolchain) => found.push(toolchain),
            Err(missing) if asked.is_empty() => println!("dist: {}: skipped: needs {missing}", target.triple()),
            Err(missing) => bail!("{}: needs {missing}", target.triple()),
        }
    }
    ensure!(!found.is_empty(), "no target can be built here");
    ensure!(
        found.iter().any(|toolchain| toolchain.target.runs_here()),
        "completions and man pages are written by the programs, so one target must run here: add --target {}",
        Target::ALL.iter().find(|target| target.runs_here()).map_or("one on Linux", |target| target.triple())
    );
    Ok(found)
}

/// The tools for a target, or a message about the missing tool.
fn toolchain(target: Target) -> Result<Toolchain, String> {
    let triple = target.triple();
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let library = output_of(Command::new(rustc).args(["--print=target-libdir", "--target", triple]));
    if !library.is_ok_and(|folder| Path::new(folder.trim()).is_dir()) {
        return Err(format!("Rust's library for it: rustup target add {triple}"));
    }
    let variable = format!("CC_{}", target.variable());
    if let Ok(named) = std::env::var(&variable) {
        return if compiles(&named) {
            Ok(Toolchain { target, compiler: named })
        } else {
            Err(format!("a C compiler, and {variable}={named} builds no static program"))
        };
    }
    let mut candidates = vec![format!("{}-linux-musl-gcc", target.processor())];
    if target.runs_here() {
        candidates.push("musl-gcc".to_owned());
    }
    let remedy = if target.runs_here() { "apt-get install musl-tools, or " } else { "" };
    match candidates.iter().find(|compiler| compiles(compiler)) {
        Some(compiler) => Ok(Toolchain { target, compiler: compiler.clone() }),
        None => Err(format!(
            "a C compiler for it: {remedy}a cross compiler named {}, or any in {variable} (docs/decisions/024)",
            candidates[0]
        )),
    }
}

/// Whether a C compiler can make a static program with the headers of the C library.
fn compiles(compiler: &str) -> bool {
    let Ok(folder) = tempfile::tempdir() else { return false };
    let mut command = Command::new(compiler);
    command.args(["-static", "-x", "c", "-", "-o"]).arg(folder.path().join("program"));
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(mut child) = child else { return false };
    if let Some(mut source) = child.stdin.take() {
        // A compiler that does not read it fails by itself.
        let _ =
            source.write_all(b"#include <pthread.h>\n#include <stdio.h>\nint main(void) { return puts(\"\") < 0; }\n");
    }
    child.wait().is_ok_and(|status| status.success())
}

fn program_works(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
