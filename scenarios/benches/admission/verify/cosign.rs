//! Measures `cosign verify` as a separate process for each image, as a shell script at admission would run it.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::signed::{BESIDE_COSIGN, Signed};
use crate::admission::subject::World;
use crate::kit::report::{Report, median};

/// Number of verifications whose time is measured.
const TIMES: usize = 10;

/// Measures the time of `cosign verify` offline, with the key that signed most images.
pub(super) fn measure(world: &World, signed: &Signed, report: &mut Report) -> Result<()> {
    let Some(cosign) = installer::on_path("cosign") else {
        println!("\ncosign is left out: skipped: needs cosign");
        return Ok(());
    };
    let images = signed.of(BESIDE_COSIGN);
    let before = signed.requests();
    let mut seconds = Vec::with_capacity(TIMES);
    let cpu_before = children_cpu_s()?;
    for image in images.iter().take(TIMES) {
        let mut command = Command::new(&cosign);
        command
            .args(["verify", "--insecure-ignore-tlog=true", "--key"])
            .arg(signed.key())
            .arg(&image.reference)
            // It would keep files there.
            .env("HOME", world.folder.path())
            .stdin(Stdio::null());
        let begun = Instant::now();
        let output = command.output().context("failed to start cosign")?;
        seconds.push(begun.elapsed().as_secs_f64());
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "cosign refuses {}: {said}", image.reference);
    }
    let times = seconds.len();
    let requests = (signed.requests() - before) as f64 / times as f64;
    let cpu_s = (children_cpu_s()? - cpu_before) / times as f64;
    let p50 = median(&seconds);
    println!(
        "\n`cosign verify` as a process, key, tag, {times} times: p50 {:.0} ms, {:.0} ms CPU, {requests:.1} requests each",
        p50 * 1e3,
        cpu_s * 1e3
    );
    report.add("cosign", json!({"p50Ms": p50 * 1e3, "cpuMs": cpu_s * 1e3, "requests": requests}));
    Ok(())
}

/// CPU time of all child processes that have ended, in seconds.
fn children_cpu_s() -> Result<f64> {
    let stat = procfs::process::Process::myself()?.stat()?;
    let ticks = u64::try_from(stat.cutime + stat.cstime)?;
    Ok(ticks as f64 / procfs::ticks_per_second() as f64)
}
