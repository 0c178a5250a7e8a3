//! Tests of tools with which people use the API that scales Deployments: curl, the client, make, and the OpenAPI
//! description.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::world::{BINARY, World, replicas_path};
use crate::support::deployments::Deployments;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

async fn world(more: &str) -> World {
    let api = Deployments::start().await;
    api.create("team/web", Some(3));
    World::start_over(api, more).await.listed().await
}

/// Runs `service/tests/api.sh`: calls by curl that must succeed, and calls that must be refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_calls_the_api() {
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("skipped: needs curl");
        return;
    }
    let world = world("").await;
    let mut command = Command::new("bash");
    command.arg(here().join("tests/api.sh")).arg(format!("https://localhost:{}", world.address().port()));
    command.arg(world.folder.path()).arg("team/web");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("ok  no certificate: curl exit 56") && said.contains("ok  TLS 1.2: curl exit 35"), "{said}");
    world.app.stop().await;
}

/// `service/tests/api.sh` fails with a message if no server answers.
#[test]
fn the_script_fails_where_nobody_serves() {
    let folder = tempfile::tempdir().unwrap();
    super::world::certificates(folder.path());
    let script = here().join("tests/api.sh");
    let output =
        Command::new("bash").arg(script).args(["https://localhost:9"]).arg(folder.path()).arg("team/web").output();
    assert!(!output.unwrap().status.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_gets_sets_and_lists() {
    let world = world("").await;
    world.api.create("a/b", Some(0));
    let server = format!("localhost:{}", world.address().port());
    let folder = world.folder.path().to_owned();
    let run = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let (server, folder) = (server.clone(), folder.clone());
        async move {
            let mut command = Command::new(BINARY);
            command
                .arg("replicas")
                .arg(&words[0])
                .args(["--server", &server, "--certs"])
                .arg(&folder)
                .args(&words[1..]);
            let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
            let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            (output.status.code().unwrap(), said)
        }
    };
    assert_eq!(run(&["get", "team/web"]).await, (0, "3\n".into()));
    let (code, said) = run(&["set", "team/web", "5", "--wait"]).await;
    assert!(code == 0 && said.starts_with("Replica count updated successfully. (revision 1"), "{said}");
    assert_eq!(run(&["get", "team/web"]).await, (0, "5\n".into()));
    assert_eq!(run(&["list"]).await, (0, "a\tb\t0\nteam\tweb\t5\n".into()));
    let (code, said) = run(&["set", "team/web", "-1"]).await;
    assert!(
        code == 1 && said.contains("422") && said.contains("replicaCount: a number from 0 to 2147483647"),
        "{said}"
    );
    let (code, said) = run(&["set", "team/web", "6", "--revision", "1"]).await;
    assert!(code == 1 && said.contains("409") && said.contains("the deployment has changed"), "{said}");
    let (code, said) = run(&["get", "team/absent"]).await;
    assert!(code == 1 && said.contains("there is no such deployment"), "{said}");
    let (code, said) = run(&["get", "nothing"]).await;
    assert!(code == 64 && said.contains("write NAMESPACE/NAME"), "{said}");
    world.app.stop().await;
}

/// `make build test deploy` runs the usual commands.
#[test]
fn the_makefile_has_build_test_and_deploy() {
    let made = Command::new("make").arg("-C").arg(here()).args(["-n", "build", "test", "deploy"]).output();
    let Ok(output) = made else {
        eprintln!("skipped: needs make");
        return;
    };
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
    for part in ["cargo build", "cargo xtask test", "kubectl apply -k ../kind/manifests/replicas"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// The OpenAPI description has exactly the paths and methods that the API serves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_description_is_that_of_what_is_served() {
    let world = world("").await;
    let client = world.client("client").await;
    let served = client.get("/openapi.json").await;
    assert_eq!((served.code, served.header("content-type")), (200, "application/json"));
    let committed: Value = serde_json::from_str(service_replicas::OPENAPI).unwrap();
    assert_eq!(served.json, committed);
    assert_eq!(committed["openapi"], "3.1.0");
    let paths = committed["paths"].as_object().unwrap();
    for (path, item) in paths {
        let real = path.replace("{namespace}", "team").replace("{name}", "web").replace("{container}", "main");
        for method in ["GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"] {
            let described = item.get(method.to_lowercase());
            let answer = client.call(method, &real, (method == "PUT").then_some("{"), &[]).await;
            assert_eq!(answer.code != 405, described.is_some(), "{method} {path}: {}", answer.text);
            if let Some(described) = described {
                let code = answer.code.to_string();
                assert!(described["responses"].get(&code).is_some(), "{method} {path} answers {code}");
            } else {
                let allow: Vec<_> = answer.header("allow").split(", ").collect();
                let methods: Vec<_> =
                    ["GET", "PUT"].into_iter().filter(|method| item.get(method.to_lowercase()).is_some()).collect();
                assert_eq!(allow, methods, "{path}");
            }
        }
    }
    // Every route of the router is in it.
    let source = include_str!("../../../roles/replicas/src/route.rs");
    let routes = source.split("pub fn route<'a>").nth(1).unwrap().split("\nfn ").next().unwrap();
    let arms =
        routes.lines().filter(|line| line.trim_start().starts_with("[\"") || line.contains("_ if path == ")).count();
    assert_eq!(arms, paths.len());
    // Every schema is closed, and every status of an error is described.
    for (name, schema) in committed["components"]["schemas"].as_object().unwrap() {
        assert_eq!(schema["additionalProperties"], false, "{name}");
    }
    world.app.stop().await;
}

/// Schemathesis finds no fault when it sends requests that the OpenAPI description allows, and many that the
/// description forbids.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow: some hundred requests of a program in Python"]
async fn the_description_holds_against_schemathesis() {
    let program = std::env::var_os("SCHEMATHESIS").unwrap_or_else(|| "schemathesis".into());
    if Command::new(&program).arg("--version").output().is_err() {
        eprintln!("skipped: needs schemathesis (PyPI)");
        return;
    }
    let rate = ", rate: {client: {perSecond: 100000}, all: {perSecond: 100000}}";
    let world = world(rate).await;
    let client = world.client("client").await;
    let folder = world.folder.path();
    std::fs::write(folder.join("openapi.json"), client.get("/openapi.json").await.text).unwrap();
    let mut command = Command::new(program);
    command.current_dir(folder).arg("run").arg("openapi.json");
    command.arg("--url").arg(format!("https://localhost:{}", world.address().port()));
    command.args(["--tls-verify", "ca.crt", "--request-cert", "client.crt", "--request-cert-key", "client.key"]);
    command.args(["--max-examples", "60", "--seed", "7", "--no-color", "--checks"]);
    command.arg("not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance,negative_data_rejection,unsupported_method");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    println!("{said}");
    assert!(output.status.success(), "{said}");
    assert_eq!(client.get(&replicas_path("team/web")).await.code, 200, "it still serves");
    world.app.stop().await;
}
