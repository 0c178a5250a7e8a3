//! The command `replicas`: its arguments for the client of the API that scales Deployments.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};

use crate::client::{Client, Name, Terms};

/// The address of the API, and the caller's certificate.
#[derive(Debug, Args)]
pub struct Connection {
    /// The server: `HOST` or `HOST:PORT` (default port 8444).
    #[arg(long, default_value = "localhost")]
    server: String,
    /// A folder with `ca.crt`, `client.crt` and `client.key`, as `certs dev` writes it.
    #[arg(long, default_value = "certs")]
    certs: PathBuf,
    /// PEM file with the CA of the server, instead of `ca.crt` in the folder.
    #[arg(long)]
    ca: Option<PathBuf>,
    /// PEM file with the client certificate, instead of `client.crt` in the folder.
    #[arg(long, requires = "key")]
    cert: Option<PathBuf>,
    /// PEM file with the key of the client certificate, instead of `client.key` in the folder.
    #[arg(long, requires = "cert")]
    key: Option<PathBuf>,
}

/// Options of `replicas set` and `replicas image`.
#[derive(Debug, Args)]
pub struct How {
    /// Change the Deployment only if it has this revision.
    #[arg(long)]
    revision: Option<String>,
    /// Check the change, but store nothing.
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    /// Wait until the service's cache shows the change.
    #[arg(long)]
    wait: bool,
}

impl How {
    fn terms(&self) -> Terms {
        Terms { revision: self.revision.clone(), dry_run: self.dry_run, wait: self.wait }
    }
}

/// The call to make.
#[derive(Debug, Subcommand)]
pub enum Call {
    /// Print the replica count of a Deployment.
    Get {
        #[command(flatten)]
        connection: Connection,
        /// `NAMESPACE/NAME`.
        deployment: Name,
    },
    /// Set the replica count of a Deployment.
    Set {
        #[command(flatten)]
        connection: Connection,
        /// `NAMESPACE/NAME`.
        deployment: Name,
        /// The number of replicas.
        #[arg(allow_negative_numbers = true)]
        replicas: i64,
        #[command(flatten)]
        how: How,
    },
    /// Set the image of a container, if the service allows it.
    Image {
        #[command(flatten)]
        connection: Connection,
        /// `NAMESPACE/NAME`.
        deployment: Name,
        /// The name of the container.
        container: String,
        /// The image, spelled as in a Pod.
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
