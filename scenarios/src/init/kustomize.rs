//! The output of `kubectl kustomize` for the project's `config/`, if kubectl is installed.
//!
//! Chooses the folder, checks whether it may be built, and compares the output with the plain files. A kustomization
//! that refers to resources on other machines is not built, because kustomize would download them.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use super::{folder, manifests};

/// The folder that combines all manifests of a project, then the folder with only its `CustomResourceDefinition`s.
const FOLDERS: [&str; 2] = ["config/default", "config/crd"];
const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// Maximum number of folders that a kustomization may include.
const FOLDERS_MAX: usize = 200;
/// Maximum size of a built kustomization, several times that of a large operator.
const OUTPUT_MAX: u64 = 16 << 20;
/// Maximum number of bytes of an error message that are read.
const COMPLAINT_MAX: u64 = 16 << 10;
/// Timeout of building a kustomization, for which only files are read.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, PartialEq)]
pub(crate) enum Kustomized {
    None,
    /// The kustomization was not built, with the reason.
    Left(String),
    /// The kustomization was built from this folder.
    Built {
        /// The path of the folder, relative to the project.
        folder: &'static str,
        objects: Vec<Value>,
        /// Objects that are neither definitions nor webhook configurations: workloads and the objects that workloads
        /// need.
        others: Vec<Value>,
    },
}

/// The path of kubectl: in `PATH`, or beside the programs of a real control plane.
pub(crate) fn kubectl() -> Option<PathBuf> {
    let beside = std::env::var_os("KUBEBUILDER_ASSETS").map(|folder| PathBuf::from(folder).join("kubectl"));
    installer::on_path("kubectl").or_else(|| beside.filter(|path| path.is_file()))
}

/// The program that builds a kustomization: kubectl, or kustomize itself.
pub(crate) fn tool() -> Option<PathBuf> {
    kubectl().or_else(|| installer::on_path("kustomize"))
}

/// Builds the kustomization below `root`, if the project has one.
pub(crate) async fn build(root: &Path, kubectl: Option<&Path>) -> Kustomized {
    let has = |folder: &&str| NAMES.iter().any(|name| root.join(folder).join(name).is_file());
    let Some(folder) = FOLDERS.into_iter().find(has) else { return Kustomized::None };
    let Some(kubectl) = kubectl else {
        return Kustomized::Left(format!(
            "{folder}: without kubectl it is not built: names and patches are those of the plain files"
        ));
    };
    let left =
        |why: String| Kustomized::Left(format!("{folder}: {why}: names and patches are those of the plain files"));
    if let Err(why) = stays_inside(root, Path::new(folder)) {
        return left(why);
    }
    let place = root.join(folder);
    // The subcommand of `kustomize` itself has another name.
    let is_alone = kubectl.file_name().is_some_and(|name| name == "kustomize");
    let words = [std::ffi::OsStr::new(if is_alone { "build" } else { "kustomize" }), place.as_os_str()];
    let text = match tokio::time::timeout(PATIENCE, printed(kubectl, &words)).await {
        Ok(Ok(text)) => text,
        Ok(Err(why)) => return left(format!("`kubectl kustomize` does not build it ({why})")),
        Err(_) => return left(format!("`kubectl kustomize` takes longer than {} s", PATIENCE.as_secs())),
    };
    match serde_saphyr::from_multiple::<Value>(&text) {
        Ok(objects) => {
            let (objects, others) = objects.into_iter().partition(manifests::is_definition);
            Kustomized::Built { folder, objects, others }
        }
        Err(error) => left(format!(
            "what `kubectl kustomize` prints cannot be read ({})",
            manifests::first_line(&error.to_string())
        )),
    }
}

/// Runs a program that prints manifests, and returns the output.
pub(super) async fn printed(tool: &Path, words: &[&std::ffi::OsStr]) -> Result<String, String> {
    let mut command = tokio::process::Command::new(tool);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // It needs no cluster and must not find one.
    command.env("KUBECONFIG", "/dev/null").kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("it has no output".to_owned());
    };
    let (text, complaint) = tokio::join!(read(out, OUTPUT_MAX + 1), read(err, COMPLAINT_MAX));
    let text = text.map_err(|error| error.to_string())?;
    if text.len() as u64 > OUTPUT_MAX {
        return Err(format!("it prints more than {OUTPUT_MAX} bytes"));
    }
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if !status.success() {
        let complaint = String::from_utf8_lossy(&complaint.unwrap_or_default()).trim().to_owned();
        return Err(manifests::first_line(&complaint));
    }
    String::from_utf8(text).map_err(|_| "it prints no UTF-8".to_owned())
}

