//! The command line of `inject`: its arguments, its output, and the steps of each command.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use prometheus_client::registry::Registry as MetricsRegistry;

use super::apply::{self, Applied};
use super::cluster::Cluster;
use super::images::{Fetch, Images, Source, Taken};
use super::objects::{NAME_CHARS_MAX, Names, Reach};
use super::payload::Payload;
use super::place::Needs;
use super::signed::{self, Judge};
use super::status::{self, Status};
use super::{clean, send};
use service_core::config::{Config, Error};
use service_core::kube::{self, Transport};
use service_core::wire::Proxies;
use service_registry::config::Resolve;
use service_registry::{Hosts, Registry};

/// Default size of a chunk in bytes: a small control plane's disk writes it in an eighth of a second, and every proxy
/// accepts it.
const CHUNK_BYTES: u32 = 512 << 10;
/// Default number of chunks that are sent at one time.
const PARALLEL: usize = 4;
/// Maximum number of chunks that are sent at one time, because each chunk uses some megabytes of memory, and a control
/// plane has other work.
const PARALLEL_MAX: usize = 16;
/// Default time in seconds until the injected program must serve, in addition to the time that the kubelet needs for
/// its chunks.
const WAIT_SECONDS: u64 = 60;

/// The subcommands of `longhaul-service inject`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Pack the images and print the plan of the injection. `plan` changes nothing in the cluster.
    Plan(PlanArgs),
    /// Bring the images into the cluster and wait until they are served. Run the same command again to continue after
    /// an interruption.
    Apply(ApplyArgs),
    /// Print the state of an injection, and the reason if it does not serve. Exit with 0 if it serves, otherwise with
    /// 1.
    Status(Where),
    /// Remove all objects of an injection, even of a failed injection.
    Clean(Where),
}

/// An injection and its cluster.
#[derive(Debug, Args)]
pub struct Where {
    /// The kubeconfig. Default: `$KUBECONFIG`, then the service account files of a Pod.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// The namespace of all objects; it must exist.
    #[arg(long, short, default_value = "default")]
    namespace: String,
    /// The name of the injection's objects. Two injections in one namespace need different names.
    #[arg(long, default_value = "longhaul-seed")]
    name: String,
}

/// The images to pack, and how to pack them.
#[derive(Debug, Args)]
pub struct Pack {
    /// An image, or all images of a layout: `oci:FOLDER`, `oci-archive:FILE`, `docker-archive:FILE` or `docker://IMAGE`. Append `=NAME:TAG`
    /// to rename it. May be given several times.
    #[arg(long = "image", required = true, value_name = "SOURCE")]
    images: Vec<String>,
    /// Take only the image for this platform from an index, for example linux/amd64.
    #[arg(long)]
    platform: Option<String>,
    /// Size of a chunk before encoding, in bytes; at most 1048576.
    #[arg(long, default_value_t = CHUNK_BYTES)]
    chunk_bytes: u32,
    /// A configuration file of this service, whose registries, credentials and mirrors are used.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Send only images whose packed signatures verify under the policy of --config. An image whose rule demands no
    /// signature does not count as verified.
    #[arg(long, requires = "config")]
    verify: bool,
    /// The folder for the packed payload, which is as large as the images.
    #[arg(long)]
    work_dir: Option<PathBuf>,
}

/// The node and image for the injected program.
#[derive(Debug, Args)]
pub struct Placing {
    /// The injected program. Default: `longhaul-seed` in the folder of this program.
    #[arg(long)]
    seed: Option<PathBuf>,
    /// Run the injected program in this image instead of an image that a node already has. Without --node, the
    /// scheduler chooses the node.
    #[arg(long)]
    node_image: Option<String>,
    /// Run the injected program on this node.
    #[arg(long)]
    node: Option<String>,
    /// A taint to tolerate: `KEY[=VALUE][:EFFECT]`. May be given several times.
    #[arg(long = "tolerate", value_name = "TAINT")]
    tolerations: Vec<String>,
    /// Do not use images from this registry host, because the injected program replaces this registry. May be given
    /// several times.
    #[arg(long = "avoid-host", value_name = "HOST")]
    avoided_hosts: Vec<String>,
}

/// The arguments of `inject plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    at: Where,
    #[command(flatten)]
    pack: Pack,
    #[command(flatten)]
    placing: Placing,
    /// Plan without any request to the cluster.
    #[arg(long)]
    offline: bool,
}

/// The arguments of `inject apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    #[command(flatten)]
    at: Where,
    #[command(flatten)]
    pack: Pack,
    #[command(flatten)]
    placing: Placing,
    /// How clients reach the injected program.
    #[arg(long, value_enum, default_value = "node-port")]
    service: Reach,
    /// A node port to leave free for the future registry. May be given several times.
    #[arg(long = "avoid-node-port", value_name = "PORT")]
    avoided_ports: Vec<u16>,
    /// Maximum number of chunks to send at one time while the server answers promptly.
    #[arg(long, default_value_t = PARALLEL, value_parser = parallel)]
    parallel: usize,
    /// Seconds until the injected program must serve. Half a second for each chunk is added to this time.
    #[arg(long, default_value_t = WAIT_SECONDS)]
    wait_seconds: u64,
    /// First remove an earlier injection of the same name.
    #[arg(long)]
    replace: bool,
}

