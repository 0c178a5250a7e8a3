//! A run in a foreign cluster, which is a kind cluster (possibly made for the run) or a cluster that a kubeconfig
//! names.
//!
//! Owns the objects of the run and their removal: a namespace, accounts with tokens, and a label on every object. All
//! objects of the run are deleted by a label on them. The kubeconfig is only read; its current context is neither used
//! nor switched. Until the first token exists, all requests use kubectl, so that the user's login (certificates,
//! plugins) works.

mod context;
mod others;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::MissingProgram;
use crate::containers::{self, Containers, found};
use crate::labelled::Labelled;
use crate::leaders::Leaders;
use crate::node::{Pods, TAINT};
use crate::programs::{self, User, files};
use crate::state::{Identity, Outside, Ready, Registration};
use crate::step::{Failed, Step, Tool};

pub(crate) use crate::labelled::LABEL;
pub use context::Way;

/// The annotation of a namespace that names the run which made it, as JSON.
const OWNER: &str = "longhaul.dev/owner";
const MASTERS: &str = "system:masters";
/// The prefix of a service account's user name in the API server (Kubernetes documentation, "Service account tokens").
const ACCOUNT: &str = "system:serviceaccount:";
/// The requested validity of tokens, longer than the longest run. If a server grants a token for a shorter time, the
/// run ends when the token expires.
const TOKEN_VALID: &str = "240h";
/// The deadline of a request to an API server.
const ASK_LIMIT: Duration = Duration::from_secs(20);
/// The kubelet's port, to which [`seen_from`] connects a socket without sending a packet.
const KUBELET: u16 = 10250;

/// The foreign cluster, and the users of the run.
#[derive(Debug, Clone)]
pub struct Config {
    pub cluster: Cluster,
    /// The users of the run; each gets a token at the start.
    pub users: Vec<User>,
    /// A folder for the run's files.
    pub directory: PathBuf,
    /// The state directory in which the run is registered while it has objects in the cluster.
    pub state_directory: Option<PathBuf>,
}

/// The foreign cluster in which a run makes objects.
#[derive(Debug, Clone)]
pub enum Cluster {
    /// A kind cluster with this name. If the name is `None` or no cluster has it, the run makes a kind cluster and
    /// deletes it at its end.
    Containers(Option<String>, containers::Config),
    /// The cluster or context with this name in a kubeconfig. If the path is `None`, the kubeconfig is the file in
    /// `KUBECONFIG`, or `~/.kube/config`.
    Kubeconfig(Option<PathBuf>, String),
}

/// A run in a foreign cluster. Dropping the value removes every object that the run made.
#[derive(Debug)]
pub struct Guest {
    stay: Stay,
    way: Way,
    version: String,
    address: SocketAddr,
    tokens: BTreeMap<String, String>,
    machine: Ipv4Addr,
    nodes: Vec<(String, IpAddr)>,
    directory: PathBuf,
}

/// The objects that a run made in a foreign cluster; this type also removes them.
#[derive(Debug)]
struct Stay {
    tool: Tool,
    mark: String,
    containers: Option<Containers>,
    /// Whether the run made the cluster itself.
    is_made: bool,
    /// The registration in the state directory, which is removed after all objects.
    registration: Option<Registration>,
    is_over: bool,
}

/// Why a run could not use a foreign cluster.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Containers(#[from] containers::Error),
    #[error(transparent)]
    Step(#[from] Failed),
    /// An operation that all kinds of control planes share failed, such as registering in the state directory.
    #[error(transparent)]
    Programs(#[from] programs::Error),
    /// kubectl is not on the PATH.
    #[error("nothing was started")]
    Missing(#[from] MissingProgram),
    /// The kubeconfig cannot be used.
    #[error("failed to use {file}: {reason}")]
    Kubeconfig {
        file: String,
        /// The reason, and advice for the user.
        reason: String,
    },
    /// Another run uses the cluster, or left objects in it.
    #[error(
        "the cluster has another guest: {who}\n  to fix it: wait for it, or take away what it left: kubectl delete namespaces,clusterroles,clusterrolebindings,customresourcedefinitions,mutatingwebhookconfigurations,validatingwebhookconfigurations -l {LABEL}={mark}"
    )]
    Occupied { who: String, mark: String },
    /// The cluster cannot reach this machine.
    #[error("failed to find an address of this machine that the cluster reaches: {0}")]
    NoWay(String),
}

