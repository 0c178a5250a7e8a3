//! `longhaul cluster …`: a real control plane that outlives the command, for working with it by hand.

use std::path::PathBuf;

use crate::out::out;
use anyhow::{Context, Result, bail};
use kind::{cluster, fetch, state};
use reports::exit;

/// The folder with `etcd` and `kube-apiserver`, by the convention of envtest.
const ASSETS: &str = "KUBEBUILDER_ASSETS";

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Start etcd and kube-apiserver and leave them running.
    Up {
        /// The kind of control plane.
        #[arg(long, value_enum, default_value_t = Kind::Local)]
        kind: Kind,
        /// Its name; several can stand side by side.
        #[arg(long, default_value = cluster::DEFAULT_NAME)]
        name: String,
        /// The folder with etcd and kube-apiserver; otherwise `KUBEBUILDER_ASSETS`.
        #[arg(long)]
        assets: Option<PathBuf>,
    },
    /// Download the official etcd, kube-apiserver and kubectl and check their digests.
    Fetch {
        /// The version of Kubernetes, such as 1.33.4.
        #[arg(long)]
        version: String,
        /// The folder for the programs; otherwise one of its own under the user's cache.
        #[arg(long)]
        into: Option<PathBuf>,
    },
    /// Say what runs, and what an earlier command or a killed run left behind.
    Status,
    /// Stop and remove what is provably ours.
    Down {
        /// Only the one of this name.
        #[arg(long)]
        name: Option<String>,
    },
}

#[derive(Clone, Copy, clap::ValueEnum)]
pub(super) enum Kind {
    /// etcd and kube-apiserver as processes on this machine, without nodes.
    Local,
}

/// Runs one of the commands.
pub(super) async fn cluster(command: Command) -> Result<u8> {
    let directory = state::default_directory()?;
    match command {
        Command::Up { kind: Kind::Local, name, assets } => {
            let assets = assets.or_else(|| std::env::var_os(ASSETS).map(PathBuf::from));
            let assets = assets.with_context(|| {
                format!("name the folder that holds etcd and kube-apiserver with --assets or {ASSETS}")
            })?;
            let mut up = cluster::Up::new(assets, directory);
            up.name = name;
            // Dropping the future half-way kills what it started.
            tokio::select! {
                up = cluster::up(up) => out!("{}", up?),
                _ = tokio::signal::ctrl_c() => bail!("interrupted: nothing was left running"),
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

/// Where fetched programs are kept: `$XDG_CACHE_HOME` or `~/.cache` (XDG Base Directory Specification).
fn cache() -> Result<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".cache"));
    let cache =
        absolute("XDG_CACHE_HOME").or_else(home).context("neither XDG_CACHE_HOME nor HOME is set: use --into")?;
    Ok(cache.join("longhaul/control-plane"))
}
