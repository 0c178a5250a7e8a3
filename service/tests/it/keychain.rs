//! Tests of credentials for registries: which credentials a registry gets, in which order, and which Pods may share its
//! answers.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use parking_lot::Mutex;
use serde_json::{Value, json};
use service::run::Options;
use service_core::wire::{Client, Protocol};

use crate::admission::{self, ask, pod, review};
use crate::support::api::Api;
use crate::support::raw::{Answer, Raw};
use crate::support::registry::digest;
use crate::support::{Service, kubeconfig};

fn http(status: &str, headers: &str, body: &str) -> Answer {
    let length = body.len();
    Answer::Bytes(
        format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}").into(),
    )
}

fn found() -> Answer {
    let index = "content-type: application/vnd.oci.image.index.v1+json\r\n";
    http("200 OK", &format!("{index}docker-content-digest: {}\r\n", digest()), "")
}

fn basic(user: &str, password: &str) -> String {
    format!("authorization: Basic {}\r\n", BASE64.encode(format!("{user}:{password}")))
}

/// A registry that accepts only one login; a test may change that login.
async fn private(login: &Arc<Mutex<String>>) -> Raw {
    let login = Arc::clone(login);
    Raw::start(move |head| {
        if head.contains(&*login.lock()) {
            found()
        } else {
            http("401 Unauthorized", "www-authenticate: Basic realm=\"r\"\r\n", "")
        }
    })
    .await
}

fn secret(host: &str, user: &str, password: &str) -> Value {
    let config = json!({"auths": {host: {"auth": BASE64.encode(format!("{user}:{password}"))}}}).to_string();
    json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": BASE64.encode(config)}})
}

fn older_secret(host: &str, user: &str, password: &str) -> Value {
    let config = json!({host: {"username": user, "password": password}}).to_string();
    json!({"type": "kubernetes.io/dockercfg", "data": {".dockercfg": BASE64.encode(config)}})
}

/// A service that uses plain HTTP for `registry` and reads pull secrets from `api`.
async fn start(registry: &Raw, api: &Api, more: &str) -> (Service, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let kube = folder.path().join("kube.yaml");
    kubeconfig(&kube, api.address());
    let config = format!(
        "admission: {{listen: \"127.0.0.1:0\", certificate: tls.crt, key: tls.key}}\nshutdown: {{drain: 50ms}}\n\
         health: {{listen: \"127.0.0.1:0\"}}\nkubernetes: {{kubeconfig: \"{}\"}}\n\
         resolve: {{timeout: 2s, registries: [{{host: \"{}\", plainHttp: true{more}}}], keychain: {{pullSecrets: true}}}}\n",
        kube.display(),
        registry.host()
    );
    (Service::start("admission", &config, Options::default()).await, folder)
}

/// The stored image or the denial, for a Pod in `namespace` with the pull secrets `secrets`.
async fn verdict(client: &Client, namespace: &str, image: &str, secrets: &[&str]) -> Result<String, String> {
    let mut object = pod(&[image]);
    let names: Vec<_> = secrets.iter().map(|name| json!({ "name": name })).collect();
    object["spec"]["imagePullSecrets"] = names.into();
    let mut review = review("v1", &object);
    review["request"]["namespace"] = namespace.into();
    let answer = ask(client, &review).await;
    admission::verdict(&answer, &object)
}

#[tokio::test]
async fn a_private_image_needs_the_secret_of_its_own_pod_and_what_it_showed_stays_with_it() {
    let login = Arc::new(Mutex::new(basic("alice", "pa:ss")));
    let (registry, api) = (private(&login).await, Api::start(false).await);
    let (service, _folder) = start(&registry, &api, "").await;
    let client = service.webhook(Protocol::Http1);
    let (host, image) = (registry.host(), format!("{}/app:1", registry.host()));
    {
        let core = &mut api.world.lock().core;
        let mut put = |path: &str, object: Value| core.insert(format!("/api/v1/namespaces/{path}"), object);
        put("alice/secrets/reg", secret(&host, "alice", "pa:ss"));
        put("alice/secrets/older", older_secret(&host, "alice", "pa:ss"));
        put("bob/secrets/reg", secret(&host, "bob", "x"));
        put("bob/secrets/opaque", json!({"type": "Opaque", "data": {}}));
        put("carol/secrets/copy", secret("127.0.0.*", "alice", "pa:ss"));
        put("dave/serviceaccounts/default", json!({"imagePullSecrets": [{"name": "reg"}]}));
        put("dave/secrets/reg", secret(&host, "alice", "pa:ss"));
    }
    for name in ["reg", "older"] {
        let stored = verdict(&client, "alice", &image, &["absent", name]).await;
        assert_eq!(stored, Ok(format!("{image}@{}", digest())), "{name}");
    }
    let asked = registry.heads().len();
    verdict(&client, "alice", &image, &["reg"]).await.unwrap();
    assert_eq!(registry.heads().len(), asked, "known to whoever has that login");

    let denial = verdict(&client, "bob", &image, &["reg", "absent", "opaque", "../../alice/secrets/reg"]).await;
    let denial = denial.expect_err("bob was told what alice's login saw");
    assert!(denial.contains("auth: ") && denial.contains("refused: pull secret bob/reg;"), "{denial}");
    assert!(denial.contains("pull secret bob/absent is not there"), "{denial}");
    assert!(denial.contains("pull secret bob/opaque is of another type"), "{denial}");
    assert!(denial.contains("is no name of an object") && !denial.contains("pa:ss"), "{denial}");
    let denial = verdict(&client, "bob", &image, &[]).await.expect_err("nobody was told what alice's login saw");
    assert!(denial.contains("auth: ") && denial.contains("the pod has no pull secret for it"), "{denial}");
    let denial = verdict(&client, "carol", &image, &["copy"]).await.expect_err("the key has no port");
    assert!(denial.contains("auth: "), "{denial}");
    assert!(verdict(&client, "dave", &image, &[]).await.is_ok(), "the service account's");
    let page = service.health("/metrics").await.1;
    assert!(page.contains("longhaul_registry_pull_secret_reads_total{outcome=\"absent\"} "), "{page}");
    service.app.stop().await;
}

