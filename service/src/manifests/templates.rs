//! The webhook's objects from the built-in files of `kind/manifests`, and a minimal configuration.
//!
//! Objects of the Package watcher are left out: the watcher is a separate example. The module `render` makes all other
//! changes.

use anyhow::Context as _;
use serde_json::Value;

use super::Certificates;

/// The namespace that the manifest files use.
pub(super) const NAMESPACE: &str = "longhaul-system";
/// Name prefix of the Package watcher's objects.
const WATCHER: &str = "longhaul-watch";

#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub name: &'static str,
    text: &'static str,
}

macro_rules! piece {
    ($name:literal, $path:literal) => {
        Piece { name: $name, text: include_str!(concat!("../../../kind/manifests/", $path)) }
    };
}

impl Piece {
    pub const NAMESPACE: Self = piece!("namespace.yaml", "namespace.yaml");
    pub const ACCOUNT: Self = piece!("rbac.yaml", "rbac.yaml");
    pub const OWN: Self = piece!("own-certificates.yaml", "own-certificates/rights.yaml");
    pub const CERT_MANAGER: Self = piece!("cert-manager.yaml", "webhook-cert-manager/certificates.yaml");
    pub const REGISTRATION: Self = piece!("registration.yaml", "registration/rights.yaml");
    pub const NETWORK_POLICY: Self = piece!("network-policy.yaml", "network-policy.yaml");
    pub const SERVICE: Self = piece!("service.yaml", "service.yaml");
    pub const DEPLOYMENT: Self = piece!("deployment.yaml", "deployment.yaml");
    pub const DISRUPTION: Self = piece!("pod-disruption-budget.yaml", "pod-disruption-budget.yaml");
    pub const WEBHOOK: Self = piece!("webhook.yaml", "webhook.yaml");

    /// The objects of this manifest file that belong to the webhook, with `namespace` as their namespace.
    pub fn objects(self, namespace: &str) -> anyhow::Result<Vec<Value>> {
        // The name of the namespace is part of server names and annotations too.
        let text = self.text.replace(NAMESPACE, namespace);
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(&text).with_context(|| format!("the built-in {}", self.name))?;
        let is_ours = |object: &Value| {
            !object["metadata"]["name"].as_str().unwrap_or_default().starts_with(WATCHER)
                && object["metadata"]["name"] != "packages.longhaul.dev"
        };
        Ok(objects.into_iter().filter(is_ours).collect())
    }
}

/// A configuration with which the webhook pins the images of every object and checks its registration.
pub(super) fn minimal(certificates: Certificates) -> String {
    let certificates = match certificates {
        Certificates::Own => "  ownCertificates: {}\n",
        Certificates::CertManager | Certificates::Secret => {
            "  certificate: /etc/longhaul-tls/tls.crt\n  key: /etc/longhaul-tls/tls.key\n"
        }
    };
    format!(
        "admission:\n  listen: \"0.0.0.0:8443\"\n{certificates}  registration: {{}}\n\
         health:\n  listen: \"0.0.0.0:9090\"\nlog:\n  format: json\n"
    )
}