fn parallel(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=PARALLEL_MAX).contains(number));
    number.ok_or_else(|| format!("from 1 to {PARALLEL_MAX}"))
}

/// The functions of the main program that the `inject` commands use.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Loads the configuration file at a path; without a path, the configuration of an empty file.
    pub load: fn(Option<&Path>) -> Result<Config, Error>,
    pub judge: Judge,
    /// Finds the API server of a kubeconfig; without a kubeconfig, the API server that the environment names.
    pub cluster: fn(Option<&Path>) -> Result<kube::Cluster>,
}

/// Runs the `inject` command; returns whether it succeeded. `program` contains the signature check for `--verify`.
pub async fn run(command: Command, program: Program) -> Result<bool> {
    match command {
        Command::Plan(arguments) => plan(&arguments, program).await.map(|()| true),
        Command::Apply(arguments) => apply(&arguments, program).await.map(|()| true),
        Command::Status(at) => {
            let cluster = at.cluster(program)?;
            let status = status::status(&cluster).await?;
            print!("{}", shown(&status, &at));
            Ok(status.is_ready())
        }
        Command::Clean(at) => {
            let cluster = at.cluster(program)?;
            let removed = clean::clean(&cluster).await?;
            println!(
                "{}",
                if removed == 0 { "nothing was there".to_owned() } else { format!("{removed} objects removed") }
            );
            Ok(true)
        }
    }
}

impl Where {
    fn cluster(&self, program: Program) -> Result<Arc<Cluster>> {
        let is_label = |text: &str| {
            let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
            let bytes = text.as_bytes();
            edge(bytes.first())
                && edge(bytes.last())
                && bytes.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-')
        };
        if self.name.len() > NAME_CHARS_MAX || !is_label(&self.name) {
            bail!("--name takes lower-case letters, digits and `-`, at most {NAME_CHARS_MAX}");
        }
        if self.namespace.len() > 63 || !is_label(&self.namespace) {
            bail!("`{}` is not the name of a namespace", self.namespace);
        }
        let cluster = (program.cluster)(self.kubeconfig.as_deref()).context("no way to the cluster")?;
        let names = Names { namespace: self.namespace.clone(), name: self.name.clone() };
        Ok(Arc::new(Cluster { client: kube::Client::new(cluster, Transport::Http1), names }))
    }
}

/// The images of a payload, with the folder that contains fetched images.
struct Packed {
    payload: Payload,
    images: Arc<Images>,
    taken: Vec<Taken>,
}

impl Pack {
    async fn pack(&self, program: Program) -> Result<Packed> {
        let parent = self.work_dir.clone().unwrap_or_else(std::env::temp_dir);
        let folder = tempfile::Builder::new().prefix("longhaul-inject-").tempdir_in(&parent);
        let folder = folder.with_context(|| format!("failed to make a folder in {}", parent.display()))?;
        let config = Arc::new((program.load)(self.config.as_deref())?);
        let metrics = service_registry::Metrics::register(&mut MetricsRegistry::default());
        let hosts = Hosts::new(config.of::<Resolve>(), Proxies::from_env()?, metrics)?;
        let fetch = Fetch::new(Registry::new(hosts), folder.path().to_owned());
        let (mut images, mut taken) = (Images::default(), Vec::new());
        for text in &self.images {
            let source: Source = text.parse()?;
            taken.extend(source.collect(&mut images, &fetch, self.platform.as_deref()).await?);
        }
        let images = Arc::new(images);
        if self.verify {
            signed::verify(&images, &taken, self.platform.as_deref(), &config, program.judge).await?;
        }
        eprintln!("packing {} blobs of {} bytes", images.blobs.len(), images.bytes());
        let (chunk_bytes, place) = (self.chunk_bytes, folder.path().to_owned());
        let packed = Arc::clone(&images);
        let packing = tokio::task::spawn_blocking(move || Payload::pack(&packed, chunk_bytes, &place));
        let payload = packing.await.context("packing broke")??;
        Ok(Packed { payload, images, taken })
    }
}

impl Placing {
    fn binary(&self) -> Result<(Vec<u8>, &'static str)> {
        let beside = || -> Result<PathBuf> {
            let own = std::env::current_exe().context("failed to find this program's own folder")?;
            Ok(own.with_file_name("longhaul-seed"))
        };
        let path = match &self.seed {
            Some(path) => path.clone(),
            None => beside()?,
        };
        let binary = std::fs::read(&path)
            .with_context(|| format!("failed to read the seed's program {} (see --seed)", path.display()))?;
        let architecture = apply::architecture(&binary);
        let architecture =
            architecture.with_context(|| format!("{} is no program for 64-bit x86 or ARM", path.display()))?;
        Ok((binary, architecture))
    }