#[tokio::test]
async fn the_registrys_own_login_comes_after_the_pods_and_a_sick_api_server_is_no_refusal() {
    let login = Arc::new(Mutex::new(basic("everybody", "word")));
    let (registry, api) = (private(&login).await, Api::start(false).await);
    let files = tempfile::tempdir().unwrap();
    std::fs::write(files.path().join("pw"), "word\n").unwrap();
    let entry = format!(", username: everybody, passwordFile: {:?}", files.path().join("pw"));
    let (service, _folder) = start(&registry, &api, &entry).await;
    let client = service.webhook(Protocol::Http1);
    let (host, image) = (registry.host(), format!("{}/app:1", registry.host()));
    let path = |name: &str| format!("/api/v1/namespaces/n/secrets/{name}");
    api.world.lock().core.insert(path("mine"), secret(&host, "mine", "m"));
    assert!(verdict(&client, "n", &image, &["mine"]).await.is_ok());
    let sent: Vec<_> = registry
        .heads()
        .iter()
        .filter_map(|head| head.split("Basic ").nth(1)?.lines().next().map(str::to_owned))
        .collect();
    assert_eq!(sent, ["mine:m", "everybody:word"].map(|login| BASE64.encode(login)), "in this order");

    "authorization: Basic nobody".clone_into(&mut login.lock());
    let other = format!("{host}/other:1");
    let denial = verdict(&client, "n", &other, &["mine"]).await.unwrap_err();
    assert!(
        denial.contains("auth: ") && denial.contains("user everybody of resolve.registries[0].username"),
        "{denial}"
    );
    assert!(denial.contains("refused: pull secret n/mine"), "{denial}");
    api.world.lock().core.insert(path("sick"), 500.into());
    let denial = verdict(&client, "n", &other, &["sick"]).await.unwrap_err();
    assert!(denial.contains("unavailable: ") && denial.contains("pull secret n/sick could not be read"), "{denial}");
    api.world.lock().core.insert(path("forbidden"), 403.into());
    let denial = verdict(&client, "n", &other, &["forbidden"]).await.unwrap_err();
    assert!(denial.contains("auth: ") && denial.contains("n/forbidden may not be read by this service"), "{denial}");
    service.app.stop().await;
}

/// Pull secrets are read only if a request to a registry is needed; by default they are never read.
#[tokio::test]
async fn pull_secrets_are_read_only_when_they_are_needed_and_wanted() {
    let login = Arc::new(Mutex::new(basic("a", "b")));
    let (registry, api) = (private(&login).await, Api::start(false).await);
    let (service, _folder) = start(&registry, &api, "").await;
    let client = service.webhook(Protocol::Http1);
    let pinned = pod(&[&format!("{}/app:1@{}", registry.host(), digest())]);
    let mut with_namespace = review("v1", &pinned);
    with_namespace["request"]["namespace"] = "n".into();
    assert_eq!(ask(&client, &with_namespace).await["allowed"], true);
    assert_eq!(api.world.lock().requests.len(), 0);
    service.app.stop().await;
}

