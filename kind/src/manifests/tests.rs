//! Invariants across the manifests, because a cluster does not report violations.

use std::collections::BTreeSet;

use super::*;

fn every_object() -> Vec<Value> {
    all().into_iter().flat_map(|(file, text)| objects(file, text).unwrap()).collect()
}

fn one<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found: Vec<_> =
        objects.iter().filter(|object| object["kind"] == kind && object["metadata"]["name"] == name).collect();
    assert_eq!(found.len(), 1, "{kind} {name}");
    found[0]
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn every_file_of_the_folder_is_built_in_and_labelled() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    let built_in: BTreeSet<String> = all().into_iter().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(files, built_in);
    let objects = every_object();
    let mut names = BTreeSet::new();
    for object in &objects {
        let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
        assert!(object["apiVersion"].is_string() && kind.is_string() && name.is_string(), "{object}");
        assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/part-of"], "longhaul", "{kind} {name}");
        assert!(names.insert(format!("{kind} {name}")), "{kind} {name} is there twice");
        let namespace = &object["metadata"]["namespace"];
        assert!(namespace.is_null() || namespace == "longhaul-system", "{kind} {name}");
    }
}

#[test]
fn the_package_resource_is_structural_and_says_what_the_reconciler_writes() {
    let crd = package_crd().unwrap();
    assert_eq!(crd["metadata"]["name"], "packages.longhaul.dev");
    assert_eq!(crd["spec"]["names"]["shortNames"], serde_json::json!(["pkg"]));
    let version = &crd["spec"]["versions"][0];
    assert_eq!(
        (&version["name"], &version["served"], &version["storage"]),
        (&"v1alpha1".into(), &true.into(), &true.into())
    );
    assert!(version["subresources"]["status"].is_object());
    let columns: Vec<_> = version["additionalPrinterColumns"].as_array().unwrap().iter().map(|c| &c["name"]).collect();
    assert_eq!(columns, ["Phase", "Networkpolicies", "Age"]);
    let schema = &version["schema"]["openAPIV3Schema"];
    assert_structural(schema, "$");
    let allow = &schema["properties"]["spec"]["properties"]["network"]["properties"]["allow"]["items"];
    assert_eq!(allow["required"], serde_json::json!(["direction"]));
    let status = &schema["properties"]["status"]["properties"];
    assert_eq!(
        texts(&status["phase"]["enum"]),
        ["Pending", "Ready", "Retrying", "Failed", "Removing", "RemovalFailed"]
    );
    for field in ["observedGeneration", "retryAttempts", "networkPolicyCount", "conditions"] {
        assert!(status[field].is_object(), "{field}");
    }
    let condition = &status["conditions"]["items"]["properties"]["status"]["enum"];
    assert_eq!(texts(condition), ["True", "False", "Unknown"], "quoted, or YAML makes booleans of them");
}

/// Kubernetes documentation, "Specifying a structural schema": a type everywhere.
fn assert_structural(schema: &Value, path: &str) {
    assert!(schema["type"].is_string(), "{path} has no type");
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        assert_structural(property, &format!("{path}.{name}"));
    }
    for key in ["items", "additionalProperties"] {
        if schema[key].is_object() {
            assert_structural(&schema[key], &format!("{path}.{key}"));
        }
    }
}

