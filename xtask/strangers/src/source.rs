//! Fetches and prepares the source of a published program: a checkout like a user's, cached by name and version.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::bounded::Limits;
use crate::table::{Crate, Go, Python, Stranger};

/// A checkout, and the environment of the commands in it.
#[derive(Debug)]
pub(crate) struct Checkout {
    pub(crate) folder: PathBuf,
    pub(crate) environment: Vec<(&'static str, String)>,
}

/// The result of fetching a published program.
#[derive(Debug)]
pub(crate) enum Got {
    Checkout(Checkout),
    /// The requirement that the machine lacks, as text that follows `skipped: needs`.
    Missing(String),
}

/// The folder of the Python environment, in the cache folder of a published program.
const VENV: &str = "venv";
/// The name of the file that is written when a checkout is complete. A checkout without the file `fetched` is made
/// again.
const DONE: &str = "fetched";

/// Fetches a published program, or uses an earlier checkout.
///
/// # Errors
///
/// The error: a step failed although the tools of the program's language are installed; the log of the step is in
/// `home`.
pub(crate) fn checkout(stranger: &Stranger, home: &Path, limits: &Limits) -> Result<Got> {
    std::fs::create_dir_all(home).with_context(|| format!("failed to make {}", home.display()))?;
    let missing = |what: &str| Ok(Got::Missing(what.to_owned()));
    // Named as its user would name it: scenarios are called after the folder.
    let place = home.join(&stranger.name);
    let is_there = home.join(DONE).is_file() && place.is_dir();
    let (from, environment) = match (&stranger.go, &stranger.cargo, &stranger.python) {
        (Some(go), ..) => {
            if !is_on_path("go") {
                return missing("go");
            }
            let environment = go_environment(go);
            (if is_there { Some(PathBuf::new()) } else { module(go, home, &environment, limits)? }, environment)
        }
        (None, Some(one), _) => (if is_there { Some(PathBuf::new()) } else { package(one, home, limits)? }, Vec::new()),
        (None, None, Some(python)) => {
            if !is_on_path("python3") {
                return missing("python3");
            }
            let path = std::env::var("PATH").unwrap_or_default();
            let environment = vec![("PATH", format!("{}:{path}", home.join(VENV).join("bin").display()))];
            (if is_there { Some(PathBuf::new()) } else { archive(python, home, limits)? }, environment)
        }
        (None, None, None) => bail!("{}: nothing says where it is published", stranger.name),
    };
    let Some(from) = from else { return missing(&stranger.published()) };
    if !is_there {
        if place.exists() {
            std::fs::remove_dir_all(&place)?;
        }
        copy(&from, &place)?;
        if stranger.go.is_some() {
            without_lost_replaces(&place)?;
        }
        std::fs::write(home.join(DONE), "")?;
    }
    Ok(Got::Checkout(Checkout { folder: place, environment }))
}

/// The environment variables of `go`. With these variables Go needs no C compiler. Go fetches a nested module that is
/// missing in its parent's archive from the module proxy.
fn go_environment(go: &Go) -> Vec<(&'static str, String)> {
    let mut set = vec![("CGO_ENABLED", "0".to_owned()), ("GOFLAGS", "-mod=mod -buildvcs=false".to_owned())];
    set.extend(go.toolchain.iter().map(|version| ("GOTOOLCHAIN", version.clone())));
    set
}

/// The folder of a module in Go's cache; `None` if the module proxy lacks the module.
fn module(go: &Go, home: &Path, environment: &[(&str, String)], limits: &Limits) -> Result<Option<PathBuf>> {
    let mut command = Command::new("go");
    command.current_dir(home).envs(environment.iter().map(|(name, value)| (name, value)));
    command.args(["mod", "download", "-json"]).arg(format!("{}@{}", go.module, go.version));
    let log = home.join("fetch.log");
    let ended = limits.run(&mut command, &log)?;
    let said = std::fs::read_to_string(&log)?;
    // Warnings come before it.
    let json = said.find('{').map(|at| &said[at..]).unwrap_or_default();
    let told: Value = serde_json::Deserializer::from_str(json).into_iter().next().transpose()?.unwrap_or_default();
    Ok(told["Dir"].as_str().filter(|_| ended.is_fine()).map(PathBuf::from))
}

/// The folder in which Cargo unpacks a crate for a package that depends on it.
fn package(one: &Crate, home: &Path, limits: &Limits) -> Result<Option<PathBuf>> {
    let wrapper = home.join("fetch");
    std::fs::create_dir_all(wrapper.join("src"))?;
    let Crate { name, version } = one;
    std::fs::write(
        wrapper.join("Cargo.toml"),
        format!(
            "[package]\nname = \"fetch\"\nedition = \"2024\"\n[dependencies]\n{name} = \"={version}\"\n[workspace]\n"
        ),
    )?;
    std::fs::write(wrapper.join("src/lib.rs"), "")?;
    let mut command = Command::new("cargo");
    command.current_dir(&wrapper).args(["fetch", "--quiet"]);
    if !limits.run(&mut command, &home.join("fetch.log"))?.is_fine() {
        return Ok(None);
    }
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let registries = cargo_home.context("a home folder is needed")?.join("registry/src");
    let folders = std::fs::read_dir(&registries)?.flatten().map(|entry| entry.path().join(format!("{name}-{version}")));
    Ok(folders.into_iter().find(|folder| folder.is_dir()))
}

/// The folder of an unpacked source archive; a Python environment with its requirements is made beside it.
fn archive(python: &Python, home: &Path, limits: &Limits) -> Result<Option<PathBuf>> {
    let (venv, unpacked) = (home.join(VENV), home.join("unpacked"));
    let log = home.join("fetch.log");
    let mut make = Command::new("python3");
    make.args(["-m", "venv", "--clear"]).arg(&venv);
    ensure!(limits.run(&mut make, &log)?.is_fine(), "python3 makes no venv: {}", log.display());
    let pip = venv.join("bin/pip");
    let Python { package, version, folder, wheel, requires } = python;
    let mut install = Command::new(&pip);
    install.args(["install", "--quiet", "--disable-pip-version-check"]).args(requires);
    let mut download = Command::new(&pip);
    download.args(["download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest"]);
    // A source archive has manifests and examples; a wheel, if there is no other, has only the program.
    let with_source = ["--no-binary=:all:"].iter().filter(|_| !wheel);
    download.arg(home.join("archive")).args(with_source).arg(format!("{package}=={version}"));
    for command in [&mut install, &mut download] {
        if !limits.run(command, &log)?.is_fine() {
            return Ok(None);
        }
    }
    let ending = if *wheel { ".whl" } else { ".tar.gz" };
    let files = std::fs::read_dir(home.join("archive"))?.flatten().map(|entry| entry.path());
    let Some(file) = files.into_iter().find(|file| file.to_string_lossy().ends_with(ending)) else { return Ok(None) };
    std::fs::create_dir_all(&unpacked)?;
    let mut unpack = if *wheel { Command::new(venv.join("bin/python")) } else { Command::new("tar") };
    if *wheel {
        unpack.args(["-m", "zipfile", "-e"]).arg(&file).arg(&unpacked);
    } else {
        unpack.arg("xzf").arg(&file).arg("--strip-components=1").arg("-C").arg(&unpacked);
    }
    ensure!(limits.run(&mut unpack, &log)?.is_fine(), "{} cannot be unpacked", file.display());
    Ok(Some(folder.as_ref().map_or(unpacked.clone(), |folder| unpacked.join(folder))))
}

/// Changes `go.mod` if it replaces a module by a nested module, which the archive of a module lacks. Go then fetches
/// the nested module from the module proxy, as for users of the module.
fn without_lost_replaces(folder: &Path) -> Result<()> {
    let output = Command::new("go").current_dir(folder).args(["mod", "edit", "-json"]).output()?;
    let module: Value = serde_json::from_slice(&output.stdout).context("go.mod cannot be read")?;
    for replaced in module["Replace"].as_array().into_iter().flatten() {
        let (Some(old), Some(new)) = (replaced["Old"]["Path"].as_str(), replaced["New"]["Path"].as_str()) else {
            continue;
        };
        if new.starts_with('.') && !folder.join(new).is_dir() {
            let mut edit = Command::new("go");
            let status = edit.current_dir(folder).args(["mod", "edit", "-dropreplace", old]).status()?;
            ensure!(status.success(), "go.mod keeps its replacement of {old}");
        }
    }
    Ok(())
}

/// Copies a folder so that its files can be written, because package caches are read-only.
fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("failed to make {}", to.display()))?;
    for entry in std::fs::read_dir(from).with_context(|| format!("failed to read {}", from.display()))? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_file() {
            let is_program = std::os::unix::fs::PermissionsExt::mode(&entry.metadata()?.permissions()) & 0o100 != 0;
            std::fs::write(&target, std::fs::read(entry.path())?)?;
            let mode = if is_program { 0o755 } else { 0o644 };
            std::fs::set_permissions(&target, std::os::unix::fs::PermissionsExt::from_mode(mode))?;
        }
    }
    Ok(())
}

