//! Longhaul's own images: the mock API server and the service, each used from outside its container.

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use containers::{Error, Recipe, STARTUP, address, engine, installed, printed, run, tested, until};
use serde_json::{Value, json};
use testcontainers::bollard::models::ImageConfig;
use testcontainers::bollard::query_parameters::{ImportImageOptionsBuilder, RemoveImageOptions};
use testcontainers::bollard::{Docker, body_full};
use testcontainers::core::wait::ExitWaitStrategy;
use testcontainers::core::{IntoContainerPort as _, WaitFor};
use testcontainers::runners::AsyncRunner as _;
use testcontainers::{ContainerAsync, GenericImage, ImageExt as _};
use tokio_stream::StreamExt as _;

/// The port of the mock API server, which is the default of `longhaul mock kube`.
const API: u16 = 6443;
/// The ports of the service in [`CONFIGURATION`].
const WEBHOOK: u16 = 8443;
const HEALTH: u16 = 9090;
/// A name in the webhook's certificate; the address of a published port is known only after the start.
const NAME: &str = "webhook.test";
const CONFIGURATION: &str = "\
admission: {listen: '0.0.0.0:8443', certificate: /etc/longhaul/tls.crt, key: /etc/longhaul/tls.key}
health: {listen: '0.0.0.0:9090'}
";
/// An image that the service need not resolve.
const PINNED: &str = "registry.test/app@sha256:0fc573d1b14c00b6ce10d3ccdc125224ea8938b18f5dd0464600e9ad6e53bad9";
/// Further plays of a soak during which the machine stood still.
const PLAYS: usize = 2;
/// A short soak of a webhook that runs already.
const SOAK: &str = "\
apiVersion: longhaul/v1
name: in-a-container
description: Does the service in a container answer every review?
seed: 3
phases: {warmUp: 1s, steady: 5s, drain: 1s}
subject:
  attach: {role: webhook, url: 'https://ADDRESS/mutate', ca: tls.crt, serverName: webhook.test}
  startTimeout: 10s
admission: {rate: 60/s}
budgets:
  admission: {errors: 0, p50: 500ms}
";

/// The mock API server in a container, reached through its kubeconfig.
struct Mock {
    /// Removes the container at the end of the test.
    _container: ContainerAsync<GenericImage>,
    address: (String, u16),
    token: String,
    folder: tempfile::TempDir,
}

impl Mock {
    async fn start() -> Result<Option<Self>, Error> {
        let (Some(docker), Some(program)) = (engine().await, tested("longhaul")) else { return Ok(None) };
        Recipe { name: "longhaul-tested", programs: &[program], changes: &[] }.make(&docker).await?;
        let image = GenericImage::new("longhaul-tested", "latest").with_exposed_port(API.tcp());
        let image = image.with_wait_for(WaitFor::message_on_stdout("Ctrl-C ends it"));
        let command = ["mock", "kube", "--listen", "0.0.0.0"];
        let container = image.with_cmd(command).with_startup_timeout(STARTUP).start().await?;
        let mut kubeconfig: Vec<u8> = Vec::new();
        container.copy_file_from("/work/kubeconfig.yaml", &mut kubeconfig).await?;
        let kubeconfig = String::from_utf8(kubeconfig)?;
        let value: Value = serde_saphyr::from_str(&kubeconfig)?;
        let value = |pointer: &str| {
            let text = value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
            text.ok_or_else(|| format!("no {pointer} in {kubeconfig}"))
        };
        let folder = tempfile::tempdir()?;
        std::fs::write(
            folder.path().join("ca.crt"),
            STANDARD.decode(value("/clusters/0/cluster/certificate-authority-data")?)?,
        )?;
        Ok(Some(Self {
            address: address(&container, API).await?,
            token: value("/users/0/user/token")?,
            folder,
            _container: container,
        }))
    }

    /// Sends a request by curl, which checks the server's certificate. Returns the lines of the answer as JSON.
    fn ask(&self, arguments: &[&str], path: &str) -> Result<Vec<Value>, Error> {
        let mut curl = curl(&self.folder.path().join("ca.crt"), "localhost", &self.address);
        curl.args(["--header", &format!("Authorization: Bearer {}", self.token)]).args(arguments);
        let output = run(curl.arg(format!("https://localhost:{}{path}", self.address.1)))?;
        let values = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
        Ok(values.collect::<Result<_, _>>()?)
    }
}

