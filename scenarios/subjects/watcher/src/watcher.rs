//! An example subject: watches one resource and tells the witness every change it saw. Made to be copied.
//!
//! List, then watch from the list's version; after 410 list again and report the difference; never wait for ever.
//! `KUBECONFIG` says where the API server is, `LONGHAUL_WITNESS_URL` where to report (nowhere if it is empty), `LONGHAUL_WATCH` what to
//! watch (of several resources the first), and `LONGHAUL_LEASE` by which Lease one of several reports, if they are several. It must not know
//! more of the harness than those.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::bugs::Bug;
use crate::lease::{Leads, Lease};
use crate::net::{self, Api, Witness, text};

const DEFAULT_RESOURCE: &str = "packages.longhaul.dev/v1alpha1";
/// The server ends each watch after so long, so a stream that says nothing for longer is dead, however open it looks.
const WATCH_ENDS_AFTER_S: u64 = 15;
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// After trouble: the first pause, and the longest one it doubles to. Retry-After can make it longer.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Objects are at most 1.5 MiB; a line that is longer than this is no event.
const LINE_BYTES_MAX: usize = 4 << 20;

/// What is known of one object; the key is its uid, because a name can be used again.
struct Known {
    namespace: String,
    name: String,
    version: String,
}

/// Why a watch ended.
enum End {
    /// Go on from the last version.
    Resume,
    /// The version is too old: only a list can say what happened.
    Gone,
}

struct Watcher {
    api: Api,
    witness: Witness,
    bug: Bug,
    /// `packages.longhaul.dev`, as the witness wants it.
    resource: String,
    path: String,
    known: BTreeMap<String, Known>,
    /// The version to watch from.
    version: String,
    /// Lines that the witness has not got yet.
    lines: Vec<String>,
    /// Whether it is this one that reports, of several.
    leads: Option<Leads>,
    led: bool,
}

/// Runs until the process is ended.
#[tokio::main(flavor = "current_thread")]
pub async fn main() -> anyhow::Result<()> {
    let bug = Bug::from_environment();
    let api = Api::from_kubeconfig(&std::env::var("KUBECONFIG").context("KUBECONFIG is not set")?)?;
    let witness = Witness::new(&std::env::var("LONGHAUL_WITNESS_URL").context("LONGHAUL_WITNESS_URL is not set")?)?;
    let wanted = std::env::var("LONGHAUL_WATCH").unwrap_or_default();
    let wanted = wanted.split(',').next().filter(|first| !first.is_empty()).unwrap_or(DEFAULT_RESOURCE);
    let (resource, path) = net::resource_and_path(wanted)?;
    let (known, version, lines) = (BTreeMap::new(), String::new(), Vec::new());
    let mut leads = None;
    if let Some(mut lease) = Lease::from_environment()? {
        let mut api = Api::from_kubeconfig(&std::env::var("KUBECONFIG").context("KUBECONFIG is not set")?)?;
        leads = Some(lease.leads());
        // The first one reports from its first list on.
        lease.look(&mut api).await?;
        tokio::spawn(lease.keep(api));
    }
    Watcher { api, witness, bug, resource, path, known, version, lines, leads, led: false }.run().await
}

impl Watcher {
    async fn run(mut self) -> anyhow::Result<()> {
        let mut pause = PAUSE_MIN;
        let mut must_list = true;
        loop {
            let (before, began) = (self.version.clone(), Instant::now());
            let outcome = if must_list { self.list().await.map(|()| End::Resume) } else { self.watch().await };
            // Outside the error handling below: who cannot report must not go on as if nothing were wrong.
            self.tell().await?;
            let progressed = self.version != before || began.elapsed() > PAUSE_MIN * 5;
            pause = if progressed { PAUSE_MIN } else { (pause * 2).min(PAUSE_MAX) };
            let failed = outcome.is_err();
            match outcome {
                Ok(End::Resume) => must_list = false,
                Ok(End::Gone) => must_list = !self.bug.ignores_gone(),
                Err(error) => eprintln!("{error:#}"),
            }
            // A quiet watch that the server ended is no trouble; one that ends at once must not become a hot loop.
            if failed || !progressed {
                sleep(pause.max(self.api.retry_after())).await;
            }
        }
    }

