//! Signs approved certificate requests (Kubernetes documentation, "Certificate Signing Requests").
//!
//! Owns the signer `kubernetes.io/kube-apiserver-client`. The controller manager of a real cluster also signs
//! certificates for kubelets, which send no requests to this server. The server accepts client certificates from the
//! signer's authority.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mock_pki::Authority;
use mock_store::Expect;
use serde_json::{Value, json};

use super::cluster::Cluster;

const REQUESTS: &str = "certificatesigningrequests.certificates.k8s.io";
const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
/// Longest and shortest validity of a certificate, in seconds (`--cluster-signing-duration`, and the controller's own
/// bound).
const LONGEST_S: u64 = 365 * 24 * 60 * 60;
const SHORTEST_S: u64 = 10 * 60;
/// The usages that a request may contain; the last usage is required.
const USAGES: [&str; 3] = ["digital signature", "key encipherment", "client auth"];

/// Signs every approved request that has no certificate.
pub(crate) fn sign(cluster: &Cluster, signer: &Authority) {
    let catalogue = cluster.catalogue();
    let Some(resource) = catalogue.by_full_name(REQUESTS) else { return };
    let page = cluster.read(|store| store.list(resource.id, None, store.revision(), None, usize::MAX, |_| true));
    for version in page.map(|page| page.items).unwrap_or_default() {
        let mut request = version.value();
        if !is_due(&request) {
            continue;
        }
        match certificate(signer, &request) {
            Ok(certificate) => request["status"]["certificate"] = Value::from(BASE64.encode(certificate)),
            Err(why) => fail(&mut request, &why),
        }
        // After a lost race it is looked at again.
        let _ = cluster.put(resource, Expect::Revision(version.revision), request);
    }
}

fn is_due(request: &Value) -> bool {
    let conditions = request.pointer("/status/conditions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let is = |kind: &str| conditions.iter().any(|one| one["type"] == kind && one["status"] == "True");
    request["spec"]["signerName"] == SIGNER
        && request["status"]["certificate"].is_null()
        && is("Approved")
        && !is("Denied")
        && !is("Failed")
}

fn certificate(signer: &Authority, request: &Value) -> Result<String, String> {
    let spec = &request["spec"];
    let usages: Vec<&str> = spec["usages"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !usages.contains(&"client auth") || usages.iter().any(|usage| !USAGES.contains(usage)) {
        return Err("usages did not match [client auth digital signature key encipherment]".to_owned());
    }
    let seconds = spec["expirationSeconds"].as_u64().unwrap_or(LONGEST_S).clamp(SHORTEST_S, LONGEST_S);
    let pem = spec["request"].as_str().and_then(|text| BASE64.decode(text).ok());
    let pem = pem.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    signer.sign_request(&pem, Duration::from_secs(seconds)).map_err(|error| error.to_string())
}

fn fail(request: &mut Value, why: &str) {
    let now = Value::from(mock_objects::object::seconds(jiff::Timestamp::now()));
    let condition = json!({
        "type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": why, "lastUpdateTime": now,
        "lastTransitionTime": now,
    });
    let status = &mut request["status"];
    match status.get_mut("conditions").and_then(Value::as_array_mut) {
        Some(all) => all.push(condition),
        None => status["conditions"] = json!([condition]),
    }
}
