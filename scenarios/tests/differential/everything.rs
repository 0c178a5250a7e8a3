//! Compares both servers with random objects of every resource that the real server serves. The requests create each
//! object, patch it in three ways, apply it by two managers, update it, and read it as a table and as metadata.
//!
//! Further fields of each object are drawn at random from the types that the real server publishes. A second object of
//! each resource has one wrong field.
//!
//! | Variable | Meaning |
//! |---|---|
//! | `LONGHAUL_DIFFERENTIAL_EVERYTHING` | number of compared sequences; without it the test is skipped |
//! | `LONGHAUL_DIFFERENTIAL_SEED` | the seed of the first sequence, default 1 |

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use crate::driver::{self, Endpoint, Raw};
use crate::pods::dice::Dice;
use crate::pods::draw;
use crate::pods::schema::Types;
use crate::sequence::{Sequence, Step};
use crate::{compare_all, number, servers};

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// Percentage of the randomly drawn fields that an object keeps.
const KEPT: usize = 12;

/// A resource whose objects the servers store.
struct Resource {
    api_version: String,
    plural: String,
    kind: String,
    namespaced: bool,
}

/// A valid object of a resource, without `apiVersion`, `kind` and metadata.
fn valid(plural: &str) -> Value {
    let pod = json!({"containers": [{"name": "c", "image": "i:1"}]});
    let once = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]});
    let labels = json!({"a": "b"});
    let template = json!({"metadata": {"labels": labels}, "spec": pod});
    let of = json!({"spec": {"selector": {"matchLabels": labels}, "template": template}});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"});
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]});
    match plural {
        "pods" => json!({"spec": pod}),
        "podtemplates" => json!({"template": template}),
        "replicationcontrollers" => json!({"spec": {"selector": labels, "template": template}}),
        "deployments" | "replicasets" | "daemonsets" => of,
        "statefulsets" => {
            json!({"spec": {"selector": {"matchLabels": labels}, "template": template, "serviceName": "s"}})
        }
        "jobs" => json!({"spec": {"template": {"spec": once}}}),
        "cronjobs" => json!({"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": once}}}}}),
        "configmaps" => json!({"data": {"a": "b"}}),
        "secrets" => json!({"data": {"a": "Yg=="}}),
        "services" => json!({"spec": {"ports": [{"port": 80}], "clusterIP": "None"}}),
        "endpoints" => json!({"subsets": [{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}]}),
        "endpointslices" => {
            json!({"addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4"]}], "ports": [{"port": 80}]})
        }
        "events" => json!({"involvedObject": {"namespace": "{ns}"}, "reason": "R"}),
        "limitranges" => json!({"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}),
        "resourcequotas" => json!({"spec": {"hard": {"cpu": "1"}}}),
        "persistentvolumeclaims" => {
            json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
        }
        "persistentvolumes" => {
            json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}})
        }
        "storageclasses" => json!({"provisioner": "a.b/c"}),
        "volumeattachments" => {
            json!({"spec": {"attacher": "a.b", "nodeName": "n", "source": {"persistentVolumeName": "v"}}})
        }
        "volumeattributesclasses" => json!({"driverName": "a.b", "parameters": {"a": "b"}}),
        "csistoragecapacities" => json!({"storageClassName": "c"}),
        "csinodes" => json!({"spec": {"drivers": [{"name": "a.b", "nodeID": "n"}]}}),
        "csidrivers" => json!({"spec": {"attachRequired": false}}),
        "ingresses" => json!({"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}),
        "ingressclasses" => json!({"spec": {"controller": "a.b/c"}}),
        "networkpolicies" => json!({"spec": {"podSelector": {}}}),
        "poddisruptionbudgets" => json!({"spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}),
        "horizontalpodautoscalers" => {
            json!({"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}})
        }
        "roles" | "clusterroles" => json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        "rolebindings" | "clusterrolebindings" => {
            json!({"roleRef": role, "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "u"}]})
        }
        "priorityclasses" => json!({"value": 10}),
        "runtimeclasses" => json!({"handler": "h"}),
        "leases" => json!({"spec": {"holderIdentity": "h", "leaseDurationSeconds": 15}}),
        "flowschemas" => {
            json!({"spec": {"priorityLevelConfiguration": {"name": "global-default"}, "matchingPrecedence": 9000}})
        }
        "prioritylevelconfigurations" => {
            json!({"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}})
        }
        "servicecidrs" => json!({"spec": {"cidrs": ["192.168.7.0/24"]}}),
        "controllerrevisions" => json!({"revision": 1, "data": {"a": 1}}),
        "deviceclasses" => json!({"spec": {}}),
        "resourceclaims" => {
            json!({"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}})
        }
        "resourceclaimtemplates" => {
            json!({"spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}}})
        }
        "resourceslices" => {
            json!({"spec": {"driver": "a.b", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}})
        }
        "validatingadmissionpolicies" => {
            json!({"spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]}})
        }
        "validatingadmissionpolicybindings" => json!({"spec": {"policyName": "p", "validationActions": ["Warn"]}}),
        _ => json!({}),
    }
}

/// The resources whose objects both servers can create and list. Resources whose objects would change other sequences
/// are left out, such as namespaces and webhook configurations. `CertificateSigningRequest`s are left out, because no
/// schema describes the request that they contain.
async fn resources(real: &Endpoint) -> anyhow::Result<Vec<Resource>> {
    let lists = ["/api", "/apis"].map(|path| Step::get(path).accepting(AGGREGATED)).into();
    let sequence = Sequence { name: "the resources".to_owned(), steps: lists };
    let mut found = Vec::new();
    for raw in driver::play(real, &sequence, "the-resources").await? {
        let Raw::Answer { status: 200, body, .. } = raw else { anyhow::bail!("no resources: {raw:?}") };
        let list: Value = serde_json::from_slice(&body)?;
        for group in list["items"].as_array().context("a list of groups")? {
            let name = group["metadata"]["name"].as_str().unwrap_or_default();
            for version in group["versions"].as_array().into_iter().flatten() {
                let version_name = version["version"].as_str().unwrap_or_default();
                let api_version =
                    if name.is_empty() { version_name.to_owned() } else { format!("{name}/{version_name}") };
                for resource in version["resources"].as_array().into_iter().flatten() {
                    let text = |key: &str| resource[key].as_str().unwrap_or_default().to_owned();
                    let verbs = resource["verbs"].as_array().map_or(&[][..], Vec::as_slice);
                    let has = |verb: &str| verbs.iter().any(|one| one == verb);
                    let left_out = [
                        "namespaces",
                        "nodes",
                        "customresourcedefinitions",
                        "apiservices",
                        "ipaddresses",
                        "mutatingwebhookconfigurations",
                        "validatingwebhookconfigurations",
                        "certificatesigningrequests",
                    ];
                    if has("create")
                        && has("list")
                        && has("patch")
                        && !name.ends_with("example.com")
                        && !left_out.contains(&text("resource").as_str())
                    {
                        let kind = resource["responseKind"]["kind"].as_str().unwrap_or_default().to_owned();
                        let namespaced = resource["scope"] == "Namespaced";
                        found.push(Resource {
                            api_version: api_version.clone(),
                            plural: text("resource"),
                            kind,
                            namespaced,
                        });
                    }
                }
            }
        }
    }
    Ok(found)
}

/// Adds to `value` the fields of `more` that it does not have.
fn add(value: &mut Value, more: Value) {
    let (Value::Object(fields), Value::Object(more)) = (value, more) else { return };
    for (key, inner) in more {
        match fields.get_mut(&key) {
            Some(known) => add(known, inner),
            None => drop(fields.insert(key, inner)),
        }
    }
}

/// Removes most of the randomly drawn fields, also in nested objects down to the depth `levels`.
fn thin(value: &mut Value, levels: usize, dice: &mut Dice) {
    let Some(fields) = value.as_object_mut() else { return };
    let kept: Map<String, Value> = std::mem::take(fields)
        .into_iter()
        .filter_map(|(key, mut inner)| {
            if inner.is_object() && levels > 0 {
                thin(&mut inner, levels - 1, dice);
                return inner.as_object().is_some_and(|inner| !inner.is_empty()).then_some((key, inner));
            }
            dice.percent(KEPT).then_some((key, inner))
        })
        .collect();
    *fields = kept;
}

fn object(resource: &Resource, types: &Types, name: &str, dice: &mut Dice) -> Value {
    let mut drawn = draw::value_of(types, &resource.kind, dice);
    if let Some(fields) = drawn.as_object_mut() {
        for key in ["metadata", "status", "apiVersion", "kind"] {
            fields.remove(key);
        }
    }
    thin(&mut drawn, 1, dice);
    let mut object = valid(&resource.plural);
    if resource.api_version == "events.k8s.io/v1" {
        object = json!({"regarding": {"namespace": "{ns}"}, "reason": "R", "action": "A", "type": "Normal", "note": "n",
            "eventTime": "2026-01-02T03:04:05.000000Z", "reportingController": "a.b/c", "reportingInstance": "i"});
    }
    add(&mut object, drawn);
    draw::unbroken(&mut object);
    head(&mut object, resource, name);
    object
}

fn head(object: &mut Value, resource: &Resource, name: &str) {
    object["apiVersion"] = json!(resource.api_version);
    object["kind"] = json!(resource.kind);
    object["metadata"] = json!({"name": name, "labels": {"a": "b"}});
}

/// Makes the sequence of requests for one resource.
fn sequence(resource: &Resource, types: &Types, seed: u64) -> Sequence {
    let mut dice = Dice::new(seed);
    let root =
        if resource.api_version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{}", resource.api_version) };
    let place = if resource.namespaced { "/namespaces/{ns}" } else { "" };
    let collection = format!("{root}{place}/{}", resource.plural);
    let name = if resource.namespaced { "n".to_owned() } else { "{ns}-n".to_owned() };
    let one = format!("{collection}/{name}");
    let object = object(resource, types, &name, &mut dice);
    let mut wrong = object.clone();
    draw::spoil(&mut wrong, &mut dice);
    draw::unbroken(&mut wrong);
    head(&mut wrong, resource, &format!("{name}-wrong"));
    let mut updated = object.clone();
    updated["metadata"]["annotations"] = json!({"u": "v"});
    let label = |key: &str| json!({"metadata": {"labels": {key: "v"}}});
    let intent = |key: &str| {
        let mut intent = label(key);
        intent["apiVersion"] = json!(resource.api_version);
        intent["kind"] = json!(resource.kind);
        intent["metadata"]["name"] = json!(name);
        intent
    };
    let steps = vec![
        Step::post(&collection[..], object),
        Step::post(format!("{collection}?dryRun=All"), wrong),
        Step::get(&one[..]).accepting(TABLE),
        Step::get(&one[..]).accepting(METADATA),
        Step::patch(&one[..], "merge-patch", label("m")),
        Step::patch(&one[..], "strategic-merge-patch", label("s")),
        Step::patch(&one[..], "json-patch", json!([{"op": "add", "path": "/metadata/labels/j", "value": "v"}])),
        Step::apply(format!("{one}?fieldManager=one"), intent("o")),
        Step::apply(format!("{one}?fieldManager=two"), intent("t")),
        Step::put(&one[..], updated),
        Step::get(&one[..]),
        Step::delete(&one[..]),
    ];
    Sequence { name: format!("{} of {} from {seed}", resource.plural, resource.api_version), steps }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow"]
async fn objects_of_every_resource_are_treated_as_by_a_real_server() {
    let Some(count) = number("LONGHAUL_DIFFERENTIAL_EVERYTHING") else {
        return println!("skipped: needs LONGHAUL_DIFFERENTIAL_EVERYTHING, a number of sequences");
    };
    let Some(assets) = servers::assets() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (local, real) = servers::real(assets, directory.path(), &[]).await.unwrap();
    let (server, mock) = servers::mock().await.unwrap();
    let compared = async {
        let resources = resources(&real).await?;
        let mut types = BTreeMap::new();
        for (index, resource) in resources.iter().enumerate() {
            if !types.contains_key(&resource.api_version) {
                let root = if resource.api_version == "v1" { "api" } else { "apis" };
                let document = format!("/openapi/v3/{root}/{}", resource.api_version);
                let read = Types::read(&real, &[&document], &format!("types-{index}")).await?;
                types.insert(resource.api_version.clone(), read);
            }
        }
        println!("comparing {count} sequences of {} resources with {}", resources.len(), local.access().version());
        let first = number("LONGHAUL_DIFFERENTIAL_SEED").unwrap_or(1);
        let chosen = (0..count).map(|index| {
            let resource = &resources[index % resources.len()];
            sequence(resource, &types[&resource.api_version], (first * 100_000 + index) as u64)
        });
        anyhow::Ok(compare_all(&real, &mock, chosen.collect()).await)
    };
    let printed = compared.await;
    server.shutdown().await;
    local.stop().await;
    let printed = printed.unwrap();
    assert!(printed.is_empty(), "{} kinds of differences:\n{}", printed.len(), printed.concat());
}