    /// Lists everything and reports what differs from what is known. Without a resourceVersion in the request the
    /// answer is never older than what was seen before.
    async fn list(&mut self) -> anyhow::Result<()> {
        let (mut items, mut next, mut version) = (Vec::new(), String::new(), String::new());
        loop {
            let page: Value = self.api.get_json(&format!("{}?limit=500&continue={next}", self.path)).await?;
            let metadata = &page["metadata"];
            version = text(metadata, "resourceVersion").unwrap_or(version);
            items.extend(page["items"].as_array().context("a list without items")?.iter().cloned());
            next = text(metadata, "continue").unwrap_or_default();
            if next.is_empty() {
                break;
            }
        }
        let listed: BTreeSet<String> = items.iter().filter_map(|item| text(&item["metadata"], "uid")).collect();
        let vanished: Vec<String> = self.known.keys().filter(|uid| !listed.contains(*uid)).cloned().collect();
        for uid in vanished {
            self.deleted(&uid, None);
        }
        for item in &items {
            self.changed(item)?;
        }
        self.version = version;
        Ok(())
    }

    /// Watches until the stream ends, whoever ends it.
    async fn watch(&mut self) -> anyhow::Result<End> {
        let query = format!("watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH_ENDS_AFTER_S}");
        let path = format!("{}?{query}&resourceVersion={}", self.path, self.version);
        let Some(mut stream) = self.api.open(&path).await? else { return Ok(End::Gone) };
        let mut rest = Vec::new();
        loop {
            let frame = timeout(SILENCE_MAX, stream.body.frame()).await.context("the watch is silent")?;
            let Some(frame) = frame else { return Ok(End::Resume) };
            rest.extend_from_slice(&frame.context("the watch broke")?.into_data().unwrap_or_default());
            while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                if let Some(end) = self.event(&serde_json::from_slice(&line).context("an event that is not JSON")?)? {
                    return Ok(end);
                }
            }
            if rest.len() > LINE_BYTES_MAX {
                bail!("an event that does not end");
            }
            self.tell().await?;
        }
    }

    /// Tells the witness, if it is this one that reports. Who begins to report tells all that there is, as it cannot know what was told.
    async fn tell(&mut self) -> anyhow::Result<()> {
        if let Some(leads) = self.leads.as_ref().map(Leads::leads) {
            let begins = leads && !std::mem::replace(&mut self.led, leads);
            if begins || !leads {
                self.lines.clear();
            }
            if begins {
                let known: Vec<String> = self.known.iter().map(|(uid, known)| self.line(uid, known, "added")).collect();
                self.lines.extend(known);
            }
        }
        self.witness.post(&mut self.lines).await
    }

    fn event(&mut self, event: &Value) -> anyhow::Result<Option<End>> {
        let object = &event["object"];
        match event["type"].as_str() {
            Some("ADDED" | "MODIFIED") => self.changed(object)?,
            Some("DELETED") => {
                let uid = text(&object["metadata"], "uid").context("an object without uid")?;
                self.deleted(&uid, text(&object["metadata"], "resourceVersion"));
            }
            Some("BOOKMARK") => {}
            Some("ERROR") if object["code"] == 410 => return Ok(Some(End::Gone)),
            _ => bail!("the watch answered {event}"),
        }
        self.version = text(&object["metadata"], "resourceVersion").context("an object without resourceVersion")?;
        Ok(None)
    }

    fn changed(&mut self, object: &Value) -> anyhow::Result<()> {
        let field = |name| text(&object["metadata"], name);
        let uid = field("uid").context("an object without uid")?;
        let known = Known {
            namespace: field("namespace").unwrap_or_default(),
            name: field("name").context("an object without name")?,
            version: field("resourceVersion").context("an object without resourceVersion")?,
        };
        self.bug.sees(&uid);
        let change = match self.known.get(&uid) {
            Some(before) if before.version == known.version => return Ok(()),
            Some(_) => "modified",
            None => "added",
        };
        self.report(&uid, &known, change);
        self.known.insert(uid, known);
        Ok(())
    }

    /// A deletion that only a list showed has no version of its own; the last known one stands for it.
    fn deleted(&mut self, uid: &str, version: Option<String>) {
        let Some(mut known) = self.known.remove(uid) else { return };
        if self.bug.misses_deletes() {
            return;
        }
        known.version = version.unwrap_or(known.version);
        self.report(uid, &known, "deleted");
    }

    fn report(&mut self, uid: &str, known: &Known, change: &str) {
        let line = self.line(uid, known, change);
        self.lines.push(line);
    }

    fn line(&self, uid: &str, known: &Known, change: &str) -> String {
        let line = json!({
            "resource": self.resource, "namespace": known.namespace, "name": known.name, "uid": uid,
            "resourceVersion": known.version, "change": change,
        });
        line.to_string()
    }
}
