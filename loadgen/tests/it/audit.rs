//! Tests of the audit with a small API that lists and watches. The audit is complete if the API has no faults; every
//! fault is reported.

use std::time::{Duration, Instant};

use facts::Change;
use loadgen::audit::{Agreement, Audit, Config, Entry, Error, Problem, Source, agree};
use loadgen::churn::{self, Churn, Plan};
use serde_json::{Value, json};

use crate::kube::{Kube, State};
use crate::server::until;

const PACKAGES: &str = "packages.longhaul.dev/v1alpha1";
const PATH: &str = "/apis/longhaul.dev/v1alpha1/namespaces/n/packages";

fn config(kube: &Kube) -> Config {
    Config { catch_up_limit: Duration::from_millis(500), ..Config::new(kube.api(), PACKAGES) }
}

async fn kube() -> Kube {
    let kube = Kube::start().await;
    let namespace = json!({"kind": "Namespace", "metadata": {"name": "n"}});
    kube.state.lock().call("POST", "/api/v1/namespaces", &namespace);
    kube
}

fn create(state: &mut State, name: &str) {
    let metadata = json!({"name": name, "namespace": "n", "generation": 1});
    state.call("POST", PATH, &json!({"kind": "Package", "metadata": metadata}));
}

fn change(state: &mut State, name: &str, patch: &Value) {
    state.call("PATCH", &format!("{PATH}/{name}"), patch);
}

fn delete(state: &mut State, name: &str) {
    state.call("DELETE", &format!("{PATH}/{name}"), &Value::Null);
}

/// Reads the next `count` commits.
async fn read(audit: &Audit, count: usize) -> Vec<Entry> {
    let mut commits = Vec::new();
    while commits.len() < count {
        let batch = tokio::time::timeout(Duration::from_secs(20), audit.next_batch(count - commits.len()));
        commits.extend(batch.await.expect("commits in time").unwrap());
    }
    commits
}

fn brief(commits: &[Entry]) -> Vec<(Change, &str, Source)> {
    commits.iter().map(|entry| (entry.commit.change, &*entry.commit.name, entry.source)).collect()
}

#[tokio::test]
async fn what_was_there_then_every_change_in_order() {
    let kube = kube().await;
    for number in 0..1100 {
        create(&mut kube.state.lock(), &format!("old-{number}"));
    }
    let config = Config { looks: Some(facts::Looks::default()), ..config(&kube) };
    let mut audit = Audit::start(config).await.unwrap();
    assert_eq!(audit.objects(), 1100);
    let first = read(&audit, 1100).await;
    assert!(first.iter().all(|entry| (entry.commit.change, entry.source) == (Change::Added, Source::Listed)));
    assert_eq!(kube.state.lock().watches.limits, [500, 500, 500], "in pages");
    {
        let mut state = kube.state.lock();
        create(&mut state, "a");
        let status = json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}});
        change(&mut state, "a", &status);
        delete(&mut state, "a");
        create(&mut state, "a");
    }
    let commits = read(&audit, 4).await;
    let names: Vec<_> = brief(&commits);
    let watched = |change| (change, "a", Source::Watched);
    assert_eq!(
        names,
        [watched(Change::Added), watched(Change::Modified), watched(Change::Deleted), watched(Change::Added)]
    );
    assert_eq!((commits[1].progress.generation, commits[1].progress.observed), (2, Some(1)));
    assert_eq!((commits[0].progress.generation, commits[0].progress.observed), (1, None));
    assert_eq!(commits[0].commit.uid, commits[2].commit.uid);
    assert_ne!(commits[0].commit.uid, commits[3].commit.uid);
    let orders: Vec<u64> = first.iter().chain(&commits).map(|entry| entry.commit.order.number()).collect();
    assert_eq!(orders, (1..=1104).collect::<Vec<u64>>());

    let report = audit.finish().await.unwrap();
    assert!(report.is_complete(), "{report}");
    assert_eq!((report.commits, report.objects, report.resumes), (1104, 1101, 0));
    assert!(matches!(audit.next_batch(1).await, Err(Error::Finished)));
    until("the connection to be closed", || kube.server.open() == 0).await;
}

