//! Tests of the simulated controllers against a small store.

mod world;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::fields::{label, list, name, number, text};
use super::{How, Kind, Trouble, conditions};
use world::World;

fn template(app: &str, image: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "c", "image": image, "ports": [{"name": "web", "containerPort": 8080}]}]}})
}

fn deployment(replicas: i64) -> Value {
    json!({
        "metadata": {"name": "web", "labels": {"a": "b"}},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template("web", "one"),
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "revisionHistoryLimit": 1, "progressDeadlineSeconds": 600,
        },
    })
}

/// A Deployment becomes complete after the configured time, not earlier; its status is compared without times.
#[test]
fn a_deployment_becomes_ready_after_its_time_and_not_before() {
    let mut world = World::new(SignedDuration::from_millis(200));
    world.create(Kind::Deployment, deployment(3));
    world.run(SignedDuration::from_millis(190));
    assert_eq!(number(&world.get(Kind::Deployment, "web"), "/status/readyReplicas"), 0);
    world.run(SignedDuration::from_millis(300));
    let web = world.get(Kind::Deployment, "web");
    let mut status = web["status"].clone();
    for condition in status["conditions"].as_array_mut().unwrap() {
        for time in ["lastUpdateTime", "lastTransitionTime"] {
            assert!(condition.as_object_mut().unwrap().remove(time).is_some());
        }
    }
    let set = &world.all(Kind::ReplicaSet)[0];
    assert_eq!(
        status,
        json!({
            "observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
            "conditions": [
                {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "Deployment has minimum availability."},
                {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable",
                 "message": format!("ReplicaSet \"{}\" has successfully progressed.", name(set))},
            ],
        })
    );
    assert_eq!(web["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    assert_eq!(set["metadata"]["annotations"]["deployment.kubernetes.io/max-replicas"], "4");
    assert!(name(set).ends_with(label(set, "pod-template-hash")));
    assert!(world.all(Kind::Pod).iter().all(|pod| label(pod, "pod-template-hash") == label(set, "pod-template-hash")));
}

/// During a rollout, there are never more Pods than `maxSurge` allows, and never fewer available Pods than
/// `maxUnavailable` allows.
#[test]
fn a_roll_keeps_within_its_limits_and_numbers_what_was() {
    let mut world = World::new(SignedDuration::from_millis(100));
    world.create(Kind::Deployment, deployment(8));
    world.run(SignedDuration::from_secs(2));
    for (round, image) in ["two", "three", "one"].into_iter().enumerate() {
        world.edit(Kind::Deployment, "web", |web| {
            web["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        });
        let mut mixed = false;
        for _ in 0..100 {
            world.run(SignedDuration::from_millis(20));
            let sets = world.all(Kind::ReplicaSet);
            let sum = |pointer: &str| sets.iter().map(|set| number(set, pointer)).sum::<i64>();
            assert!(sum("/spec/replicas") <= 10, "{sets:#?}");
            assert!(sum("/status/availableReplicas") >= 6, "{sets:#?}");
            mixed |= sets.iter().filter(|set| number(set, "/spec/replicas") > 0).count() == 2;
        }
        assert!(mixed, "it went step by step");
        let web = world.get(Kind::Deployment, "web");
        assert_eq!(number(&web, "/status/updatedReplicas"), 8);
        assert_eq!(web["metadata"]["annotations"]["deployment.kubernetes.io/revision"], (round + 2).to_string());
        assert_eq!(world.all(Kind::ReplicaSet).len(), 2, "one of the past is kept");
    }
}

/// One call of `Machine::step` makes only a few Pods, even if a client wants very many, so that no client can exhaust
/// the server's memory.
#[test]
fn one_step_makes_a_few_of_very_many_pods() {
    let most = i64::from(i32::MAX);
    let mut parallel = stateful(most);
    parallel["spec"]["podManagementPolicy"] = json!("Parallel");
    let mut numbered = job(most, 100_000);
    numbered["spec"]["completionMode"] = json!("Indexed");
    for (kind, body) in [(Kind::StatefulSet, parallel), (Kind::Job, numbered), (Kind::Deployment, deployment(most))] {
        let mut world = World::new(SignedDuration::from_millis(100));
        world.create(kind, body);
        for _ in 0..5 {
            let batches = world.step();
            assert!(batches.iter().all(|batch| batch.writes.len() <= 64), "{kind:?}");
        }
        assert!(world.all(Kind::Pod).len() > 20, "{kind:?}");
    }
}

#[test]
fn what_is_recreated_is_gone_before_anything_new_comes() {
    let mut world = World::new(SignedDuration::from_millis(100));
    let mut web = deployment(3);
    web["spec"]["strategy"] = json!({"type": "Recreate"});
    world.create(Kind::Deployment, web);
    world.run(SignedDuration::from_secs(1));
    world.edit(Kind::Deployment, "web", |web| web["spec"]["template"]["spec"]["containers"][0]["image"] = json!("two"));
    let mut empty = false;
    for _ in 0..100 {
        world.run(SignedDuration::from_millis(10));
        let pods = world.all(Kind::Pod);
        let of = |image: &str| pods.iter().filter(|pod| pod["spec"]["containers"][0]["image"] == image).count();
        assert!(of("one") == 0 || of("two") == 0, "{pods:#?}");
        empty |= of("one") == 0;
    }
    assert!(empty);
    assert_eq!(number(&world.get(Kind::Deployment, "web"), "/status/availableReplicas"), 3);
}

#[test]
fn a_deployment_is_scaled_and_a_pod_that_is_deleted_comes_again() {
    let mut world = World::new(SignedDuration::from_millis(50));
    world.create(Kind::Deployment, deployment(2));
    world.run(SignedDuration::from_secs(1));
    for wanted in [5, 1, 0, 2] {
        world.edit(Kind::Deployment, "web", |web| web["spec"]["replicas"] = json!(wanted));
        world.run(SignedDuration::from_secs(1));
        let web = world.get(Kind::Deployment, "web");
        assert_eq!((number(&web, "/status/replicas"), number(&web, "/status/availableReplicas")), (wanted, wanted));
        assert_eq!(world.all(Kind::Pod).len(), usize::try_from(wanted).unwrap());
    }
    let gone = name(&world.all(Kind::Pod)[0]).to_owned();
    world.delete(Kind::Pod, &gone);
    world.run(SignedDuration::from_secs(1));
    assert!(world.all(Kind::Pod).iter().all(|pod| name(pod) != gone));
    assert_eq!(number(&world.get(Kind::Deployment, "web"), "/status/readyReplicas"), 2);
}

/// After any sequence of changes, the machine stops writing.
#[test]
fn at_rest_nothing_is_written() {
    let mut world = World::new(SignedDuration::from_millis(50));
    world.create(Kind::Deployment, deployment(2));
    world.create(Kind::StatefulSet, stateful(2));
    world.create(Kind::DaemonSet, daemons());
    world.create(Kind::Job, job(2, 2));
    world.create(Kind::Service, service("LoadBalancer"));
    world.run(SignedDuration::from_secs(5));
    let writes = world.writes;
    world.run(SignedDuration::from_secs(30));
    assert_eq!(world.writes, writes);
    world.touch_all();
    world.run(SignedDuration::from_secs(5));
    assert_eq!(world.writes, writes, "nor when it looks at everything again");
}

fn stateful(replicas: i64) -> Value {
    json!({
        "metadata": {"name": "db"},
        "spec": {
            "replicas": replicas, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template("db", "one"),
            "podManagementPolicy": "OrderedReady", "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "revisionHistoryLimit": 10,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}],
        },
    })
}

/// A Pod of a `StatefulSet` is made when the Pod with the previous number is ready, and runs when its claim has its
/// volume.
#[test]
fn pods_of_a_stateful_set_come_one_by_one_with_their_claims() {
    let mut world = World::new(SignedDuration::from_millis(100));
    world.create(Kind::StatefulSet, stateful(3));
    let mut seen = Vec::new();
    for _ in 0..300 {
        world.run(SignedDuration::from_millis(10));
        let pods = world.all(Kind::Pod);
        let ready: Vec<bool> = pods.iter().map(super::pod::is_ready).collect();
        assert!(ready.iter().rev().skip(1).all(|ready| *ready), "{pods:#?}");
        for pod in pods.iter().filter(|pod| !text(pod, "/spec/nodeName").is_empty()) {
            let claim = world.get(Kind::Claim, &format!("data-{}", name(pod)));
            assert_eq!(claim["status"]["phase"], "Bound");
            assert_eq!(claim["status"]["capacity"]["storage"], "1Gi");
        }
        if seen.last() != Some(&pods.len()) {
            seen.push(pods.len());
        }
    }
    assert_eq!(seen, [0, 1, 2, 3].into_iter().filter(|number| seen.contains(number)).collect::<Vec<_>>());
    let pod = world.get(Kind::Pod, "db-1");
    assert_eq!((label(&pod, "apps.kubernetes.io/pod-index"), &pod["spec"]["hostname"]), ("1", &json!("db-1")));
    let db = world.get(Kind::StatefulSet, "db");
    let mut status = db["status"].clone();
    assert_eq!(status["currentRevision"], status["updateRevision"]);
    for key in ["currentRevision", "updateRevision"] {
        status.as_object_mut().unwrap().remove(key);
    }
    assert_eq!(
        status,
        json!({"observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "currentReplicas": 3, "updatedReplicas": 3, "availableReplicas": 3, "collisionCount": 0})
    );
    world.edit(Kind::StatefulSet, "db", |db| db["spec"]["template"]["spec"]["containers"][0]["image"] = json!("two"));
    world.run(SignedDuration::from_millis(150));
    let old = world
        .all(Kind::Pod)
        .iter()
        .filter(|pod| pod["spec"]["containers"][0]["image"] == "one")
        .map(|pod| name(pod).to_owned())
        .collect::<Vec<_>>();
    assert!(old.contains(&"db-0".to_owned()), "the last one goes first: {old:?}");
    world.run(SignedDuration::from_secs(3));
    let db = world.get(Kind::StatefulSet, "db");
    assert_eq!(number(&db, "/status/updatedReplicas"), 3);
    assert_eq!(db["status"]["currentRevision"], db["status"]["updateRevision"]);
    assert_eq!(world.all(Kind::Claim).len(), 3, "claims stay");
    world.edit(Kind::StatefulSet, "db", |db| db["spec"]["replicas"] = json!(1));
    world.run(SignedDuration::from_secs(2));
    assert_eq!((world.all(Kind::Pod).len(), world.all(Kind::Claim).len()), (1, 3));
}

/// Pods with a number below `partition` keep the first template.
#[test]
fn a_partition_keeps_the_first_pods_as_they_are() {
    let mut world = World::new(SignedDuration::from_millis(20));
    let mut db = stateful(3);
    db["spec"]["podManagementPolicy"] = json!("Parallel");
    db["spec"]["ordinals"] = json!({"start": 1});
    db["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = json!(2);
    world.create(Kind::StatefulSet, db);
    world.run(SignedDuration::from_secs(1));
    world.edit(Kind::StatefulSet, "db", |db| {
        db["spec"]["template"]["spec"]["containers"][0]["image"] = json!("two");
    });
    world.run(SignedDuration::from_secs(2));
    let images =
        ["db-1", "db-2", "db-3"].map(|name| world.get(Kind::Pod, name)["spec"]["containers"][0]["image"].clone());
    assert_eq!(images, ["one", "one", "two"]);
}

fn daemons() -> Value {
    json!({
        "metadata": {"name": "agent", "annotations": {"deprecated.daemonset.template.generation": "1"}},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template("agent", "one"), "revisionHistoryLimit": 10,
                 "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}},
    })
}

#[test]
fn a_daemon_runs_on_each_node_and_is_replaced_one_by_one() {
    let mut world = World::new(SignedDuration::from_millis(100));
    world.create(Kind::DaemonSet, daemons());
    world.run(SignedDuration::from_secs(1));
    let status = world.get(Kind::DaemonSet, "agent")["status"].clone();
    assert_eq!(
        status,
        json!({"currentNumberScheduled": 2, "desiredNumberScheduled": 2, "numberMisscheduled": 0, "numberReady": 2,
               "observedGeneration": 1, "updatedNumberScheduled": 2, "numberAvailable": 2})
    );
    let nodes: std::collections::BTreeSet<String> =
        world.all(Kind::Pod).iter().map(|pod| text(pod, "/spec/nodeName").to_owned()).collect();
    assert_eq!(nodes.len(), 2);
    world.edit(Kind::DaemonSet, "agent", |agent| {
        agent["spec"]["template"]["spec"]["containers"][0]["image"] = json!("two");
    });
    for _ in 0..200 {
        world.run(SignedDuration::from_millis(10));
        assert!(world.all(Kind::Pod).iter().filter(|pod| super::pod::is_ready(pod)).count() >= 1);
    }
    assert_eq!(number(&world.get(Kind::DaemonSet, "agent"), "/status/updatedNumberScheduled"), 2);
}

fn job(completions: i64, parallelism: i64) -> Value {
    let mut template = template("work", "one");
    template["spec"]["restartPolicy"] = json!("Never");
    json!({"metadata": {"name": "work"}, "spec": {"completions": completions, "parallelism": parallelism, "template": template, "completionMode": "NonIndexed"}})
}

/// A Pod with `restartPolicy: Never` and no Job ends after the configured time; without such a time, it runs on.
#[test]
fn a_pod_of_no_job_runs_until_a_time_that_is_named() {
    for (ends_after, phase) in [(None, "Running"), (Some(SignedDuration::from_secs(5)), "Succeeded")] {
        let mut world = World::ending_after(ends_after);
        world.create(Kind::Pod, json!({"metadata": {"name": "head"}, "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}));
        world.run(SignedDuration::from_secs(4));
        assert_eq!(text(&world.get(Kind::Pod, "head"), "/status/phase"), "Running");
        world.run(SignedDuration::from_secs(20));
        assert_eq!(text(&world.get(Kind::Pod, "head"), "/status/phase"), phase);
    }
}

#[test]
fn a_job_runs_so_many_at_a_time_until_enough_have_ended() {
    let mut world = World::new(SignedDuration::from_millis(100));
    world.create(Kind::Job, job(5, 2));
    for _ in 0..300 {
        world.run(SignedDuration::from_millis(10));
        assert!(world.all(Kind::Pod).iter().filter(|pod| super::pod::is_active(pod)).count() <= 2);
    }
    let work = world.get(Kind::Job, "work");
    let status = &work["status"];
    assert_eq!(
        (number(status, "/succeeded"), number(status, "/active"), number(status, "/ready")),
        (5, 0, 0),
        "{work:#}"
    );
    assert_eq!(status["uncountedTerminatedPods"], json!({}));
    assert!(conditions::is_true(status, "Complete") && conditions::is_true(status, "SuccessCriteriaMet"));
    assert!(!text(status, "/completionTime").is_empty() && !text(status, "/startTime").is_empty());
    assert!(world.all(Kind::Pod).iter().all(|pod| list(pod, "/metadata/finalizers").is_empty()));
    assert_eq!(world.all(Kind::Pod).len(), 5);
}

#[test]
fn a_job_that_numbers_its_pods_runs_each_number_once() {
    let mut world = World::new(SignedDuration::from_millis(100));
    let mut work = job(3, 2);
    work["spec"]["completionMode"] = json!("Indexed");
    work["spec"]["ttlSecondsAfterFinished"] = json!(20);
    world.create(Kind::Job, work);
    world.run(SignedDuration::from_secs(5));
    let work = world.get(Kind::Job, "work");
    assert_eq!((&work["status"]["completedIndexes"], number(&work, "/status/succeeded")), (&json!("0-2"), 3));
    world.run(SignedDuration::from_secs(30));
    assert!(world.all(Kind::Job).is_empty(), "it is kept for twenty seconds");
}

fn service(kind: &str) -> Value {
    json!({
        "metadata": {"name": "web", "labels": {"x": "y"}},
        "spec": {"type": kind, "clusterIP": "10.96.0.9", "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "web", "protocol": "TCP"}]},
    })
}

#[test]
fn a_service_has_the_addresses_of_its_pods_and_one_outside() {
    let mut world = World::new(SignedDuration::from_millis(100));
    world.create(Kind::Service, service("LoadBalancer"));
    world.create(Kind::Deployment, deployment(2));
    world.run(SignedDuration::from_secs(1));
    let endpoints = world.get(Kind::Endpoints, "web");
    assert_eq!(list(&endpoints, "/subsets/0/addresses").len(), 2);
    assert_eq!(endpoints["subsets"][0]["ports"], json!([{"port": 8080, "protocol": "TCP"}]));
    let slice = &world.all(Kind::Slice)[0];
    assert_eq!(slice["endpoints"][0]["conditions"], json!({"ready": true, "serving": true, "terminating": false}));
    assert_eq!(label(slice, "kubernetes.io/service-name"), "web");
    let web = world.get(Kind::Service, "web");
    assert_eq!(web["status"]["loadBalancer"]["ingress"][0]["ipMode"], "VIP");
    world.delete(Kind::Service, "web");
    world.run(SignedDuration::from_secs(1));
    assert!(world.all(Kind::Service).is_empty(), "the load balancer is cleaned up");
    assert!(world.all(Kind::Endpoints).is_empty());
}

fn trouble(how: How, world: &World) -> Trouble {
    Trouble { id: 7, how, share: 1.0, resource: None, began: world.now }
}

#[test]
fn what_a_fault_holds_is_not_ready_until_it_ends() {
    let mut world = World::new(SignedDuration::from_millis(100));
    world.create(Kind::Service, service("ClusterIP"));
    world.create(Kind::Deployment, deployment(2));
    world.run(SignedDuration::from_secs(1));
    world.machine.trouble(vec![trouble(How::NotReady, &world)]);
    world.run(SignedDuration::from_secs(3));
    let web = world.get(Kind::Deployment, "web");
    assert_eq!(number(&web, "/status/readyReplicas"), 0);
    assert!(!conditions::is_true(&web["status"], "Available"));
    let endpoints = world.get(Kind::Endpoints, "web");
    assert_eq!(list(&endpoints, "/subsets/0/notReadyAddresses").len(), 2, "{endpoints:#}");
    let hits = world.machine.take_hits();
    assert_eq!(hits.len(), 2, "each Pod once: {hits:?}");
    assert!(hits[0].detail.ends_with(" of deployments.apps ns/web is not ready"), "{hits:?}");
    world.edit(Kind::Deployment, "web", |web| web["spec"]["replicas"] = json!(3));
    world.run(SignedDuration::from_secs(1));
    assert_eq!(world.machine.take_hits().len(), 1, "and one that does not become ready");
    world.machine.trouble(Vec::new());
    world.run(SignedDuration::from_millis(90));
    assert_eq!(number(&world.get(Kind::Deployment, "web"), "/status/readyReplicas"), 0, "it takes its time again");
    world.run(SignedDuration::from_secs(1));
    assert_eq!(number(&world.get(Kind::Deployment, "web"), "/status/readyReplicas"), 3);
    assert!(world.machine.take_hits().is_empty());
}

#[test]
fn what_flaps_is_up_and_down_in_turn() {
    let mut world = World::new(SignedDuration::from_millis(10));
    world.create(Kind::Deployment, deployment(1));
    world.run(SignedDuration::from_secs(1));
    world.machine.trouble(vec![trouble(How::Flapping(SignedDuration::from_secs(1)), &world)]);
    let mut ups = Vec::new();
    world.run(SignedDuration::from_millis(250));
    for _ in 0..8 {
        world.run(SignedDuration::from_millis(500));
        ups.push(number(&world.get(Kind::Deployment, "web"), "/status/readyReplicas"));
    }
    assert_eq!(ups, [0, 1, 1, 0, 0, 1, 1, 0]);
    assert_eq!(world.machine.take_hits().len(), 3);
}

/// After a webhook refuses Pods, it is called again with growing pauses, and the Deployment's status reports the
/// refusal.
#[test]
fn refused_pods_are_told_and_tried_again_ever_more_seldom() {
    let mut world = World::new(SignedDuration::from_millis(10));
    world.refuses = Some((Kind::Pod, "no Pods here".to_owned()));
    world.create(Kind::Deployment, deployment(2));
    world.run(SignedDuration::from_secs(20));
    let web = world.get(Kind::Deployment, "web");
    let failure = conditions::find(&web["status"], "ReplicaFailure").unwrap();
    assert_eq!((text(failure, "/reason"), text(failure, "/message")), ("FailedCreate", "no Pods here"));
    assert!((3..20).contains(&world.refusals), "{}", world.refusals);
    world.refuses = None;
    world.run(SignedDuration::from_secs(60));
    let web = world.get(Kind::Deployment, "web");
    assert!(conditions::find(&web["status"], "ReplicaFailure").is_none(), "{web:#}");
    assert_eq!(number(&web, "/status/readyReplicas"), 2);
}
