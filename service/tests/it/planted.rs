//! Each planted bug does its damage, and only that.

use serde_json::json;
use service::run::Options;

use crate::support::api::{Api, Fault};
use crate::support::registry::Registry;
use crate::support::{Service, kubeconfig, until};

fn planted(bug: &str) -> Options {
    Options { roles: service::planted::roles(bug).unwrap(), ..Options::default() }
}

async fn start(api: &Api, bug: &str) -> Service {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kube.yaml");
    kubeconfig(&path, api.address());
    let config = format!(
        "health: {{listen: \"127.0.0.1:0\"}}\nkubernetes: {{kubeconfig: \"{}\"}}\n\
         watch: {{relistInterval: 1s, silenceLimit: 1s, backoff: {{initial: 20ms, max: 200ms}}}}\n",
        path.display()
    );
    let options = Options { witness_url: Some(api.witness_url()), ..planted(bug) };
    Service::start("watch", &config, options).await
}

fn witnessed(api: &Api, name: &str, change: &str) -> bool {
    api.world.lock().witnessed.iter().any(|line| line["name"] == name && line["change"] == change)
}

#[tokio::test]
async fn missed_delete_tells_neither_store_nor_witness() {
    let api = Api::start(false).await;
    api.create("goes", &[]);
    let service = start(&api, "missed-delete").await;
    until("it is seen", || witnessed(&api, "goes", "added")).await;
    service.health("/debug/watch").await;
    api.world.lock().packages.get_mut("goes").unwrap()["metadata"]["finalizers"] = json!([]);
    api.delete("goes");
    api.create("comes", &[]);
    until("a later one is seen", || witnessed(&api, "comes", "added")).await;
    let lists = || api.world.lock().requests.iter().filter(|(_, request)| request.ends_with("/packages")).count();
    let before = lists();
    until("a safety list ran", || lists() > before + 1).await;
    assert!(!witnessed(&api, "goes", "deleted"));
    let page: serde_json::Value = serde_json::from_str(&service.health("/debug/watch").await.1).unwrap();
    assert_eq!(page["objects"], 2, "the ghost is still there: {page:#}");
    service.app.stop().await;
}

#[tokio::test]
async fn a_stale_child_is_told_right_and_kept_wrong() {
    let api = Api::start(false).await;
    api.create("changes", &[]);
    api.create("stays", &[]);
    let service = start(&api, "stale-child").await;
    until("both are seen", || witnessed(&api, "changes", "added") && witnessed(&api, "stays", "added")).await;
    service.health("/debug/watch").await;
    api.update("changes", &[80]);
    until("the update is told", || witnessed(&api, "changes", "modified")).await;
    let lists = || api.world.lock().requests.iter().filter(|(_, request)| request.ends_with("/packages")).count();
    let listed = lists();
    until("two safety lists ran", || lists() > listed + 2).await;
    let page: serde_json::Value = serde_json::from_str(&service.health("/debug/watch").await.1).unwrap();
    assert_ne!(page["checksum"], api.checksum().as_str(), "no list heals it: {page:#}");
    assert_eq!((&page["lost"], &page["objects"]), (&json!(0), &json!(2)), "the watch itself is right: {page:#}");
    api.world.lock().packages.get_mut("changes").unwrap()["metadata"]["finalizers"] = json!([]);
    api.delete("changes");
    until("the deletion is told", || witnessed(&api, "changes", "deleted")).await;
    let page: serde_json::Value = serde_json::from_str(&service.health("/debug/watch").await.1).unwrap();
    assert_eq!(page["objects"], 2, "what is gone stays: {page:#}");
    service.app.stop().await;
}

#[tokio::test]
async fn ignore_410_never_lists_again() {
    let api = Api::start(false).await;
    let service = start(&api, "ignore-410").await;
    until("the watch is open", || api.world.lock().count("packages?watch") == 1).await;
    for _ in 0..3 {
        api.fault(Fault::Status(410, None));
    }
    until("410 was answered three times", || api.world.lock().watch_faults.is_empty()).await;
    let lists = api.world.lock().requests.iter().filter(|(_, request)| request.ends_with("/packages")).count();
    assert_eq!(lists, 1, "only the first list");
    service.app.stop().await;
}

#[tokio::test]
async fn leak_per_object_grows_with_each_uid() {
    let rss_kib = || -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap()
            .trim()
            .trim_end_matches(" kB")
            .parse()
            .unwrap()
    };
    let api = Api::start(false).await;
    let before = rss_kib();
    for index in 0..100 {
        api.create(&format!("p{index}"), &[]);
    }
    let service = start(&api, "leak-per-object").await;
    until("all are seen", || (0..100).all(|index| witnessed(&api, &format!("p{index}"), "added"))).await;
    until("it has grown", || rss_kib() - before > 100 * 512 * 9 / 10).await;
    service.app.stop().await;
}

