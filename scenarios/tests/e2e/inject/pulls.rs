//! Compares the injected program with the mock registry: both get the pulls of the mock registry's own tests. Real
//! clients also copy images out of the injected program.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use mock_registry::{ImageKind, Population};
use serde_json::Value;
use tokio::process::Command;

use super::api::ask_with;
use super::world::{NAME, Programs, Setup, World};

/// Response headers that registry clients read. The mock registry allows caching of answers, as `distribution` does.
/// The injected program is temporary and sends no header that allows caching.
const HEADERS: [&str; 7] = [
    "content-type",
    "content-length",
    "content-range",
    "accept-ranges",
    "docker-content-digest",
    "docker-distribution-api-version",
    "etag",
];
/// Time limit of copying an image.
const PATIENCE: Duration = Duration::from_mins(1);

/// The status, headers and body of an answer, as far as clients read them.
async fn answer_facts(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)]) -> Vec<String> {
    let answer = ask_with(address, method, path, headers).await.unwrap();
    let is_error = answer.status().is_client_error();
    let json: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
    let mut told = vec![format!("status {}", answer.status().as_u16())];
    if is_error {
        // The messages are each registry's own, and so are their lengths.
        told.push(format!("code {}", json["errors"][0]["code"]));
    } else if path.contains("/referrers/") {
        // Each registry writes these lists itself.
        told.push(format!("lists {}", json["manifests"]));
    } else if path.ends_with("/tags/list") {
        told.push(format!("lists {json}"));
    } else if !path.ends_with("/v2/") {
        told.push(format!("body {:?}", hex::encode(sha(answer.body()))));
    }
    // Bodies that each registry writes itself have different lengths. A 304 may have the length of the content. The
    // seed also sends parts of manifests, and states the digest for an invalid range.
    let own = is_error || path.ends_with("/tags/list") || path.contains("/referrers/") || path == "/v2/";
    let is_left_out = |name: &str| match name {
        "content-length" => own || answer.status() == 304,
        "accept-ranges" => is_error || path.contains("/manifests/"),
        "docker-content-digest" | "etag" => is_error,
        _ => false,
    };
    for name in HEADERS.into_iter().filter(|name| !is_left_out(name)) {
        let value = answer.headers().get(name).map(|value| value.to_str().unwrap());
        // The mock registry names the character set of JSON, which has only one.
        told.extend(value.map(|value| format!("{name}: {}", value.trim_end_matches("; charset=utf-8"))));
    }
    told
}

fn sha(bytes: &[u8]) -> impl AsRef<[u8]> {
    <sha2::Sha256 as sha2::Digest>::digest(bytes)
}

/// The injected program answers every pull as the mock registry does: images of both formats, whole and in ranges, and
/// missing content.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn the_seed_answers_pulls_as_the_mock_registry_does() {
    let Some(programs) = Programs::find() else { return };
    let registry = mock_registry::Server::start(mock_registry::Config::new()).await.unwrap();
    let images = registry.seed(&Population { count: 8, seed: 3, signed: false }).unwrap();
    let of_kind =
        |kind: ImageKind| images.iter().find(move |image| image.kind == kind && image.digest.is_some()).unwrap();
    let images = [of_kind(ImageKind::SingleArch), of_kind(ImageKind::MultiArch)];
    let world = World::new(Setup::new(programs)).await;
    let config = world.folder.path().join("config.yaml");
    let settings = format!("resolve: {{registries: [{{host: \"{}\", plainHttp: true}}]}}\n", registry.host());
    std::fs::write(&config, settings).unwrap();
    let sources = images.map(|image| format!("docker://{}", image.reference));
    let config = config.to_string_lossy().into_owned();
    let seed = world.programs.seed.to_string_lossy().into_owned();
    let arguments = ["--image", &sources[0], "--image", &sources[1], "--config", &config, "--seed", &seed];
    let (code, said) = world.run(world.command("apply", &arguments)).await;
    assert_eq!(code, 0, "{said}");
    let (ours, theirs) = (world.kubelet.seen.lock().address.unwrap(), registry.address());
    let same = async |method: &str, path: &str, headers: &[(&str, &str)]| {
        let answers =
            [answer_facts(ours, method, path, headers).await, answer_facts(theirs, method, path, headers).await];
        assert_eq!(answers[0], answers[1], "{method} {path} {headers:?}: the seed, then the mock registry");
    };
    let absent = format!("sha256:{}", "0".repeat(64));
    same("GET", "/v2/", &[]).await;
    for image in images {
        let name = image.reference.split_once('/').unwrap().1;
        let (name, tag) = name.rsplit_once(':').unwrap();
        let digest = image.digest.as_deref().unwrap();
        same("GET", &format!("/v2/{name}/referrers/{digest}"), &[]).await;
        same("GET", &format!("/v2/{name}/tags/list"), &[]).await;
        let mut manifests = vec![digest.to_owned()];
        while let Some(digest) = manifests.pop() {
            let path = format!("/v2/{name}/manifests/{digest}");
            let etag = format!("\"{digest}\"");
            for method in ["GET", "HEAD"] {
                same(method, &path, &[]).await;
                same(method, &path, &[("if-none-match", etag.as_str())]).await;
            }
            let answer = ask_with(ours, "GET", &path, &[]).await.unwrap();
            let manifest: Value = serde_json::from_slice(answer.body()).unwrap();
            let listed = |key: &str| -> Vec<String> {
                let list = manifest[key].as_array().into_iter().flatten();
                list.map(|one| one["digest"].as_str().unwrap().to_owned()).collect()
            };
            manifests.extend(listed("manifests"));
            let blobs = listed("layers").into_iter().chain(manifest["config"]["digest"].as_str().map(str::to_owned));
            for blob in blobs {
                let path = format!("/v2/{name}/blobs/{blob}");
                same("GET", &path, &[]).await;
                same("HEAD", &path, &[]).await;
                let etag = format!("\"{blob}\"");
                same("GET", &path, &[("if-none-match", etag.as_str())]).await;
                for range in
                    ["bytes=0-0", "bytes=1-2", "bytes=2-", "bytes=-2", "bytes=1-9999999", "bytes=9999999-", "lines=1-2"]
                {
                    same("GET", &path, &[("range", range)]).await;
                }
            }
        }
        for path in [
            format!("/v2/{name}/manifests/{tag}"),
            format!("/v2/{name}/manifests/no-such-tag"),
            format!("/v2/{name}/manifests/{absent}"),
            format!("/v2/{name}/blobs/{absent}"),
            format!("/v2/{name}/blobs/sha256:short"),
            format!("/v2/{name}/referrers/{absent}"),
        ] {
            same("GET", &path, &[]).await;
            // The specification has no HEAD of referrers: the mock registry refuses it, the seed answers.
            if !path.contains("/referrers/") {
                same("HEAD", &path, &[]).await;
            }
        }
    }
    for path in ["/", "/v2/UPPER/tags/list", "/v2/none/tags/list", &format!("/v2/none/referrers/{absent}")] {
        same("GET", path, &[]).await;
    }
    same("POST", "/v2/a/tags/list", &[]).await;
    assert_eq!((world.clean().await.0, world.left().await), (0, Vec::new()));
    registry.shutdown().await;
}