/// If watches are cut anywhere, even inside a line, no commit is lost or repeated.
#[tokio::test]
async fn a_cut_stream_is_resumed() {
    let kube = kube().await;
    kube.state.lock().watches.cut_after_bytes = Some(391);
    let mut audit = Audit::start(config(&kube)).await.unwrap();
    for number in 0..20 {
        let name = format!("p{number}");
        create(&mut kube.state.lock(), &name);
        change(&mut kube.state.lock(), &name, &json!({"spec": number}));
    }
    let commits = read(&audit, 40).await;
    let expected: Vec<String> =
        (0..20).flat_map(|number| [format!("ADDED p{number}"), format!("MODIFIED p{number}")]).collect();
    let seen: Vec<String> =
        commits.iter().map(|entry| format!("{} {}", entry.commit.change, entry.commit.name)).collect();
    assert_eq!(seen, expected);
    assert!(kube.state.lock().watches.opened > 10);
    let report = audit.finish().await.unwrap();
    assert!(report.is_complete() && report.resumes > 10 && report.repeated == 0, "{report:?}");
}

/// If the server has forgotten the version, as an HTTP status or an event says, a list shows the present objects, and
/// the report contains a gap.
#[tokio::test]
async fn a_forgotten_version_makes_a_hole() {
    for in_stream in [false, true] {
        let kube = kube().await;
        for name in ["stays", "changes", "goes", "is-replaced"] {
            create(&mut kube.state.lock(), name);
        }
        let mut audit = Audit::start(config(&kube)).await.unwrap();
        read(&audit, 4).await;
        until("the watch", || kube.state.lock().watches.opened == 1).await;
        {
            let mut state = kube.state.lock();
            let before = state.revision;
            change(&mut state, "changes", &json!({"spec": 1}));
            delete(&mut state, "goes");
            delete(&mut state, "is-replaced");
            create(&mut state, "is-replaced");
            create(&mut state, "comes");
            // None of it reaches the stream.
            let now = state.revision;
            state.watches.swallowed = (before + 1..=now).collect();
            state.watches.oldest = now;
            let code = if in_stream { 410 } else { 500 };
            let gone = json!({"type": "ERROR", "object": {"kind": "Status", "code": code, "message": "gone"}});
            state.watches.inject.push(format!("{gone}\n"));
            state.watches.wake();
        }
        let commits = read(&audit, 5).await;
        let relisted = |change, name| (change, name, Source::Relisted);
        assert_eq!(
            brief(&commits),
            [
                relisted(Change::Deleted, "goes"),
                relisted(Change::Deleted, "is-replaced"),
                relisted(Change::Modified, "changes"),
                relisted(Change::Added, "comes"),
                relisted(Change::Added, "is-replaced"),
            ]
        );
        create(&mut kube.state.lock(), "later");
        assert_eq!(brief(&read(&audit, 1).await), [(Change::Added, "later", Source::Watched)]);
        let report = audit.finish().await.unwrap();
        assert_eq!((report.holes_total, report.disagreements_total), (1, 0), "{report}");
        assert!(!report.is_complete());
        assert_eq!(report.holes[0].changes, 5);
        assert!(report.to_string().contains("no versions are known between "), "{report}");
    }
}

/// If a server never sends some events, the list at the end shows each affected object.
#[tokio::test]
async fn what_the_watch_never_showed_is_named() {
    let kube = kube().await;
    for name in ["changed", "deleted"] {
        create(&mut kube.state.lock(), name);
    }
    let mut audit = Audit::start(config(&kube)).await.unwrap();
    {
        let mut state = kube.state.lock();
        let begin = state.revision;
        state.watches.swallowed = (begin + 1..begin + 4).collect();
        change(&mut state, "changed", &json!({"spec": 1}));
        delete(&mut state, "deleted");
        create(&mut state, "created");
        create(&mut state, "shown");
    }
    assert_eq!(brief(&read(&audit, 3).await)[2].1, "shown");
    let report = audit.finish().await.unwrap();
    let mut named: Vec<(&str, &Problem)> =
        report.disagreements.iter().map(|each| (each.name.as_str(), &each.problem)).collect();
    named.sort_by_key(|(name, _)| *name);
    assert!(
        matches!(
            named[..],
            [
                ("changed", Problem::VersionDiffers { .. }),
                ("created", Problem::OnlyListed { .. }),
                ("deleted", Problem::OnlyWatched { .. }),
            ]
        ),
        "{report}"
    );
    assert!(!report.is_complete());
}

