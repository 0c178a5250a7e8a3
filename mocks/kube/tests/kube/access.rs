//! Tests of roles, tokens, the record of permissions, and the server's own endpoints.

use std::str::FromStr as _;

use http::Method;
use http_body_util::BodyExt;
use mock_kube::{Authorization, User};
use serde_json::{Value, json};

use crate::client::{Client, Protocol, World};
use crate::{CONFIG_MAPS, PACKAGES, config_map, package};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A server with RBAC, a client of its administrator, and a client of a user without rights.
pub async fn guarded() -> (World, Client, Client) {
    let world = World::with(|config| {
        config.authorization = Authorization::Rbac;
        config.users.push(User {
            name: "guest".to_owned(),
            groups: vec!["guests".to_owned()],
            token: "guest-token".to_owned(),
        });
    })
    .await;
    let admin = world.client(Protocol::Http1, "harness").await;
    let guest = world.client(Protocol::Http1, "guest").await;
    (world, admin, guest)
}

fn role(kind: &str, name: &str, rules: &Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "rules": rules})
}

fn binding(kind: &str, role_kind: &str, role: &str, subject: &Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": role},
        "subjects": [subject], "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role},
    })
}

#[tokio::test]
async fn roles_decide_and_say_why() {
    let (_world, mut admin, mut guest) = guarded().await;
    let (status, refused) = guest.get(CONFIG_MAPS).await;
    assert_eq!((status, &refused["reason"]), (403, &json!("Forbidden")));
    let text = "configmaps is forbidden: User \"guest\" cannot list resource \"configmaps\" in API group \"\" in the \
                namespace \"default\"";
    assert_eq!(refused["message"], json!(text));

    let rules = json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "create"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": ["mine"]},
        {"apiGroups": ["longhaul.dev"], "resources": ["packages/status"], "verbs": ["*"]},
    ]);
    let roles = format!("{RBAC}/namespaces/default");
    admin.post(&format!("{roles}/roles"), &role("Role", "some", &rules)).await;
    let group = json!({"kind": "Group", "name": "guests", "apiGroup": "rbac.authorization.k8s.io"});
    let bound = admin.post(&format!("{roles}/rolebindings"), &binding("RoleBinding", "Role", "some", &group)).await;
    assert_eq!(bound.0, 201);
    admin.post(CONFIG_MAPS, &config_map("mine")).await;
    admin.post(PACKAGES, &package("p")).await;
    let kube_system = CONFIG_MAPS.replace("default", "kube-system");
    let packages_one = format!("{PACKAGES}/p");
    for (method, path, wanted) in [
        (Method::GET, CONFIG_MAPS.to_owned(), 200),
        (Method::GET, format!("{CONFIG_MAPS}/mine"), 200),
        (Method::GET, format!("{CONFIG_MAPS}/other"), 403),
        (Method::GET, format!("{CONFIG_MAPS}?watch=1"), 403),
        (Method::DELETE, format!("{CONFIG_MAPS}/mine"), 403),
        (Method::GET, kube_system, 403),
        (Method::GET, "/api/v1/configmaps".to_owned(), 403),
        (Method::GET, packages_one.clone(), 403),
        (Method::GET, format!("{packages_one}/status"), 200),
    ] {
        let status = guest.send(method.clone(), &path, "").await.status().as_u16();
        assert_eq!(status, wanted, "{method} {path}");
    }
    assert_eq!(guest.post(CONFIG_MAPS, &config_map("made")).await.0, 201);

    let cluster = role("ClusterRole", "reader", &json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["list"]}]));
    admin.post(&format!("{RBAC}/clusterroles"), &cluster).await;
    let user = json!({"kind": "User", "name": "guest"});
    let bound = binding("ClusterRoleBinding", "ClusterRole", "reader", &user);
    admin.post(&format!("{RBAC}/clusterrolebindings"), &bound).await;
    assert_eq!(guest.get("/api/v1/configmaps").await.0, 200);

    let ask = |verb: &str| {
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {
            "resourceAttributes": {"namespace": "default", "verb": verb, "resource": "secrets"},
        }})
    };
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    for (verb, allowed) in [("list", true), ("get", false)] {
        let (status, review) = guest.post(reviews, &ask(verb)).await;
        assert_eq!((status, &review["status"]["allowed"]), (201, &json!(allowed)), "{review}");
    }
}

