//! `cargo xtask gate`: builds the service of another revision and of this one alike, and has `longhaul gate` compare them.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use crate::{cargo, soak};

/// As the service is shipped.
const BUILD: [&str; 5] = ["build", "--release", "--package=service", "--bin=longhaul-service", "--quiet"];
const PROGRAM: &str = "longhaul-service";

/// Arguments of `cargo xtask gate`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What this working tree is compared with: a revision of git (`main`, `v1.2`, `HEAD~3`), or a program.
    #[arg(long, value_name = "REF|PROGRAM")]
    baseline: String,
    /// Further arguments of `longhaul gate`, such as `--quick`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds both and compares.
pub(crate) fn gate(arguments: &Arguments) -> Result<ExitCode> {
    let a = if Path::new(&arguments.baseline).is_file() {
        std::path::absolute(&arguments.baseline)?
    } else {
        baseline(&arguments.baseline)?
    };
    cargo::run(cargo::cargo().args(BUILD))?;
    let b = cargo::target().join("release").join(PROGRAM);
    let sides = ["--a", &a.display().to_string(), "--b", &b.display().to_string()].map(str::to_owned);
    soak::longhaul(&[vec!["gate".to_owned()], sides.to_vec(), arguments.arguments.clone()].concat())
}

/// The service of a revision. What was built of it once is taken again.
fn baseline(reference: &str) -> Result<PathBuf> {
    let commit = commit(reference)?;
    let folder = cargo::target().join("gate");
    let program = folder.join("programs").join(&commit).join(PROGRAM);
    if program.is_file() {
        return Ok(program);
    }
    let tree = folder.join("trees").join(&commit);
    if !tree.join("Cargo.toml").is_file() {
        let mut add = Command::new("git");
        add.current_dir(cargo::root()).args(["worktree", "add", "--force", "--detach"]).arg(&tree).arg(&commit);
        cargo::run(&mut add)?;
    }
    // One folder for all revisions: most of what they stand on is the same.
    let target = folder.join("target");
    let built = cargo::run(cargo::cargo().current_dir(&tree).env("CARGO_TARGET_DIR", &target).args(BUILD));
    let mut remove = Command::new("git");
    remove.current_dir(cargo::root()).args(["worktree", "remove", "--force"]).arg(&tree);
    // A tree that stays is only in the way of the next one of the same revision, and is taken again there.
    let _ = remove.status();
    built?;
    std::fs::create_dir_all(program.parent().unwrap_or(&folder))?;
    let from = target.join("release").join(PROGRAM);
    std::fs::copy(&from, &program).with_context(|| format!("failed to keep {}", from.display()))?;
    Ok(program)
}

/// The commit that a reference names.
fn commit(reference: &str) -> Result<String> {
    ensure!(!reference.starts_with('-'), "--baseline {reference}: write a revision of git or the path of a program");
    let mut parse = Command::new("git");
    parse.current_dir(cargo::root()).args(["rev-parse", "--verify", "--quiet", "--end-of-options"]);
    let output = parse.arg(format!("{reference}^{{commit}}")).output().context("failed to start git")?;
    let commit = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !output.status.success() || commit.is_empty() {
        bail!(
            "--baseline {reference}: there is no such program, and no such revision of git; in a shallow clone fetch it first"
        );
    }
    Ok(commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_revision_is_refused_with_a_remedy() {
        if Command::new("git").arg("--version").output().is_err() {
            println!("skipped: needs git");
            return;
        }
        let error = commit("no-such-branch-anywhere").unwrap_err().to_string();
        assert!(error.contains("no such revision of git"), "{error}");
        assert!(commit("--upload-pack=x").is_err());
    }
}
