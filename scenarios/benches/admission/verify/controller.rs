//! Measures sigstore's policy-controller for comparison. `go/main.go` calls policy-controller's library for one image
//! of a Pod, and needs a Go toolchain. Connaisseur is not compared, because it is not published as a Go module.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::signed::{BESIDE_COSIGN, Signed};
use super::{AT_ONCE, IN_TURN};
use crate::kit::cores::Cores;
use crate::kit::report::Report;

const SOURCE: &str = include_str!("go/main.go");
const MODULE: &str = include_str!("go/go.mod");

/// Measures the time of policy-controller's library with the key that signed most images, on the processor that the
/// service used.
pub(super) fn measure(cores: &Cores, signed: &Signed, report: &mut Report) -> Result<()> {
    let program = match installer::go_program("policy-controller-bench", SOURCE, MODULE) {
        Ok(program) => program,
        Err(missing) => {
            println!("\npolicy-controller is left out: skipped: needs {missing}");
            return Ok(());
        }
    };
    // One to begin with, some in turn, the others at once.
    let images: Vec<String> =
        signed.of(BESIDE_COSIGN).into_iter().take(1 + IN_TURN + AT_ONCE.0).map(|image| image.reference).collect();
    let before = signed.requests();
    let mut command = Command::new(program);
    command.arg(signed.key()).args([IN_TURN.to_string(), AT_ONCE.1.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = cores.spawn(&mut command)?;
    let mut stdin = child.stdin.take().context("there is no standard input")?;
    stdin.write_all((images.join("\n") + "\n").as_bytes()).context("policy-controller does not read")?;
    drop(stdin);
    let output = child.wait_with_output().context("policy-controller does not end")?;
    ensure!(output.status.success(), "policy-controller failed: {}", output.status);
    let figures: Value = serde_json::from_slice(&output.stdout).context("policy-controller tells no figures")?;
    let figure = |name: &str| figures[name].as_f64().with_context(|| format!("policy-controller tells no {name}"));
    let requests = (signed.requests() - before) as f64 / figure("images")?;
    let (p50, per_second, cpu_us) = (figure("p50Ms")?, figure("perSecond")?, figure("cpuUs")?);
    println!(
        "policy-controller as a library, key, tag: p50 {p50:.2} ms, {per_second:.0} a second, {cpu_us:.0} us CPU, {requests:.1} requests each"
    );
    report.add(
        "policy-controller",
        json!({"p50Ms": p50, "perSecond": per_second, "cpuUs": cpu_us, "requests": requests}),
    );
    Ok(())
}