/// A curl that connects to an address under a name of the server's certificate, and fails on an error status.
fn curl(authority: &Path, name: &str, (host, port): &(String, u16)) -> Command {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail-with-body", "--max-time", "20", "--cacert"]).arg(authority);
    curl.args(["--connect-to", &format!("{name}:{port}:{host}:{port}")]);
    curl
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mock_api_server_lists_and_watches_from_a_container() -> Result<(), Error> {
    if installed("curl").is_none() {
        return Ok(());
    }
    let Some(mock) = Mock::start().await? else { return Ok(()) };
    let maps = "/api/v1/namespaces/default/configmaps";
    let list = mock.ask(&[], maps)?;
    assert_eq!(list[0]["kind"], "ConfigMapList", "{list:?}");
    let revision = list[0]["metadata"]["resourceVersion"].as_str().ok_or("no version")?;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}});
    let made = mock.ask(&["--header", "Content-Type: application/json", "--data", &object.to_string()], maps)?;
    assert_eq!(made[0]["metadata"]["name"], "a");
    let events = mock.ask(&[], &format!("{maps}?watch=1&resourceVersion={revision}&timeoutSeconds=2"))?;
    assert_eq!((&events[0]["type"], &events[0]["object"]), (&json!("ADDED"), &made[0]), "{events:?}");
    let state = mock.ask(&[], "/longhaul/history?resource=configmaps&name=a")?;
    assert!(state[0].to_string().contains("\"a\""), "the mock's own endpoints answer too: {state:?}");
    Ok(())
}

/// The service in a container with a certificate that this test makes, in the folder as `tls.crt`.
async fn service(folder: &Path) -> Result<Option<ContainerAsync<GenericImage>>, Error> {
    let (Some(docker), Some(program)) = (engine().await, tested("longhaul-service")) else { return Ok(None) };
    if installed("openssl").is_none() || installed("curl").is_none() {
        return Ok(None);
    }
    let mut certificate = Command::new("openssl");
    certificate.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    certificate.args(["-days", "2", "-subj", "/CN=webhook", "-addext", &format!("subjectAltName=DNS:{NAME}")]);
    certificate.args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", "tls.key", "-out", "tls.crt"]);
    run(certificate.current_dir(folder))?;
    Recipe { name: "longhaul-service-tested", programs: &[program], changes: &[] }.make(&docker).await?;
    let image = GenericImage::new("longhaul-service-tested", "latest");
    let image = image.with_exposed_port(WEBHOOK.tcp()).with_exposed_port(HEALTH.tcp());
    let mut request = image.with_cmd(["run", "--role", "admission", "--config", "/etc/longhaul/service.yaml"]);
    request = request.with_startup_timeout(STARTUP);
    request = request.with_copy_to("/etc/longhaul/service.yaml", CONFIGURATION.as_bytes().to_vec());
    for file in ["tls.crt", "tls.key"] {
        request = request.with_copy_to(format!("/etc/longhaul/{file}"), std::fs::read(folder.join(file))?);
    }
    let container = request.start().await?;
    let (host, port) = address(&container, HEALTH).await?;
    let ready =
        async || run(Command::new("curl").args(["--silent", "--fail", &format!("http://{host}:{port}/readyz")]));
    if let Err(error) = until(ready).await {
        let log = container.stderr_to_vec().await?;
        return Err(format!("{error}; {}", String::from_utf8_lossy(&log)).into());
    }
    Ok(Some(container))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_answers_a_review_from_a_container() -> Result<(), Error> {
    let folder = tempfile::tempdir()?;
    let Some(container) = service(folder.path()).await? else { return Ok(()) };
    let reached = address(&container, WEBHOOK).await?;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"},
        "spec": {"containers": [{"name": "a", "image": PINNED}]},
    });
    let pods = json!({"group": "", "version": "v1", "resource": "pods"});
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "resource": pods,
            "name": "a", "namespace": "default", "operation": "CREATE", "userInfo": {"username": "a"}, "object": pod,
        },
    });
    let mut curl = curl(&folder.path().join("tls.crt"), NAME, &reached);
    curl.args(["--header", "Content-Type: application/json", "--data", &review.to_string()]);
    let output = run(curl.arg(format!("https://{NAME}:{}/mutate", reached.1)))?;
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!((&answer["response"]["uid"], &answer["response"]["allowed"]), (&json!("u-1"), &json!(true)), "{answer}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_soak_judges_the_service_in_a_container() -> Result<(), Error> {
    let folder = tempfile::tempdir()?;
    let Some(longhaul) = tested("longhaul") else { return Ok(()) };
    let Some(container) = service(folder.path()).await? else { return Ok(()) };
    let (host, port) = address(&container, WEBHOOK).await?;
    std::fs::write(folder.path().join("soak.yaml"), SOAK.replace("ADDRESS", &format!("{host}:{port}")))?;
    let mut soak = Command::new(longhaul);
    soak.args(["soak", "soak.yaml", "--quiet"]).current_dir(folder.path()).stdin(std::process::Stdio::null());
    let mut output = soak.output()?;
    // The run is invalid (3) if the machine stood still.
    for _ in 0..PLAYS {
        if output.status.code() == Some(3) {
            output = soak.output()?;
        }
    }
    // A busy machine may leave the share of lost time undecided (2); a broken budget is 1.
    let passed = output.status.code() == Some(0) || output.status.code() == Some(2);
    assert!(passed && printed(&output).contains("360 reviews, 0 errors"), "{}", printed(&output));
    container.stop().await?;
    let output = soak.output()?;
    assert_ne!(output.status.code(), Some(0), "a stopped container cannot pass: {}", printed(&output));
    Ok(())
}

