//! Runs released programs for another processor, under an emulator.
//!
//! The kernel starts the emulator (`binfmt_misc`), so that programs which start each other are emulated as well. On
//! Debian, `apt-get install qemu-user-static binfmt-support` sets this up.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::target::Target;
use crate::{output_of, page, suite};

/// A Go program that starts an API server as test suites do, and writes an object.
const MAIN: &str = r#"package main

import (
	"context"
	"fmt"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

func main() {
	environment := &envtest.Environment{}
	config, err := environment.Start()
	if err != nil {
		panic(err)
	}
	defer environment.Stop()
	maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	if _, err := maps.Create(context.Background(), object, metav1.CreateOptions{}); err != nil {
		panic(err)
	}
	fmt.Println("created on", runtime.GOARCH)
}
"#;
const MODULE: &str = "module example.com/emulated\n\ngo 1.26.0\n\nrequire sigs.k8s.io/controller-runtime v0.25.2\n";

/// The longest time of one emulated program.
const LONGEST: Duration = Duration::from_mins(10);
/// The highest exit code of a run with a verdict.
const INCONCLUSIVE: i32 = 2;

/// Runs the programs of each target in the folder `out` that this machine can run only under an emulator.
pub(crate) fn check(out: &Path) -> Result<()> {
    for target in Target::ALL.into_iter().filter(|target| !target.runs_here()) {
        let tarball = format!("longhaul-{}-{}", env!("CARGO_PKG_VERSION"), target.triple());
        if !out.join(format!("{tarball}.tar.gz")).is_file() {
            println!("dist: {}: not run: skipped: needs {tarball}.tar.gz", target.triple());
            continue;
        }
        let folder = tempfile::tempdir()?;
        unpack(&out.join(format!("{tarball}.tar.gz")), folder.path())?;
        let programs = folder.path().join(&tarball);
        match output_of(Command::new(programs.join("longhaul")).arg("--version")) {
            Ok(version) => ensure!(version.contains(env!("CARGO_PKG_VERSION")), "`longhaul --version`: {version}"),
            Err(_) if !is_emulated(target) => {
                println!("dist: {}: not run: skipped: needs qemu for it in binfmt_misc", target.triple());
                continue;
            }
            Err(error) => return Err(error),
        }
        soak(&programs.join("longhaul"), folder.path())?;
        environment(target, out, folder.path())?;
    }
    Ok(())
}

/// Whether the kernel starts an emulator for programs of the target.
fn is_emulated(target: Target) -> bool {
    let entries = std::fs::read_dir("/proc/sys/fs/binfmt_misc").into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().to_string_lossy().ends_with(target.processor()))
}

fn unpack(archive: &Path, into: &Path) -> Result<()> {
    let mut command = Command::new("tar");
    command.arg("--extract").arg("--gzip").arg("--file").arg(archive).arg("--directory").arg(into);
    output_of(&mut command).map(drop)
}

/// A command that is ended after [`LONGEST`], because an emulated program may hang.
fn limited(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.arg(LONGEST.as_secs().to_string()).arg(program).stdin(Stdio::null());
    command
}

/// Runs the first scenario of the README. An emulator may be too slow for the budgets of answer times, but the run must
/// reach a verdict and miss no version.
fn soak(program: &Path, folder: &Path) -> Result<()> {
    let mut command = limited(program);
    command.args(["soak", "smoke", "--quiet"]).current_dir(folder);
    let output = command.output().context("failed to start `longhaul soak smoke`")?;
    println!("dist: `longhaul soak smoke` under an emulator: {}", output.status);
    let printed = page::printed(&output);
    let has_verdict = output.status.code().is_some_and(|code| code <= INCONCLUSIVE);
    ensure!(has_verdict && printed.contains(" 0 missed"), "`longhaul soak smoke` under an emulator:\n{printed}");
    Ok(())
}

/// Runs a test environment of controller-runtime with the programs for test suites; both are emulated.
fn environment(target: Target, out: &Path, folder: &Path) -> Result<()> {
    let assets = folder.join("assets");
    std::fs::create_dir(&assets)?;
    unpack(&out.join(suite::archive(target)), &assets)?;
    let module = folder.join("module");
    std::fs::create_dir(&module)?;
    std::fs::write(module.join("main.go"), MAIN)?;
    std::fs::write(module.join("go.mod"), MODULE)?;
    let mut build = Command::new("go");
    build.args(["build", "-mod=mod", "-o", "suite", "."]).current_dir(&module).stdin(Stdio::null());
    build.env("GOARCH", target.architecture()).env("CGO_ENABLED", "0").env_remove("GOFLAGS");
    if let Err(error) = output_of(&mut build) {
        println!("dist: a test suite in Go: skipped: needs Go and its module proxy ({error:#})");
        return Ok(());
    }
    let mut run = limited(&module.join("suite"));
    run.current_dir(&module).env("KUBEBUILDER_ASSETS", assets.join(suite::FOLDER));
    let printed = output_of(&mut run)?;
    let expected = format!("created on {}", target.architecture());
    ensure!(printed.contains(&expected), "the test suite did not print `{expected}`: {printed}");
    println!("dist: a test suite in Go under an emulator: {}", printed.trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::root;

    #[test]
    #[ignore = "slow"]
    fn nightly_programs_for_another_processor_run_under_an_emulator() {
        let out = std::env::var_os("LONGHAUL_DIST").map_or_else(|| root().join("target/dist"), PathBuf::from);
        check(&out).unwrap();
    }
}
