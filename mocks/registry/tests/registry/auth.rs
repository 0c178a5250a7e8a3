//! Tests of basic and token authentication from a client's view.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use mock_registry::{Auth, Config, User};

use crate::client::{Client, registry_with};

fn users() -> Vec<User> {
    let user = |name: &str, push| User {
        name: name.to_owned(),
        password: "secret".to_owned(),
        repositories: vec!["team/*".to_owned()],
        push,
    };
    vec![user("reader", false), user("writer", true)]
}

fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

async fn start_upload(client: &Client, authorization: &str) -> u16 {
    let headers = [("authorization", authorization)];
    client.send(Method::POST, "/v2/team/a/blobs/uploads/", &headers, "").await.status.as_u16()
}

#[tokio::test]
async fn basic_needs_the_password_and_the_right() {
    let (server, client) = registry_with(Config { auth: Auth::Basic { users: users() }, ..Config::new() }).await;
    let refused = client.get("/v2/").await;
    assert_eq!((refused.status, refused.code()), (StatusCode::UNAUTHORIZED, "UNAUTHORIZED".to_owned()));
    assert_eq!(refused.header("www-authenticate"), r#"Basic realm="longhaul""#);
    assert_eq!(start_upload(&client, &basic("writer", "secret")).await, 202);
    assert_eq!(start_upload(&client, &basic("writer", "wrong")).await, 401);
    assert_eq!(start_upload(&client, &basic("reader", "secret")).await, 403);
    assert_eq!(server.recent().iter().filter_map(|request| request.user.clone()).collect::<Vec<_>>(), ["writer"]);
    server.shutdown().await;
}

#[tokio::test]
async fn the_challenge_leads_to_a_token_that_opens() {
    let auth = Auth::Token { users: users(), anonymous_pull: true, lifetime: Duration::from_mins(5) };
    let (server, client) = registry_with(Config { auth, ..Config::new() }).await;
    let refused = client.send(Method::POST, "/v2/team/a/blobs/uploads/", &[], "").await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    let challenge = refused.header("www-authenticate").to_owned();
    let field = |name: &str| {
        let rest = challenge.split_once(&format!("{name}=\"")).unwrap().1;
        rest.split_once('"').unwrap().0.to_owned()
    };
    assert_eq!(field("realm"), format!("http://{}/token", server.address()));
    let ask = format!("/token?service={}&scope={}", field("service"), field("scope"));
    let with = |name: &str| [("authorization", basic(name, "secret"))];

    for (who, expected) in [("writer", 202), ("reader", 401)] {
        let credentials = with(who);
        let headers = credentials.each_ref().map(|(name, value)| (*name, value.as_str()));
        let given = client.send(Method::GET, &ask, &headers, "").await;
        assert_eq!(given.json()["expires_in"], 300);
        let token = given.json()["token"].as_str().unwrap().to_owned();
        assert_eq!(start_upload(&client, &format!("Bearer {token}")).await, expected, "{who}");
    }
    let wrong = basic("writer", "wrong");
    assert_eq!(client.send(Method::GET, &ask, &[("authorization", &wrong)], "").await.status, StatusCode::UNAUTHORIZED);

    let form = "grant_type=password&username=writer&password=secret&scope=repository%3Ateam%2Fa%3Apull%2Cpush";
    let posted =
        client.send(Method::POST, "/token", &[("content-type", "application/x-www-form-urlencoded")], form).await;
    let token = posted.json()["access_token"].as_str().unwrap().to_owned();
    assert_eq!(start_upload(&client, &format!("Bearer {token}")).await, 202);

    let anonymous =
        client.get("/token?scope=repository:any/thing:pull,push").await.json()["token"].as_str().unwrap().to_owned();
    let bearer = format!("Bearer {anonymous}");
    let pull = client.send(Method::GET, "/v2/any/thing/tags/list", &[("authorization", &bearer)], "").await;
    assert_eq!(pull.code(), "NAME_UNKNOWN", "it may look, and there is nothing");
    let push = client.send(Method::POST, "/v2/any/thing/blobs/uploads/", &[("authorization", &bearer)], "").await;
    assert!(push.header("www-authenticate").contains(r#"error="insufficient_scope""#));
    server.shutdown().await;
}

#[tokio::test]
async fn a_mount_needs_the_right_to_read_the_source() {
    let auth = Auth::Basic {
        users: vec![
            User { name: "all".into(), password: "p".into(), repositories: vec!["*".into()], push: true },
            User { name: "one".into(), password: "p".into(), repositories: vec!["mine".into()], push: true },
        ],
    };
    let (server, client) = registry_with(Config { auth, ..Config::new() }).await;
    let (all, one) = (basic("all", "p"), basic("one", "p"));
    let digest = crate::client::sha256(b"private");
    let path = format!("/v2/theirs/blobs/uploads/?digest={digest}");
    assert_eq!(
        client.send(Method::POST, &path, &[("authorization", &all)], "private").await.status,
        StatusCode::CREATED
    );
    let mount = format!("/v2/mine/blobs/uploads/?mount={digest}&from=theirs");
    assert_eq!(client.send(Method::POST, &mount, &[("authorization", &one)], "").await.status, StatusCode::ACCEPTED);
    assert_eq!(client.send(Method::POST, &mount, &[("authorization", &all)], "").await.status, StatusCode::CREATED);
    server.shutdown().await;
}