#[test]
fn the_webhook_reaches_the_service_and_the_service_its_pods() {
    let objects = every_object();
    let configuration = one(&objects, "MutatingWebhookConfiguration", "longhaul-webhook");
    let webhook = &configuration["webhooks"][0];
    assert_eq!((&webhook["sideEffects"], &webhook["reinvocationPolicy"]), (&"None".into(), &"IfNeeded".into()));
    assert_eq!(webhook["timeoutSeconds"], 10);
    assert_eq!(webhook["namespaceSelector"]["matchLabels"][OPT_IN_LABEL.0], OPT_IN_LABEL.1);
    let reached = &webhook["clientConfig"]["service"];
    let service = one(&objects, "Service", reached["name"].as_str().unwrap());
    assert_eq!(service["metadata"]["namespace"], reached["namespace"]);
    assert_eq!(service["spec"]["ports"][0]["port"], reached["port"]);

    let deployment = one(&objects, "Deployment", "longhaul-webhook");
    let pod = &deployment["spec"]["template"];
    assert_eq!(deployment["spec"]["selector"]["matchLabels"], service["spec"]["selector"]);
    assert_eq!(
        pod["metadata"]["labels"]["app.kubernetes.io/name"],
        service["spec"]["selector"]["app.kubernetes.io/name"]
    );
    let named = |port: &Value| ports(pod).contains(port.as_str().unwrap_or_default());
    assert!(named(&service["spec"]["ports"][0]["targetPort"]));
    let budget = one(&objects, "PodDisruptionBudget", "longhaul-webhook");
    assert_eq!(budget["spec"]["selector"], deployment["spec"]["selector"]);
    assert!(
        deployment["spec"]["replicas"].as_u64() > budget["spec"]["minAvailable"].as_u64(),
        "a drain must not wait for ever"
    );
    let namespace = one(&objects, "Namespace", "longhaul-system");
    assert!(namespace["metadata"]["labels"][OPT_IN_LABEL.0].is_null(), "the service must not review its own pods");
}

fn ports(pod: &Value) -> BTreeSet<&str> {
    let ports = pod["spec"]["containers"][0]["ports"].as_array().unwrap();
    ports.iter().map(|port| port["name"].as_str().unwrap()).collect()
}

#[test]
fn every_pod_is_hardened_and_finds_what_it_mounts() {
    let objects = every_object();
    let configuration = one(&objects, "ConfigMap", "longhaul-service");
    for role in ["webhook", "watch"] {
        let deployment = one(&objects, "Deployment", &format!("longhaul-{role}"));
        let pod = &deployment["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
        assert_eq!(container["securityContext"]["capabilities"]["drop"][0], "ALL");
        assert!(container["resources"]["limits"]["memory"].is_string());
        let named = ports(&deployment["spec"]["template"]);
        for probe in ["livenessProbe", "readinessProbe"] {
            assert!(named.contains(container[probe]["httpGet"]["port"].as_str().unwrap()), "{role} {probe}");
        }
        one(&objects, "ServiceAccount", pod["serviceAccountName"].as_str().unwrap());
        let file = texts(&container["args"]).pop().unwrap().rsplit('/').next().unwrap().to_owned();
        let text = configuration["data"][&file].as_str().unwrap();
        let parsed: Value = serde_saphyr::from_str(text).unwrap();
        assert_eq!(parsed["admission"].is_object(), role == "webhook");
        let volumes: BTreeSet<_> = pod["volumes"].as_array().unwrap().iter().map(|v| v["name"].as_str()).collect();
        let mounts: BTreeSet<_> =
            container["volumeMounts"].as_array().unwrap().iter().map(|v| v["name"].as_str()).collect();
        assert_eq!(volumes, mounts);
        let policy = one(&objects, "NetworkPolicy", &format!("longhaul-{role}"));
        assert_eq!(policy["spec"]["podSelector"], deployment["spec"]["selector"]);
    }
}

#[test]
fn a_role_may_do_what_it_does_and_no_more() {
    let objects = every_object();
    let role = one(&objects, "ClusterRole", "longhaul-watch");
    let mut allowed = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for (group, resource) in texts(&rule["apiGroups"])
            .into_iter()
            .flat_map(|g| texts(&rule["resources"]).into_iter().map(move |r| (g, r)))
        {
            for verb in texts(&rule["verbs"]) {
                allowed.insert(format!("{verb} {resource}.{group}"));
            }
        }
    }
    assert!(!allowed.iter().any(|entry| entry.contains('*')), "no wildcard");
    let mut expected = BTreeSet::new();
    for (resource, verbs) in [
        ("packages.longhaul.dev", "get list watch patch update"),
        ("packages/status.longhaul.dev", "patch update"),
        ("packages/finalizers.longhaul.dev", "update"),
        ("networkpolicies.networking.k8s.io", "get list watch create update patch delete"),
        ("events.", "create patch"),
    ] {
        expected.extend(verbs.split(' ').map(|verb| format!("{verb} {resource}")));
    }
    assert_eq!(allowed, expected);
    let binding = one(&objects, "ClusterRoleBinding", "longhaul-watch");
    assert_eq!(binding["roleRef"]["name"], "longhaul-watch");
    assert_eq!(binding["subjects"][0]["name"], "longhaul-watch");
    let bindings = objects.iter().filter(|object| object["kind"].as_str().unwrap().ends_with("RoleBinding")).count();
    assert_eq!(bindings, 2, "pull secrets are read only where somebody binds that role");
    let webhook = one(&objects, "ServiceAccount", "longhaul-webhook");
    assert_eq!(webhook["automountServiceAccountToken"], false);
}

