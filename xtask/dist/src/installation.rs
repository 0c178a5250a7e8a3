//! Installation of the programs on a machine: `install.sh`, and the manifest for krew, kubectl's plug-in manager.
//!
//! The manifest has the format krew.googlecontainertools.github.com/v1alpha2. The script `install.sh` is a file of the
//! repository; this module contains the script's tests.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use crate::archive::Sums;
use crate::build::Release;
use crate::target::Target;
use crate::{PROGRAMS, read, root};

/// The name of the installation script, at the root of the repository and in the folder of a release.
const SCRIPT: &str = "install.sh";
/// The name of the manifest, which krew derives from the plug-in's name.
const MANIFEST: &str = "longhaul.yaml";

/// Copies `install.sh` into the folder of the archives.
pub(crate) fn script(out: &Path, sums: &mut Sums) -> Result<()> {
    sums.add(out, SCRIPT, &read(&root().join(SCRIPT))?)
}

/// Writes krew's manifest. The release archives will be published at `address`.
pub(crate) fn krew(address: &str, targets: &[Target], release: &Release, out: &Path, sums: &mut Sums) -> Result<()> {
    let text = manifest(address, targets, release, sums)?;
    sums.add(out, MANIFEST, text.as_bytes())
}

fn manifest(address: &str, targets: &[Target], release: &Release, sums: &Sums) -> Result<String> {
    let program = &PROGRAMS[0];
    let mut text = format!(
        "apiVersion: krew.googlecontainertools.github.com/v1alpha2\n\
         kind: Plugin\n\
         metadata:\n\
         \x20 name: {}\n\
         spec:\n\
         \x20 version: v{}\n\
         \x20 shortDescription: Soak controllers and webhooks in a bad network\n\
         \x20 description: |\n\
         \x20   {}.\n\
         \x20   Faults of API server and network, missed events, memory growth, latency.\n\
         \x20   It needs no cluster: `kubectl longhaul init .` writes a first scenario.\n\
         \x20 platforms:\n",
        program.name, release.version, program.says
    );
    for target in targets {
        let folder = format!("{}-{}-{}", program.name, release.version, target.triple());
        let archive = format!("{folder}.tar.gz");
        let sum = sums.of(&archive).with_context(|| format!("{archive} is not written yet"))?;
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\x20 - selector: {{matchLabels: {{os: linux, arch: {}}}}}\n\
             \x20   uri: {}/{archive}\n\
             \x20   sha256: {sum}\n\
             \x20   bin: {}\n\
             \x20   files:\n\
             \x20   - {{from: {folder}/*, to: .}}\n",
            target.architecture(),
            address.trim_end_matches('/'),
            program.name
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output, Stdio};

    use flate2::Compression;
    use serde_json::Value;

    use super::*;
    use crate::archive::{Entry, tarball};
    use crate::page::{printed, there};

    /// Makes a fake release whose program only prints its version.
    fn release(out: &Path) -> Sums {
        let mut sums = Sums::default();
        for target in [Target::X86_64, Target::Aarch64] {
            let folder = format!("longhaul-{}-{}", env!("CARGO_PKG_VERSION"), target.triple());
            let said = format!("#!/bin/sh\necho longhaul for {}\n", target.triple());
            let program = Entry::program("longhaul", said.into_bytes());
            let packed = tarball(&folder, vec![program], 0, Compression::fast()).unwrap();
            sums.add(out, &format!("{folder}.tar.gz"), &packed).unwrap();
        }
        sums.write(out).unwrap();
        sums
    }

    /// Runs `install.sh` as on a machine for which `uname` prints `machine`.
    fn install(out: &Path, machine: &str, arguments: &[&str]) -> Output {
        install_with(out, machine, arguments, &[])
    }

    /// Runs `install.sh` as on a machine for which `uname` prints `machine`, with environment variables.
    fn install_with(out: &Path, machine: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let programs = tempfile::tempdir().unwrap();
        let uname = programs.path().join("uname");
        std::fs::write(&uname, format!("#!/bin/sh\n[ \"$1\" = -s ] && echo Linux || echo {machine}\n")).unwrap();
        std::fs::set_permissions(&uname, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", programs.path().display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("sh");
        command.arg(root().join(SCRIPT)).args(arguments).env("PATH", path).stdin(Stdio::null());
        command.env_remove("LONGHAUL_SHA256").envs(variables.iter().copied());
        let releases = format!("file://{}", out.display());
        command.env("LONGHAUL_RELEASES", releases).env("LONGHAUL_DIR", out.join("bin")).output().unwrap()
    }

    /// Whether the programs that `install.sh` calls are installed. If a program is missing, prints a message.
    fn has_programs() -> bool {
        let missing = ["curl", "tar", "sha256sum"].into_iter().find(|program| !there(program));
        if let Some(program) = missing {
            println!("skipped: needs {program}");
        }
        missing.is_none()
    }

    #[test]
    fn the_script_installs_the_archive_of_the_machine() {
        if !has_programs() {
            return;
        }
        let out = tempfile::tempdir().unwrap();
        release(out.path());
        for (machine, target) in [("x86_64", Target::X86_64), ("aarch64", Target::Aarch64)] {
            let output = install(out.path(), machine, &[]);
            assert!(output.status.success(), "{}", printed(&output));
            for name in ["longhaul", "kubectl-longhaul"] {
                let said = Command::new(out.path().join("bin").join(name)).output().unwrap();
                assert_eq!(String::from_utf8_lossy(&said.stdout).trim(), format!("longhaul for {}", target.triple()));
            }
        }
    }

    #[test]
    fn a_sum_may_name_its_kind() {
        if !has_programs() {
            return;
        }
        let out = tempfile::tempdir().unwrap();
        let sums = release(out.path());
        let version = env!("CARGO_PKG_VERSION");
        let sum = sums.of(&format!("longhaul-{version}-{}.tar.gz", Target::X86_64.triple())).unwrap();
        for sum in [sum.to_owned(), format!("sha256:{sum}")] {
            let variable = [("LONGHAUL_SHA256", sum.as_str())];
            for output in
                [install(out.path(), "x86_64", &["--sha256", &sum]), install_with(out.path(), "x86_64", &[], &variable)]
            {
                assert!(output.status.success(), "{sum}: {}", printed(&output));
            }
        }
        let wrong = format!("sha256:{}", "0".repeat(64));
        let output = install_with(out.path(), "x86_64", &[], &[("LONGHAUL_SHA256", &wrong)]);
        assert_eq!(output.status.code(), Some(65), "{}", printed(&output));
    }

    #[test]
    fn the_script_refuses_what_it_does_not_trust() {
        if !has_programs() {
            return;
        }
        let out = tempfile::tempdir().unwrap();
        release(out.path());
        let zeros = "0".repeat(64);
        for (machine, arguments, code, says) in [
            ("x86_64", vec!["--sha256", zeros.as_str()], 65, "nothing was installed"),
            ("x86_64", vec!["--version", "9.9.9"], 69, "failed to download"),
            ("riscv64", vec![], 69, "no program for Linux on riscv64"),
            ("x86_64", vec!["--dir"], 64, "needs a value"),
            ("x86_64", vec!["--what"], 64, "usage"),
        ] {
            let output = install(out.path(), machine, &arguments);
            assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", printed(&output));
            assert!(printed(&output).contains(says), "{arguments:?}: {}", printed(&output));
            assert!(!out.path().join("bin").exists(), "{arguments:?}");
        }
    }

    #[test]
    fn the_script_names_the_version_that_is_built() {
        let text = std::fs::read_to_string(root().join(SCRIPT)).unwrap();
        assert!(text.contains(&format!("\nversion={}\n", env!("CARGO_PKG_VERSION"))));
    }

    /// The manifest has the fields that krew's own validation requires (`internal/index/validation`).
    #[test]
    fn the_manifest_has_what_krew_wants() {
        let out = tempfile::tempdir().unwrap();
        let sums = release(out.path());
        let version = env!("CARGO_PKG_VERSION");
        let release = Release { version, revision: "abc".to_owned(), seconds: 0 };
        let targets = [Target::X86_64, Target::Aarch64];
        let text = manifest("https://example.com/files/", &targets, &release, &sums).unwrap();
        let yaml: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(yaml["spec"]["version"], format!("v{version}"));
        assert!(
            yaml["spec"]["shortDescription"].as_str().unwrap().len() <= 50,
            "krew's guide asks for at most 50 characters"
        );
        let platforms = yaml["spec"]["platforms"].as_array().unwrap();
        assert_eq!(platforms.len(), targets.len());
        for (platform, target) in platforms.iter().zip(targets) {
            let archive = format!("longhaul-{version}-{}.tar.gz", target.triple());
            assert_eq!(platform["uri"], format!("https://example.com/files/{archive}"));
            assert_eq!(platform["sha256"].as_str(), sums.of(&archive));
            assert_eq!(platform["bin"], "longhaul");
            assert_eq!(platform["selector"]["matchLabels"]["arch"], target.architecture());
        }
    }
}
