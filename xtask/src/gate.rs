//! `cargo xtask gate`: builds the service of another revision and of this revision in the same way, and compares them
//! by `longhaul gate`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use crate::{cargo, soak};

const BUILD: [&str; 5] = ["build", "--release", "--package=service", "--bin=longhaul-service", "--quiet"];
/// The service's manifest. Releases of the service are built with this manifest's feature `full`. Older revisions of
/// the service lack the feature `full` and contain everything.
const MANIFEST: &str = "service/Cargo.toml";
const FULL: &str = "full";
const PROGRAM: &str = "longhaul-service";

/// Arguments of `cargo xtask gate`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The baseline of the comparison: a git revision (`main`, `v1.2`, `HEAD~3`), or a program.
    #[arg(long, value_name = "REF|PROGRAM")]
    baseline: String,
    /// Further arguments of `longhaul gate`, such as `--quick`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub(crate) fn gate(arguments: &Arguments) -> Result<ExitCode> {
    let a = if Path::new(&arguments.baseline).is_file() {
        std::path::absolute(&arguments.baseline)?
    } else {
        baseline(&cargo::root(), &cargo::target().join("gate"), &arguments.baseline)?
    };
    cargo::run(cargo::cargo().args(BUILD).args(full(&cargo::root())))?;
    let b = cargo::target().join("release").join(PROGRAM);
    let sides = ["--a", &a.display().to_string(), "--b", &b.display().to_string()].map(str::to_owned);
    soak::longhaul(Some("gate"), [sides.to_vec(), arguments.arguments.clone()].concat())
}

/// Builds the service of a git revision of the repository at `root`, in the folder `folder`. If the folder already has
/// the program, it is not built again.
fn baseline(root: &Path, folder: &Path, reference: &str) -> Result<PathBuf> {
    let commit = commit(root, reference)?;
    let program = folder.join("programs").join(&commit).join(PROGRAM);
    if program.is_file() {
        return Ok(program);
    }
    let tree = folder.join("trees").join(&commit);
    if !tree.join("Cargo.toml").is_file() {
        let mut add = Command::new("git");
        add.current_dir(root).args(["worktree", "add", "--force", "--detach"]).arg(&tree).arg(&commit);
        cargo::run(&mut add)?;
    }
    // One folder for all revisions, because most of their dependencies are the same.
    let target = folder.join("target");
    let built =
        cargo::run(cargo::cargo().current_dir(&tree).env("CARGO_TARGET_DIR", &target).args(BUILD).args(full(&tree)));
    let mut remove = Command::new("git");
    remove.current_dir(root).args(["worktree", "remove", "--force"]).arg(&tree);
    // A tree that remains only blocks the next one of the same revision, which uses it again.
    let _ = remove.status();
    built?;
    std::fs::create_dir_all(program.parent().unwrap_or(folder))?;
    let from = target.join("release").join(PROGRAM);
    std::fs::copy(&from, &program).with_context(|| format!("failed to keep {}", from.display()))?;
    Ok(program)
}

/// Cargo's argument for the released features of the service in `tree`, if the service's manifest has the feature
/// `full`.
fn full(tree: &Path) -> Option<String> {
    let manifest = std::fs::read_to_string(tree.join(MANIFEST)).ok()?;
    manifest.lines().any(|line| line.starts_with(&format!("{FULL} ="))).then(|| format!("--features={FULL}"))
}

fn commit(root: &Path, reference: &str) -> Result<String> {
    ensure!(!reference.starts_with('-'), "--baseline {reference}: write a revision of git or the path of a program");
    let mut parse = Command::new("git");
    parse.current_dir(root).args(["rev-parse", "--verify", "--quiet", "--end-of-options"]);
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
        let error = commit(&cargo::root(), "no-such-branch-anywhere").unwrap_err().to_string();
        assert!(error.contains("no such revision of git"), "{error}");
        assert!(commit(&cargo::root(), "--upload-pack=x").is_err());
    }

    /// The repository of this test has a small package with the service's name. The program of a tag is built only
    /// once, from that tag, in a tree that is removed afterwards.
    #[test]
    fn a_revision_is_built_from_its_own_tree_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (root, kept) = (folder.path().join("repository"), folder.path().join("target/gate"));
        std::fs::create_dir_all(root.join("src")).unwrap();
        let manifest = format!(
            "[workspace]\n[package]\nname = \"service\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[[bin]]\nname = \"{PROGRAM}\"\npath = \
             \"src/main.rs\"\n"
        );
        std::fs::write(root.join("Cargo.toml"), manifest).unwrap();
        let write = |says: &str| {
            std::fs::write(root.join("src/main.rs"), format!("fn main() {{ println!(\"{says}\"); }}\n")).unwrap();
        };
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.current_dir(&root).args([
                "-c",
                "user.name=x",
                "-c",
                "user.email=x@localhost",
                "-c",
                "commit.gpgsign=false",
            ]);
            let output = git.args(arguments).output().ok()?;
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        write("old");
        if git(&["init", "--quiet", "."]).is_none() {
            println!("skipped: needs git");
            return;
        }
        git(&["add", "."]).unwrap();
        git(&["commit", "--quiet", "--message", "old"]).unwrap();
        git(&["tag", "v1"]).unwrap();
        write("new");
        let program = baseline(&root, &kept, "v1").unwrap();
        let says = || String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
        assert_eq!(says(), "old\n");
        assert_eq!(git(&["worktree", "list"]).unwrap().lines().count(), 1, "the tree of the tag is gone");
        assert_eq!(std::fs::read_to_string(root.join("src/main.rs")).unwrap().matches("new").count(), 1);
        // A built program is not built again: without its source that would fail.
        std::fs::write(&program, "#!/bin/sh\necho kept\n").unwrap();
        assert_eq!(baseline(&root, &kept, "v1").unwrap(), program);
        assert_eq!(says(), "kept\n");
    }
}
