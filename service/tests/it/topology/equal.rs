//! Tests that one process and several processes answer the same reviews with equal bytes.

use serde_json::{Value, json};
use service::run::Options;
use service_core::wire::{Client, Protocol};

use super::world::{Pki, admission, at, config, cosign};
use crate::admission::{pod, post, review};
use crate::support::Service;
use crate::support::signed::{Key, Signed};

/// The same service, once as one process and once as several processes.
struct Both {
    one: Service,
    many: Service,
    validator: Service,
}

impl Both {
    async fn start(registry: &Signed, pki: &Pki, validators: &[Value], policy: &Value) -> Self {
        let host = registry.host();
        let one =
            Service::start("admission", &config(&host, validators, policy, &admission()), Options::default()).await;
        let more = json!({"validator": pki.listen()});
        let validator =
            Service::start("validator", &config(&host, validators, &json!({}), &more), Options::default()).await;
        let mut remotes = Vec::new();
        for known in validators {
            let mut remote = known.clone();
            if known["type"] == "cosign" {
                remote = json!({"name": known["name"], "type": "remote", "remote": pki.remote(&[at(&validator, "validator")])});
            }
            remotes.push(remote);
        }
        let many =
            Service::start("admission", &config(&host, &remotes, policy, &admission()), Options::default()).await;
        Self { one, many, validator }
    }

    async fn compare(&self, what: &str, body: &str) -> (u16, String) {
        let mut seen = (0, String::new());
        for path in ["/mutate?timeout=10s", "/validate?timeout=10s"] {
            let ask = async |client: Client| {
                let answer = post(&client, path, body.to_owned()).await;
                (answer.status().as_u16(), String::from_utf8_lossy(answer.body()).into_owned())
            };
            let one = ask(self.one.webhook(Protocol::Http1)).await;
            let many = ask(self.many.webhook(Protocol::Http1)).await;
            assert_eq!(one, many, "{what} at {path}");
            seen = one;
        }
        seen
    }

    async fn stop(self) {
        for service in [self.one, self.many, self.validator] {
            service.app.stop().await;
        }
    }
}

/// Reviews of every kind of image, object and request, under every mode and action.
fn corpus(registry: &Signed) -> Vec<(String, Value)> {
    let image = |name: &str| registry.image(name);
    let names = ["tagged", "foreign", "bundled", "foreign-bundle", "moved", "moved-bundle", "unsigned", "absent"];
    let mut reviews: Vec<(String, Value)> =
        names.iter().map(|name| ((*name).to_owned(), review("v1", &pod(&[&image(name)])))).collect();
    let all: Vec<_> = names.iter().map(|name| image(name)).collect();
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    reviews.push(("all".into(), review("v1", &pod(&all))));
    reviews.push(("v1beta1".into(), review("v1beta1", &pod(&all[..3]))));
    reviews.push(("no reference".into(), review("v1", &pod(&["UPPER CASE", ""]))));
    let digest = registry.push("tagged");
    reviews.push(("pinned".into(), review("v1", &pod(&[&format!("{}@{digest}", image("tagged"))]))));
    reviews.push(("sha512".into(), review("v1", &pod(&[&format!("r/x@sha512:{}", "a".repeat(128))]))));
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": {"spec": {
        "initContainers": [{"name": "i", "image": image("unsigned")}], "containers": [{"name": "c", "image": image("tagged")}]}}}});
    let mut of_deployment = review("v1", &deployment);
    of_deployment["request"]["kind"] = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
    reviews.push(("deployment".into(), of_deployment.clone()));
    of_deployment["request"]["operation"] = "UPDATE".into();
    of_deployment["request"]["oldObject"] = deployment;
    reviews.push(("unchanged".into(), of_deployment.clone()));
    of_deployment["request"]["operation"] = "DELETE".into();
    reviews.push(("deleted".into(), of_deployment));
    reviews.push(("nothing".into(), json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"})));
    reviews.push(("crowd".into(), {
        let many: Vec<_> = (0..40).map(|n| image(&format!("absent-{n}"))).collect();
        review("v1", &pod(&many.iter().map(String::as_str).collect::<Vec<_>>()))
    }));
    reviews
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn one_process_and_many_answer_every_review_with_the_same_bytes() {
    let (registry, key, stranger, pki) = (Signed::start().await, Key::new(), Key::new(), Pki::new());
    registry.fill(&key, &stranger);
    let with = json!({"verifyInTransparencyLog": false});
    let actions = json!({"unsigned": "allow", "invalid": "error", "not-found": "allow", "mismatch": "allow"});
    let rule = |mode: &str, more: Value| {
        let mut rule = json!({"pattern": "*", "mode": mode, "with": with});
        rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"rules": [rule]})
    };
    let policies = [
        rule("verify-and-pin", json!({})),
        rule("verify", json!({})),
        rule("detect", json!({})),
        rule("verify-and-pin", json!({"onFailure": actions})),
        rule("verify", json!({"with": {"trustRoot": "*", "threshold": 2, "verifyInTransparencyLog": false}})),
        rule(
            "verify",
            json!({"with": {"trustRoot": "second", "verifyInTransparencyLog": false, "sameRepository": true}}),
        ),
        rule("verify", json!({"with": {"verifyInTransparencyLog": false, "annotations": {"a": "b"}}})),
        json!({"detection": true, "resources": "podsOnly", "rules": [{"pattern": "*", "with": with}]}),
    ];
    let validators = [
        cosign(&[("default", &key), ("second", &stranger)]),
        json!({"name": "no", "type": "static", "approve": false}),
    ];
    let (mut compared, mut denied) = (0, 0);
    for policy in policies {
        let both = Both::start(&registry, &pki, &validators, &policy).await;
        for (name, review) in corpus(&registry) {
            let (_, answer) = both.compare(&format!("{name} under {policy}"), &review.to_string()).await;
            compared += 1;
            denied += usize::from(answer.contains("\"allowed\":false"));
        }
        both.compare("no JSON", "{").await;
        // A registry that fails in the middle affects both alike.
        registry.world.lock().sick = vec![("/unsigned-late/".into(), 503)];
        registry.push("unsigned-late");
        both.compare("sick", &review("v1", &pod(&[&registry.image("unsigned-late")])).to_string()).await;
        registry.world.lock().sick.clear();
        both.stop().await;
    }
    assert!(compared >= 100 && denied >= 30, "{compared} compared, {denied} denied");
}
