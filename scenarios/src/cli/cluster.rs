//! `longhaul cluster …`: a real control plane for manual work, which keeps running after the command.

mod deploy;

use std::path::PathBuf;

use crate::out::out;
use anyhow::{Context, Result, bail};
use kind::{cluster, fetch, state};
use reports::exit;

/// The environment variable for the folder with `etcd` and `kube-apiserver`, by the convention of envtest.
const ASSETS: &str = "KUBEBUILDER_ASSETS";
/// The environment variable for the folder of logs, which CI jobs of the Kubernetes project set.
const ARTIFACTS: &str = "ARTIFACTS";

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Start a control plane, alone or with a node, and leave it running.
    Up {
        /// The kind of control plane.
        #[arg(long, value_enum, default_value_t = Provider::Local)]
        kind: Provider,
        /// The name of the control plane, so that several control planes can run side by side. Default: the kind of
        /// control plane.
        #[arg(long)]
        name: Option<String>,
        /// The folder with etcd and kube-apiserver. For a node, the folder must have all programs of a Kubernetes release. Default:
        /// `KUBEBUILDER_ASSETS`.
        #[arg(long)]
        assets: Option<PathBuf>,
        #[command(flatten, next_help_heading = "A kind cluster")]
        containers: Containers,
    },
    /// Download the official etcd, kube-apiserver and kubectl and check their digests.
    Fetch {
        /// The version of Kubernetes, such as 1.33.4.
        #[arg(long)]
        version: String,
        /// The folder for the programs. Default: a folder in the user's cache.
        #[arg(long)]
        into: Option<PathBuf>,
    },
    /// List running control planes, and remains of earlier commands and killed runs.
    Status,
    /// Load images into a node, from archives of `docker save` or from OCI layouts in a tar file.
    Load {
        /// The files with images.
        #[arg(required = true)]
        archives: Vec<PathBuf>,
        /// The name of the node.
        #[arg(long, default_value = cluster::NODE_NAME)]
        name: String,
    },
    /// Stop and remove control planes. Longhaul removes only control planes that it can prove to have started.
    Down {
        /// Stop only the control plane of this name.
        #[arg(long)]
        name: Option<String>,
    },
}

#[derive(clap::Args)]
pub(super) struct Containers {
    /// The node image, by its name in the container engine. Default: the official node image.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// The version of Kubernetes, such as 1.34.1; selects the official node image of this version.
    #[arg(long, value_name = "VERSION")]
    kubernetes: Option<String>,
    /// The number of control planes: 1 or 3. With three control planes, the cluster survives the loss of one.
    #[arg(long, value_name = "NUMBER")]
    control_planes: Option<u8>,
    /// A configuration file of kind, instead of --control-planes.
    #[arg(long, value_name = "FILE", conflicts_with = "control_planes")]
    config: Option<PathBuf>,
    /// Also deploy the service, from the program beside `longhaul`. In namespaces with the service's label, the service
    /// refuses images that it cannot pin to a digest.
    #[arg(long, value_enum)]
    with: Option<With>,
}

/// A program that is deployed to a new cluster.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum With {
    /// The built-in service of Longhaul.
    Service,
}

impl Containers {
    fn config(self) -> kind::containers::Config {
        let Self { image, kubernetes, control_planes, config: file, .. } = self;
        kind::containers::Config { image, kubernetes, control_planes, file }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Provider {
    /// etcd and kube-apiserver as processes on this machine, without nodes.
    Local,
    /// A whole node in separate Linux namespaces on this machine, with kubelet and containerd. Needs root.
    Node,
    /// A kind cluster, whose nodes are containers. Needs kind and a container engine.
    Kind,
}

pub(super) async fn cluster(command: Command) -> Result<u8> {
    let directory = state::default_directory()?;
    match command {
        Command::Up { kind, name, assets, containers } => {
            let assets = match kind {
                Provider::Local => found(assets, "etcd and kube-apiserver")?,
                Provider::Node => found(assets, "etcd and the programs of a Kubernetes release")?,
                Provider::Kind => PathBuf::new(),
            };
            anyhow::ensure!(
                containers.with.is_none() || kind == Provider::Kind,
                "`--with` deploys to a cluster of kind: add `--kind kind`"
            );
            let service = containers.with.map(|With::Service| deploy::Service::found()).transpose()?;
            let mut up = cluster::Up::new(assets, directory.clone());
            match kind {
                Provider::Local => {}
                Provider::Node => {
                    cluster::NODE_NAME.clone_into(&mut up.name);
                    up.node = Some(crate::keeper::first_process_of_node());
                }
                Provider::Kind => {
                    cluster::KIND_NAME.clone_into(&mut up.name);
                    up.containers = Some(containers.config());
                    up.artifacts = std::env::var_os(ARTIFACTS).filter(|path| !path.is_empty()).map(PathBuf::from);
                }
            }
            up.name = name.unwrap_or(up.name);
            // Dropping the future half-way kills the processes that it started.
            tokio::select! {
                up = cluster::up(up) => {
                    let up = up?;
                    out!("{up}");
                    if let Some(service) = service {
                        out!("{}", service.deploy(&directory, &up.name).await?);
                    }
                }
                _ = tokio::signal::ctrl_c() => bail!("interrupted: no process was left running"),
            }
            Ok(exit::PASS)
        }
        Command::Fetch { version, into } => {
            let into = match into {
                Some(into) => into,
                None => cache()?.join(version.trim_start_matches('v')),
            };
            out!("{}", fetch::fetch(&fetch::Fetch::new(&version, into)).await?);
            Ok(exit::PASS)
        }
        Command::Load { archives, name } => {
            cluster::load(&directory, &name, &archives).await?;
            out!("loaded: Pods name each image as its archive does, with imagePullPolicy IfNotPresent or Never");
            Ok(exit::PASS)
        }
        Command::Status => {
            let status = cluster::status(&directory)?;
            out!("{status}");
            Ok(if status.has_leftovers() { exit::FAIL } else { exit::PASS })
        }
        Command::Down { name } => {
            let down = cluster::down(&directory, name.as_deref()).await?;
            out!("{down}");
            Ok(if down.is_complete() { exit::PASS } else { exit::FAIL })
        }
    }
}

/// The folder with the programs: `assets`, or the variable `KUBEBUILDER_ASSETS`.
fn found(assets: Option<PathBuf>, programs: &str) -> Result<PathBuf> {
    let assets = assets.or_else(|| std::env::var_os(ASSETS).map(PathBuf::from));
    assets.with_context(|| format!("name the folder that holds {programs} with --assets or {ASSETS}"))
}

/// The folder for downloaded programs: `$XDG_CACHE_HOME` or `~/.cache` (XDG Base Directory Specification).
fn cache() -> Result<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".cache"));
    let cache =
        absolute("XDG_CACHE_HOME").or_else(home).context("neither XDG_CACHE_HOME nor HOME is set: use --into")?;
    Ok(cache.join("longhaul/control-plane"))
}