/// Invalid lines do not stop the audit: after a few invalid lines the audit lists again.
#[tokio::test]
async fn nonsense_in_the_stream_is_survived_and_marked() {
    let kube = kube().await;
    kube.state.lock().watches.nonsense = 5;
    let mut audit = Audit::start(config(&kube)).await.unwrap();
    create(&mut kube.state.lock(), "a");
    assert_eq!(brief(&read(&audit, 1).await), [(Change::Added, "a", Source::Relisted)]);
    let report = audit.finish().await.unwrap();
    assert_eq!((report.holes_total, report.disagreements_total), (1, 0));
    assert!(report.holes[0].reason.contains("an event of type `PUT`"), "{report}");
}

/// Bookmarks raise the version, so that the version of a quiet resource is not forgotten. A silent watch is dropped and
/// opened again.
#[tokio::test]
async fn bookmarks_keep_the_version_fresh() {
    let kube = kube().await;
    // Silence is no outage, however short the limit of outages is.
    let outage_limit = Duration::from_millis(50);
    let config = Config { silence_limit: Duration::from_millis(200), outage_limit, ..config(&kube) };
    let mut audit = Audit::start(config).await.unwrap();
    until("the watch", || kube.state.lock().watches.opened == 1).await;
    {
        let mut state = kube.state.lock();
        let bookmark = json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "40"}}});
        state.watches.inject.push(format!("{bookmark}\n"));
        (state.revision, state.watches.oldest) = (40, 40);
        state.watches.wake();
    }
    until("two more watches", || kube.state.lock().watches.opened >= 3).await;
    let report = audit.finish().await.unwrap();
    assert_eq!((report.bookmarks, report.holes_total), (1, 0), "{report}");
}

#[tokio::test]
async fn a_slow_reader_is_told_what_it_lost() {
    let kube = kube().await;
    let audit = Audit::start(Config { queue_commits: 4, ..config(&kube) }).await.unwrap();
    for number in 0..10 {
        create(&mut kube.state.lock(), &format!("p{number}"));
    }
    until("all to be watched", || audit.objects() == 10).await;
    assert!(matches!(audit.try_batch(10), Err(Error::Overrun { lost: 6 })));
    let orders: Vec<u64> = audit.try_batch(10).unwrap().iter().map(|entry| entry.commit.order.number()).collect();
    assert_eq!(orders, [7, 8, 9, 10]);
}

#[tokio::test]
async fn a_control_plane_that_is_gone_ends_it_loudly() {
    let kube = kube().await;
    let config = Config { outage_limit: Duration::from_millis(300), ..config(&kube) };
    let mut audit = Audit::start(config).await.unwrap();
    drop(kube);
    let error = tokio::time::timeout(Duration::from_secs(20), audit.next_batch(1)).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    assert!(matches!(audit.finish().await, Err(Error::Lost { .. })));
}

#[tokio::test]
async fn a_list_whose_pages_expire_is_begun_anew() {
    let kube = kube().await;
    for number in 0..600 {
        create(&mut kube.state.lock(), &format!("p{number}"));
    }
    kube.state.lock().watches.expired_pages = 1;
    let audit = Audit::start(config(&kube)).await.unwrap();
    assert_eq!(audit.objects(), 600);
    kube.state.lock().watches.expired_pages = 3;
    let error = Audit::start(config(&kube)).await.unwrap_err().to_string();
    assert_eq!(error, "list packages.longhaul.dev/v1alpha1 for the audit: HTTP 410: the continue token is too old");
}

