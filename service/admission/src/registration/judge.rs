//! Judges the webhook's registration: finds errors in it, and Pods that were created without a review. The functions do
//! no I/O.

use std::time::SystemTime;

use jiff::Timestamp;
use rustls_pki_types::CertificateDer;
use serde::Deserialize;

use service_core::kube::Webhooks;
use service_core::wire::verifies;

const PATHS: [&str; 2] = ["/mutate", "/v1/mutate"];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodPage {
    pub items: Vec<Item>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Item {
    metadata: Meta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    name: String,
    namespace: String,
    creation_timestamp: String,
}

/// A Pod that was created without a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unasked {
    pub pod: String,
    /// Creation time of the Pod, in seconds since 1970.
    pub created_s: u64,
}

impl Item {
    pub fn name(&self) -> &str {
        &self.metadata.name
    }
}

/// Why the API server cannot call this webhook through the configuration `name`. `chain` is the webhook's certificate
/// chain; the chain is empty if there is no certificate yet.
pub fn registered(
    name: &str,
    found: Option<&Webhooks>,
    chain: &[CertificateDer<'_>],
    now: SystemTime,
) -> Option<String> {
    let at = format!("mutatingwebhookconfigurations/{name}");
    let Some(found) = found else { return Some(format!("{at} does not exist: no review is sent; apply it")) };
    if found.webhooks.is_empty() {
        return Some(format!("{at} has no webhooks: no review is sent; apply it again"));
    }
    for webhook in &found.webhooks {
        // An entry with a URL has an address and a name that only its author knows.
        let Some((namespace, service)) = webhook.service() else { continue };
        let entry = format!("{at} ({})", webhook.name);
        if !PATHS.contains(&webhook.path()) {
            return Some(format!("{entry} calls the path {}: reviews are answered at /mutate", webhook.path()));
        }
        let bundle = match webhook.bundle() {
            Ok(bundle) if bundle.is_empty() => {
                return Some(format!("{entry} has no caBundle: the API server cannot trust us"));
            }
            Ok(bundle) => bundle,
            Err(why) => return Some(format!("{entry}: caBundle cannot be read: {why}")),
        };
        let called = format!("{service}.{namespace}.svc");
        if let (false, Err(why)) = (chain.is_empty(), verifies(&bundle, chain, &called, now)) {
            return Some(format!("{entry}: caBundle does not verify our certificate for {called}: {why}"));
        }
    }
    None
}

/// The first Pod of `page` that was created after `after_s` and until `until_s`, in seconds since 1970. The caller adds
/// a margin to the time of the last call, because another replica may not have recorded a later call yet.
pub fn unasked(page: &PodPage, after_s: u64, until_s: u64) -> Option<Unasked> {
    page.items.iter().find_map(|item| {
        let created = item.metadata.creation_timestamp.parse::<Timestamp>().ok()?.as_second();
        let created_s = u64::try_from(created).ok().filter(|created| (after_s..=until_s).contains(created))?;
        Some(Unasked { pod: format!("{}/{}", item.metadata.namespace, item.metadata.name), created_s })
    })
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_way_not_to_be_called_is_named_with_its_remedy() {
        let made = rcgen::generate_simple_self_signed(["s.n.svc".to_owned()]).unwrap();
        let other = rcgen::generate_simple_self_signed(["s.n.svc".to_owned()]).unwrap();
        let chain = [made.cert.der().clone()];
        let encoded = |pem: String| base64::engine::general_purpose::STANDARD.encode(pem);
        let judged = |path: &str, bundle: serde_json::Value| {
            let client = json!({"service": {"namespace": "n", "name": "s", "path": path}, "caBundle": bundle});
            let text = json!({"webhooks": [{"name": "w", "clientConfig": client}]}).to_string();
            registered("c", Some(&Webhooks::read(text.as_bytes()).unwrap()), &chain, SystemTime::now())
        };
        let ours = || json!(encoded(made.cert.pem()));
        assert_eq!(judged("/mutate", ours()), None);
        for (why, what) in [
            (registered("c", None, &chain, SystemTime::now()), "does not exist"),
            (registered("c", Some(&Webhooks::default()), &chain, SystemTime::now()), "has no webhooks"),
            (judged("/", ours()), "calls the path /"),
            (judged("/mutate", json!(null)), "has no caBundle"),
            (judged("/mutate", json!("LS0t")), "cannot be read"),
            (judged("/mutate", json!(encoded(other.cert.pem()))), "does not verify our certificate for s.n.svc"),
        ] {
            assert!(why.as_ref().is_some_and(|why| why.contains(what)), "{what}: {why:?}");
        }
    }

    #[test]
    fn only_a_pod_of_the_time_in_question_proves_something() {
        let page = json!({"items": [
            {"metadata": {"namespace": "n", "name": "old", "creationTimestamp": "2026-01-01T00:00:00Z"}},
            {"metadata": {"namespace": "n", "name": "odd"}},
            {"metadata": {"namespace": "n", "name": "new", "creationTimestamp": "2026-01-01T01:00:00Z"}}]});
        let page: PodPage = serde_json::from_value(page).unwrap();
        let begun = 1_767_225_600;
        let found = unasked(&page, begun + 1, begun + 3600).unwrap();
        assert_eq!((&*found.pod, found.created_s), ("n/new", begun + 3600));
        assert_eq!(unasked(&page, begun + 1, begun + 3599), None, "too young: its review may not have been noted");
        assert_eq!(unasked(&PodPage::default(), 0, u64::MAX), None);
    }
}
