//! Builds the programs of a target, checks them, and makes their completions and man pages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::archive::Entry;
use crate::target::{Target, Toolchain};
use crate::{FEATURE, PROGRAMS, SEED, SEED_PACKAGE, SUITE, SUITE_PACKAGE, cargo, elf, output_of, read, root};

/// The separator of flags in `CARGO_ENCODED_RUSTFLAGS`.
const FLAGS_SEPARATOR: &str = "\x1f";
/// Shells, each with the prefix and suffix of the file names under which it searches for completions.
const SHELLS: [(&str, &str, &str); 3] = [("bash", "", ".bash"), ("zsh", "_", ""), ("fish", "", ".fish")];

/// Maximum size of a released program in bytes; every CI pipeline downloads these programs.
const BYTES_MAX: usize = 40_000_000;
/// Flags with which the linker makes programs smaller. It stores addresses that the start of a program corrects in two
/// bytes instead of 24, and functions with equal code once.
const LINKER_FLAGS: [&str; 3] = ["-Clink-arg=-z", "-Clink-arg=pack-relative-relocs", "-Clink-arg=--icf=all"];
/// The Cargo profile of the injected program, which is optimized for size (Cargo.toml).
const SEED_PROFILE: &str = "seed";

/// Completions and man pages, by the name of the program.
pub(crate) type Texts = BTreeMap<&'static str, Vec<Entry>>;

/// The commit that is released.
#[derive(Debug)]
pub(crate) struct Release {
    pub(crate) version: &'static str,
    /// The revision of the commit, with `-dirty` if files of the checkout differ from the commit.
    pub(crate) revision: String,
    /// The time of all files in archives, in seconds since 1970.
    pub(crate) seconds: u64,
}

impl Release {
    /// Reads the checked-out commit. `SOURCE_DATE_EPOCH` overrides the time of the commit (reproducible-builds.org).
    pub(crate) fn of_this_commit() -> Result<Self> {
        let git = |arguments: &[&str]| output_of(Command::new("git").current_dir(root()).args(arguments));
        let mut revision = git(&["rev-parse", "HEAD"])?.trim().to_owned();
        if !git(&["status", "--porcelain"])?.is_empty() {
            revision.push_str("-dirty");
        }
        let seconds = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(named) => named,
            Err(_) => git(&["log", "-1", "--format=%ct"])?,
        };
        let seconds = seconds.trim().parse().with_context(|| format!("not a time in seconds: {seconds}"))?;
        Ok(Self { version: env!("CARGO_PKG_VERSION"), revision, seconds })
    }
}