#[tokio::test]
async fn a_service_account_gets_a_token_that_works() {
    let (world, mut admin, _) = guarded().await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    admin.post(accounts, &account).await;
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    assert_eq!(admin.post(&format!("{accounts}/nobody/token"), &request).await.0, 404);
    let (status, issued) = admin.post(&format!("{accounts}/robot/token"), &request).await;
    assert_eq!(status, 201, "{issued}");
    let token = issued["status"]["token"].as_str().unwrap().to_owned();
    let mut robot = world.bare(Protocol::Http1, None).await.with_token(&token);
    let (status, refused) = robot.get(CONFIG_MAPS).await;
    assert_eq!(status, 403);
    assert!(refused["message"].as_str().unwrap().contains("system:serviceaccount:default:robot"), "{refused}");
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]);
    let place = format!("{RBAC}/namespaces/default");
    admin.post(&format!("{place}/roles"), &role("Role", "robots", &rules)).await;
    let subject = json!({"kind": "ServiceAccount", "name": "robot", "namespace": "default"});
    admin.post(&format!("{place}/rolebindings"), &binding("RoleBinding", "Role", "robots", &subject)).await;
    assert_eq!(robot.get(CONFIG_MAPS).await.0, 200);
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    let (_, review) = admin.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await;
    assert_eq!(review["status"]["user"]["username"], json!("system:serviceaccount:default:robot"));
}

#[tokio::test]
async fn faults_and_history_can_be_driven_by_hand() {
    let (world, mut admin, mut guest) = guarded().await;
    assert_eq!(guest.get("/longhaul/state").await.0, 403);
    admin.post(CONFIG_MAPS, &config_map("one")).await;
    let (status, state) = admin.get("/longhaul/state").await;
    assert_eq!((status, &state["revision"]), (200, &json!(world.server.revision())));
    let (status, state) = admin.post("/longhaul/compact", &json!({})).await;
    assert_eq!((status, &state["historyEvents"]), (200, &json!(0)));
    let begin = json!({"id": 3, "users": ["subject"], "fault": {"name": "watch-410", "at": "0s"}});
    assert_eq!(admin.post("/longhaul/faults", &begin).await.0, 201);
    let (status, refused) = admin.post("/longhaul/faults", &begin).await;
    assert_eq!(status, 400);
    assert!(refused["message"].as_str().unwrap().contains("already running"), "{refused}");
    let (_, faults) = admin.delete("/longhaul/faults/3").await;
    assert_eq!((&faults[0]["active"], &faults[0]["hits"]), (&json!(false), &json!(0)));
    let typo = json!({"id": 4, "fault": {"name": "watch-410", "at": "0s", "forms": "http"}});
    assert_eq!(admin.post("/longhaul/faults", &typo).await.0, 400);
    let response = admin.send(Method::GET, "/metrics", "").await;
    let text = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(text.to_vec()).unwrap();
    assert_eq!(guest.get("/metrics").await.0, 403);
    let revision = format!("longhaul_mock_revision {}", world.server.revision());
    assert!(text.contains(&revision) && text.contains("longhaul_mock_requests_total{user=\"guest\"} 1"), "{text}");
}