/// Whether a kustomization and all that it includes refer only to files inside the project.
fn stays_inside(root: &Path, folder: &Path) -> Result<(), String> {
    let mut open = vec![folder.to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(folder) = open.pop() {
        if !seen.insert(folder.clone()) {
            continue;
        }
        if seen.len() > FOLDERS_MAX {
            return Err(format!("it leads to more than {FOLDERS_MAX} folders"));
        }
        let Some(name) = NAMES.iter().find(|name| root.join(&folder).join(name).is_file()) else {
            return Err(format!("{} has no kustomization.yaml", folder.display()));
        };
        // kubebuilder's file has a hundred comment lines in a row, more than the parser's limit.
        let text: String = folder::text(root, &folder.join(name))?
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'))
            .flat_map(|line| [line, "\n"])
            .collect();
        let kustomization: Value = serde_saphyr::from_str(&text).map_err(|error| {
            format!("{}: {}", folder.join(name).display(), manifests::first_line(&error.to_string()))
        })?;
        if has_address(&kustomization) {
            return Err(format!("{} names an address, and nothing is fetched here", folder.join(name).display()));
        }
        for list in ["resources", "bases", "components"] {
            for entry in kustomization[list].as_array().into_iter().flatten().filter_map(Value::as_str) {
                let elsewhere = || {
                    format!(
                        "{} names `{entry}`, which is no file or folder of the project",
                        folder.join(name).display()
                    )
                };
                let path = inside(&folder.join(entry)).ok_or_else(elsewhere)?;
                let kind = root.join(&path).symlink_metadata().map_err(|_| elsewhere())?.file_type();
                if kind.is_dir() {
                    open.push(path);
                } else if !kind.is_file() {
                    return Err(elsewhere());
                }
            }
        }
    }
    Ok(())
}

/// A path without `.` and `..`; `None` if the path leads out of the project.
fn inside(path: &Path) -> Option<PathBuf> {
    let mut inside = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => inside.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !inside.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(inside)
}

/// Whether a text in a value is a URL. Inline patches have several lines and are no URL.
fn has_address(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("://") && !text.contains('\n'),
        Value::Array(items) => items.iter().any(has_address),
        Value::Object(parts) => parts.values().any(has_address),
        _ => false,
    }
}

/// The fields of objects that matter for a run: schemas, and the resources of webhooks. Names, labels and addresses of
/// webhooks do not matter.
fn meaning(objects: &[Value]) -> Vec<Value> {
    let mut all: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut spec = object["spec"].clone();
            // A program may wait until a webhook converts; who calls it, and at which address, does not matter.
            if spec["conversion"]["strategy"] == "Webhook" {
                spec["conversion"] = json!({"strategy": "Webhook"});
            }
            let mut webhooks = object["webhooks"].clone();
            for webhook in webhooks.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
                webhook.remove("clientConfig");
            }
            json!({"kind": object["kind"], "spec": spec, "webhooks": webhooks})
        })
        .collect();
    all.sort_by_cached_key(Value::to_string);
    all
}

/// Whether the built objects equal the objects of plain files in all fields that matter for a run.
pub(super) fn is_same(built: &[Value], plain: &[Value]) -> bool {
    meaning(built) == meaning(plain)
}

/// The built objects as one YAML file, with a comment that names the command.
pub(super) fn file(objects: &[Value], folder: &str) -> String {
    let mut text =
        format!("# Made by `longhaul init` with `kubectl kustomize {folder}`. Repeat this when that folder changes.\n");
    for object in objects {
        text.push_str("---\n");
        super::yaml::block(object, 0, &mut text);
    }
    text
}

