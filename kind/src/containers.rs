//! Clusters whose nodes are containers, made by the program `kind` (kind.sigs.k8s.io).
//!
//! Owns the calls of `kind` and of the container engine: checks, creation, search, loading images, keeping logs,
//! deletion. Any version of kind on the PATH works. A cluster gets its own kubeconfig; the user's kubeconfig is neither
//! read nor written.

mod config;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::MissingProgram;
use crate::step::{self, Failed, Step, Tool};

/// The time limit for making a cluster. A cluster with three control planes takes a minute on two busy cores, and its
/// node image may have to be pulled.
const CREATE_LIMIT: Duration = Duration::from_mins(10);
/// The time that kind itself waits until the nodes are Ready.
const READY_WAIT: &str = "120s";
const DELETE_LIMIT: Duration = Duration::from_mins(2);
const LOAD_LIMIT: Duration = Duration::from_mins(5);
/// Maximum number of attempts to load an image. Loading sometimes fails while containerd is busy with another image.
const LOAD_ATTEMPTS: u32 = 3;
/// The time limit of a rollout, enough for three Pods with the same image on two busy cores.
const ROLLOUT_LIMIT: Duration = Duration::from_mins(3);
const LOGS_LIMIT: Duration = Duration::from_mins(2);
/// The time that a status command waits for a container engine that may hang.
const LOOK_LIMIT: Duration = Duration::from_secs(10);
/// The path of the administrator's kubeconfig in a control plane's container, where kubeadm writes it.
const ADMIN: &str = "/etc/kubernetes/admin.conf";
/// The environment variable that makes kind use another container engine.
const PROVIDER: &str = "KIND_EXPERIMENTAL_PROVIDER";
/// The environment variable with the default node image, for machines that cannot pull the official images.
const IMAGE: &str = "LONGHAUL_KIND_IMAGE";
const GET_KIND: &str = "go install sigs.k8s.io/kind@latest, or see https://kind.sigs.k8s.io/docs/user/quick-start";
/// The allowed numbers of control planes: one, or three, of which one can fail.
const CONTROL_PLANES: [u8; 2] = [1, 3];

/// The settings of a kind cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// The node image. Default: the official image of version `kubernetes`, or the default of this version of kind.
    pub image: Option<String>,
    /// The version of Kubernetes, such as `1.34.1`.
    pub kubernetes: Option<String>,
    /// The number of control planes, 1 or 3. Default: 1.
    pub control_planes: Option<u8>,
    /// A configuration file for kind, instead of a generated configuration.
    pub file: Option<PathBuf>,
}

/// A kind cluster on this machine's container engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Containers {
    /// The cluster's name in kind.
    pub name: String,
    kind: PathBuf,
    engine: PathBuf,
}

/// Why a kind cluster could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine lacks a program or setting. Longhaul started nothing.
    #[error("nothing was started")]
    Missing(#[from] MissingProgram),
    #[error(transparent)]
    Step(#[from] Failed),
    /// The number of control planes is neither 1 nor 3.
    #[error("failed to use `--control-planes {0}`: write 1, or 3, which survive the loss of one")]
    ControlPlanes(u8),
    /// The cluster has no nodes.
    #[error("there is no kind cluster `{name}`: create it with `longhaul cluster up --kind kind{}`", if name == "kind" { String::new() } else { format!(" --name {name}") })]
    Unknown { name: String },
    /// The cluster has another Kubernetes version than requested.
    #[error(
        "the cluster `{name}` has Kubernetes {found}, and {wanted} was asked for: `longhaul cluster down --name {name}` first, or leave the version out"
    )]
    Version { name: String, found: String, wanted: String },
    /// The nodes cannot reach servers on this machine.
    #[error(
        "failed to listen at {gateway}, where the containers of `{name}` reach this machine: its engine runs in another machine (as Docker \
         Desktop does). Run longhaul where the engine runs, or in a container with `--network host`"
    )]
    Gateway {
        name: String,
        gateway: Ipv4Addr,
        #[source]
        source: std::io::Error,
    },
    /// The output of a program could not be read.
    #[error("failed to read what {program} says of {what}: `{said}`")]
    Said {
        program: String,
        /// The information that the program's output should contain.
        what: &'static str,
        said: String,
    },
    #[error("failed to use {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

