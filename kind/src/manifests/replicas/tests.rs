//! Tests that the manifests of the API that scales Deployments agree with each other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;
use crate::manifests::NAMESPACE;

fn every_object() -> Vec<Value> {
    REPLICAS.into_iter().flat_map(|(file, text)| objects(file, text).unwrap()).collect()
}

fn one<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let found: Vec<_> = objects.iter().filter(|object| object["kind"] == kind).collect();
    assert_eq!(found.len(), 1, "{kind}");
    found[0]
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests").join(name)
}

/// The rights in all RBAC rules of `objects`, each as `verb resource.group`.
fn rights(objects: &[Value]) -> BTreeSet<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = |value: &Value| value.as_array().unwrap().iter().map(text).collect::<Vec<_>>();
    let mut found = BTreeSet::new();
    for rule in objects.iter().flat_map(|object| object["rules"].as_array().into_iter().flatten()) {
        for group in list(&rule["apiGroups"]) {
            for resource in list(&rule["resources"]) {
                found.extend(list(&rule["verbs"]).into_iter().map(|verb| format!("{verb} {resource}.{group}")));
            }
        }
    }
    found
}

/// Every file of a folder is listed in its kustomization. The files of the main folder can also be applied one by one.
#[test]
fn every_file_is_in_its_kustomization() {
    for name in ["replicas", "replicas-images", "replicas-cert-manager"] {
        let text = std::fs::read_to_string(folder(name).join("kustomization.yaml")).unwrap();
        let kustomization: Value = serde_saphyr::from_str(&text).unwrap();
        let named: BTreeSet<String> = kustomization["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| file.as_str().unwrap().to_owned())
            .filter(|file| file != "../replicas")
            .collect();
        let files: BTreeSet<String> = std::fs::read_dir(folder(name))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|file| file != "kustomization.yaml")
            .collect();
        assert_eq!(named, files, "{name}");
        if name == "replicas" {
            let built_in: BTreeSet<String> = REPLICAS.into_iter().map(|(file, _)| file.to_owned()).collect();
            assert_eq!(built_in, files);
        }
    }
}

#[test]
fn everything_is_in_a_namespace_of_its_own() {
    for object in every_object() {
        let (kind, namespace) = (object["kind"].as_str().unwrap(), &object["metadata"]["namespace"]);
        let has_none = matches!(kind, "Namespace" | "ClusterRole" | "ClusterRoleBinding");
        assert_eq!(namespace.is_null(), has_none, "{kind}");
        assert!(has_none || namespace == "longhaul-system", "{kind}");
        assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/part-of"], "longhaul", "{kind}");
    }
    let text = |object: &Value| serde_json::to_string(object).unwrap();
    let ours = one(&every_object(), "Namespace").clone();
    assert_eq!(text(&ours), text(&objects("namespace.yaml", NAMESPACE).unwrap()[0]), "either may be applied first");
}

#[test]
fn the_role_has_only_the_rights_that_it_uses() {
    let ordinary = [
        "list deployments.apps",
        "watch deployments.apps",
        "get deployments/scale.apps",
        "update deployments/scale.apps",
    ];
    let expected =
        |more: &[&str]| ordinary.iter().chain(more).map(|right| (*right).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(rights(&replicas_rights(false).unwrap()), expected(&[]));
    assert_eq!(rights(&replicas_rights(true).unwrap()), expected(&["get deployments.apps", "patch deployments.apps"]));
    for binding in replicas_rights(true).unwrap().iter().filter(|object| object["subjects"].is_array()) {
        let subject = &binding["subjects"][0];
        assert_eq!((&subject["namespace"], &subject["name"]), (&REPLICAS_ACCOUNT.0.into(), &REPLICAS_ACCOUNT.1.into()));
        assert_eq!(binding["subjects"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn the_pods_are_hardened_and_find_what_they_mount() {
    let all = every_object();
    let deployment = one(&all, "Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(container["securityContext"]["capabilities"]["drop"][0], "ALL");
    assert_eq!(one(&all, "ServiceAccount")["metadata"]["name"], pod["serviceAccountName"]);
    let names = |list: &Value| -> BTreeSet<String> {
        list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&pod["volumes"]), names(&container["volumeMounts"]));
    // Files of Secrets are readable only for the group: the service refuses a key that every user may read.
    for volume in pod["volumes"].as_array().unwrap().iter().filter(|volume| volume["secret"].is_object()) {
        assert_eq!(volume["secret"]["defaultMode"], 0o440, "{volume}");
    }
    assert!(container["env"].is_null(), "no secret is in the environment");
    let service = one(&all, "Service");
    assert!(names(&container["ports"]).contains(service["spec"]["ports"][0]["targetPort"].as_str().unwrap()));
    for kind in ["NetworkPolicy", "PodDisruptionBudget"] {
        let selector = ["podSelector", "selector"].map(|key| &one(&all, kind)["spec"][key]);
        assert!(selector.contains(&&deployment["spec"]["selector"]), "{kind}");
    }
    let text = one(&all, "ConfigMap")["data"]["replicas.yaml"].as_str().unwrap();
    let config: Value = serde_saphyr::from_str(text).unwrap();
    let mounts = container["volumeMounts"].as_array().unwrap();
    for file in [&config["replicas"]["certificate"], &config["replicas"]["key"], &config["replicas"]["clientCA"][0]] {
        let file = file.as_str().unwrap();
        assert!(mounts.iter().any(|mount| file.starts_with(mount["mountPath"].as_str().unwrap())), "{file}");
    }
}

/// Checks the objects in the output of `kubectl kustomize` for each folder; skipped without kubectl.
#[test]
fn each_variant_is_what_it_says() {
    for (name, count) in [("replicas", 9), ("replicas-images", 11), ("replicas-cert-manager", 14)] {
        let Ok(output) = Command::new("kubectl").arg("kustomize").arg(folder(name)).output() else {
            println!("skipped: needs kubectl");
            return;
        };
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let all: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        assert_eq!(all.len(), count, "{name}");
        if name != "replicas-cert-manager" {
            continue;
        }
        let pod = &one(&all, "Deployment")["spec"]["template"]["spec"];
        let secrets: Vec<_> =
            pod["volumes"].as_array().unwrap().iter().filter_map(|v| v["secret"]["secretName"].as_str()).collect();
        assert_eq!(secrets, ["longhaul-replicas-tls"], "the one that cert-manager writes");
        let certificate = |name: &str| {
            all.iter().find(|object| object["kind"] == "Certificate" && object["metadata"]["name"] == name).unwrap()
        };
        let server = certificate("longhaul-replicas");
        assert_eq!(
            (&server["spec"]["secretName"], &server["spec"]["usages"][0]),
            (&secrets[0].into(), &"server auth".into())
        );
        assert_eq!(certificate("longhaul-replicas-client")["spec"]["usages"][0], "client auth");
        let text = one(&all, "ConfigMap")["data"]["replicas.yaml"].as_str().unwrap();
        let config: Value = serde_saphyr::from_str(text).unwrap();
        assert_eq!(config["replicas"]["clientCA"][0], "/etc/longhaul-tls/ca.crt");
        assert_eq!(config["replicas"]["maxCertificateLifetime"], "25h", "a day, and the clocks of a day");
    }
}
