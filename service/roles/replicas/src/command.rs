//! The command `replicas`: a client of the API over Deployments.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};

use crate::client::{Client, Name, Terms};

/// Where the API is, and who calls it.
#[derive(Debug, Args)]
pub struct Connection {
    /// The server, `HOST` or `HOST:PORT` (default port 8444).
    #[arg(long, default_value = "localhost")]
    server: String,
    /// A folder with `ca.crt`, `client.crt` and `client.key`, as `certs dev` writes it.
    #[arg(long, default_value = "certs")]
    certs: PathBuf,
    /// PEM file of the authority of the server, in place of that in the folder.
    #[arg(long)]
    ca: Option<PathBuf>,
    /// PEM file of the client certificate, likewise.
    #[arg(long, requires = "key")]
    cert: Option<PathBuf>,
    /// PEM file of its key.
    #[arg(long, requires = "cert")]
    key: Option<PathBuf>,
}

/// How something is set.
#[derive(Debug, Args)]
pub struct How {
    /// Only when the Deployment is at this revision.
    #[arg(long)]
    revision: Option<String>,
    /// Store nothing.
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    /// Wait until the service's own view shows it.
    #[arg(long)]
    wait: bool,
}

impl How {
    fn terms(&self) -> Terms {
        Terms { revision: self.revision.clone(), dry_run: self.dry_run, wait: self.wait }
    }
}

/// A call.
#[derive(Debug, Subcommand)]
pub enum Call {
    /// Print how many replicas a Deployment has.
    Get {
        #[command(flatten)]
        connection: Connection,
        /// `NAMESPACE/NAME`.
        deployment: Name,
    },
    /// Set how many it has.
    Set {
        #[command(flatten)]
        connection: Connection,
        /// `NAMESPACE/NAME`.
        deployment: Name,
        /// How many.
        #[arg(allow_negative_numbers = true)]
        replicas: i64,
        #[command(flatten)]
        how: How,
    },
    /// Set the image of a container, where the service lets images be set.
    Image {
        #[command(flatten)]
        connection: Connection,
        /// `NAMESPACE/NAME`.
        deployment: Name,
        /// The container.
        container: String,
        /// The image, as a pod would write it.
        image: String,
        #[command(flatten)]
        how: How,
    },
    /// Print all Deployments: namespace, name and count, separated by tabs.
    List {
        #[command(flatten)]
        connection: Connection,
    },
}

impl Connection {
    fn client(&self) -> anyhow::Result<Client> {
        let of = |path: &Option<PathBuf>, name: &str| path.clone().unwrap_or_else(|| self.certs.join(name));
        let (ca, certificate, key) =
            (of(&self.ca, "ca.crt"), of(&self.cert, "client.crt"), of(&self.key, "client.key"));
        Client::new(&self.server, &ca, &certificate, &key)
    }
}

impl Call {
    /// Makes the call and prints the answer.
    pub fn run(&self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("failed to start the runtime")?;
        let out = &mut std::io::stdout();
        runtime.block_on(async {
            match self {
                Self::Get { connection, deployment } => connection.client()?.get(deployment, out).await,
                Self::List { connection } => connection.client()?.list(out).await,
                Self::Set { connection, deployment, replicas, how } => {
                    connection.client()?.set(deployment, *replicas, &how.terms(), out).await
                }
                Self::Image { connection, deployment, container, image, how } => {
                    connection.client()?.image(deployment, container, image, &how.terms(), out).await
                }
            }
        })
    }
}