fn lacks(programs: &str) -> MissingProgram {
    MissingProgram::new(format!("a kind cluster needs programs that this machine lacks\n  {programs}"))
}

impl Containers {
    /// Checks that kind could make a cluster with this name and these settings. The error of this check names every
    /// missing program. The check starts nothing.
    pub async fn check(name: &str, config: &Config) -> Result<Self, Error> {
        let kind = found("kind").ok_or_else(|| format!("kind on the PATH: {GET_KIND}"));
        let called = std::env::var(PROVIDER).unwrap_or_else(|_| "docker".to_owned());
        let install = format!("a container engine on the PATH, `{called}`: apt-get install docker.io");
        let engine = found(&called).ok_or(install);
        let file = match &config.file {
            Some(path) if !path.is_file() => {
                Err(format!("the configuration {}: there is no such file", path.display()))
            }
            _ => Ok(()),
        };
        let missing: Vec<String> =
            [kind.as_ref().err(), engine.as_ref().err(), file.as_ref().err()].into_iter().flatten().cloned().collect();
        let (Ok(kind), Ok(engine), true) = (kind, engine, missing.is_empty()) else {
            return Err(lacks(&missing.join("\n  ")).into());
        };
        if let Some(number) = config.control_planes.filter(|number| !CONTROL_PLANES.contains(number)) {
            return Err(Error::ControlPlanes(number));
        }
        let made = Self { name: name.to_owned(), kind, engine };
        let mend = format!("start the engine (`systemctl start {called}`), or tell {called} where it is (DOCKER_HOST)");
        let tool = made.engine();
        let answers = Step::new("ask the container engine", mend, &tool, ["version"]).within(LOOK_LIMIT);
        answers.call().await.map_err(|failed| lacks(&failed.to_string()))?;
        Ok(made)
    }

    /// Makes the cluster, with its own kubeconfig.
    pub async fn create(&self, config: &Config, kubeconfig: &Path, folder: &Path) -> Result<(), Error> {
        let file = if let Some(file) = &config.file {
            file.clone()
        } else {
            let path = folder.join("kind.yaml");
            let cgroups = self.cgroups_by_hand(config).await;
            let text = config::text(config.control_planes.unwrap_or(1), cgroups);
            std::fs::write(&path, text).map_err(|source| Error::File { path: path.clone(), source })?;
            path
        };
        let (name, file, kubeconfig) = (self.name.as_str(), text(&file), text(kubeconfig));
        let mut words = vec![
            "create",
            "cluster",
            "--name",
            name,
            "--kubeconfig",
            &kubeconfig,
            "--config",
            &file,
            "--wait",
            READY_WAIT,
        ];
        let image = config.image();
        if let Some(image) = &image {
            words.extend(["--image", image]);
        }
        let mend = format!("look at `kind export logs --name {name}`; `kind delete cluster --name {name}` and again");
        let tool = self.kind();
        Step::new("make a cluster", mend, &tool, words).within(CREATE_LIMIT).call().await?;
        Ok(())
    }

    /// Whether kind lists the cluster.
    pub async fn exists(&self) -> Result<bool, Error> {
        let tool = self.kind();
        let said = Step::new("list the clusters of kind", "start the container engine", &tool, ["get", "clusters"])
            .call()
            .await?;
        Ok(said.lines().any(|line| line.trim() == self.name))
    }

    /// The nodes of the cluster: the names of their containers, control planes first.
    pub async fn nodes(&self) -> Result<Vec<String>, Error> {
        let tool = self.kind();
        let words = ["get", "nodes", "--name", &self.name];
        let said = Step::new("list the nodes of a cluster", "kind get clusters", &tool, words).call().await?;
        let mut nodes: Vec<String> = said
            .lines()
            .map(str::trim)
            .filter(|name| !name.is_empty() && !name.contains(' '))
            .map(str::to_owned)
            .collect();
        // kind lists the load balancer among the nodes.
        nodes.retain(|name| !name.ends_with("-external-load-balancer"));
        nodes.sort_by_key(|name| (!name.contains("-control-plane"), name.clone()));
        if nodes.is_empty() { Err(Error::Unknown { name: self.name.clone() }) } else { Ok(nodes) }
    }