/// Reads a program's output up to a limit, then closes the pipe, so that the program gets an error instead of blocking.
async fn read(from: impl tokio::io::AsyncRead + Unpin, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most).read_to_end(&mut bytes).await.map(|_| bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    /// Creates a program that replaces kubectl in the test and runs this script.
    fn program(folder: &Path, script: &str) -> PathBuf {
        let path = folder.join("kubectl");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    const PLAIN: [(&str, &str); 3] = [
        ("config/default/kustomization.yaml", "namePrefix: shop-\nresources: [../crd, service.yaml]\n"),
        ("config/default/service.yaml", "kind: Service\n"),
        ("config/crd/kustomization.yaml", "resources: []\n"),
    ];

    #[tokio::test]
    async fn what_is_built_is_definitions_and_webhooks() {
        let folder = project(&PLAIN);
        let kubectl = program(
            folder.path(),
            "test \"$1\" = kustomize || exit 9\nprintf 'kind: CustomResourceDefinition\\nspec: {group: a}\\n---\\nkind: Service\\n'",
        );
        let built = build(folder.path(), Some(&kubectl)).await;
        let objects = vec![json!({"kind": "CustomResourceDefinition", "spec": {"group": "a"}})];
        let others = vec![json!({"kind": "Service"})];
        assert_eq!(built, Kustomized::Built { folder: "config/default", objects, others });
        assert_eq!(build(folder.path().join("config/crd").as_path(), Some(&kubectl)).await, Kustomized::None);
        let Kustomized::Left(why) = build(folder.path(), None).await else { panic!() };
        assert!(why.starts_with("config/default: without kubectl"), "{why}");
    }

    /// A kustomization with a hundred comment lines, as kubebuilder writes them, is read.
    #[test]
    fn a_hundred_comments_in_a_row_are_no_hindrance() {
        let comments = "# - source:\n#     kind: CustomResourceDefinition\n".repeat(99);
        let folder =
            project(&[("config/default/kustomization.yaml", &format!("resources: []\nreplacements:\n{comments}"))]);
        assert_eq!(stays_inside(folder.path(), Path::new("config/default")), Ok(()));
    }

    #[tokio::test]
    async fn a_build_that_fails_is_told_in_a_line() {
        let folder = project(&PLAIN);
        let kubectl = program(folder.path(), "echo 'error: no such file' >&2; echo more >&2; exit 1");
        let Kustomized::Left(why) = build(folder.path(), Some(&kubectl)).await else { panic!() };
        assert!(why.contains("(error: no such file)") && !why.contains("more"), "{why}");
        let endless = program(folder.path(), "yes 'kind: x'");
        let Kustomized::Left(why) = build(folder.path(), Some(&endless)).await else { panic!() };
        assert!(why.contains("more than 16777216 bytes"), "{why}");
    }

    /// A kustomization that refers to other machines or to files outside the project is not built, and kubectl is not
    /// started.
    #[tokio::test]
    async fn what_leads_elsewhere_is_left_alone() {
        for (text, said) in [
            ("resources: [https://example.com/a.yaml]", "names an address"),
            ("patches: [{path: 'https://example.com/p.yaml'}]", "names an address"),
            ("resources: ['github.com/example/base?ref=v1']", "no file or folder of the project"),
            ("resources: [../../../etc]", "no file or folder of the project"),
            ("components: [/etc]", "no file or folder of the project"),
            ("resources: [link]", "no file or folder of the project"),
            ("resources: [deep]", "config/default/deep has no kustomization.yaml"),
            ("resources: [", "config/default/kustomization.yaml: "),
        ] {
            let folder = project(&[("config/default/kustomization.yaml", text), ("config/default/deep/a", "")]);
            std::os::unix::fs::symlink("/etc", folder.path().join("config/default/link")).unwrap();
            let kubectl = program(folder.path(), "touch \"$(dirname \"$0\")/started\"");
            let Kustomized::Left(why) = build(folder.path(), Some(&kubectl)).await else { panic!("{text}") };
            assert!(why.contains(said), "{text}: {why}");
            assert!(!folder.path().join("started").exists(), "{text}");
        }
    }

    #[test]
    fn names_and_addresses_make_no_difference_but_rules_do() {
        let hook = |name: &str, service: &str, operation: &str| {
            json!({"kind": "ValidatingWebhookConfiguration", "metadata": {"name": name}, "webhooks": [
                {"name": "a", "clientConfig": {"service": {"name": service}}, "rules": [{"operations": [operation]}]},
            ]})
        };
        assert!(is_same(&[hook("shop-v", "shop-service", "CREATE")], &[hook("v", "service", "CREATE")]));
        assert!(!is_same(&[hook("v", "s", "UPDATE")], &[hook("v", "s", "CREATE")]));
        let crd =
            json!({"kind": "CustomResourceDefinition", "spec": {"group": "a", "conversion": {"strategy": "Webhook"}}});
        let text = file(std::slice::from_ref(&crd), "config/default");
        let back: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(back, crd, "a program may look for its conversion webhook");
        let plain = json!({"kind": "CustomResourceDefinition", "spec": {"group": "a"}});
        assert!(!is_same(&[crd], &[plain]));
    }
}
