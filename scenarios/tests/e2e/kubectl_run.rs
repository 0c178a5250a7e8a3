//! Tests the path of an image from `kubectl run` to the stored Pod. `kubectl run` with a tag leads to requests at the
//! API server, the webhook of the built-in service, and the registry. The stored Pod has the digest of the image.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use kind::manifests::{OPT_IN_LABEL, Reach};

use crate::support::{Ended, program};

const PATIENCE: Duration = Duration::from_secs(30);

/// The servers of the test, and a folder with certificates, configuration and kubeconfig.
struct World {
    kube: mock_kube::Server,
    images: Vec<mock_registry::Image>,
    _registry: mock_registry::Server,
    folder: tempfile::TempDir,
    _service: Ended,
    webhook: serde_json::Value,
}

async fn world(program: &Path) -> World {
    let folder = tempfile::tempdir().unwrap();
    let authority = mock_pki::Authority::generate("longhaul").unwrap();
    let mut config = mock_kube::Config::new();
    config.users = vec![mock_kube::User::admin("admin", "admin")];
    config.crds = vec![kind::manifests::package_crd().unwrap()];
    let kube = mock_kube::Server::start(config, &authority).await.unwrap();
    let registry = mock_registry::Server::start(mock_registry::Config::new()).await.unwrap();
    let images = registry.seed(&mock_registry::Population { count: 20, seed: 1, signed: false }).unwrap();
    let pair = authority.server(&["127.0.0.1"]).unwrap();
    let [admission, health] =
        [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    write("tls.crt", &pair.certificate_pem);
    write("tls.key", &pair.key_pem);
    let kubeconfig = write("kubeconfig", &kube.kubeconfig("admin").unwrap());
    let settings = format!(
        "admission: {{listen: \"{admission}\", certificate: tls.crt, key: tls.key}}\nhealth: {{listen: \"{health}\"}}\n\
         resolve: {{registries: [{{host: \"{}\", plainHttp: true}}]}}\n",
        registry.host()
    );
    let settings = write("service.yaml", &settings);
    let mut command = Command::new(program);
    command.args(["run", "--role", "all", "--config"]).arg(settings).env("KUBECONFIG", &kubeconfig);
    let service = Ended(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let deadline = Instant::now() + PATIENCE;
    while std::net::TcpStream::connect(admission).is_err() {
        assert!(Instant::now() < deadline, "the service does not listen");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    let url = format!("https://{admission}/mutate");
    let webhook = kind::manifests::webhook(authority.ca_pem(), Reach::Url(&url)).unwrap();
    World { kube, images, _registry: registry, folder, _service: service, webhook }
}

impl World {
    fn kubectl(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = Command::new("kubectl");
        command.arg("--kubeconfig").arg(self.folder.path().join("kubeconfig")).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Runs kubectl, which must succeed. Returns kubectl's output.
    fn works(&self, arguments: &[&str], input: &str) -> String {
        let output = self.kubectl(arguments, input);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments:?}: {stderr}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow"]
async fn a_tag_becomes_a_digest_and_a_missing_image_is_refused() {
    let Some(service) = program("longhaul-service") else { return };
    if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
        println!("skipped: needs kubectl");
        return;
    }
    let world = world(&service).await;
    let there = world.images.iter().find(|image| image.digest.is_some()).unwrap().clone();
    let missing = world.images.iter().find(|image| image.digest.is_none()).unwrap().clone();
    let (label, value) = OPT_IN_LABEL;
    let world = tokio::task::spawn_blocking(move || {
        world.works(&["apply", "-f", "-"], &world.webhook.to_string());
        world.works(&["label", "namespace", "default", &format!("{label}={value}")], "");
        world.works(&["run", "web", &format!("--image={}", there.reference)], "");
        let image = world.works(&["get", "pod", "web", "-o", "jsonpath={.spec.containers[0].image}"], "");
        assert_eq!(image, format!("{}@{}", there.reference, there.digest.unwrap()));
        let refused = world.kubectl(&["run", "ghost", &format!("--image={}", missing.reference)], "");
        let message = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && message.contains(&missing.reference), "{message}");
        world
    })
    .await
    .unwrap();
    world.kube.shutdown().await;
}
