//! Programs that Longhaul works with, in containers: Redis, the reference registry, and a node image of kind.

use std::process::Command;

use containers::{Error, Recipe, STARTUP, address, engine, installed, run, until};
use testcontainers::bollard::Docker;
use testcontainers::core::{CgroupnsMode, ExecCommand, IntoContainerPort as _, Mount, WaitFor};
use testcontainers::runners::AsyncRunner as _;
use testcontainers::{ContainerAsync, GenericImage, ImageExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The variable with the name of a node image of kind, as for `longhaul cluster up`.
const NODE_IMAGE: &str = "LONGHAUL_KIND_IMAGE";
const REDIS: u16 = 6379;
const REGISTRY: u16 = 5000;
const API: u16 = 6443;
const REGISTRY_CONFIGURATION: &str = "\
version: 0.1
storage: {filesystem: {rootdirectory: /work}}
http: {addr: '0.0.0.0:5000'}
";
/// A blob and its SHA-256.
const BLOB: (&str, &str) = ("longhaul", "sha256:0fc573d1b14c00b6ce10d3ccdc125224ea8938b18f5dd0464600e9ad6e53bad9");
/// The file for kubeadm. The cgroup settings let the node start also on a machine with version 1 of cgroups.
const KUBEADM: &str = "\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration: {criSocket: 'unix:///run/containerd/containerd.sock'}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: VERSION
networking: {podSubnet: 10.244.0.0/16}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
cgroupRoot: /kubelet
failSwapOn: false
failCgroupV1: false
imageGCHighThresholdPercent: 100
evictionHard: {nodefs.available: 0%, imagefs.available: 0%}
";

/// Starts a program of this machine in a container.
async fn start(
    docker: &Docker,
    name: &'static str,
    port: u16,
    command: &[&str],
) -> Result<Option<(ContainerAsync<GenericImage>, (String, u16))>, Error> {
    let Some(program) = installed(name) else { return Ok(None) };
    let image = format!("{name}-tested");
    Recipe { name: &image, programs: &[program], changes: &[&format!("EXPOSE {port}")] }.make(docker).await?;
    let request =
        GenericImage::new(image.as_str(), "latest").with_exposed_port(port.tcp()).with_cmd(command.iter().copied());
    let request = request.with_copy_to("/etc/registry.yaml", REGISTRY_CONFIGURATION.as_bytes().to_vec());
    let container = request.with_startup_timeout(STARTUP).start().await?;
    let reached = address(&container, port).await?;
    let open = async || TcpStream::connect((reached.0.as_str(), reached.1)).await;
    until(open).await?;
    Ok(Some((container, reached)))
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_keeps_a_value() -> Result<(), Error> {
    let Some(docker) = engine().await else { return Ok(()) };
    let command = ["--bind", "0.0.0.0", "--protected-mode", "no", "--save", ""];
    let Some((_container, reached)) = start(&docker, "redis-server", REDIS, &command).await? else { return Ok(()) };
    let commands = b"PING\r\nSET longhaul 1\r\nGET longhaul\r\nQUIT\r\n";
    let talk = async || {
        let mut redis = TcpStream::connect((reached.0.as_str(), reached.1)).await?;
        redis.write_all(commands).await?;
        let mut answer = String::new();
        redis.read_to_string(&mut answer).await?;
        // The engine accepts connections of a published port before the program listens.
        if answer.is_empty() { Err(std::io::Error::other("no answer")) } else { Ok(answer) }
    };
    assert_eq!(until(talk).await?, "+PONG\r\n+OK\r\n$1\r\n1\r\n+OK\r\n");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_registry_takes_and_gives_a_blob() -> Result<(), Error> {
    let Some(docker) = engine().await else { return Ok(()) };
    if installed("curl").is_none() {
        return Ok(());
    }
    let command = ["serve", "/etc/registry.yaml"];
    let Some((_container, reached)) = start(&docker, "docker-registry", REGISTRY, &command).await? else {
        return Ok(());
    };
    let base = format!("http://{}:{}/v2/", reached.0, reached.1);
    let curl = |arguments: &[&str]| {
        run(Command::new("curl")
            .args(["--silent", "--show-error", "--fail-with-body", "--max-time", "20"])
            .args(arguments))
    };
    until(async || curl(&[&base])).await?;
    let (blob, digest) = BLOB;
    let begun = curl(&["--request", "POST", "--dump-header", "-", &format!("{base}a/blobs/uploads/")])?;
    let headers = String::from_utf8(begun.stdout)?;
    let location = headers.lines().find_map(|line| line.split_once("ocation: ")).ok_or("no upload")?.1.trim();
    let content = "Content-Type: application/octet-stream";
    let wrong = format!("{location}&digest={}", digest.replace('0', "1"));
    assert!(curl(&["--request", "PUT", "--header", content, "--data", blob, &wrong]).is_err(), "another digest");
    let begun = curl(&["--request", "POST", "--dump-header", "-", &format!("{base}a/blobs/uploads/")])?;
    let headers = String::from_utf8(begun.stdout)?;
    let location = headers.lines().find_map(|line| line.split_once("ocation: ")).ok_or("no upload")?.1.trim();
    curl(&["--request", "PUT", "--header", content, "--data", blob, &format!("{location}&digest={digest}")])?;
    assert_eq!(curl(&[&format!("{base}a/blobs/{digest}")])?.stdout, blob.as_bytes());
    Ok(())
}

/// Runs a command in a container to its end, and returns its output. The error contains both streams.
async fn inside(container: &ContainerAsync<GenericImage>, command: &str) -> Result<String, Error> {
    let mut result = container.exec(ExecCommand::new(["sh", "-c", command])).await?;
    let output = String::from_utf8(result.stdout_to_vec().await?)?;
    let errors = String::from_utf8(result.stderr_to_vec().await?)?;
    match result.exit_code().await? {
        Some(0) => Ok(output),
        code => Err(format!("{command}: {code:?}\n{output}\n{errors}").into()),
    }
}

/// Starts a control plane in a node image of kind with kubeadm, as kind does.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_image_starts_an_api_server_and_a_kubelet() -> Result<(), Error> {
    let Some(docker) = engine().await else { return Ok(()) };
    let Ok(name) = std::env::var(NODE_IMAGE) else {
        println!("skipped: needs a node image ({NODE_IMAGE})");
        return Ok(());
    };
    docker.inspect_image(&name).await.map_err(|error| format!("{NODE_IMAGE}={name}: {error}"))?;
    let (image, tag) = name.rsplit_once(':').unwrap_or((&name, "latest"));
    let request = GenericImage::new(image, tag).with_exposed_port(API.tcp()).with_privileged(true);
    let request = request.with_cgroupns_mode(CgroupnsMode::Private).with_hostname("node");
    let request = request.with_mount(Mount::tmpfs_mount("/tmp")).with_mount(Mount::tmpfs_mount("/run"));
    let request = request.with_host_config_modifier(|config| {
        config.security_opt = Some(vec!["seccomp=unconfined".to_owned(), "apparmor=unconfined".to_owned()]);
    });
    let request = request.with_mount(Mount::volume_mount("", "/var")).with_ready_conditions(vec![WaitFor::Nothing]);
    let request = request.with_copy_to("/kind/kubeadm.yaml", KUBEADM.as_bytes().to_vec());
    let node = request.with_startup_timeout(STARTUP).start().await?;
    until(async || inside(&node, "ctr version && systemctl is-active containerd").await).await?;
    inside(&node, "sed -i \"s/VERSION/$(cat /kind/version)/\" /kind/kubeadm.yaml").await?;
    let init = "kubeadm init --config=/kind/kubeadm.yaml --skip-phases=preflight,addon --skip-token-print";
    inside(&node, init).await?;
    let (host, port) = address(&node, API).await?;
    // The certificate names addresses inside the container only.
    let curl = async || {
        run(Command::new("curl").args(["--silent", "--insecure", "--fail", &format!("https://{host}:{port}/readyz")]))
    };
    assert_eq!(until(curl).await?.stdout, b"ok");
    let kubelet = "kubectl --kubeconfig /etc/kubernetes/admin.conf get --raw /api/v1/nodes/node/proxy/healthz";
    assert_eq!(until(async || inside(&node, kubelet).await).await?, "ok");
    Ok(())
}
