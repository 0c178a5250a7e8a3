//! Tests with a real client: skopeo copies images in and out.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use mock_registry::{Auth, Config, ImageKind, Population, User};
use tokio::process::Command;

use crate::client::{registry, registry_with};

/// Runs skopeo; `None` if it is not installed.
async fn skopeo(arguments: &[&str]) -> Option<Output> {
    let mut command = Command::new("skopeo");
    // Without the machine's policy file, so that the test is the same on every machine.
    command.arg("--insecure-policy").args(arguments).kill_on_drop(true);
    match tokio::time::timeout(Duration::from_secs(50), command.output()).await.expect("skopeo ends in time") {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            println!("skipped: needs skopeo");
            None
        }
        Err(error) => panic!("skopeo cannot be started: {error}"),
    }
}

fn assert_success(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn layout(directory: &Path) -> String {
    format!("oci:{}:it", directory.display())
}

#[tokio::test]
async fn images_go_out_and_come_back_with_the_same_digest() {
    let (source, _) = registry().await;
    let (target, client) = registry().await;
    let images = source.seed(&Population { count: 8, seed: 3, signed: false }).unwrap();
    let directory = tempfile::tempdir().unwrap();
    for kind in [ImageKind::SingleArch, ImageKind::MultiArch] {
        let image = images.iter().find(|image| image.kind == kind).unwrap();
        let here = layout(&directory.path().join(format!("{kind:?}")));
        let out = [
            "copy",
            "--all",
            "--preserve-digests",
            "--src-tls-verify=false",
            &format!("docker://{}", image.reference),
            &here,
        ];
        let Some(output) = skopeo(&out).await else { return };
        assert_success(&output);
        let back = format!("docker://{}/copied/{kind:?}:v1", target.host()).to_lowercase();
        let push = ["copy", "--all", "--preserve-digests", "--dest-tls-verify=false", &here, &back];
        assert_success(&skopeo(&push).await.unwrap());
        let path = format!("/v2/copied/{kind:?}/manifests/v1").to_lowercase();
        assert_eq!(Some(client.head(&path).await.header("docker-content-digest")), image.digest.as_deref());
    }
    let straight = format!("docker://{}", images[0].reference);
    let onward = format!("docker://{}/straight:v1", target.host());
    let between = ["copy", "--src-tls-verify=false", "--dest-tls-verify=false", &straight, &onward];
    assert_success(&skopeo(&between).await.unwrap());
    let tags = skopeo(&["list-tags", "--tls-verify=false", &onward.replace(":v1", "")]).await.unwrap();
    assert_success(&tags);
    assert!(String::from_utf8_lossy(&tags.stdout).contains("\"v1\""));
    assert_success(&skopeo(&["delete", "--tls-verify=false", &onward]).await.unwrap());
    assert_eq!(client.head("/v2/straight/manifests/v1").await.status, 404);
    let missing = images.iter().find(|image| image.kind == ImageKind::Missing);
    assert!(missing.is_none(), "eight images are too few for a missing one");
    source.shutdown().await;
    target.shutdown().await;
}

#[tokio::test]
async fn skopeo_logs_in_by_token_and_by_password() {
    let users =
        vec![User { name: "jane".into(), password: "secret".into(), repositories: vec!["*".into()], push: true }];
    let token = Auth::Token { users: users.clone(), anonymous_pull: false, lifetime: Duration::from_mins(5) };
    for auth in [token, Auth::Basic { users }] {
        let (server, _) = registry_with(Config { auth, ..Config::new() }).await;
        let images = server.seed(&Population { count: 1, seed: 3, signed: false }).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let here = layout(&directory.path().join("image"));
        let from = format!("docker://{}", images[0].reference);
        let right = ["copy", "--src-tls-verify=false", "--src-creds=jane:secret", &from, &here];
        let Some(output) = skopeo(&right).await else { return };
        assert_success(&output);
        let to = format!("docker://{}/pushed:v1", server.host());
        assert_success(
            &skopeo(&["copy", "--dest-tls-verify=false", "--dest-creds=jane:secret", &here, &to]).await.unwrap(),
        );
        let wrong = ["copy", "--src-tls-verify=false", "--src-creds=jane:guess", &from, &here];
        let refused = skopeo(&wrong).await.unwrap();
        assert!(!refused.status.success());
        server.shutdown().await;
    }
}