/// Builds all programs of a target and returns their folder.
pub(crate) fn programs(toolchain: &Toolchain, release: &Release) -> Result<PathBuf> {
    let target = toolchain.target;
    let packages = PROGRAMS.iter().map(|program| format!("--package={}", program.package));
    let mut command = cargo();
    command.args(["build", "--release", "--bins", "--locked", "--target", target.triple()]).args(packages);
    let features = PROGRAMS.iter().map(|program| format!("--features={}/{FEATURE}", program.package));
    command.args(features);
    settings(&mut command, toolchain, release)?;
    println!("dist: {}: building, which takes minutes the first time", target.triple());
    let status = command.status().context("failed to start cargo")?;
    ensure!(status.success(), "the build for {} failed ({status})", target.triple());
    let built = target_folder().join(target.triple()).join("release");
    let folder = built.join("stripped");
    std::fs::create_dir_all(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
    for program in &PROGRAMS {
        let path = folder.join(program.name);
        strip(&built.join(program.name), &path)?;
        let bytes = read(&path)?;
        elf::check(&bytes, target.machine()).with_context(|| path.display().to_string())?;
        ensure!(bytes.len() <= BYTES_MAX, "{} has {} bytes, more than {BYTES_MAX}", path.display(), bytes.len());
    }
    seed(toolchain, release, &folder)?;
    suite(toolchain, release, &folder)?;
    Ok(folder)
}

/// Builds the injected program into `folder`, with a Cargo profile of its own, as `cargo xtask seed` does.
fn seed(toolchain: &Toolchain, release: &Release, folder: &Path) -> Result<()> {
    let target = toolchain.target;
    let mut command = cargo();
    command.args(["build", "--profile", SEED_PROFILE, "--locked", "--target", target.triple()]);
    command.args(["--package", SEED_PACKAGE, "--bin", SEED]);
    settings(&mut command, toolchain, release)?;
    let status = command.status().context("failed to start cargo")?;
    ensure!(status.success(), "the build of the seed for {} failed ({status})", target.triple());
    let path = folder.join(SEED);
    strip(&target_folder().join(target.triple()).join(SEED_PROFILE).join(SEED), &path)?;
    elf::check(&read(&path)?, target.machine()).with_context(|| path.display().to_string())
}

/// Builds `longhaul-envtest`, the program of the archive for test suites, into `folder`. `longhaul-envtest` is built
/// without Cargo features.
fn suite(toolchain: &Toolchain, release: &Release, folder: &Path) -> Result<()> {
    let target = toolchain.target;
    let mut command = cargo();
    command.args(["build", "--release", "--locked", "--target", target.triple()]);
    command.args(["--package", SUITE_PACKAGE, "--bin", SUITE]);
    settings(&mut command, toolchain, release)?;
    let status = command.status().context("failed to start cargo")?;
    ensure!(status.success(), "the build of {} for {} failed ({status})", SUITE, target.triple());
    let path = folder.join(SUITE);
    strip(&target_folder().join(target.triple()).join("release").join(SUITE), &path)?;
    elf::check(&read(&path)?, target.machine()).with_context(|| path.display().to_string())
}

/// Copies a program without its symbols, by rustc's own tool, which handles programs for any CPU. Cargo's `strip`
/// setting has no effect on a package that has its own settings in the profile.
fn strip(from: &Path, to: &Path) -> Result<()> {
    let mut command = stripper()?;
    command.arg("--strip-all").args([from, to]);
    output_of(&mut command).map(drop).context("failed to strip a program")
}

/// Finds rustc's tool that removes symbols. The search comes before the build, because the build needs the tool only
/// after nine minutes.
pub(crate) fn stripper() -> Result<Command> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let sysroot = PathBuf::from(output_of(Command::new(&rustc).arg("--print=sysroot"))?.trim());
    let version = output_of(Command::new(&rustc).arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("`rustc -vV` names no host")?;
    let path = sysroot.join("lib/rustlib").join(host).join("bin/rust-objcopy");
    ensure!(
        path.is_file(),
        "needs rustc's own rust-objcopy, which is not at {}: take the toolchain of rustup",
        path.display()
    );
    let mut command = Command::new(path);
    // The tool is linked with the compiler's own copy of LLVM.
    command.env("LD_LIBRARY_PATH", sysroot.join("lib"));
    Ok(command)
}

/// Sets the release profile without debug information, and keeps paths of this machine out of the built programs.
fn settings(command: &mut Command, toolchain: &Toolchain, release: &Release) -> Result<()> {
    let target = toolchain.target;
    let home = match std::env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => std::env::home_dir().context("there is no home folder")?.join(".cargo"),
    };
    // The longest prefix must come last: rustc takes the last mapping that fits.
    let folders = [(root(), "/longhaul"), (target_folder(), "/target"), (home.join("registry/src"), "/cargo")];
    let paths = folders.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    let flags = paths.chain(LINKER_FLAGS.map(str::to_owned));
    let c_flags = folders.iter().map(|(from, to)| format!("-ffile-prefix-map={}={to}", from.display()));
    command
        .env("CARGO_ENCODED_RUSTFLAGS", flags.collect::<Vec<_>>().join(FLAGS_SEPARATOR))
        .env(format!("CFLAGS_{}", target.variable()), c_flags.collect::<Vec<_>>().join(" "))
        .env(format!("CC_{}", target.variable()), &toolchain.compiler)
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
        .env("LONGHAUL_REVISION", &release.revision)
        .env("SOURCE_DATE_EPOCH", release.seconds.to_string());
    if target == Target::Aarch64 {
        // Kernels for ARM have pages of 4, 16 or 64 KiB; an allocator made for the largest works on all of them.
        command.env("JEMALLOC_SYS_WITH_LG_PAGE", "16");
    }
    // Rust brings the C library and a linker for every processor.
    command.env(format!("CARGO_TARGET_{}_LINKER", target.variable().to_uppercase()), "rust-lld");
    Ok(())
}

/// The folder of Cargo's output.
fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// The completions and man pages that the built programs print.
pub(crate) fn texts(built: &[(Target, PathBuf)]) -> Result<Texts> {
    let (_, folder) = built.iter().find(|(target, _)| target.runs_here()).context("no program runs here")?;
    PROGRAMS.iter().map(|program| Ok((program.name, texts_of(program.name, &folder.join(program.name))?))).collect()
}

fn texts_of(name: &str, program: &Path) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for (shell, before, after) in SHELLS {
        let script = output_of(Command::new(program).args(["completions", shell]))?;
        entries.push(Entry::file(&format!("completions/{before}{name}{after}"), script.into_bytes()));
    }
    let pages = tempfile::tempdir()?;
    output_of(Command::new(program).arg("man").arg(pages.path()))?;
    for page in pages.path().read_dir()? {
        let page = page?;
        entries.push(Entry::file(&format!("man/man1/{}", page.file_name().to_string_lossy()), read(&page.path())?));
    }
    let help = output_of(Command::new(program).arg("--help"))?;
    for command in commands(&help) {
        let page = format!("man/man1/{name}-{command}.1");
        ensure!(entries.iter().any(|entry| entry.path == page), "{name} wrote no man page for `{command}`");
        for (shell, script) in SHELLS.iter().map(|(shell, ..)| shell).zip(&entries) {
            let text = String::from_utf8_lossy(script.bytes.as_deref().unwrap_or_default());
            ensure!(text.contains(command), "the completions of {name} for {shell} do not know `{command}`");
        }
    }
    Ok(entries)
}

/// The names of the commands in a help text.
fn commands(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // The next line of a description is indented further.
    let names = lines.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    names.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_from_a_help() {
        let help = "Says what.\n\nUsage: x <COMMAND>\n\nCommands:\n  soak   Run a scenario and\n         judge it\n  check  Check\n  help   Print\n\nOptions:\n  -h\n";
        assert_eq!(commands(help), ["soak", "check"]);
    }
}