#[tokio::test]
async fn a_start_that_cannot_work_says_why() {
    let kube = kube().await;
    let mut wrong = config(&kube);
    wrong.api.token = "wrong".to_owned();
    let error = Audit::start(wrong).await.unwrap_err().to_string();
    assert_eq!(error, "list packages.longhaul.dev/v1alpha1 for the audit: HTTP 401: Unauthorized");
    let wrong = Config { resource: "pods".to_owned(), ..config(&kube) };
    let error = Audit::start(wrong).await.unwrap_err().to_string();
    assert!(error.starts_with("start the audit: `pods` is no resource: write it like one of `packages"), "{error}");
    let wrong = Config { fields: vec!["status.x".to_owned()], ..config(&kube) };
    let error = Audit::start(wrong).await.unwrap_err().to_string();
    assert!(error.contains("`status.x` is no JSON pointer: write for example"), "{error}");
}

fn plan(seconds: u64) -> Plan {
    let config: churn::Config = serde_json::from_str(&format!(
        r#"{{"resource": "{PACKAGES}", "population": 30, "rate": "300/s", "mix": {{"create": 2, "update": 3, "delete": 2}}}}"#
    ))
    .unwrap();
    Plan::build(&config, 7, Duration::from_secs(seconds)).unwrap()
}

/// Churn and the audit agree on all writes, from the first objects to the clean-up, including finalizers.
#[tokio::test]
async fn churn_and_audit_agree() {
    for finalizer in [None, Some(3)] {
        let kube = kube().await;
        kube.state.lock().finalizer = finalizer;
        let mut audit = Audit::start(config(&kube)).await.unwrap();
        let mut churn = Churn::start(plan(1).recording_writes(), &kube.api(), Instant::now()).await.unwrap();
        churn.canary().await.unwrap();
        churn.canary().await.unwrap();
        let mut agreement = Agreement::default();
        let limit = Instant::now() + Duration::from_secs(20);
        let mut planned = churn.take();
        while planned.created + planned.updated + planned.deleted + planned.failed < 300 {
            assert!(Instant::now() < limit);
            tokio::task::yield_now().await;
            planned.add(&churn.take());
            audit.try_batch(1000).unwrap().iter().for_each(|commit| agreement.commit(commit));
            agreement.writes(churn.take_writes().unwrap());
            agreement.advance(Instant::now());
        }
        churn.empty().await.unwrap();
        let report = audit.finish().await.unwrap();
        assert!(report.is_complete(), "{report}");
        while let Ok(batch) = audit.try_batch(1000) {
            for commit in &batch {
                agreement.commit(commit);
            }
        }
        agreement.writes(churn.take_writes().unwrap());
        let outcome = agreement.finish();
        assert!(outcome.agrees(), "{outcome}");
        // Every call that changed an object of the population, the canary included, was recorded once.
        let is_write = |call: &str| call.contains("/packages") && !call.starts_with("GET ");
        let state = kube.state.lock();
        let writes = state.log.iter().filter(|(call, status)| *status < 300 && is_write(call)).count();
        assert_eq!(outcome.confirmed, writes as u64);
        assert_eq!(report.objects, 0);
    }
}

/// If the server never sent a version but a later one of the same object, lists cannot show that. The comparison with
/// the record of writes shows the version that was never sent.
#[tokio::test]
async fn a_write_that_the_audit_never_showed_is_named() {
    let kube = kube().await;
    let mut audit = Audit::start(config(&kube)).await.unwrap();
    let mut churn = Churn::start(plan(0).recording_writes(), &kube.api(), Instant::now()).await.unwrap();
    churn.canary().await.unwrap();
    let lost = kube.state.lock().revision + 1;
    kube.state.lock().watches.swallowed.insert(lost);
    let version = churn.canary().await.unwrap().resource_version;
    assert_eq!(version, lost.to_string());
    churn.canary().await.unwrap();
    churn.stop(Duration::from_secs(5)).await.unwrap();
    let report = audit.finish().await.unwrap();
    assert_eq!(report.disagreements_total, 0, "the lists cannot know: {report}");
    let commits = audit.try_batch(1000).unwrap();
    let outcome = agree(&commits, &churn.take_writes().unwrap().writes);
    assert_eq!((outcome.unseen_total, outcome.confirmed), (1, 32), "{outcome}");
    assert_eq!(outcome.unseen[0].resource_version, Some(version));
}

#[tokio::test]
async fn nothing_is_recorded_unasked() {
    let kube = kube().await;
    let churn = Churn::start(plan(0), &kube.api(), Instant::now()).await.unwrap();
    assert_eq!(churn.take_writes(), None);
}