#[tokio::test]
async fn the_minimal_roles_are_enough_and_no_more() {
    let (world, mut admin, _) = guarded().await;
    let mut guest = world.client(Protocol::Http2, "guest").await;
    let wanted = [
        (Method::GET, CONFIG_MAPS.to_owned()),
        (Method::GET, format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1")),
        (Method::GET, "/api/v1/nodes".to_owned()),
        (Method::GET, format!("{PACKAGES}/p/status")),
    ];
    for (method, path) in &wanted {
        assert_eq!(guest.send(method.clone(), path, "").await.status(), 403, "{path}");
    }
    for query in ["user=guest", "userAgent=test"] {
        let response = admin.send(Method::GET, &format!("/longhaul/rbac?{query}"), "").await;
        assert_eq!(response.headers()["content-type"], "application/yaml");
        let text = response.into_body().collect().await.unwrap().to_bytes();
        let documents: Vec<Value> = serde_saphyr::from_multiple(std::str::from_utf8(&text).unwrap()).unwrap();
        let kinds: Vec<&str> = documents.iter().map(|document| document["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"], "{documents:?}");
        if query.starts_with("userAgent") {
            continue;
        }
        for document in &documents {
            let namespace = document["metadata"]["namespace"].as_str();
            let place = namespace.map_or_else(String::new, |namespace| format!("/namespaces/{namespace}"));
            let plural = format!("{}s", document["kind"].as_str().unwrap().to_lowercase());
            let (status, made) = admin.post(&format!("{RBAC}{place}/{plural}"), document).await;
            assert_eq!(status, 201, "{made}");
        }
    }
    admin.post(PACKAGES, &package("p")).await;
    for (method, path) in &wanted {
        assert_eq!(guest.send(method.clone(), path, "").await.status(), 200, "{path}");
    }
    for path in [PACKAGES, "/api/v1/configmaps", "/api/v1/nodes/x"] {
        assert_eq!(guest.get(path).await.0, 403, "{path}");
    }
    let (status, refused) = admin.get("/longhaul/rbac?usr=guest").await;
    assert_eq!((status, refused["message"].as_str().unwrap().contains("`usr`")), (400, true));
}

#[tokio::test]
async fn history_requests_and_statistics_can_be_read() {
    let world = World::start().await;
    let mut admin = world.client(Protocol::Http2, "harness").await;
    let mut lines = world.client(Protocol::Http1, "subject").await.watch(&format!("{PACKAGES}?watch=1")).await;
    let (_, made) = admin.post(PACKAGES, &package("one")).await;
    lines.event().await;
    admin.delete(&format!("{PACKAGES}/one")).await;
    let (status, history) = admin.get("/longhaul/history?limit=2&resource=packages.longhaul.dev").await;
    assert_eq!((status, &history["revision"]), (200, &json!(world.server.revision())));
    let rows = history["commits"].as_array().unwrap();
    let row = |row: &Value| (row["change"].clone(), row["name"].clone(), row["namespace"].clone(), row["uid"].clone());
    let uid = made["metadata"]["uid"].clone();
    let expected = |change: &str| (json!(change), json!("one"), json!("default"), uid.clone());
    assert_eq!(rows.iter().map(row).collect::<Vec<_>>(), [expected("DELETED"), expected("ADDED")]);
    assert_eq!(rows[1]["revision"].to_string(), made["metadata"]["resourceVersion"].as_str().unwrap());
    let at = jiff::Timestamp::from_str(rows[0]["at"].as_str().unwrap()).unwrap();
    assert!(at.duration_until(jiff::Timestamp::now()).as_secs() < 10, "{at}");

    let (_, requests) = admin.get("/longhaul/requests?user=harness&path=/apis/longhaul.dev").await;
    let rows = requests["requests"].as_array().unwrap();
    let methods: Vec<_> = rows.iter().map(|row| (row["method"].clone(), row["status"].clone())).collect();
    assert_eq!(methods, [(json!("DELETE"), json!(200)), (json!("POST"), json!(201))]);
    assert_eq!((&rows[0]["httpVersion"], &rows[0]["userAgent"]), (&json!(2), &json!("test/1")));
    assert_eq!(rows[0]["connection"], rows[1]["connection"]);
    let (_, requests) = admin.get("/longhaul/requests?user=subject").await;
    assert_eq!(requests["requests"][0]["query"], json!("watch=1"));

    let before = admin.get("/longhaul/stats").await.1;
    assert_eq!(before["watches"][0]["resource"], json!("packages.longhaul.dev"));
    assert_eq!(before["users"]["subject"]["watchesOpen"], json!(1));
    admin.post(PACKAGES, &package("two")).await;
    let after = admin.get("/longhaul/stats").await.1;
    assert_eq!(after["objectsByResource"]["packages.longhaul.dev"], json!(1));
    for grows in ["objectBytes", "historyBytes", "estimateBytesMax"] {
        assert!(after["memory"][grows].as_u64() > before["memory"][grows].as_u64(), "{grows}: {before} {after}");
    }
    admin.delete(&format!("{PACKAGES}/two")).await;
    let gone = admin.get("/longhaul/stats").await.1;
    assert_eq!(gone["memory"]["objectBytes"], before["memory"]["objectBytes"], "what is deleted is not counted");
}

#[tokio::test]
async fn roles_are_made_of_others_and_everybody_can_ask_for_theirs() {
    let (_world, mut admin, mut guest) = guarded().await;
    let roles = format!("{RBAC}/clusterroles");
    let mut whole = role("ClusterRole", "whole", &json!([]));
    whole["aggregationRule"] = json!({"clusterRoleSelectors": [
        {"matchLabels": {"to": "whole"}}, {"matchExpressions": [{"key": "part", "operator": "Exists"}]},
    ]});
    admin.post(&roles, &whole).await;
    let user = json!({"kind": "User", "name": "guest"});
    let bound = binding("ClusterRoleBinding", "ClusterRole", "whole", &user);
    admin.post(&format!("{RBAC}/clusterrolebindings"), &bound).await;
    assert_eq!(guest.get(CONFIG_MAPS).await.0, 403);
    let maps = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]});
    let paths = json!({"nonResourceURLs": ["/metrics", "/logs/*"], "verbs": ["get"]});
    for (name, label, rule) in [("a", "to", &maps), ("b", "part", &paths), ("c", "else", &maps)] {
        let mut part = role("ClusterRole", name, &json!([rule]));
        part["metadata"]["labels"] = json!({label: "whole"});
        admin.post(&roles, &part).await;
    }
    let deadline = std::time::Instant::now() + crate::client::PATIENCE;
    loop {
        let (_, made) = admin.get(&format!("{roles}/whole")).await;
        if made["rules"] == json!([maps, paths]) {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{made}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(guest.get(CONFIG_MAPS).await.0, 200);
    assert_eq!(guest.send(Method::GET, "/metrics", "").await.status(), 200);

    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
                        "spec": {"namespace": "default"}});
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let (status, answer) = guest.post(reviews, &review).await;
    assert_eq!((status, &answer["status"]["resourceRules"]), (201, &json!([maps])));
    assert_eq!(answer["status"]["nonResourceRules"][1], paths);
    let (_, answer) = admin.post(reviews, &review).await;
    assert_eq!(answer["status"]["resourceRules"][0]["verbs"], json!(["*"]));

    for (path, allowed) in [("/metrics", true), ("/logs/a", true), ("/debug", false), ("/openapi/v3", true)] {
        let ask = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                         "spec": {"nonResourceAttributes": {"path": path, "verb": "get"}}});
        let (_, answer) = guest.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &ask).await;
        assert_eq!(answer["status"]["allowed"], json!(allowed), "{path}");
    }
}

