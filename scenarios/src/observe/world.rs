//! The mock API server of an observation, the server's objects, and the program's requests.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::api::Api;
use crate::init::Found;
use crate::init::seen::{self, Ask, Wrote};
use crate::keeper::Folder;
use crate::run::Mounted;
use crate::run::free_port;
use crate::scenario::{self, Given, Mount};

const SUBJECT: &str = "subject";
const HARNESS: &str = "harness";
/// The resource of leader election.
const LEASES: &str = "leases.coordination.k8s.io";
/// Maximum number of requests and versions kept: enough for a minute of a program with a thousand requests per second.
const FACTS_MAX: usize = 100_000;
/// Maximum number of commits read at once.
const BATCH: usize = 4096;
/// Maximum number of namespaces created because the program uses them.
const NAMESPACES_MAX: usize = 10;
/// The folder below `$TMPDIR` in which controller-runtime looks for its certificate.
const USUAL: &str = "k8s-webhook-server";

/// The server, and the recorded requests and versions.
pub(super) struct World {
    server: mock_kube::Server,
    tail: mock_kube::Tail,
    pub(super) api: Api,
    epoch: Instant,
    folder: Folder,
    given: Given,
    pub(super) asks: Vec<Ask>,
    pub(super) wrote: Vec<Wrote>,
    /// Verb and URL path of requests that the program has made since its start.
    read: BTreeSet<(&'static str, String)>,
    namespaces: Vec<String>,
    mounted: Option<Mounted>,
    mountings: u32,
}

impl World {
    /// Starts the server with the project's `CustomResourceDefinition`s.
    pub(super) async fn start(found: &Found) -> Result<Self> {
        let folder = Folder::make()?;
        let authority = mock_pki::Authority::generate("longhaul")?;
        let epoch = Instant::now();
        let mut config = mock_kube::Config::new();
        config.epoch = epoch;
        config.furnished_namespaces = true;
        config.crds = vec![kind::manifests::package_crd().context("failed to read the Package CRD")?];
        let token = crate::run::token(1, HARNESS);
        config.users = vec![
            mock_kube::User::admin(SUBJECT, &crate::run::token(1, SUBJECT)),
            mock_kube::User::admin(HARNESS, &token),
        ];
        let server =
            mock_kube::Server::start(config, &authority).await.context("failed to start the pretend API server")?;
        server.follow_requests(SUBJECT);
        let given = given(&server, &authority, folder.path())?;
        let api = Api::new(server.url(), authority.ca_pem().to_owned(), token);
        for crd in found.trials().into_iter().map(|trial| trial.crd) {
            // If the server refuses one, the first request for its kind shows that.
            let _ = api.create(&crd.definition, None, false).await?;
        }
        let tail = server.tail();
        Ok(Self {
            server,
            tail,
            api,
            epoch,
            folder,
            given,
            asks: Vec::new(),
            wrote: Vec::new(),
            read: BTreeSet::new(),
            namespaces: Vec::new(),
            mounted: None,
            mountings: 0,
        })
    }

    /// Creates the objects around the deployed program: its namespace, its service account, and the objects that it
    /// reads.
    pub(super) async fn furnish(&mut self, found: &Found, objects: &[Value], program: &[String]) -> Result<()> {
        let (namespace, account) = found.place_of(program);
        let namespace = namespace.unwrap_or_else(|| "default".to_owned());
        if namespace != "default" {
            // If this is refused, the program's requests show that.
            let _ = self.api.create(&named("Namespace", &namespace), None, false).await?;
            self.namespaces.push(namespace.clone());
        }
        if let Some(account) = account {
            let _ = self.api.create(&named("ServiceAccount", &account), Some(&namespace), false).await?;
        }
        for object in objects {
            let _ = self.api.create(object, Some(&namespace), false).await?;
        }
        Ok(())
    }

    /// Creates an empty object of the core group that the program has requested.
    pub(super) async fn give(&mut self, kind: &str, name: &str) -> Result<Value> {
        self.take().await;
        let resource = format!("{}s", kind.to_ascii_lowercase());
        let mut looked = self.asks.iter().rev().filter(|ask| ask.resource == resource);
        let namespace = looked.find_map(|ask| ask.namespace.clone()).unwrap_or_else(|| "default".to_owned());
        if namespace != "default" && !self.namespaces.contains(&namespace) && self.namespaces.len() < NAMESPACES_MAX {
            let _ = self.api.create(&named("Namespace", &namespace), None, false).await?;
            self.namespaces.push(namespace.clone());
        }
        let mut object = named(kind, name);
        object["metadata"]["namespace"] = namespace.clone().into();
        let _ = self.api.create(&object, Some(&namespace), false).await?;
        Ok(object)
    }

    /// Prepares folders that the program finds, from its next start on, where a kubelet would mount them.
    pub(super) async fn mount(&mut self, wanted: &BTreeMap<PathBuf, Mount>) -> Result<()> {
        let kubeconfig = self.server.kubeconfig(SUBJECT).context("the server does not know the program's user")?;
        self.mountings += 1;
        let folder = self.folder.path().join(format!("mounts-{}", self.mountings));
        self.mounted = Some(Mounted::open(wanted, &folder, self.api.churn(), &kubeconfig).await?);
        Ok(())
    }

    /// The mounted folders, with their environment variables.
    pub(super) fn mounted(&self) -> Option<&Mounted> {
        self.mounted.as_ref()
    }