    /// The process id of a node's first process on this machine; `None` if the container engine runs on another
    /// machine.
    pub async fn first_process(&self, node: &str) -> Option<u32> {
        let pid: u32 = self.inspect(node, "{{.State.Pid}}").await.ok()?.trim().parse().ok()?;
        (pid > 1).then_some(pid)
    }

    /// The number of running nodes.
    pub(crate) fn running(&self) -> Result<usize, Failed> {
        let label = format!("label=io.x-k8s.kind.cluster={}", self.name);
        let tool = self.engine();
        let words = ["ps", "--filter", &label, "--format", "{{.Names}}"];
        let said = Step::new("list the nodes that run", "start the container engine", &tool, words)
            .within(LOOK_LIMIT)
            .call_now()?;
        Ok(said.lines().filter(|line| !line.trim().is_empty()).count())
    }

    /// The address at which the containers reach this machine. Fails if this machine cannot listen at that address.
    pub async fn machine(&self) -> Result<Ipv4Addr, Error> {
        let nodes = self.nodes().await?;
        let gateway = self.addresses(&nodes[0], "Gateway", "the gateway of a node").await?;
        match TcpListener::bind(SocketAddr::from((gateway, 0))) {
            Ok(_) => Ok(gateway),
            Err(source) => Err(Error::Gateway { name: self.name.clone(), gateway, source }),
        }
    }

    pub async fn address(&self, node: &str) -> Result<IpAddr, Error> {
        self.addresses(node, "IPAddress", "the address of a node").await.map(IpAddr::V4)
    }

    async fn addresses(&self, node: &str, field: &str, what: &'static str) -> Result<Ipv4Addr, Error> {
        let format = format!("{{{{range .NetworkSettings.Networks}}}}{{{{.{field}}}}} {{{{end}}}}");
        let said = self.inspect(node, &format).await?;
        let address = said.split_whitespace().find_map(|word| word.parse().ok());
        address.ok_or_else(|| Error::Said { program: self.engine.display().to_string(), what, said })
    }

    async fn inspect(&self, node: &str, format: &str) -> Result<String, Failed> {
        let tool = self.engine();
        Step::new("look at a node", format!("docker start {node}"), &tool, ["inspect", "-f", format, node]).call().await
    }

    /// The text of the administrator's kubeconfig, for use on this machine.
    pub async fn kubeconfig(&self) -> Result<String, Error> {
        let tool = self.kind();
        let mend = format!("longhaul cluster down --name {}, and up again", self.name);
        Ok(Step::new("get the kubeconfig", mend, &tool, ["get", "kubeconfig", "--name", &self.name]).call().await?)
    }

    /// The version that the API server reports. Fails if the API server does not answer.
    pub async fn version(&self) -> Result<String, Error> {
        let tool = self.kubectl().await?;
        let mend = format!("longhaul cluster down --name {}, and up again", self.name);
        let step = Step::new("reach the API server", mend, &tool, ["get", "--raw", "/version"]).tried(3);
        let said = step.call().await?;
        let version: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
        let program = self.kind.display().to_string();
        let version = version["gitVersion"].as_str().map(str::to_owned);
        version.ok_or(Error::Said { program, what: "the version", said })
    }

    /// The URL of the API server: `https://127.0.0.1:port`
    pub async fn url(&self) -> Result<String, Error> {
        let text = self.kubeconfig().await?;
        let server = text.lines().find_map(|line| line.trim().strip_prefix("server: "));
        let program = self.kind.display().to_string();
        server.map(|url| url.trim().to_owned()).ok_or(Error::Said { program, what: "its server", said: String::new() })
    }