/// Runs a program to its end. Returns the program's output, or `None` if the program is not installed.
pub async fn tool(name: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(name);
    match tokio::time::timeout(PATIENCE, command.args(arguments).kill_on_drop(true).output()).await.expect("it ends") {
        Ok(output) => {
            assert!(output.status.success(), "{name} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            println!("skipped: needs {name}");
            None
        }
        Err(error) => panic!("{name} cannot be started: {error}"),
    }
}

/// The digest of the only image in an OCI layout. Also checks that every blob in the layout has the digest in its name.
fn digest_in(layout: &Path) -> String {
    for blob in std::fs::read_dir(layout.join("blobs/sha256")).unwrap() {
        let blob = blob.unwrap();
        let bytes = std::fs::read(blob.path()).unwrap();
        assert_eq!(blob.file_name().to_string_lossy(), hex::encode(sha(&bytes)));
    }
    let index: Value = serde_json::from_slice(&std::fs::read(layout.join("index.json")).unwrap()).unwrap();
    index["manifests"][0]["digest"].as_str().unwrap().to_owned()
}

/// skopeo and crane copy the injected images out of the injected program unchanged.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn skopeo_and_crane_pull_what_was_put_in() {
    let Some(programs) = Programs::find() else { return };
    let world = World::new(Setup::new(programs)).await;
    world.applied().await;
    let host = world.kubelet.seen.lock().address.unwrap();
    let (digest, blobs) = (&world.image.digest, world.image.blobs.len());
    let copied = |name: &str| world.folder.path().join(name);
    let count = |layout: &Path| std::fs::read_dir(layout.join("blobs/sha256")).unwrap().count();
    for reference in [format!("{host}/{NAME}"), format!("{host}/{}@{digest}", NAME.split_once(':').unwrap().0)] {
        let to = copied(&format!("skopeo-{}", reference.contains('@')));
        let (from, into) = (format!("docker://{reference}"), format!("oci:{}:it", to.display()));
        let all = ["--insecure-policy", "copy", "--all", "--preserve-digests", "--src-tls-verify=false", &from, &into];
        if tool("skopeo", &all).await.is_some() {
            assert_eq!((&digest_in(&to), count(&to)), (digest, blobs), "{reference}");
        }
        let to = copied(&format!("crane-{}", reference.contains('@')));
        let Some(told) = tool("crane", &["digest", "--insecure", &reference]).await else { continue };
        assert_eq!(&told, digest);
        tool("crane", &["pull", "--insecure", "--format", "oci", &reference, &to.to_string_lossy()]).await;
        assert_eq!((&digest_in(&to), count(&to)), (digest, blobs), "{reference}");
    }
    let tags = ["--insecure-policy", "list-tags", "--tls-verify=false", &format!("docker://{host}/team/app")];
    if let Some(said) = tool("skopeo", &tags).await {
        assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["Tags"], serde_json::json!(["1"]));
    }
    assert_eq!((world.clean().await.0, world.left().await), (0, Vec::new()));
}
