//! Makes bills of materials in `CycloneDX` format, by `CycloneDX`'s own tool for Cargo.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::build::Release;
use crate::target::Target;
use crate::{FEATURE, PROGRAMS, cargo, output_of, read, root};

/// The command that installs the tested version of the tool; its output differs between versions.
const INSTALL: &str = "cargo install --locked cargo-cyclonedx --version 0.5.9";
/// The name of the output files of `cargo-cyclonedx`.
const NAME: &str = "bill";

/// Fails with advice if the tool `cargo-cyclonedx` is missing.
pub(crate) fn tool() -> Result<()> {
    if output_of(cargo().args(["cyclonedx", "--version"])).is_err() {
        bail!("needs cargo-cyclonedx, for the bill of materials: {INSTALL}");
    }
    Ok(())
}

/// The bill of materials of each released package.
pub(crate) fn bills(target: Target, release: &Release) -> Result<BTreeMap<&'static str, Vec<u8>>> {
    // The tool writes a file beside the manifest of every package, so it gets a workspace of its own.
    let folder = tempfile::tempdir()?;
    copy(folder.path())?;
    let mut command = cargo();
    command.args(["cyclonedx", "--format=json", "--spec-version=1.5", "--no-build-deps"]);
    command.args(["--override-filename", NAME, "--target", target.triple(), "--manifest-path"]);
    let features = PROGRAMS.iter().map(|program| format!("{}/{FEATURE}", program.package)).collect::<Vec<_>>();
    command.arg(folder.path().join("Cargo.toml")).args(["--features", &features.join(",")]).current_dir(folder.path());
    output_of(command.env("SOURCE_DATE_EPOCH", release.seconds.to_string()))?;
    let here = folder.path().display().to_string();
    let bill = |package: &str| -> Result<Vec<u8>> {
        let text = String::from_utf8(read(&folder.path().join(package).join(format!("{NAME}.json")))?)?;
        Ok(text.replace(&here, "/longhaul").into_bytes())
    };
    PROGRAMS.iter().map(|program| Ok((program.package, bill(program.package)?))).collect()
}

/// Copies all files that git tracks.
fn copy(into: &Path) -> Result<()> {
    let list = output_of(Command::new("git").current_dir(root()).args(["ls-files", "-z"]))?;
    for name in list.split_terminator('\0') {
        let (from, to) = (root().join(name), into.join(name));
        if !from.is_file() {
            continue;
        }
        let parent = to.parent().context("a file without a folder")?;
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::copy(&from, &to))
            .with_context(|| format!("failed to copy {name}"))?;
    }
    Ok(())
}