    /// The holder of kube-controller-manager's Lease, as the API server of the control plane `node` reports it.
    pub(crate) async fn holder(&self, node: &str) -> Result<String, Error> {
        // The administrator's kubeconfig leads through the load balancer, to any API server.
        let own = "/etc/kubernetes/controller-manager.conf";
        let path = "jsonpath={.spec.holderIdentity}";
        let words = ["exec", node, "kubectl", "--kubeconfig", own, "-n", "kube-system", "get", "lease", "-o", path];
        let tool = self.engine().with(words);
        let mend = format!("docker exec {node} kubectl --kubeconfig {own} -n kube-system get leases");
        let step = Step::new("ask who leads", mend, &tool, ["kube-controller-manager"]);
        Ok(step.within(LOOK_LIMIT).tried(3).call().await?)
    }

    /// Pauses all processes of a node.
    pub(crate) async fn pause(&self, node: &str) -> Result<(), Error> {
        let tool = self.engine();
        Step::new("let a node stand still", format!("docker unpause {node}"), &tool, ["pause", node]).call().await?;
        Ok(())
    }

    /// Resumes a paused node.
    pub(crate) async fn unpause(&self, node: &str) -> Result<(), Error> {
        let tool = self.engine();
        let step = Step::new("let a node go on", format!("docker unpause {node}"), &tool, ["unpause", node]);
        step.tried(3).call().await?;
        Ok(())
    }

    /// Resumes a paused node, for code that cannot await.
    pub(crate) fn unpause_now(&self, node: &str) -> Result<(), Failed> {
        let tool = self.engine();
        let step = Step::new("let a node go on", format!("docker unpause {node}"), &tool, ["unpause", node]);
        step.within(LOOK_LIMIT).call_now().map(drop)
    }

    /// Resumes every node that a killed run left paused.
    pub(crate) async fn unpause_all(&self) -> Result<(), Error> {
        let label = format!("label=io.x-k8s.kind.cluster={}", self.name);
        let tool = self.engine();
        let words = ["ps", "--filter", &label, "--filter", "status=paused", "--format", "{{.Names}}"];
        let said = Step::new("list the nodes that stand still", "start the container engine", &tool, words)
            .within(LOOK_LIMIT)
            .call()
            .await?;
        for node in said.lines().map(str::trim).filter(|name| !name.is_empty()) {
            self.unpause(node).await?;
        }
        Ok(())
    }

    /// The kubectl in the first control plane's container.
    pub(crate) async fn kubectl(&self) -> Result<Tool, Error> {
        let nodes = self.nodes().await?;
        let words = ["exec", "-i", &nodes[0], "kubectl", "--kubeconfig", ADMIN];
        Ok(self.engine().with(words))
    }

    /// Loads the images of an archive into every node. The archive has the format of `docker save`.
    pub async fn load(&self, archive: &Path) -> Result<(), Error> {
        let (tool, archive) = (self.kind(), text(archive));
        let words = ["load", "image-archive", &archive, "--name", &self.name];
        let mend = format!("kind load image-archive {archive} --name {}", self.name);
        Step::new("load an image", mend, &tool, words).within(LOAD_LIMIT).tried(LOAD_ATTEMPTS).call().await?;
        Ok(())
    }

    /// Writes the logs of nodes and Pods into a folder.
    pub async fn keep_logs(&self, folder: &Path) -> Result<(), Error> {
        let (tool, folder) = (self.kind(), text(folder));
        let words = ["export", "logs", &folder, "--name", &self.name];
        Step::new("keep the logs", format!("kind export logs --name {}", self.name), &tool, words)
            .within(LOGS_LIMIT)
            .call()
            .await?;
        Ok(())
    }

    /// Applies manifests, and waits until a Deployment is rolled out.
    pub async fn deploy(&self, manifests: String, namespace: &str, deployment: &str) -> Result<(), Error> {
        let tool = self.kubectl().await?;
        let apply =
            Step::new("apply the manifests", "kubectl apply -f FILE", &tool, ["apply", "--server-side", "-f", "-"]);
        apply.reading(manifests.into_bytes()).within(LOOK_LIMIT * 6).tried(3).call().await?;
        let target = format!("deployment/{deployment}");
        let limit = format!("--timeout={}s", ROLLOUT_LIMIT.as_secs());
        let words = ["-n", namespace, "rollout", "status", &target, &limit];
        let mend = format!("look at `kubectl -n {namespace} describe pods` and `kubectl -n {namespace} logs {target}`");
        Step::new("roll out", mend, &tool, words).within(ROLLOUT_LIMIT + LOOK_LIMIT).call().await?;
        Ok(())
    }