/// The images of a release, if `cargo xtask dist` has written them into the checkout.
#[tokio::test(flavor = "multi_thread")]
async fn images_of_a_release_are_like_the_tested_ones() -> Result<(), Error> {
    let Some(docker) = engine().await else { return Ok(()) };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/dist");
    for name in ["longhaul", "longhaul-service"] {
        let Some(program) = tested(name) else { return Ok(()) };
        let image = format!("{name}:{}", env!("CARGO_PKG_VERSION"));
        let archive = folder.join(format!("{name}-{}-linux-amd64.oci.tar", env!("CARGO_PKG_VERSION")));
        let Ok(bytes) = std::fs::read(&archive) else {
            println!("skipped: needs {}, as `cargo xtask dist` writes it", archive.display());
            return Ok(());
        };
        let was_there = docker.inspect_image(&image).await.is_ok();
        load(&docker, bytes).await?;
        let tested = format!("{name}-tested");
        Recipe { name: &tested, programs: &[program], changes: &[] }.make(&docker).await?;
        let (released, made) = (config(&docker, &image).await?, config(&docker, &tested).await?);
        assert_eq!((&released.user, &released.entrypoint, &released.env), (&made.user, &made.entrypoint, &made.env));
        let exits = WaitFor::exit(ExitWaitStrategy::new().with_exit_code(0));
        let request = GenericImage::new(name, env!("CARGO_PKG_VERSION")).with_wait_for(exits).with_cmd(["--version"]);
        let container = request.with_startup_timeout(STARTUP).start().await?;
        let printed = String::from_utf8(container.stdout_to_vec().await?)?;
        assert!(printed.starts_with(&format!("{name} ")), "{printed}");
        container.rm().await?;
        if !was_there {
            docker.remove_image(&image, None::<RemoveImageOptions>, None).await?;
        }
    }
    Ok(())
}

/// Loads an image archive into the engine.
async fn load(docker: &Docker, archive: Vec<u8>) -> Result<(), Error> {
    let options = ImportImageOptionsBuilder::new().quiet(true).build();
    let mut steps = docker.import_image(options, body_full(archive.into()), None);
    while let Some(step) = steps.next().await {
        step?;
    }
    Ok(())
}

/// The configuration of an image: its user, its program and its variables.
async fn config(docker: &Docker, image: &str) -> Result<ImageConfig, Error> {
    Ok(docker.inspect_image(image).await?.config.ok_or("an image without a configuration")?)
}