fn is_on_path(program: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_can_be_written_and_run() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::create_dir_all(from.join("deep")).unwrap();
        std::fs::write(from.join("deep/run.sh"), "x").unwrap();
        let mode = |bits| std::os::unix::fs::PermissionsExt::from_mode(bits);
        std::fs::set_permissions(from.join("deep/run.sh"), mode(0o555)).unwrap();
        std::fs::set_permissions(from.join("deep"), mode(0o555)).unwrap();
        copy(&from, &to).unwrap();
        std::fs::write(to.join("deep/new"), "").unwrap();
        let copied = std::fs::metadata(to.join("deep/run.sh")).unwrap().permissions();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&copied) & 0o777, 0o755);
        std::fs::set_permissions(from.join("deep"), mode(0o755)).unwrap();
    }

    #[test]
    fn a_replacement_that_the_archive_lacks_is_dropped() {
        if !is_on_path("go") {
            println!("skipped: needs go");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let text = "module example.com/a\ngo 1.21\nreplace example.com/a/api => ./api\nreplace example.com/b => ./b\n";
        std::fs::write(folder.path().join("go.mod"), text).unwrap();
        std::fs::create_dir(folder.path().join("b")).unwrap();
        without_lost_replaces(folder.path()).unwrap();
        let left = std::fs::read_to_string(folder.path().join("go.mod")).unwrap();
        assert!(!left.contains("./api") && left.contains("./b"), "{left}");
    }
}