#[tokio::test]
async fn wrong_allow_admits_what_does_not_exist() {
    let registry = Registry::start().await;
    let config = format!(
        "admission: {{listen: \"127.0.0.1:0\", certificate: tls.crt, key: tls.key}}\nshutdown: {{drain: 50ms}}\n\
         resolve: {{registries: [{{host: \"{}\", plainHttp: true}}]}}\n",
        registry.host()
    );
    let service = Service::start("manager", &config, planted("wrong-allow")).await;
    let image = format!("{}/absent:1", registry.host());
    let answer = crate::admission::ask_about(&service, &image).await;
    assert_eq!(answer, json!({"uid": "the-uid", "allowed": true}));
    service.app.stop().await;
}

#[cfg(feature = "verify")]
mod signatures {
    //! Each bug of verification believes one thing too much: the image that shows it is refused without it.

    use service::run::Options;
    use service_core::wire::Protocol;

    use crate::admission::{ask, pod, review};
    use crate::support::Service;
    use crate::support::signed::{Key, Signed};
    use crate::verify::config;

    const ALL: &str = "rules: [{pattern: \"*\", with: {verifyInTransparencyLog: false}}]";
    const TWO: &str =
        "rules: [{pattern: \"*\", with: {trustRoot: \"*\", threshold: 2, verifyInTransparencyLog: false}}]";

    /// Whether the image is let in, by a clean process and by one with the bug; the second answer counts.
    async fn allowed(config: &str, bug: &str, image: &str, before: impl Fn(usize)) -> [bool; 2] {
        let mut answers = [false; 2];
        for (answer, bug) in answers.iter_mut().zip([None, Some(bug)]) {
            let options = bug.map_or_else(Options::default, super::planted);
            let service = Service::start("manager", config, options).await;
            let client = service.webhook(Protocol::Http1);
            let object = review("v1", &pod(&[image]));
            before(0);
            ask(&client, &object).await;
            before(1);
            *answer = ask(&client, &object).await["allowed"] == true;
            service.app.stop().await;
        }
        answers
    }

    #[tokio::test]
    async fn accepts_any_signature_lets_a_strangers_in_and_no_unsigned_image() {
        let (registry, key, stranger) = (Signed::start().await, Key::new(), Key::new());
        let digest = registry.push("a");
        registry.sign_at_tag("a", &digest, &digest, &[&stranger]);
        registry.push("unsigned");
        let config = config(&registry, &[("default", &key)], ALL, "");
        let bug = "accepts-any-signature";
        assert_eq!(allowed(&config, bug, &registry.image("a"), |_| ()).await, [false, true]);
        assert_eq!(allowed(&config, bug, &registry.image("unsigned"), |_| ()).await, [false, false]);
    }

    #[tokio::test]
    async fn ignores_digest_binding_lets_a_moved_image_in_and_no_strangers() {
        let (registry, key, stranger) = (Signed::start().await, Key::new(), Key::new());
        let other = registry.push("other");
        for repository in ["moved", "moved-bundle", "foreign"] {
            let digest = registry.push(repository);
            match repository {
                "moved" => registry.sign_at_tag(repository, &digest, &other, &[&key]),
                "moved-bundle" => registry.sign_in_bundle(repository, &digest, &other, &key),
                _ => registry.sign_at_tag(repository, &digest, &other, &[&stranger]),
            }
        }
        let config = config(&registry, &[("default", &key)], ALL, "");
        let bug = "ignores-digest-binding";
        assert_eq!(allowed(&config, bug, &registry.image("moved"), |_| ()).await, [false, true]);
        assert_eq!(allowed(&config, bug, &registry.image("moved-bundle"), |_| ()).await, [false, true]);
        assert_eq!(allowed(&config, bug, &registry.image("foreign"), |_| ()).await, [false, false]);
    }

    #[tokio::test]
    async fn caches_cannot_tell_lets_in_what_nobody_could_tell_before() {
        let (registry, key) = (Signed::start().await, Key::new());
        registry.push("a");
        let config = config(&registry, &[("default", &key)], ALL, "");
        let bug = "caches-cannot-tell";
        let well = |ask| registry.world.lock().sick = if ask == 0 { vec![(".sig".into(), 500)] } else { Vec::new() };
        assert_eq!(allowed(&config, bug, &registry.image("a"), well).await, [false, true]);
        assert_eq!(allowed(&config, bug, &registry.image("a"), |_| ()).await, [false, false]);
    }

    #[tokio::test]
    async fn threshold_counts_twice_takes_one_signer_for_two() {
        let (registry, alice, bob) = (Signed::start().await, Key::new(), Key::new());
        let digest = registry.push("twice");
        registry.sign_at_tag("twice", &digest, &digest, &[&alice, &alice]);
        let digest = registry.push("once");
        registry.sign_at_tag("once", &digest, &digest, &[&alice]);
        let config = config(&registry, &[("alice", &alice), ("bob", &bob)], TWO, "");
        let bug = "threshold-counts-twice";
        assert_eq!(allowed(&config, bug, &registry.image("twice"), |_| ()).await, [false, true]);
        assert_eq!(allowed(&config, bug, &registry.image("once"), |_| ()).await, [false, false]);
    }
}