    /// The environment variables of the program.
    pub(super) fn given(&self) -> &Given {
        &self.given
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn now_us(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Reads new requests and commits, and creates a missing namespace. Returns the number of new requests that belong
    /// to the program's work.
    pub(super) async fn take(&mut self) -> usize {
        let (facts, _) = self.server.take_requests(SUBJECT);
        let mut fresh = 0;
        for fact in facts {
            // The watch was counted when it began.
            if fact.ended.is_some() && fact.about.watch.is_some() && fact.parameters().verb == "watch" {
                continue;
            }
            let ask = ask(&fact);
            let is_reading = matches!(ask.verb, "list" | "watch" | "get");
            // A program that polls repeats its requests and still counts as being at rest.
            let is_new = self.read.len() < FACTS_MAX && self.read.insert((ask.verb, ask.path.clone()));
            fresh += usize::from(!is_aside(&ask) && (is_new || !is_reading));
            if self.asks.len() < FACTS_MAX {
                self.asks.push(ask);
            }
        }
        while let Ok(entries) = self.tail.try_batch(BATCH) {
            if entries.is_empty() {
                break;
            }
            let room = FACTS_MAX.saturating_sub(self.wrote.len());
            self.wrote.extend(entries.into_iter().take(room).map(wrote));
        }
        self.make_missed_namespaces().await;
        fresh
    }

    async fn make_missed_namespaces(&mut self) {
        // A missing kind is answered with 404 as well.
        let is_missed = |ask: &&Ask| {
            ask.verb == "create"
                && ask.status == 404
                && ask.refusal.as_ref().is_some_and(|why| why.starts_with("namespaces "))
        };
        let missed = self.asks.iter().rev().take(BATCH).filter(is_missed);
        let missed: Vec<String> = missed.filter_map(|ask| ask.namespace.clone()).collect();
        for namespace in missed {
            if !self.namespaces.contains(&namespace) && self.namespaces.len() < NAMESPACES_MAX {
                let _ = self.api.create(&named("Namespace", &namespace), None, false).await;
                self.namespaces.push(namespace);
            }
        }
    }

    /// Namespaces of the program that a run must also create.
    pub(super) fn made_namespaces(&self) -> Vec<String> {
        self.namespaces.clone()
    }

    /// Drops the recorded requests before a restart of the program, and its Lease, because the next start would wait until the
    /// Lease expires.
    pub(super) async fn forget(&mut self) -> Result<()> {
        self.take().await;
        if let Some((namespace, name)) = seen::lease(&self.asks).filter(|(_, name)| !name.is_empty())
            && let Some(path) = self.api.path_of(LEASES, Some(&namespace), &name).await?
        {
            // A program that ends well deletes or releases it itself.
            let _ = self.api.delete(&path).await?;
        }
        self.asks.clear();
        self.read.clear();
        Ok(())
    }

    pub(super) async fn stop(self) {
        self.server.shutdown().await;
    }
}

/// Whether a request does not belong to the program's work: it renews a lease, writes an event, or discovers the API.
fn is_aside(ask: &Ask) -> bool {
    ask.verb.is_empty() || ask.resource == LEASES || ask.resource.starts_with("events")
}

fn ask(fact: &mock_kube::RequestFact) -> Ask {
    let asked = fact.parameters();
    Ask {
        at_us: fact.record.at_us,
        verb: asked.verb,
        resource: asked.resource,
        namespace: asked.namespace,
        name: asked.name,
        path: fact.record.path.clone(),
        status: fact.record.status,
        refusal: fact.said.as_ref().map(|said| said.message.clone()).filter(|message| !message.is_empty()),
    }
}

fn wrote(entry: mock_kube::Entry) -> Wrote {
    let commit = entry.commit;
    Wrote {
        at_us: entry.at_us,
        resource: commit.resource.to_string(),
        namespace: Some(commit.namespace.to_string()).filter(|namespace| !namespace.is_empty()),
        name: commit.name.to_string(),
        uid: commit.uid.to_string(),
        is_new: commit.change == facts::Change::Added,
    }
}

/// An object of the core group with a name and no other fields.
pub(super) fn named(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})
}

/// The environment variables of a run: kubeconfig, certificates, ports.
fn given(server: &mock_kube::Server, authority: &mock_pki::Authority, folder: &Path) -> Result<Given> {
    let mut given = Given::default();
    let kubeconfig = server.kubeconfig(SUBJECT).context("the server does not know the program's user")?;
    let path = |path: PathBuf| path.display().to_string();
    given.give(scenario::KUBECONFIG, path(write(folder, "kubeconfig.yaml", &kubeconfig)?));
    let tls = folder.join("tls");
    std::fs::create_dir_all(tls.join(USUAL))?;
    std::os::unix::fs::symlink("..", tls.join(USUAL).join("serving-certs"))?;
    let pair = authority.server(&["127.0.0.1", "localhost"])?;
    given.give(scenario::TLS_CERT, path(write(&tls, "tls.crt", &pair.certificate_pem)?));
    given.give(scenario::TLS_KEY, path(write(&tls, "tls.key", &pair.key_pem)?));
    given.give(scenario::TLS_DIR, path(tls));
    for name in [scenario::METRICS_PORT_NAME, scenario::WEBHOOK_PORT].into_iter().chain(scenario::FREE_PORTS) {
        given.give(name, free_port(Ipv4Addr::LOCALHOST)?.to_string());
    }
    given.give(scenario::WATCH, "");
    given.give(scenario::NAMESPACE, "");
    Ok(given)
}

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(path)
}

/// The name of the environment variable whose value is this port.
pub(super) fn variable_of(given: &Given, port: u16) -> Option<&'static str> {
    let value = port.to_string();
    let names = [scenario::METRICS_PORT_NAME, scenario::WEBHOOK_PORT].into_iter().chain(scenario::FREE_PORTS);
    let has = |name: &&str| given.variables().any(|(known, held)| known == **name && held == value);
    names.into_iter().find(has)
}

pub(super) fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}
