//! Tests of the printed manifests: they equal the files except for the choice, and no choice can disarm a webhook.

use clap::Parser as _;

use super::*;

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    arguments: Arguments,
}

fn printed(more: &[&str]) -> Result<Vec<Value>, String> {
    let line = ["manifests", "--image", "registry.corp/x:1"].iter().chain(more);
    let text = Line::try_parse_from(line).map_err(|error| error.to_string())?.arguments.run();
    let text = text.map_err(|error| format!("{error:#}"))?;
    Ok(serde_saphyr::from_multiple(&text).unwrap())
}

fn one<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let found: Vec<_> = objects.iter().filter(|object| object["kind"] == kind).collect();
    assert_eq!(found.len(), 1, "{kind}");
    found[0]
}

#[test]
fn who_does_not_say_what_failure_does_is_told_what_each_means() {
    let error = printed(&[]).unwrap_err();
    assert!(error.contains("Pods cannot be created in labelled namespaces"), "{error}");
    assert!(error.contains("accepted unpinned and unverified"), "{error}");
}

#[test]
fn no_manifest_has_a_bundle_whatever_is_chosen() {
    for certificates in ["own", "cert-manager", "secret"] {
        for policy in ["fail", "ignore"] {
            if certificates == "own" && cfg!(not(feature = "own-certificates")) {
                continue;
            }
            let objects = printed(&["--certificates", certificates, "--failure-policy", policy]).unwrap();
            let webhook = one(&objects, "MutatingWebhookConfiguration");
            assert_eq!(webhook["webhooks"][0]["failurePolicy"].as_str().unwrap().to_lowercase(), policy);
            assert!(!webhook.to_string().contains("caBundle"), "{webhook}");
            assert_eq!(objects.first().unwrap()["kind"], "Namespace", "what others need comes first");
            assert_eq!(objects.last().unwrap()["kind"], "MutatingWebhookConfiguration");
            for object in objects.iter().filter(|object| object["kind"] == "Secret" || object["kind"] == "Lease") {
                let written = object.as_object().unwrap();
                assert!(!["data", "stringData", "spec"].iter().any(|key| written.contains_key(*key)), "{object}");
            }
        }
    }
}

#[cfg(feature = "own-certificates")]
#[test]
fn with_own_certificates_nothing_is_mounted_and_rights_are_by_name() {
    let objects = printed(&["--failure-policy", "fail", "--namespace", "elsewhere", "--replicas", "3"]).unwrap();
    let deployment = one(&objects, "Deployment");
    assert_eq!(
        (&deployment["spec"]["replicas"], &deployment["metadata"]["namespace"]),
        (&json!(3), &json!("elsewhere"))
    );
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["image"], "registry.corp/x:1");
    assert!(!pod.to_string().contains("tls"), "{pod}");
    let text = json!(objects).to_string();
    assert!(!text.contains(NAMESPACE), "every place has the other namespace");
    let config = one(&objects, "ConfigMap")["data"]["webhook.yaml"].as_str().unwrap();
    assert!(parse(config, Path::new("x")).unwrap().find::<Admission>().unwrap().own.is_some());
    assert_eq!(one(&objects, "ServiceAccount")["automountServiceAccountToken"], true);
    for role in objects.iter().filter(|object| object["metadata"]["name"] == "longhaul-webhook-certificates") {
        for rule in role["rules"].as_array().into_iter().flatten() {
            assert_eq!(rule["resourceNames"].as_array().map(Vec::len), Some(1), "{rule}");
            assert_eq!(rule["verbs"], json!(["get", "patch"]));
        }
    }
}