    /// Deletes the cluster. A cluster that does not exist counts as deleted. `kubeconfig` is the file with which the
    /// cluster was made.
    pub async fn delete(&self, kubeconfig: Option<&Path>) -> Result<(), Error> {
        // Some versions of kind report an error if it was deleted already.
        if !self.exists().await? {
            return Ok(());
        }
        let tool = self.kind();
        let kubeconfig = kubeconfig.map_or_else(|| "/dev/null".to_owned(), text);
        let words = ["delete", "cluster", "--name", &self.name, "--kubeconfig", &kubeconfig];
        let mend = format!("kind delete cluster --name {}", self.name);
        Step::new("delete a cluster", mend, &tool, words).within(DELETE_LIMIT).tried(2).call().await?;
        Ok(())
    }

    /// Deletes the cluster, for code that cannot await.
    pub(crate) fn delete_now(&self) -> Result<(), Error> {
        let containers = self.clone();
        step::now(async move { containers.delete(None).await })
    }

    /// Whether the node image's containerd manages cgroups itself and not through systemd. If so, the kubelet must also
    /// manage cgroups itself.
    async fn cgroups_by_hand(&self, config: &Config) -> bool {
        let Some(image) = config.image() else { return false };
        let tool = self.engine();
        let here = ["image", "inspect", "-f", "{{.Id}}", &image];
        // An image that has to be pulled is an official one.
        if Step::new("find the node image", "", &tool, here).call().await.is_err() {
            return false;
        }
        let words = ["run", "--rm", "--network", "none", "--entrypoint", "cat", &image, "/etc/containerd/config.toml"];
        let read = Step::new("read the node image", "", &tool, words).call().await;
        read.is_ok_and(|text| config::leaves_cgroups(&text))
    }

    fn kind(&self) -> Tool {
        Tool::new(self.kind.clone())
    }

    fn engine(&self) -> Tool {
        Tool::new(self.engine.clone())
    }
}

impl Config {
    /// The name of the node image; `None` for kind's default.
    fn image(&self) -> Option<String> {
        let official = |version: &String| format!("docker.io/kindest/node:v{}", version.trim_start_matches('v'));
        let usual = || std::env::var(IMAGE).ok().filter(|image| !image.is_empty());
        self.image.clone().or_else(|| self.kubernetes.as_ref().map(official)).or_else(usual)
    }

    /// Checks that a cluster with this Kubernetes version fits the requested settings.
    pub fn fits(&self, name: &str, version: &str) -> Result<(), Error> {
        match &self.kubernetes {
            Some(wanted) if wanted.trim_start_matches('v') != version.trim_start_matches('v') => {
                Err(Error::Version { name: name.to_owned(), found: version.to_owned(), wanted: wanted.clone() })
            }
            _ => Ok(()),
        }
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The path of the program `name` on the PATH, if it is there.
pub(crate) fn found(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| {
        use std::os::unix::fs::PermissionsExt as _;
        file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_names_the_official_image_and_an_image_goes_before_it() {
        let config = |image: Option<&str>, kubernetes: Option<&str>| Config {
            image: image.map(str::to_owned),
            kubernetes: kubernetes.map(str::to_owned),
            ..Config::default()
        };
        assert_eq!(config(None, None).image(), None);
        assert_eq!(config(None, Some("v1.34.1")).image().unwrap(), "docker.io/kindest/node:v1.34.1");
        assert_eq!(config(Some("kind-node:x"), Some("1.34.1")).image().unwrap(), "kind-node:x");
        assert!(config(None, Some("1.34.1")).fits("kind", "v1.34.1").is_ok());
        let other = config(None, Some("1.33.0")).fits("kind", "v1.34.1").unwrap_err().to_string();
        assert!(
            other.contains(
                "has Kubernetes v1.34.1, and 1.33.0 was asked for: `longhaul cluster down --name kind` first"
            ),
            "{other}"
        );
    }
}