/// The path of kubectl.
fn kubectl() -> Result<PathBuf, MissingProgram> {
    found("kubectl").ok_or_else(no_kubectl)
}

/// The error without kubectl.
pub fn no_kubectl() -> MissingProgram {
    MissingProgram::new(
        "kubectl has to be on the PATH, and is not\n  to fix it: https://kubernetes.io/docs/tasks/tools, or `longhaul cluster fetch`",
    )
}

impl Guest {
    /// Reports which programs for this cluster are missing on the machine, and starts nothing.
    pub async fn check(cluster: &Cluster) -> Result<(), Error> {
        match cluster {
            Cluster::Containers(name, config) => {
                drop(Containers::check(name.as_deref().unwrap_or_default(), config).await?);
            }
            Cluster::Kubeconfig(file, named) => {
                let tool = Tool::new(kubectl()?);
                context::read(&tool, file.as_deref(), named).await?;
            }
        }
        Ok(())
    }

    /// Examines the cluster, removes the objects that dead runs left, and makes the objects of this run. If the kind
    /// cluster does not exist, it is made.
    pub async fn start(config: Config) -> Result<Self, Error> {
        match config.cluster.clone() {
            Cluster::Containers(name, wanted) => {
                let fresh = format!("longhaul-{:08x}", rand::random::<u32>());
                let mut containers = Containers::check(name.as_deref().unwrap_or(&fresh), &wanted).await?;
                let is_made = !containers.exists().await?;
                if is_made {
                    containers.name = fresh;
                }
                let mut registration = noted(&config)?;
                let note = |outside: Outside, registration: &mut Option<Registration>| match registration {
                    Some(registration) => registration.lives_outside(outside).map_err(programs::Error::from),
                    None => Ok(()),
                };
                let mut stay = Stay::new(Tool::new(PathBuf::new()), Some(containers.clone()), is_made);
                if !is_made {
                    containers.unpause_all().await?;
                }
                if is_made {
                    note(
                        Outside { containers: Some(containers.clone()), guest: None, within: None },
                        &mut registration,
                    )?;
                    make_folder(&config.directory)?;
                    containers.create(&wanted, &config.directory.join("kind.kubeconfig"), &config.directory).await?;
                }
                stay.tool = containers.kubectl().await?;
                if !is_made {
                    note(
                        Outside { containers: None, guest: Some(stay.traces()), within: Some(containers.clone()) },
                        &mut registration,
                    )?;
                }
                let way = Way::of_text(&containers.kubeconfig().await?)?;
                let machine = containers.machine().await?;
                stay.registration = registration;
                Self::settle(stay, way, Some(machine), config, Some(&wanted)).await
            }
            Cluster::Kubeconfig(file, named) => {
                let tool = Tool::new(kubectl()?);
                let (way, words) = context::read(&tool, file.as_deref(), &named).await?;
                let mut stay = Stay::new(tool.with(words), None, false);
                let mut registration = noted(&config)?;
                if let Some(registration) = &mut registration {
                    let outside = Outside { containers: None, guest: Some(stay.traces()), within: None };
                    registration.lives_outside(outside).map_err(programs::Error::from)?;
                }
                stay.registration = registration;
                Self::settle(stay, way, None, config, None).await
            }
        }
    }

    async fn settle(
        stay: Stay,
        way: Way,
        machine: Option<Ipv4Addr>,
        config: Config,
        wanted: Option<&containers::Config>,
    ) -> Result<Self, Error> {
        let version = stay.version().await?;
        if let (Some(wanted), Some(containers)) = (wanted, &stay.containers) {
            wanted.fits(&containers.name, &version)?;
        }
        others::take_away_the_dead(&stay.tool, &stay.traces()).await?;
        let address = way.resolve().await?;
        let nodes = stay.nodes().await?;
        let machine = match machine {
            Some(machine) => machine,
            None => seen_from(&nodes, address)?,
        };
        let mut guest =
            Self { stay, way, version, address, tokens: BTreeMap::new(), machine, nodes, directory: config.directory };
        guest.stay.make_home(&config.users).await?;
        // The other users' accounts are made later, with their rights.
        for user in config.users.iter().filter(|user| user.groups.iter().any(|group| group == MASTERS)) {
            guest.admit(&user.name).await?;
        }
        if guest.stay.containers.is_some() {
            guest.stay.taint().await?;
        }
        let ready = Ready { version: guest.version.clone(), url: guest.way.url.clone(), kubeconfig: None };
        if let Some(registration) = &mut guest.stay.registration {
            registration.ready(ready).map_err(programs::Error::from)?;
        }
        Ok(guest)
    }

