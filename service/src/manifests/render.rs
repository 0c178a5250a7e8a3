//! Applies the options of `manifests` to the objects of the manifest files.
//!
//! The functions take options and objects and return objects, without I/O. If an object lacks the field to change, the
//! result is an error.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::templates::Piece;
use super::{Certificates, Choice, FailurePolicy};

/// The port at which most API servers listen. Network policies see port 6443 of the server, not the port of the Service
/// `kubernetes`.
const API_PORT: u16 = 6443;
/// The key of the configuration file in the `ConfigMap`; the Deployment's arguments use the same file name.
const CONFIG_KEY: &str = "webhook.yaml";

/// All objects in named groups, in the order of `kubectl apply`: dependencies first, the webhook configuration last.
pub(super) fn all(choice: &Choice) -> anyhow::Result<Vec<(&'static str, Vec<Value>)>> {
    let own = choice.certificates == Certificates::Own;
    let pieces = [
        (Piece::NAMESPACE, true),
        (Piece::ACCOUNT, true),
        (Piece::OWN, own),
        (Piece::CERT_MANAGER, choice.certificates == Certificates::CertManager),
        (Piece::REGISTRATION, choice.registration),
        (Piece::NETWORK_POLICY, true),
        (Piece::SERVICE, true),
        (Piece::DEPLOYMENT, true),
        // A single replica that must not go would block the drain of its node for ever.
        (Piece::DISRUPTION, choice.replicas > 1),
        (Piece::WEBHOOK, true),
    ];
    let mut rendered = Vec::new();
    for (piece, _) in pieces.into_iter().filter(|(_, wanted)| *wanted) {
        let mut objects = piece.objects(&choice.namespace)?;
        for object in &mut objects {
            change(object, choice).with_context(|| format!("the built-in {} is not as it should be", piece.name))?;
        }
        rendered.push((piece.name, objects));
    }
    Ok(rendered)
}

fn change(object: &mut Value, choice: &Choice) -> anyhow::Result<()> {
    match object["kind"].as_str().unwrap_or_default() {
        "ServiceAccount" => account(object, choice),
        "NetworkPolicy" => return network(object, choice),
        "ConfigMap" => object["data"] = json!({CONFIG_KEY: choice.config}),
        "Deployment" => return deployment(object, choice),
        "MutatingWebhookConfiguration" => return webhook(object, choice),
        _ => {}
    }
    Ok(())
}

/// Whether the service sends any request to the API server.
fn asks(choice: &Choice) -> bool {
    choice.certificates == Certificates::Own || choice.registration
}

fn account(object: &mut Value, choice: &Choice) {
    object["automountServiceAccountToken"] = asks(choice).into();
}

fn network(object: &mut Value, choice: &Choice) -> anyhow::Result<()> {
    if asks(choice) {
        let rules = object["spec"]["egress"].as_array_mut().context("spec.egress")?;
        rules.push(json!({"ports": [{"port": API_PORT, "protocol": "TCP"}]}));
    }
    Ok(())
}

fn deployment(object: &mut Value, choice: &Choice) -> anyhow::Result<()> {
    let spec = &mut object["spec"];
    spec["replicas"] = choice.replicas.into();
    let pod = &mut spec["template"]["spec"];
    let container = pod["containers"].get_mut(0).context("spec.template.spec.containers")?;
    container["image"] = choice.image.clone().into();
    if choice.certificates == Certificates::Own {
        let without_tls = |list: Option<&mut Vec<Value>>| list.map(|list| list.retain(|one| one["name"] != "tls"));
        without_tls(container["volumeMounts"].as_array_mut()).context("volumeMounts")?;
        without_tls(pod["volumes"].as_array_mut()).context("spec.template.spec.volumes")?;
    }
    Ok(())
}

fn webhook(object: &mut Value, choice: &Choice) -> anyhow::Result<()> {
    if choice.certificates == Certificates::CertManager {
        let certificate = format!("{}/longhaul-webhook", choice.namespace);
        object["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": certificate});
    }
    let policy = match choice.failure_policy {
        FailurePolicy::Fail => "Fail",
        FailurePolicy::Ignore => "Ignore",
    };
    for webhook in object["webhooks"].as_array_mut().context("webhooks")? {
        webhook["failurePolicy"] = policy.into();
        let client = webhook["clientConfig"].as_object_mut().context("clientConfig")?;
        anyhow::ensure!(!client.contains_key("caBundle"), "caBundle: what is applied must not have one");
    }
    Ok(())
}
