//! Roles, tokens, the record of permissions, and the server's own endpoints.

use http::Method;
use http_body_util::BodyExt;
use mocks::kube::{Authorization, User};
use serde_json::{Value, json};

use crate::client::{Client, Protocol, World};
use crate::{CONFIG_MAPS, PACKAGES, config_map, package};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

async fn guarded() -> (World, Client, Client) {
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
async fn what_a_subject_used_is_recorded() {
    let world = World::start().await;
    let mut subject = world.client(Protocol::Http1, "subject").await;
    subject.get(PACKAGES).await;
    subject.get(PACKAGES).await;
    subject.get(&format!("{PACKAGES}/x/status")).await;
    subject.get("/api/v1/nodes").await;
    let used: Vec<String> = world
        .server
        .permissions("subject")
        .into_iter()
        .map(|p| format!("{} {}/{} in {}", p.verb, p.group, p.resource, p.namespace))
        .collect();
    assert_eq!(
        used,
        ["list /nodes in ", "list longhaul.dev/packages in default", "get longhaul.dev/packages/status in default"]
    );
    assert_eq!(world.server.permissions("harness"), []);
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
    let revision = format!("longhaul_mock_revision {}", world.server.revision());
    assert!(text.contains(&revision) && text.contains("longhaul_mock_requests_total{user=\"guest\"} 1"), "{text}");
}