    /// Gives a token to a user of the configuration, or to a Pod's service account. If the service account does not
    /// exist, it is made.
    pub async fn admit(&mut self, user: &str) -> Result<(), Error> {
        if self.tokens.contains_key(user) {
            return Ok(());
        }
        let home = self.stay.home();
        let (namespace, name) = match user.strip_prefix(ACCOUNT).and_then(|rest| rest.split_once(':')) {
            Some((namespace, name)) => {
                self.stay.make_account(namespace, name).await?;
                (namespace, name)
            }
            None => (home.as_str(), user),
        };
        let words = ["create", "token", name, "-n", namespace, "--duration", TOKEN_VALID];
        let step = Step::new(
            "get a token",
            "use an administrator's kubeconfig of Kubernetes 1.24 or later",
            &self.stay.tool,
            words,
        );
        let token = step.within(ASK_LIMIT).tried(3).call().await?;
        self.tokens.insert(user.to_owned(), token.trim().to_owned());
        Ok(())
    }

    /// The URL of the API server: `https://host:port`
    pub fn url(&self) -> &str {
        &self.way.url
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate of the API server's authority, as PEM.
    pub fn ca_pem(&self) -> &str {
        &self.way.ca_pem
    }

    /// The version that the API server reports.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The token of a user, if the user has one.
    pub fn token(&self, user: &str) -> Option<&str> {
        self.tokens.get(user).map(String::as_str)
    }

    /// A kubeconfig that contains all certificates and tokens.
    pub fn kubeconfig(&self, user: &str) -> Option<String> {
        Some(files::kubeconfig(user, self.token(user)?, &self.way.ca_pem, &self.way.url))
    }

    /// The address at which the cluster's Pods reach servers on this machine.
    pub const fn machine(&self) -> Ipv4Addr {
        self.machine
    }

    /// The value of the label that every object of this run must have.
    pub fn mark(&self) -> &str {
        &self.stay.mark
    }

    /// The kind of cluster: `kind` or `kubeconfig`.
    pub const fn kind(&self) -> &'static str {
        if self.stay.containers.is_some() { "kind" } else { "kubeconfig" }
    }

    /// The address at which this machine reaches ports of the nodes.
    pub fn node_address(&self) -> Option<IpAddr> {
        self.nodes.first().map(|(_, address)| *address)
    }

    /// The control planes of the cluster, if they are containers.
    pub(crate) fn leaders(&self) -> Option<Leaders> {
        self.stay.containers.clone().map(Leaders::of)
    }

    /// A search for the processes of the cluster's Pods, if their nodes are on this machine.
    pub fn pods(&self) -> Pods {
        Pods::anywhere()
    }

    /// Loads the images of an archive into all nodes; only a kind cluster can do so.
    pub async fn load(&self, archive: Vec<u8>) -> Result<(), Error> {
        let Some(containers) = &self.stay.containers else {
            return Ok(());
        };
        make_folder(&self.directory)?;
        let path = self.directory.join("image.tar");
        let failed = |source| programs::Error::File { path: path.clone(), source };
        std::fs::write(&path, archive).map_err(failed)?;
        let loaded = containers.load(&path).await;
        // Hundreds of megabytes that are no longer needed.
        let _ = std::fs::remove_file(&path);
        Ok(loaded?)
    }

    /// Writes the logs of nodes and Pods into a folder. In a cluster from a kubeconfig, only the logs of this run's
    /// Pods are written.
    pub async fn keep_logs(&self, folder: &Path) -> Result<(), Error> {
        match &self.stay.containers {
            Some(containers) => {
                let Err(error) = containers.keep_logs(folder).await else { return Ok(()) };
                // A custom node image may lack programs that kind requires; the logs exported until then exist.
                self.stay.keep_logs(folder).await?;
                let path = folder.join("kind-export-logs.txt");
                let said = error.to_string();
                Ok(std::fs::write(&path, said).map_err(|source| programs::Error::File { path, source })?)
            }
            None => self.stay.keep_logs(folder).await,
        }
    }

