use serde_json::json;

use super::*;
use crate::catalogue::Catalogue;

/// The field and reason of each `details.causes` entry for a template with the pod specification `spec`.
fn wrong(spec: &Value) -> Vec<(String, &'static str)> {
    let mut template = json!({"spec": spec});
    super::super::fill(template.get_mut("spec"));
    let mut causes = Vec::new();
    check_template(&template, At::from("t"), &mut causes);
    causes.into_iter().map(|cause| (cause.field, cause.reason.trim_start_matches("FieldValue"))).collect()
}

fn of_container(container: &Value) -> Vec<(String, &'static str)> {
    let mut whole = json!({"name": "c", "image": "i"});
    whole.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
    let volumes = json!([{"name": "v"}, {"name": "p", "persistentVolumeClaim": {"claimName": "x"}}]);
    let found = wrong(&json!({"containers": [whole], "volumes": volumes}));
    let short = |field: String| field.trim_start_matches("t.spec.containers[0].").to_owned();
    found.into_iter().map(|(field, reason)| (short(field), reason)).collect()
}

fn reasons<'a>(found: &'a [(String, &'static str)]) -> Vec<(&'a str, &'static str)> {
    found.iter().map(|(field, reason)| (field.as_str(), *reason)).collect()
}

#[test]
fn amounts_are_not_negative_and_requests_not_above_limits() {
    let of =
        |limits: Value, requests: Value| of_container(&json!({"resources": {"limits": limits, "requests": requests}}));
    assert_eq!(of(json!({"cpu": "1", "memory": "0"}), json!({"cpu": "1000m", "memory": "0"})), []);
    let above = of(json!({"cpu": "1"}), json!({"cpu": "1100m"}));
    assert_eq!(reasons(&above), [("resources.requests", "Invalid")]);
    assert_eq!(reasons(&of(json!({"cpu": "-1"}), json!({}))), [("resources.limits[cpu]", "Invalid")]);
    assert_eq!(reasons(&of(json!({}), json!({"cpu": "-1"}))), [("resources.requests[cpu]", "Invalid")]);
    assert_eq!(reasons(&of(json!({"gpus": "1"}), json!({}))), [("resources.limits[gpus]", "Invalid"); 2]);
    assert_eq!(of(json!({"example.com/gpu": "1"}), json!({"example.com/gpu": "1"})), []);
    assert_eq!(reasons(&of(json!({}), json!({"example.com/gpu": "1"}))), [("resources.limits", "Required")]);
    assert_eq!(
        reasons(&of(json!({"hugepages-2Mi": "3Mi"}), json!({}))),
        [("resources.limits[hugepages-2Mi]", "Invalid"), ("resources", "Forbidden"),]
    );
}

#[test]
fn mounts_need_a_volume_and_one_path() {
    let of = |mounts: Value| of_container(&json!({"volumeMounts": mounts}));
    assert_eq!(of(json!([{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}])), []);
    assert_eq!(reasons(&of(json!([{"name": "w", "mountPath": "/a"}]))), [("volumeMounts[0].name", "NotFound")]);
    let twice = of(json!([{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}]));
    assert_eq!(reasons(&twice), [("volumeMounts[1].mountPath", "Invalid")]);
    assert_eq!(
        reasons(&of(json!([{"name": "v", "mountPath": "/a", "subPath": "../b"}]))),
        [("volumeMounts.subPath", "Invalid")]
    );
    let devices = |name: &str| of_container(&json!({"volumeDevices": [{"name": name, "devicePath": "/dev/x"}]}));
    assert_eq!(devices("p"), []);
    assert_eq!(reasons(&devices("v")), [("volumeDevices[0].name", "Invalid")]);
}

#[test]
fn a_volume_has_one_source_and_a_name() {
    let of = |volume: Value| wrong(&json!({"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}));
    assert_eq!(of(json!({"name": "a", "emptyDir": {}})), []);
    assert_eq!(
        reasons(&of(json!({"name": "a", "emptyDir": {}, "secret": {"secretName": "s"}}))),
        [("t.spec.volumes[0].secret", "Forbidden")]
    );
    assert_eq!(
        reasons(&of(json!({"name": "A", "hostPath": {"path": "/../x", "type": "Odd"}}))),
        [
            ("t.spec.volumes[0].hostPath.path", "Invalid"),
            ("t.spec.volumes[0].hostPath.type", "NotSupported"),
            ("t.spec.volumes[0].name", "Invalid"),
        ]
    );
    let iqn = |iqn: &str| of(json!({"name": "a", "iscsi": {"targetPortal": "p", "iqn": iqn, "lun": 0}})).len();
    assert_eq!(
        ["iqn.2001-04.com.example:a", "eui.0123456789abcdef", "iqn.2001-4.com:a", "iqn.2001-04.com", "x"].map(iqn),
        [0, 0, 1, 1, 1]
    );
}

#[test]
fn a_container_that_ends_is_not_asked_how_it_is() {
    let init = |extra: Value| {
        let mut container = json!({"name": "i", "image": "i", "livenessProbe": {"httpGet": {"port": 80}}});
        container.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        wrong(&json!({"initContainers": [container], "containers": [{"name": "c", "image": "i"}]}))
    };
    assert_eq!(init(json!({"restartPolicy": "Always"})), []);
    assert_eq!(reasons(&init(json!({}))), [("t.spec.initContainers[0].livenessProbe", "Forbidden")]);
    assert_eq!(
        reasons(&init(json!({"name": "c", "restartPolicy": "Always"}))),
        [("t.spec.initContainers[0].name", "Duplicate")]
    );
}

#[test]
fn probes_and_hooks_do_one_thing() {
    assert_eq!(reasons(&of_container(&json!({"livenessProbe": {}}))), [("livenessProbe", "Required")]);
    let both = json!({"readinessProbe": {"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}}});
    assert_eq!(reasons(&of_container(&both)), [("readinessProbe.tcpSocket", "Forbidden")]);
    let twice = json!({"startupProbe": {"grpc": {"port": 0}, "successThreshold": 2}});
    assert_eq!(
        reasons(&of_container(&twice)),
        [("startupProbe.grpc.port", "Invalid"), ("startupProbe.successThreshold", "Invalid")]
    );
    assert_eq!(
        reasons(&of_container(&json!({"lifecycle": {"preStop": {"sleep": {"seconds": 31}}}}))),
        [("lifecycle.preStop.sleep", "Invalid")]
    );
}

#[test]
fn variables_have_one_source() {
    let of = |from: Value| of_container(&json!({"env": [{"name": "A", "valueFrom": from}]}));
    assert_eq!(of(json!({"fieldRef": {"fieldPath": "metadata.labels['a/b']"}})), []);
    assert_eq!(
        reasons(&of(json!({"fieldRef": {"fieldPath": "spec.schedulerName"}}))),
        [("env[0].valueFrom.fieldRef.fieldPath", "NotSupported")]
    );
    assert_eq!(
        reasons(&of(json!({"fieldRef": {"fieldPath": "spec.x"}}))),
        [("env[0].valueFrom.fieldRef.fieldPath", "Invalid")]
    );
    assert_eq!(reasons(&of(json!({}))), [("env[0].valueFrom", "Invalid")]);
    assert_eq!(
        reasons(&of(json!({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1k"}}))),
        [("env[0].valueFrom.resourceFieldRef.divisor", "Invalid")]
    );
    assert_eq!(reasons(&of_container(&json!({"envFrom": [{}]}))), [("envFrom", "Invalid")]);
}

/// The size of the answer to a large body with many errors is bounded and does not grow with the square of the body's
/// size.
#[test]
fn causes_are_bounded() {
    let containers = vec![json!({}); 2000];
    assert_eq!(wrong(&json!({"containers": containers})).len(), 1000);
    let volume = json!({"name": "q", "quobyte": {"volume": "v", "registry": ",".repeat(5000)}});
    assert_eq!(wrong(&json!({"containers": [{"name": "c", "image": "i"}], "volumes": [volume]})).len(), 10);
}

/// Containers of a `StatefulSet` may mount volumes from `volumeClaimTemplates`, as databases do.
#[test]
fn the_claims_of_a_stateful_set_are_volumes_of_its_pods() {
    let set = |claims: Value, mount: &str| {
        let container = json!({"name": "c", "image": "i", "volumeMounts": [{"name": mount, "mountPath": "/m"}],
            "volumeDevices": [{"name": "block", "devicePath": "/dev/x"}]});
        let mut value = json!({"metadata": {"name": "s"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "volumeClaimTemplates": claims,
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"subdomain": "Not.a.label", "containers": [container], "volumes": [{"name": "own"}]}}}});
        let catalogue = Catalogue::builtin();
        let resource = catalogue.by_full_name("statefulsets.apps").unwrap();
        crate::defaults::apply(&mut value, resource, jiff::Timestamp::UNIX_EPOCH);
        let causes = crate::object::check_content(&value, None, resource);
        causes.into_iter().map(|cause| (cause.field, cause.reason)).collect::<Vec<_>>()
    };
    let claim = |name: &str| json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    for mount in ["data", "own"] {
        assert_eq!(set(json!([claim("data"), claim("block")]), mount), []);
    }
    let field = "spec.template.spec.containers[0].volumeMounts[0].name".to_owned();
    assert_eq!(set(json!([claim("data"), claim("block")]), "other"), [(field, "FieldValueNotFound")]);
    // A claim replaces a volume of the same name.
    assert_eq!(set(json!([claim("own"), claim("block")]), "own"), []);
    let mut wrong = claim("data");
    wrong["spec"]["accessModes"] = json!([]);
    let field = "spec.volumeClaimTemplates[0].spec.accessModes".to_owned();
    assert_eq!(set(json!([wrong, claim("block")]), "data"), [(field, "FieldValueRequired")]);
}