#[tokio::test]
async fn a_docker_configuration_is_used_and_followed_and_an_identity_token_is_traded() {
    let registry = Raw::start(|head| {
        let host = head.split("host: ").nth(1).unwrap().lines().next().unwrap();
        if head.starts_with("POST /token ") {
            // The body follows the head, so only its type is visible here.
            assert!(head.contains("application/x-www-form-urlencoded"), "{head}");
            return http("200 OK", "", r#"{"access_token": "t0k3n"}"#);
        }
        if head.contains("Bearer t0k3n") || head.contains(&BASE64.encode("robot:word")) {
            return found();
        }
        let challenge = if head.contains("/traded/") {
            format!("www-authenticate: Bearer realm=\"http://{host}/token\",service=\"s\"\r\n")
        } else {
            "www-authenticate: Basic realm=\"r\"\r\n".to_owned()
        };
        http("401 Unauthorized", &challenge, "")
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.json");
    let host = registry.host();
    let write = |password: &str| {
        let auths = json!({
            host.as_str(): {"auth": BASE64.encode("other:word")},
            format!("{host}/app"): {"auth": BASE64.encode(format!("robot:{password}"))},
            format!("{host}/traded"): {"identitytoken": "refresh"},
        });
        std::fs::write(&path, json!({ "auths": auths }).to_string()).unwrap();
    };
    write("wrong");
    let config = format!(
        "admission: {{listen: \"127.0.0.1:0\", certificate: tls.crt, key: tls.key}}\nshutdown: {{drain: 50ms}}\n\
         resolve: {{timeout: 2s, registries: [{{host: \"{host}\", plainHttp: true}}], keychain: {{dockerConfig: {path:?}}}}}\n",
    );
    let service = Service::start("admission", &config, Options::default()).await;
    let client = service.webhook(Protocol::Http1);
    assert!(verdict(&client, "n", &format!("{host}/traded/x:1"), &[]).await.is_ok());
    let image = format!("{host}/app:1");
    let denial = verdict(&client, "n", &image, &[]).await.unwrap_err();
    assert!(denial.contains("(docker config, docker config)") && !denial.contains("wrong"), "{denial}");
    write("word");
    let good = async { while verdict(&client, "n", &image, &[]).await.is_err() {} };
    tokio::time::timeout(crate::support::PATIENCE, good).await.expect("the file is followed");
    service.app.stop().await;
}

/// Lookups go to the mirrors first, and to the registry if the mirrors fail. The image keeps its name, and a mirror
/// does not get the registry's credentials.
#[tokio::test]
async fn mirrors_are_asked_first_and_what_is_wrong_with_them_leads_to_the_registry() {
    let upstream = Raw::start(|_| found()).await;
    let (mirror, elsewhere) = (Raw::start(mirror).await, Raw::start(|_| found()).await);
    let (up, mir, other) = (upstream.host(), mirror.host(), elsewhere.host());
    let nobody = { Raw::start(|_| found()).await.host() };
    let files = tempfile::tempdir().unwrap();
    std::fs::write(files.path().join("pw"), "word").unwrap();
    let entry = format!(
        "{{host: \"{up}\", plainHttp: true, username: up, passwordFile: {:?}, mirrors: [\"{nobody}\", \"{mir}/hub\"], \
         rewrite: {{moved: \"{other}/new\"}}}}, {{host: \"{mir}\", plainHttp: true}}, \
         {{host: \"{other}\", plainHttp: true}}, {{host: \"{nobody}\", plainHttp: true}}",
        files.path().join("pw")
    );
    let config = format!(
        "admission: {{listen: \"127.0.0.1:0\", certificate: tls.crt, key: tls.key}}\nshutdown: {{drain: 50ms}}\n\
         resolve: {{timeout: 4s, registries: [{entry}]}}\n",
    );
    let service = Service::start("admission", &config, Options::default()).await;
    let client = service.webhook(Protocol::Http1);
    for (name, at_upstream, at_mirror, at_other) in
        [("good", 0, 1, 0), ("absent", 1, 1, 0), ("private", 1, 1, 0), ("hang", 1, 1, 0), ("moved/app", 0, 1, 1)]
    {
        let before = [&upstream, &mirror, &elsewhere].map(|registry| registry.heads().len());
        let image = format!("{up}/{name}:1");
        assert_eq!(verdict(&client, "n", &image, &[]).await, Ok(format!("{image}@{}", digest())), "{name}");
        let after = [&upstream, &mirror, &elsewhere].map(|registry| registry.heads().len());
        let asked = [0, 1, 2].map(|at| after[at] - before[at]);
        assert_eq!(asked, [at_upstream, at_mirror, at_other], "{name}");
    }
    assert!(mirror.heads()[0].starts_with("HEAD /v2/hub/good/manifests/1 "), "{:?}", mirror.heads());
    assert!(elsewhere.heads()[0].starts_with("HEAD /v2/new/app/manifests/1 "), "{:?}", elsewhere.heads());
    assert!(mirror.heads().iter().all(|head| !head.contains("authorization")), "it was told the registry's login");
    service.app.stop().await;
}

fn mirror(head: &str) -> Answer {
    match head.split('/').nth(3).unwrap() {
        "good" => found(),
        "private" => http("401 Unauthorized", "www-authenticate: Basic realm=\"r\"\r\n", ""),
        "hang" => Answer::Hang,
        _ => http("404 Not Found", "", ""),
    }
}