    /// Removes every object that this run made. A cluster that the run made is deleted.
    pub async fn stop(mut self) -> Result<(), Error> {
        let done = self.stay.end().await;
        self.stay.is_over = true;
        if done.is_err() {
            // Kept for `cluster down`.
            self.stay.registration.take().map(Registration::keep);
        }
        done
    }
}

impl Stay {
    fn new(tool: Tool, containers: Option<Containers>, is_made: bool) -> Self {
        let mark = format!("{:08x}", rand::random::<u32>());
        Self { tool, mark, containers, is_made, registration: None, is_over: false }
    }

    /// The name of this run's namespace.
    fn home(&self) -> String {
        format!("longhaul-run-{}", self.mark)
    }

    /// The data with which another process can remove the run's objects.
    fn traces(&self) -> Labelled {
        Labelled::new(&self.tool, &self.mark, self.containers.as_ref().map(|_| TAINT))
    }

    async fn version(&self) -> Result<String, Error> {
        let mend = "kubectl get --raw /readyz, with the same kubeconfig; start the cluster, or name another one";
        let ask = |path| {
            Step::new("reach the API server", mend, &self.tool, ["get", "--raw", path]).within(ASK_LIMIT).tried(3)
        };
        ask("/readyz").call().await?;
        let version: Value = serde_json::from_str(&ask("/version").call().await?).unwrap_or_default();
        Ok(version["gitVersion"].as_str().unwrap_or("unknown").to_owned())
    }

    async fn nodes(&self) -> Result<Vec<(String, IpAddr)>, Error> {
        let mend = "use an administrator's kubeconfig";
        let step = Step::new("list the nodes", mend, &self.tool, ["get", "nodes", "-o", "json"]).within(ASK_LIMIT);
        let list: Value = serde_json::from_str(&step.call().await?).unwrap_or_default();
        Ok(list["items"].as_array().into_iter().flatten().filter_map(node).collect())
    }

    async fn create(&self, name: &'static str, object: &Value) -> Result<(), Error> {
        let step = Step::new(name, "use an administrator's kubeconfig", &self.tool, ["apply", "-f", "-"]);
        step.reading(object.to_string().into_bytes()).within(ASK_LIMIT).tried(3).call().await?;
        Ok(())
    }

    /// Makes the run's namespace, and in it a service account with all rights for each user of the run.
    async fn make_home(&self, users: &[User]) -> Result<(), Error> {
        let home = self.home();
        let owner = Identity::of_self().map_err(programs::Error::from)?;
        let mut objects = vec![json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {
                "name": home, "labels": {LABEL: self.mark},
                "annotations": {OWNER: serde_json::to_string(&owner).unwrap_or_default()}
            }
        })];
        for user in users.iter().filter(|user| user.groups.iter().any(|group| group == MASTERS)) {
            let labels = json!({LABEL: self.mark});
            objects.push(json!({
                "apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": user.name, "namespace": home, "labels": labels}
            }));
            objects.push(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": format!("{home}-{}", user.name), "labels": labels},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
                "subjects": [{"kind": "ServiceAccount", "name": user.name, "namespace": home}]
            }));
        }
        self.create("make a namespace with accounts", &json!({"apiVersion": "v1", "kind": "List", "items": objects}))
            .await
    }

    async fn make_account(&self, namespace: &str, name: &str) -> Result<(), Error> {
        let there = ["get", "serviceaccount", name, "-n", namespace, "-o", "name", "--ignore-not-found"];
        let step =
            Step::new("look for an account", "use an administrator's kubeconfig", &self.tool, there).within(ASK_LIMIT);
        if !step.call().await?.trim().is_empty() {
            return Ok(());
        }
        let labels = json!({LABEL: self.mark});
        let items = json!([
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace, "labels": labels}}
        ]);
        self.create("make an account", &json!({"apiVersion": "v1", "kind": "List", "items": items})).await
    }

    /// Taints the nodes so that Pods of the load are stored and reviewed but do not run. On tainted nodes only the
    /// subject's own Pods run.
    async fn taint(&self) -> Result<(), Error> {
        let taint = format!("{TAINT}=:NoSchedule");
        let words = ["taint", "nodes", "--all", &taint, "--overwrite"];
        Step::new("keep the load's Pods from the nodes", "kubectl get nodes", &self.tool, words)
            .within(ASK_LIMIT)
            .call()
            .await?;
        Ok(())
    }

    /// Writes the output and the events of this run's Pods into a folder.
    async fn keep_logs(&self, folder: &Path) -> Result<(), Error> {
        make_folder(folder)?;
        for (file, text) in self.traces().logs().await? {
            let path = folder.join(file);
            std::fs::write(&path, text).map_err(|source| programs::Error::File { path, source })?;
        }
        Ok(())
    }

    async fn end(&mut self) -> Result<(), Error> {
        match &self.containers {
            Some(containers) if self.is_made => Ok(containers.delete(None).await?),
            _ => Ok(self.traces().take_away().await?),
        }
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // Half-way, or in a panic: a drop cannot report a failure, so its registration stays for `cluster status`.
        let is_gone = match &self.containers {
            Some(containers) if self.is_made => containers.delete_now().is_ok(),
            _ if self.tool.program.as_os_str().is_empty() => true,
            _ => self.traces().take_away_now().is_ok(),
        };
        if !is_gone {
            self.registration.take().map(Registration::keep);
        }
    }
}

