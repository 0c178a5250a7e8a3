//! Tests all steps of `cargo xtask strangers` with the smallest published program.

use std::path::PathBuf;
use std::process::Command;

/// The name of a program that installs in seconds and runs for ninety seconds.
const SMALLEST: &str = "kopf-examples";

fn longhaul() -> Option<PathBuf> {
    let programs = PathBuf::from(std::env::var_os("LONGHAUL_PROGRAMS")?);
    Some(programs.join("longhaul")).filter(|program| program.is_file())
}

/// Checks that the run has a verdict, whichever it is, because the verdict depends on the published program.
#[test]
#[ignore = "slow: installs a package and plays ninety seconds"]
fn nightly_a_stranger_is_played_from_its_registry_to_the_page() {
    let Some(longhaul) = longhaul() else {
        println!("skipped: needs longhaul");
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_strangers"));
    command.arg("--longhaul").arg(longhaul).arg("--out").arg(out.path()).arg(SMALLEST);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    if let Some(missing) = said.lines().find_map(|line| line.trim().strip_prefix("skipped: needs ")) {
        println!("skipped: needs {missing}");
        return;
    }
    let page = std::fs::read_to_string(out.path().join("strangers.md")).unwrap();
    let row = page.lines().find(|line| line.contains(SMALLEST)).unwrap();
    assert!(row.contains("| yes |") || row.contains("none ("), "{row}");
    let figures = std::fs::read_to_string(out.path().join("strangers.jsonl")).unwrap();
    assert_eq!(figures.lines().count(), 1);
}
