//! Measures k8s-digester's webhook for comparison. k8s-digester is built from its Go module if there is a Go toolchain.
//!
//! k8s-digester runs as in its own manifests, except for settings that need a cluster. Certificates come from files,
//! and the offline mode prevents the lookup of pull secrets at an API server. With files and offline mode, k8s-digester
//! has the least work for a review.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::admission::subject::{Subject, World};
use crate::kit::cores::Cores;
use crate::kit::process::free;

const MODULE: &str = "github.com/google/k8s-digester";
const VERSION: &str = "v0.1.16";

/// Builds k8s-digester unless the cache has it, and starts it. The error names the missing requirement.
pub(crate) async fn start(world: &World, cores: &Cores) -> Result<Subject, String> {
    let program = build()?;
    let started = run(world, cores, program).await;
    started.map_err(|error| format!("a k8s-digester that starts ({error:#})"))
}

fn build() -> Result<PathBuf, String> {
    let folder =
        installer::cache().map_err(|missing| missing.to_string())?.join("go").join(format!("k8s-digester-{VERSION}"));
    let program = folder.join("k8s-digester");
    if program.is_file() {
        return Ok(program);
    }
    let go = installer::on_path("go").ok_or("a Go toolchain")?;
    println!("building {MODULE} {VERSION}, some minutes the first time …");
    let failed = |error: std::io::Error| format!("a Go toolchain that can be used ({error})");
    // It is built in a module that requires it. `go install` also asks the proxy for the list of all versions, and a
    // proxy with only this version does not answer that.
    let module = tempfile::tempdir().map_err(failed)?;
    let text = format!("module longhaul.dev/bench\n\ngo 1.24\n\nrequire {MODULE} {VERSION}\n");
    std::fs::write(module.path().join("go.mod"), text).map_err(failed)?;
    let output = Command::new(go)
        .args(["build", "-mod=mod", "-buildvcs=false", "-o"])
        .args([program.as_os_str(), MODULE.as_ref()])
        .current_dir(module.path())
        .stdin(Stdio::null())
        .output()
        .map_err(failed)?;
    if output.status.success() && program.is_file() {
        return Ok(program);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("a Go toolchain that builds {MODULE} {VERSION}: {}", said.lines().last().unwrap_or_default()))
}

async fn run(world: &World, cores: &Cores, program: PathBuf) -> anyhow::Result<Subject> {
    // It needs a cluster's address before it reads its flags; nothing listens there.
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "none",
        "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
        "users": [{"name": "none", "user": {}}],
    });
    let file = world.folder.path().join("digester-kubeconfig.yaml");
    std::fs::write(&file, kubeconfig.to_string())?;
    let address = free()?;
    let mut command = Command::new(program);
    command
        .args(["webhook", "--disable-cert-rotation", "--offline", "--metrics-addr=0", "--health-addr=0"])
        .arg(format!("--port={}", address.port()))
        .arg(format!("--cert-dir={}", world.folder.path().display()))
        .arg(format!("--kubeconfig={}", file.display()))
        // It prints two lines per review.
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .stdin(Stdio::null());
    let child = cores.spawn(&mut command)?;
    let about = format!("k8s-digester {VERSION}, offline, one processor");
    let mut subject = world.subject("digester", about, (address, "/v1/mutate"), child).await?;
    // Its answers are `text/plain`.
    subject.typed = false;
    Ok(subject)
}