/// A user with the right to impersonate acts with the permissions of the impersonated user. For a user without that
/// right, the error message names the first missing right.
#[tokio::test]
async fn somebody_acts_as_somebody_else() {
    let (_world, mut admin, mut guest) = guarded().await;
    admin.more = &[("impersonate-user", "guest")];
    let (status, refused) = admin.get(CONFIG_MAPS).await;
    let lists = "User \"guest\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\"";
    assert_eq!((status, &refused["message"]), (403, &json!(format!("configmaps is forbidden: {lists}"))));
    admin.more = &[("impersonate-user", "anybody"), ("impersonate-group", "system:masters")];
    assert_eq!(admin.get(CONFIG_MAPS).await.0, 200);
    guest.more = admin.more;
    let (status, refused) = guest.get(CONFIG_MAPS).await;
    let acts = "User \"guest\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope";
    assert_eq!((status, &refused["message"]), (403, &json!(format!("users \"anybody\" is forbidden: {acts}"))));
    admin.more = &[("impersonate-group", "system:masters")];
    assert_eq!(admin.get(CONFIG_MAPS).await.0, 500);
}

/// Without RBAC, impersonation gives no further rights: an unknown user stays unknown, and no user may control faults.
#[tokio::test]
async fn without_roles_nobody_becomes_more_by_acting() {
    let user = User { name: "guest".to_owned(), groups: Vec::new(), token: "guest-token".to_owned() };
    let world = World::with(|config| config.users.push(user)).await;
    let masters = &[("impersonate-user", "anybody"), ("impersonate-group", "system:masters")];
    let mut nobody = world.bare(Protocol::Http1, None).await;
    nobody.more = masters;
    assert_eq!((nobody.get(CONFIG_MAPS).await.0, nobody.get("/longhaul/faults").await.0), (401, 401));
    let mut guest = world.client(Protocol::Http1, "guest").await;
    guest.more = masters;
    assert_eq!((guest.get(CONFIG_MAPS).await.0, guest.get("/longhaul/faults").await.0), (403, 403));
    guest.more = &[("impersonate-user", "anybody")];
    assert_eq!((guest.get(CONFIG_MAPS).await.0, guest.get("/longhaul/faults").await.0), (200, 403));
    // A name beyond ASCII must not count as absent: the harness is a master, but acts as a user that is not.
    let mut harness = world.client(Protocol::Http1, "harness").await;
    harness.more = &[("impersonate-user", "j\u{fc}rgen")];
    assert_eq!((harness.get(CONFIG_MAPS).await.0, harness.get("/longhaul/faults").await.0), (200, 403));
}
