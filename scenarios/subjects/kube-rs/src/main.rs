//! kube-rs as a subject: `kube-rs-subject watcher|streaming|controller`.
//!
//! `watcher` and `streaming` use `kube::runtime::watcher` with its default back-off; `streaming` adds streaming lists.
//! `controller` runs `kube::runtime::Controller` for the first resource; further resources are its owned resources. All
//! other settings are the library's defaults, except the watch timeout if `LONGHAUL_SILENCE_S` is set. The program
//! keeps the existing objects as the documentation of `watcher::Event` says: by name, and replaced as a whole after
//! each initial list. kube's own store does the same.
//!
//! This program reports no event that the library does not deliver, so that it hides no mistake of the library.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::{StreamExt, TryStreamExt};
use kube::api::{Api, ApiResource, DynamicObject, ObjectMeta};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::{WatchStreamExt, watcher};
use witness::Witness;

mod witness;

/// Interval at which the controller's store is checked for deletions, because a reconciler is not called for deleted
/// objects.
const GLANCE: Duration = Duration::from_millis(200);

/// The objects that exist according to the library: namespace and name, with uid and resourceVersion.
type Known = BTreeMap<(String, String), (String, String)>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let witness = Witness::from_environment()?;
    let client = kube::Client::try_default().await.context("failed to use KUBECONFIG")?;
    let wanted = std::env::var("LONGHAUL_WATCH").unwrap_or_else(|_| "packages.longhaul.dev/v1alpha1".to_owned());
    let resources = wanted.split(',').map(resource).collect::<Result<Vec<_>>>()?;
    let silence_s = std::env::var("LONGHAUL_SILENCE_S").ok().and_then(|text| text.parse().ok());
    let config = silence_s.map_or_else(watcher::Config::default, |limit| watcher::Config::default().timeout(limit));
    let config = match mode.as_str() {
        "streaming" => config.streaming_lists(),
        "watcher" | "controller" => config,
        _ => bail!("usage: kube-rs-subject watcher|streaming|controller"),
    };
    if mode == "controller" {
        return control(&client, &resources, &config, witness).await;
    }
    let (judged, others) = resources.split_first().context("LONGHAUL_WATCH is empty")?;
    let mut tasks = tokio::task::JoinSet::new();
    for other in others {
        let stream = watcher(api(&client, other), config.clone()).default_backoff();
        tasks.spawn(stream.for_each(|_| std::future::ready(())));
    }
    watch(api(&client, judged), config, witness).await
}

/// Parses `plural.group/version`, or `plural/version` for the core group. The kind of the objects is made up, because
/// list and watch do not use the kind.
fn resource(text: &str) -> Result<ApiResource> {
    let (name, version) = text.split_once('/').with_context(|| format!("`{text}` is not plural.group/version"))?;
    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let (group, version, plural) = (group.to_owned(), version.to_owned(), plural.to_owned());
    Ok(ApiResource { group, version, api_version, kind: plural.clone(), plural })
}

fn api(client: &kube::Client, resource: &ApiResource) -> Api<DynamicObject> {
    match std::env::var("LONGHAUL_NAMESPACE") {
        Ok(namespace) if !namespace.is_empty() => Api::namespaced_with(client.clone(), &namespace, resource),
        _ => Api::all_with(client.clone(), resource),
    }
}

async fn watch(api: Api<DynamicObject>, config: watcher::Config, witness: Witness) -> Result<()> {
    let mut stream = std::pin::pin!(watcher(api, config).default_backoff());
    let (mut known, mut listed) = (Known::new(), Known::new());
    while let Some(event) = stream.next().await {
        match event {
            Ok(watcher::Event::Init) => listed.clear(),
            Ok(watcher::Event::InitApply(object)) => {
                listed.extend([entry(&object.metadata)]);
                applied(&mut known, &object.metadata, &witness).await?;
            }
            Ok(watcher::Event::InitDone) => replaced(&mut known, std::mem::take(&mut listed), &witness).await?,
            Ok(watcher::Event::Apply(object)) => applied(&mut known, &object.metadata, &witness).await?,
            Ok(watcher::Event::Delete(object)) => {
                let (key, value) = entry(&object.metadata);
                known.remove(&key);
                witness.report(value, "deleted").await?;
            }
            Err(error) => eprintln!("{error}"),
        }
    }
    bail!("the watcher ended")
}

async fn control(
    client: &kube::Client,
    resources: &[ApiResource],
    config: &watcher::Config,
    witness: Witness,
) -> Result<()> {
    let (judged, others) = resources.split_first().context("LONGHAUL_WATCH is empty")?;
    let mut controller = Controller::new_with(api(client, judged), config.clone(), judged.clone());
    for other in others {
        controller = controller.owns_with(api(client, other), other.clone(), config.clone());
    }
    let store = controller.store();
    let known = tokio::sync::Mutex::new(Known::new());
    let context = Arc::new((known, witness));
    let reconcile = |object: Arc<DynamicObject>, context: Arc<(tokio::sync::Mutex<Known>, Witness)>| async move {
        let mut known = context.0.lock().await;
        if let Err(error) = applied(&mut known, &object.metadata, &context.1).await {
            eprintln!("{error:#}");
            std::process::exit(70);
        }
        Ok::<_, Infallible>(Action::await_change())
    };
    let run = controller.run(reconcile, |_, _, _| Action::await_change(), Arc::clone(&context));
    let run = run.inspect_err(|error| eprintln!("{error}")).for_each(|_| std::future::ready(()));
    let mut glance = tokio::time::interval(GLANCE);
    let look = async {
        loop {
            glance.tick().await;
            let held: Known = store.state().iter().map(|object| entry(&object.metadata)).collect();
            let mut known = context.0.lock().await;
            replaced(&mut known, held, &context.1).await?;
        }
    };
    tokio::select! {
        () = run => bail!("the controller ended"),
        ended = look => ended,
    }
}

fn entry(metadata: &ObjectMeta) -> ((String, String), (String, String)) {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let key = (text(&metadata.namespace), text(&metadata.name));
    (key, (text(&metadata.uid), text(&metadata.resource_version)))
}

/// Handles a version of an object: reports the version once the handler's extra time is over. While a version is
/// handled, no other version is handled.
async fn applied(known: &mut Known, metadata: &ObjectMeta, witness: &Witness) -> Result<()> {
    let (key, value) = entry(metadata);
    let before = known.insert(key, value.clone());
    if before.as_ref().is_some_and(|before| *before != value) {
        witness.works(&value.0).await;
    }
    witness.report(value, if before.is_some() { "modified" } else { "added" }).await
}

/// Reports objects of `known` that the library's store no longer has as deleted. Objects that are new in the store are
/// reported when the library delivers them.
async fn replaced(known: &mut Known, held: Known, witness: &Witness) -> Result<()> {
    let gone: Vec<_> = known.keys().filter(|key| !held.contains_key(*key)).cloned().collect();
    for key in gone {
        if let Some(value) = known.remove(&key) {
            witness.report(value, "deleted").await?;
        }
    }
    Ok(())
}
