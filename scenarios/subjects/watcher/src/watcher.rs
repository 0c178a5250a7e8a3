//! An example of a subject: a program that watches one resource and reports every observed change to the witness.
//!
//! The program lists all objects, and then watches from the list's version. After 410 the program lists again and
//! reports the differences. The program never waits without a time limit. `KUBECONFIG` names the API server, and
//! `LONGHAUL_WITNESS_URL` the receiver of reports (none if it is empty). `LONGHAUL_WATCH` names the watched resource
//! (of several resources, the first one is watched). If several watchers run, `LONGHAUL_LEASE` names the Lease that
//! decides which watcher reports. The program uses nothing else of the harness.

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
/// `timeoutSeconds` of each watch. A watch that is silent for longer is dead, even if its connection looks open.
const WATCH_ENDS_AFTER_S: u64 = 15;
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// The first pause after a failure, and the longest pause. Each pause is twice as long as the pause before.
/// `Retry-After` can make a pause longer.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Longest line in bytes. Objects are at most 1.5 MiB, so a longer line is not an event.
const LINE_BYTES_MAX: usize = 4 << 20;

/// The known state of one object. Objects are known by their uid, because another object may get the same name later.
struct Known {
    namespace: String,
    name: String,
    version: String,
}

enum End {
    /// The next watch continues from the last version.
    Resume,
    /// The version is too old to continue from: only a list can show the present state.
    Gone,
}

struct Watcher {
    api: Api,
    witness: Witness,
    bug: Bug,
    /// The resource's name for the witness, such as `packages.longhaul.dev`.
    resource: String,
    path: String,
    known: BTreeMap<String, Known>,
    /// The version from which the next watch starts.
    version: String,
    /// Lines that the witness has not received yet.
    lines: Vec<String>,
    /// Whether this process is the watcher that reports, if several watchers run.
    leads: Option<Leads>,
    led: bool,
}

/// Watches and reports until the process is ended.
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
            // Outside the error handling below: if a report fails, the program must not go on as if nothing were wrong.
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

    /// Lists everything and reports the differences from the known state. The request has no resourceVersion, so the
    /// answer is never older than earlier answers.
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

    /// Watches until the server or the watcher ends the stream.
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

    /// Sends waiting lines to the witness, if this process is the watcher that reports. When a process begins to
    /// report, it reports all its objects, because it cannot know which were reported before.
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

    /// Records the deletion of an object. A deletion that only a list shows has no version of its own; the last known
    /// version is used.
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