#[test]
fn of_several_watchers_one_is_elected_in_their_own_namespace() {
    let objects = every_object();
    let role = one(&objects, "Role", "longhaul-watch-lease");
    let binding = one(&objects, "RoleBinding", "longhaul-watch-lease");
    let deployment = one(&objects, "Deployment", "longhaul-watch");
    let namespace = &deployment["metadata"]["namespace"];
    assert_eq!((&role["metadata"]["namespace"], &binding["metadata"]["namespace"]), (namespace, namespace));
    assert_eq!((&binding["roleRef"]["kind"], &binding["roleRef"]["name"]), (&"Role".into(), &role["metadata"]["name"]));
    let account = &deployment["spec"]["template"]["spec"]["serviceAccountName"];
    assert_eq!(&binding["subjects"][0]["name"], account);
    assert_eq!(&binding["subjects"][0]["namespace"], namespace);
    assert!(role["rules"].as_array().unwrap().iter().all(|rule| {
        texts(&rule["apiGroups"]) == ["coordination.k8s.io"] && texts(&rule["resources"]) == ["leases"]
    }));
    assert_eq!((texts(&role["rules"][0]["verbs"]), &role["rules"][0]["resourceNames"]), (vec!["create"], &Value::Null));
    assert_eq!(texts(&role["rules"][1]["verbs"]), ["get", "patch"]);
    // The service's default name.
    let configuration = one(&objects, "ConfigMap", "longhaul-service");
    let watch: Value = serde_saphyr::from_str(configuration["data"]["watch.yaml"].as_str().unwrap()).unwrap();
    assert!(watch["packages"]["lease"].is_null());
    assert_eq!(texts(&role["rules"][1]["resourceNames"]), ["longhaul-watch"]);
    assert_eq!(deployment["spec"]["strategy"]["type"], "RollingUpdate", "two at once do no harm");
}

#[test]
fn a_run_fills_in_authority_and_address() {
    let by_url = webhook("PEM", Reach::Url("https://127.0.0.1:1/mutate")).unwrap();
    let client = &by_url["webhooks"][0]["clientConfig"];
    assert_eq!(client, &serde_json::json!({ "url": "https://127.0.0.1:1/mutate", "caBundle": "UEVN" }));
    let by_service = webhook("PEM", Reach::Service).unwrap();
    let client = &by_service["webhooks"][0]["clientConfig"];
    assert_eq!((&client["service"]["name"], &client["caBundle"]), (&"longhaul-webhook".into(), &"UEVN".into()));
}

#[test]
fn the_webhook_is_applied_last() {
    assert_eq!(all().last().unwrap().0, "webhook.yaml");
    let error = objects("x.yaml", "a: [").unwrap_err();
    assert_eq!(error.to_string(), "failed to read x.yaml");
}
