//! Tests of `pin` and `krm` with manifest files, and of the lock file, which the webhook uses too.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::Ordering;

use base64::Engine as _;
use service::run::Options;
use service_core::wire::Protocol;

use crate::admission::{ask, pod, review};
use crate::support::Service;
use crate::support::registry::{Registry, digest};

/// A Deployment with comments, quotes and two images, and an object of an unknown kind.
const MANIFEST: &str = "\
# Why it is here.
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}   # its name
spec:
  template:
    spec:
      initContainers:
      - {name: i, image: 'HOST/good:1'}   # first
      containers:
      - name: c
        image:   HOST/good:1  # second
---
apiVersion: acme.io/v1
kind: Farm
metadata: {name: f}
spec: {workers: [{img: \"HOST/good:2\"}]}
";

fn run(folder: &Path, arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul-service"));
    command.args(arguments).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// A folder with the manifest and a configuration for this registry.
fn folder(registry: &Registry) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let config = format!("resolve: {{registries: [{{host: \"{}\", plainHttp: true}}]}}\n", registry.host());
    std::fs::write(folder.path().join("config.yaml"), config).unwrap();
    let manifest = MANIFEST.replace("HOST", &registry.host());
    std::fs::write(folder.path().join("web.yaml"), &manifest).unwrap();
    (folder, manifest)
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_are_pinned_in_place_and_nothing_else_of_them_changes() {
    let registry = Registry::start().await;
    let (folder, before) = folder(&registry);
    let path = folder.path();
    let read = || std::fs::read_to_string(path.join("web.yaml")).unwrap();
    let (code, out, _) = run(path, &["pin", "--config", "config.yaml", "--check", "."], "");
    assert!(code == Some(1) && out.contains("web.yaml:9: info: Deployment/web: pinned to "), "{out}");
    let (code, out, _) = run(path, &["pin", "--config", "config.yaml", "--diff", "web.yaml"], "");
    assert!(code == Some(0) && out.contains("\n+        image:   ") && out.contains("--- web.yaml\n"), "{out}");
    assert_eq!(read(), before);
    let pinned = before.replace("good:1", &format!("good:1@{}", digest()));
    let (code, out, said) = run(path, &["pin", "--config", "config.yaml", "-"], &before);
    assert!(code == Some(0) && out == pinned, "{out}{said}");
    let (code, _, said) = run(path, &["pin", "--config", "config.yaml", "."], "");
    assert_eq!((code, read()), (Some(0), pinned.clone()), "{said}");
    assert_eq!(run(path, &["pin", "--config", "config.yaml", "--check", "."], "").0, Some(0));
    let (code, _, _) = run(path, &["pin", "--config", "config.yaml", "--path", "spec.workers[*].img", "web.yaml"], "");
    assert_eq!((code, read()), (Some(0), pinned.replace("good:2", &format!("good:2@{}", digest()))));
}

/// A symbolic link to a manifest is refused and stays a link. Neither the link's target nor the target's folder is
/// changed.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_symbolic_link_is_refused_and_what_it_leads_to_stays() {
    use std::os::unix::fs::symlink;
    let registry = Registry::start().await;
    let (folder, before) = folder(&registry);
    let (path, elsewhere) = (folder.path(), tempfile::tempdir().unwrap());
    let target = elsewhere.path().join("target.yaml");
    std::fs::write(&target, &before).unwrap();
    std::fs::create_dir(path.join("apps")).unwrap();
    symlink(&target, path.join("apps/link.yaml")).unwrap();
    std::fs::copy(path.join("web.yaml"), path.join("apps/a.yaml")).unwrap();
    let read = |file: &Path| std::fs::read_to_string(file).unwrap();
    for arguments in [["pin", "--config=config.yaml", "apps/link.yaml"], ["pin", "--config=config.yaml", "apps"]] {
        let (code, _, said) = run(path, &arguments, "");
        assert!(code != Some(0) && said.contains("apps/link.yaml is a symbolic link: name its target"), "{said}");
        assert!(path.join("apps/link.yaml").is_symlink());
        assert_eq!(
            (read(&target), read(&path.join("apps/a.yaml"))),
            (before.clone(), before.clone()),
            "nothing by half"
        );
    }
    // A link to a file next to it is covered by that file.
    std::fs::remove_file(path.join("apps/link.yaml")).unwrap();
    symlink("a.yaml", path.join("apps/link.yaml")).unwrap();
    // The temporary file next to another one must not follow a foreign link.
    symlink(&target, path.join("apps/a.yaml.new")).unwrap();
    let (code, said, wrong) = run(path, &["pin", "--config=config.yaml", "apps"], "");
    assert_eq!(code, Some(0), "{said}{wrong}");
    assert!(path.join("apps/link.yaml").is_symlink() && !path.join("apps/a.yaml").is_symlink());
    assert!(read(&path.join("apps/a.yaml")).contains(&digest()));
    assert_eq!(read(&target), before);
    // The lock is written in the same way.
    let nowhere = elsewhere.path().join("images.lock");
    symlink(&nowhere, path.join("images.lock")).unwrap();
    let (code, _, said) = run(path, &["pin", "--config=config.yaml", "--lock=images.lock", "--update", "web.yaml"], "");
    assert!(code != Some(0) && said.contains("images.lock is a symbolic link"), "{said}");
    assert!(!nowhere.exists() && path.join("images.lock").is_symlink());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_is_not_found_is_said_with_its_line_and_its_object_stays() {
    let registry = Registry::start().await;
    let (folder, before) = folder(&registry);
    let broken = before.replacen("/good:1", "/absent:1", 1);
    std::fs::write(folder.path().join("web.yaml"), &broken).unwrap();
    let (code, _, said) = run(folder.path(), &["pin", "--config", "config.yaml", "web.yaml"], "");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("web.yaml:9: error: Deployment/web: ") && said.contains("/absent:1"), "{said}");
    assert_eq!(std::fs::read_to_string(folder.path().join("web.yaml")).unwrap(), broken);
    for (text, told) in [("a: [", "line 1"), ("a: 1\n", "")] {
        std::fs::write(folder.path().join("web.yaml"), text).unwrap();
        let (code, _, said) = run(folder.path(), &["pin", "--config", "config.yaml", "web.yaml"], "");
        assert!(code == Some(if told.is_empty() { 0 } else { 64 }) && said.contains(told), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_locked_gets_its_digest_whatever_the_tag_says_now() {
    let registry = Registry::start().await;
    let (folder, before) = folder(&registry);
    let path = folder.path();
    let lock = |more: &[&str]| run(path, &[&["pin", "--config", "config.yaml"], more, &["web.yaml"]].concat(), "");
    let (code, out, said) = lock(&["--lock"]);
    assert!(code == Some(0) && out.contains("images.lock: 1 image locked, 1 of them now"), "{out}{said}");
    assert_eq!(std::fs::read_to_string(path.join("web.yaml")).unwrap(), before, "manifests keep their tags");
    assert_eq!(lock(&["--lock", "--check"]).0, Some(0));
    let text = std::fs::read_to_string(path.join("images.lock")).unwrap();
    // As if the tag had referred to another image then.
    let then = format!("sha256:{}", "1".repeat(64));
    std::fs::write(path.join("images.lock"), text.replace(&digest(), &then)).unwrap();
    let (code, out, _) = lock(&["--lock", "--check"]);
    assert!(code == Some(1) && out.contains("has moved: locked sha256:111"), "{out}");
    let (code, out, _) = lock(&["--lock"]);
    assert!(code == Some(0) && out.contains("1 image locked, 0 of them now"), "{out}");
    let object = before.split("---").next().unwrap().replace('\n', "\n  ");
    let list = format!("kind: ResourceList\nitems:\n- {}", object.trim_start_matches("# Why it is here.").trim_start());
    let asked = registry.requests.load(Ordering::Relaxed);
    let (code, out, said) = run(path, &["krm", "--config", "config.yaml", "--lock", "images.lock"], &list);
    assert!(code == Some(0) && out.contains(&format!("good:1@{then}'}}   # first")), "{out}{said}");
    assert_eq!(registry.requests.load(Ordering::Relaxed), asked, "nobody is asked about what is locked");
    assert_eq!(lock(&["--lock", "--update"]).0, Some(0));
    assert!(std::fs::read_to_string(path.join("images.lock")).unwrap().contains(&digest()));
    let twice = text.replace(
        "images:\n",
        &format!("images:\n- {{image: \"{}/good:1\", digest: {then}, resolved: x, registry: r}}\n", registry.host()),
    );
    std::fs::write(path.join("images.lock"), twice).unwrap();
    let (code, _, said) = lock(&["--lock", "--check"]);
    assert!(code == Some(64) && said.contains("has two digests"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_webhook_honours_the_lock() {
    let registry = Registry::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("images.lock");
    let image = format!("{}/good:1", registry.host());
    let locked = format!("sha256:{}", "1".repeat(64));
    let entry = format!("- {{image: \"{image}\", digest: {locked}, resolved: x, registry: r}}\n");
    std::fs::write(&file, format!("version: 1\nimages:\n{entry}")).unwrap();
    let config = |lock: &str| {
        format!(
            "admission: {{listen: \"127.0.0.1:0\", certificate: tls.crt, key: tls.key}}\nshutdown: {{drain: 50ms}}\n\
             resolve: {{registries: [{{host: \"{}\", plainHttp: true}}]{lock}}}\n",
            registry.host()
        )
    };
    let pinned = async |config: &str| {
        let service = Service::start("admission", config, Options::default()).await;
        let answer = ask(&service.webhook(Protocol::Http1), &review("v1", &pod(&[&image]))).await;
        let patch = base64::engine::general_purpose::STANDARD.decode(answer["patch"].as_str().unwrap()).unwrap();
        String::from_utf8(patch).unwrap()
    };
    assert!(pinned(&config(&format!(", lock: {}", file.display()))).await.contains(&locked));
    assert_eq!(registry.requests.load(Ordering::Relaxed), 0, "nobody is asked about what is locked");
    assert!(pinned(&config("")).await.contains(&digest()));
}