    fn needs(&self, architecture: &str) -> Needs {
        Needs {
            architecture: architecture.to_owned(),
            node: self.node.clone(),
            tolerations: self.tolerations.clone(),
            avoided_hosts: self.avoided_hosts.clone(),
        }
    }
}

async fn plan(arguments: &PlanArgs, program: Program) -> Result<()> {
    let (binary, architecture) = arguments.placing.binary()?;
    let packed = arguments.pack.pack(program).await?;
    print!("{}", described(&packed, binary.len()));
    if arguments.offline {
        return Ok(());
    }
    let cluster = arguments.at.cluster(program)?;
    let index = &packed.payload.index;
    let census = send::census(&cluster, index).await?;
    println!("there already: {} of {} chunks", census.claimed.len(), index.chunks.len());
    for (run, count) in &census.others {
        println!("conflict: run {run} with {count} objects (`inject clean`, or `apply --replace`)");
    }
    if let Some(image) = &arguments.placing.node_image {
        println!("runs in: {image}");
    } else {
        let place = apply::place(&cluster, &arguments.placing.needs(architecture)).await?;
        println!("runs on: {} in {} (seen in {})", place.node, place.image, place.seen_in);
    }
    Ok(())
}

async fn apply(arguments: &ApplyArgs, program: Program) -> Result<()> {
    let (binary, architecture) = arguments.placing.binary()?;
    let cluster = arguments.at.cluster(program)?;
    let packed = arguments.pack.pack(program).await?;
    print!("{}", described(&packed, binary.len()));
    let options = apply::Options {
        binary,
        needs: arguments.placing.needs(architecture),
        image: arguments.placing.node_image.clone(),
        reach: arguments.service,
        avoided_ports: arguments.avoided_ports.clone(),
        parallel: arguments.parallel,
        wait: Duration::from_secs(arguments.wait_seconds),
        replace: arguments.replace,
    };
    let applied = apply::apply(&cluster, &packed.payload, &options).await?;
    print!("{}", served(&packed, &applied, &arguments.at));
    Ok(())
}

fn described(packed: &Packed, binary_bytes: usize) -> String {
    let index = &packed.payload.index;
    let chunk = index.chunks.first().map_or(0, |chunk| chunk.bytes);
    let mut text = format!("run: {}\n", index.run);
    for Taken { name, .. } in &packed.taken {
        let digest = packed.images.catalog.repositories[&name.repository].tags[&name.tag];
        let _ = writeln!(text, "image: {name} sha256:{digest}");
    }
    let beside = packed.images.count_beside();
    if beside > 0 {
        let _ = writeln!(text, "signatures and the like: {beside}");
    }
    let _ = writeln!(
        text,
        "payload: {} blobs, {} bytes, packed {} bytes in {} chunks of {chunk}; the seed has {binary_bytes} bytes",
        packed.images.blobs.len(),
        packed.payload.unpacked_bytes,
        index.payload_bytes,
        index.chunks.len(),
    );
    text
}

/// The names of the images at the registry of the injected program, as text for users.
fn served(packed: &Packed, applied: &Applied, at: &Where) -> String {
    let sent = &applied.sent;
    let mut text = format!(
        "sent: {} chunks in {} requests of {} bytes together ({} refused for now); kept: {}\n",
        sent.chunks, sent.requests, sent.request_bytes, sent.refusals, applied.kept
    );
    if sent.chunks > 0 {
        let _ = writeln!(text, "sending took {:.3} s", sent.elapsed.as_secs_f64());
    }
    let host = match applied.node_port {
        Some(port) => format!("127.0.0.1:{port}"),
        None => format!("{}:{}", applied.cluster_ip, super::objects::PORT),
    };
    for Taken { name, .. } in &packed.taken {
        let digest = packed.images.catalog.repositories[&name.repository].tags[&name.tag];
        let _ = writeln!(text, "serves: {host}/{}@sha256:{digest} ({name})", name.repository);
    }
    let _ =
        writeln!(text, "remove it with: longhaul-service inject clean --namespace {} --name {}", at.namespace, at.name);
    text
}

/// The status of the injection, as text for users.
fn shown(status: &Status, at: &Where) -> String {
    let Some(index) = &status.index else {
        return format!("no injection `{}` in namespace {}\n", at.name, at.namespace);
    };
    let mut text = format!("run: {}\nchunks: {} of {}\n", index.run, status.chunks, index.chunks.len());
    if let Some(first) = status.missing.first() {
        let _ = writeln!(text, "missing: from {first:05} on; `inject apply` with the same images sends the rest");
    }
    if status.others > 0 {
        let _ = writeln!(text, "conflict: {} objects of other runs; `inject clean` removes them all", status.others);
    }
    if let Some(port) = status.node_port {
        let _ = writeln!(text, "port of every node: {port}");
    }
    if status.pod.is_none() {
        text += "Pod: none yet\n";
    }
    for finding in &status.findings {
        let _ = writeln!(text, "Pod: {finding}");
    }
    text
}