/// Without any choice, the printed manifests equal the files.
#[test]
fn the_files_and_what_is_printed_agree() {
    let objects = printed(&["--certificates", "secret", "--failure-policy", "ignore"]).unwrap();
    let pieces = [Piece::NAMESPACE, Piece::SERVICE, Piece::DISRUPTION, Piece::WEBHOOK, Piece::REGISTRATION];
    for object in pieces.into_iter().flat_map(|piece| piece.objects(NAMESPACE).unwrap()) {
        assert!(objects.contains(&object), "{object}");
    }
    let mut deployment = one(&Piece::DEPLOYMENT.objects(NAMESPACE).unwrap(), "Deployment").clone();
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.corp/x:1".into();
    assert_eq!(&deployment, one(&objects, "Deployment"));
    let kinds: Vec<_> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert!(!kinds.contains(&"CustomResourceDefinition"), "{kinds:?}");
    assert!(!json!(objects).to_string().contains("longhaul-watch"), "the watcher stays out");
}

#[test]
fn a_configuration_that_does_not_fit_the_manifests_is_refused_with_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.yaml");
    let with = |text: &str, certificates: &str| {
        std::fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        printed(&["--failure-policy", "fail", "--certificates", certificates, "--config", path])
    };
    let mounted = "admission: {listen: \"[::]:8443\", certificate: /etc/longhaul-tls/tls.crt, key: /etc/longhaul-tls/tls.key}\n\
                   health: {listen: \"[::]:9090\"}\n";
    let objects = with(mounted, "secret").unwrap();
    assert_eq!(one(&objects, "ConfigMap")["data"]["webhook.yaml"], mounted, "as it was written");
    assert_eq!(one(&objects, "ServiceAccount")["automountServiceAccountToken"], false, "nothing is asked for");
    for (text, certificates, what) in [
        (mounted.to_owned(), "own", "ownCertificates"),
        (mounted.replace("8443", "8444"), "secret", "port 8443, not 8444"),
        (mounted.replace("9090", "1"), "secret", "health.listen"),
        (mounted.replace("/etc/longhaul-tls", "x"), "secret", "the manifests mount"),
        ("health: {listen: \"[::]:9090\"}\n".into(), "secret", "no section `admission`"),
        ("admision: {}\n".into(), "secret", "did you mean `admission`"),
    ] {
        let error = with(&text, certificates).unwrap_err();
        assert!(error.contains(what), "{what}: {error}");
    }
    for (more, what) in [(["--replicas", "0"], "use 1 to 100"), (["--namespace", "A"], "lower-case")] {
        let error =
            printed(&[&["--failure-policy", "fail", "--certificates", "secret"][..], &more].concat()).unwrap_err();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn a_folder_has_a_kustomization_of_what_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("deploy");
    let line =
        ["x", "--image", "i", "--failure-policy", "fail", "--certificates", "secret", "--write", to.to_str().unwrap()];
    Line::try_parse_from(line).unwrap().arguments.run().unwrap();
    let read = |name: &str| std::fs::read_to_string(to.join(name)).unwrap();
    let kustomization: Value = serde_saphyr::from_str(&read("kustomization.yaml")).unwrap();
    let names = kustomization["resources"].as_array().unwrap();
    assert_eq!(names.len() + 1, std::fs::read_dir(&to).unwrap().count());
    for name in names {
        let objects: Vec<Value> = serde_saphyr::from_multiple(&read(name.as_str().unwrap())).unwrap();
        assert!(!objects.is_empty(), "{name}");
    }
}

#[test]
fn a_bundle_is_applied_as_one_field_and_nothing_that_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.crt");
    std::fs::write(&file, "no certificate").unwrap();
    assert!(CaBundle { file: file.clone() }.run().is_err());
    let pem = rcgen::generate_simple_self_signed(["x".to_owned()]).unwrap().cert.pem();
    std::fs::write(&file, pem).unwrap();
    let text = CaBundle { file }.run().unwrap();
    assert!(text.starts_with("# kubectl apply --server-side"), "{text}");
    let object: Value = serde_saphyr::from_str(&text).unwrap();
    let entry = object["webhooks"][0].as_object().unwrap();
    assert_eq!((entry.len(), &entry["name"]), (2, &json!("images.longhaul.dev")));
    assert_eq!(entry["clientConfig"].as_object().unwrap().len(), 1);
}
