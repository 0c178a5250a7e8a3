//! Reads a cluster by its name from a kubeconfig: the address of its API server, and the arguments with which kubectl
//! uses it.
//!
//! The kubeconfig's current context is neither used nor switched.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::Error;
use crate::step::{Step, Tool};

const LIMIT: Duration = Duration::from_secs(10);

/// URL and certificate authority of an API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// The URL of the API server: `https://host:port`
    pub url: String,
    /// The certificate of the API server's authority, as PEM.
    pub ca_pem: String,
}

/// URL and certificate authority of the named cluster, and the arguments for kubectl.
pub(super) async fn read(kubectl: &Tool, file: Option<&Path>, named: &str) -> Result<(Way, Vec<OsString>), Error> {
    let mut words: Vec<OsString> = Vec::new();
    if let Some(file) = file {
        words.extend(["--kubeconfig".into(), file.into()]);
    }
    let mut all = words.clone();
    all.extend(["config", "view", "--raw", "--flatten", "-o", "json"].map(OsString::from));
    let mend = "name the kubeconfig with --kubeconfig FILE or KUBECONFIG";
    let text = Step::new("read the kubeconfig", mend, kubectl, all).within(LIMIT).call().await?;
    let config: Value = serde_json::from_str(&text).unwrap_or_default();
    let shown = file.map_or_else(|| "the kubeconfig".to_owned(), |file| file.display().to_string());
    let failed = |reason| Error::Kubeconfig { file: shown.clone(), reason };
    let context = context(&config, named).map_err(failed)?;
    let way = Way::of(&config, context["context"]["cluster"].as_str().unwrap_or_default()).map_err(failed)?;
    let context = context["name"].as_str().unwrap_or_default();
    words.extend(["--context".into(), context.into()]);
    Ok((way, words))
}

/// The kubeconfig's context with this name, or the context whose cluster has this name.
fn context<'a>(config: &'a Value, named: &str) -> Result<&'a Value, String> {
    let contexts = || config["contexts"].as_array().into_iter().flatten();
    let by = |field: fn(&Value) -> &Value| contexts().filter(move |one| field(one) == named);
    let mut by_name = by(|context| &context["name"]);
    if let Some(context) = by_name.next() {
        return Ok(context);
    }
    let found: Vec<&Value> = by(|context| &context["context"]["cluster"]).collect();
    match found[..] {
        [context] => Ok(context),
        [] => {
            let names: Vec<&str> = contexts().filter_map(|one| one["name"].as_str()).collect();
            let there =
                if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
            Err(format!(
                "it has no cluster or context `{named}`, and only the named one is used: write `--i-know-this-cluster NAME` ({there})"
            ))
        }
        _ => {
            let names: Vec<&str> = found.iter().filter_map(|one| one["name"].as_str()).collect();
            Err(format!("several contexts have the cluster `{named}`: name one of {}", names.join(", ")))
        }
    }
}

impl Way {
    /// Reads a kubeconfig that contains only one cluster.
    pub(super) fn of_text(text: &str) -> Result<Self, Error> {
        let failed = |reason: String| Error::Kubeconfig { file: "the kubeconfig of kind".to_owned(), reason };
        let config: Value = serde_saphyr::from_str(text).map_err(|error| failed(error.to_string()))?;
        let name = config["clusters"][0]["name"].as_str().unwrap_or_default().to_owned();
        Self::of(&config, &name).map_err(failed)
    }

    fn of(config: &Value, cluster: &str) -> Result<Self, String> {
        let mut all = config["clusters"].as_array().into_iter().flatten();
        let found = all.find(|one| one["name"] == cluster).map(|one| &one["cluster"]);
        let found = found.ok_or_else(|| format!("it has no cluster `{cluster}`"))?;
        for (key, mend) in [
            ("proxy-url", "the API server has to be reached directly"),
            ("tls-server-name", "use the name in the certificate as `server`"),
            ("insecure-skip-tls-verify", "write `certificate-authority-data` instead"),
        ] {
            if found.get(key).is_some_and(|value| *value != false) {
                return Err(format!("the cluster `{cluster}` has `{key}`: {mend}"));
            }
        }
        let server = found["server"].as_str().unwrap_or_default();
        let authority = server.strip_prefix("https://").map(|rest| rest.trim_end_matches('/'));
        let authority = authority.filter(|rest| !rest.is_empty() && !rest.contains(['/', '?', '#', '@']));
        let authority = authority
            .ok_or_else(|| format!("the server `{server}` of `{cluster}` is no https://HOST:PORT without a path"))?;
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let url = if has_port { format!("https://{authority}") } else { format!("https://{authority}:443") };
        let data = found["certificate-authority-data"].as_str().and_then(|data| STANDARD.decode(data).ok());
        let ca_pem = data.and_then(|bytes| String::from_utf8(bytes).ok());
        let ca_pem = ca_pem.ok_or_else(|| {
            format!("the cluster `{cluster}` has no `certificate-authority-data`: add the authority of the API server")
        })?;
        Ok(Self { url, ca_pem })
    }

    pub(super) async fn resolve(&self) -> Result<SocketAddr, Error> {
        let authority = self.url.trim_start_matches("https://");
        let failed = |reason: String| Error::Kubeconfig { file: self.url.clone(), reason };
        let found = tokio::time::timeout(LIMIT, tokio::net::lookup_host(authority)).await;
        let mut found = found
            .map_err(|_| failed("its name is not resolved".to_owned()))?
            .map_err(|error| failed(error.to_string()))?;
        found.next().ok_or_else(|| failed("its name has no address".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(cluster: &Value) -> Value {
        json!({
            "current-context": "other",
            "clusters": [{"name": "mine", "cluster": cluster}],
            "contexts": [{"name": "admin@mine", "context": {"cluster": "mine"}}, {"name": "other", "context": {"cluster": "theirs"}}]
        })
    }

    #[test]
    fn only_a_cluster_that_is_named_is_found() {
        let config = config(&json!({}));
        for name in ["mine", "admin@mine"] {
            assert_eq!(context(&config, name).unwrap()["name"], "admin@mine");
        }
        let refused = context(&config, "min").unwrap_err();
        assert!(
            refused.contains("no cluster or context `min`") && refused.contains("it has admin@mine, other"),
            "{refused}"
        );
        let mut twice = config;
        twice["contexts"][1]["context"]["cluster"] = json!("mine");
        assert!(context(&twice, "mine").unwrap_err().contains("name one of admin@mine, other"));
    }

    #[test]
    fn a_way_needs_an_authority_and_no_detour() {
        let of = |cluster: Value| Way::of(&config(&cluster), "mine");
        let good = of(
            json!({"server": "https://api.example", "certificate-authority-data": "cGVt", "insecure-skip-tls-verify": false}),
        );
        assert_eq!(good, Ok(Way { url: "https://api.example:443".to_owned(), ca_pem: "pem".to_owned() }));
        for (cluster, word) in [
            (json!({"server": "https://api.example"}), "certificate-authority-data"),
            (json!({"server": "https://api.example/k8s/x", "certificate-authority-data": "cGVt"}), "without a path"),
            (json!({"server": "http://api.example", "certificate-authority-data": "cGVt"}), "https://"),
            (
                json!({"server": "https://a", "certificate-authority-data": "cGVt", "proxy-url": "http://p"}),
                "proxy-url",
            ),
            (json!({"server": "https://a", "insecure-skip-tls-verify": true}), "insecure"),
        ] {
            assert!(of(cluster).unwrap_err().contains(word), "{word}");
        }
    }
}