fn noted(config: &Config) -> Result<Option<Registration>, Error> {
    Ok(Registration::of_run(config.state_directory.as_ref(), &config.directory).map_err(programs::Error::from)?)
}

fn make_folder(path: &Path) -> Result<(), programs::Error> {
    std::fs::create_dir_all(path).map_err(|source| programs::Error::File { path: path.to_owned(), source })
}

/// Name and address of a node, as other machines of the cluster see it.
fn node(object: &Value) -> Option<(String, IpAddr)> {
    let addresses = object["status"]["addresses"].as_array()?;
    let own = addresses.iter().filter(|address| address["type"] == "InternalIP");
    let address = own.filter_map(|address| address["address"].as_str()?.parse().ok()).find(IpAddr::is_ipv4)?;
    Some((object["metadata"]["name"].as_str()?.to_owned(), address))
}

/// The address of this machine from which a node receives its packets. Finding the address sends no packet, because a
/// connected datagram socket knows its local address.
fn seen_from(nodes: &[(String, IpAddr)], api: SocketAddr) -> Result<Ipv4Addr, Error> {
    let targets = nodes.iter().map(|(_, address)| SocketAddr::from((*address, KUBELET))).chain([api]);
    let mut tried = Vec::new();
    for target in targets {
        let own = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
            socket.connect(target)?;
            socket.local_addr()
        });
        match own.map(|own| own.ip()) {
            Ok(IpAddr::V4(own)) if !own.is_loopback() && !own.is_unspecified() => return Ok(own),
            Ok(own) => tried.push(format!("on the way to {target} it is {own}")),
            Err(error) => tried.push(format!("{target}: {error}")),
        }
    }
    Err(Error::NoWay(tried.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_node_is_the_one_inside_of_the_cluster() {
        let addresses = json!([
            {"type": "Hostname", "address": "n"}, {"type": "ExternalIP", "address": "8.8.8.8"},
            {"type": "InternalIP", "address": "fd00::1"}, {"type": "InternalIP", "address": "172.18.0.2"}
        ]);
        let object = json!({"metadata": {"name": "n"}, "status": {"addresses": addresses}});
        assert_eq!(node(&object), Some(("n".to_owned(), IpAddr::from([172, 18, 0, 2]))));
        assert_eq!(node(&json!({"metadata": {"name": "n"}, "status": {}})), None);
    }

    #[test]
    fn an_address_that_only_this_machine_knows_is_none_for_a_cluster() {
        let api = SocketAddr::from(([127, 0, 0, 1], 6443));
        let refused = seen_from(&[], api).unwrap_err().to_string();
        assert!(refused.contains("on the way to 127.0.0.1:6443 it is 127.0.0.1"), "{refused}");
    }
}
