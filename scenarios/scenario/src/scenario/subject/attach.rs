//! `attach`: a subject that runs already. The harness does not start such a subject and so cannot set the subject's
//! environment variables.

use std::path::PathBuf;

use anyhow::Result;
use hyper::Uri;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_rustls::rustls::pki_types::ServerName;

use super::{Kind, Notes, Profile, Role, Scene, Start, Subject, Wrong, wrong};
use crate::scenario::{METRICS_PORT, Readiness, Which};
use crate::subject::Attached;
use crate::witness::Witness;

/// The keys of `attach`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Attach {
    /// The ID of the subject's process, which is measured with all its descendants. Without `pid` and `pods`, memory,
    /// descriptors and threads are not measured.
    pub pid: Option<u32>,
    /// The subject's Pods, in a cluster that existed before the run (`controlPlane: {kind: kubeconfig}`, or `kind`
    /// after `longhaul cluster up`). All Pods are measured together, including replacements, and their logs are read.
    /// `pods` cannot be combined with `pid`.
    pub pods: Option<PodsOf>,
    /// The URL at which the subject answers admission reviews, such as `https://127.0.0.1:9443/validate`.
    pub url: Option<String>,
    /// The authorities of the webhook's certificate, a PEM file relative to the scenario file.
    pub ca: Option<PathBuf>,
    /// The name in the webhook's certificate, if it is not the host of `url`. For a webhook behind a forwarded port
    /// this is the name of a Service, such as `hook.my-namespace.svc`.
    pub server_name: Option<String>,
    /// The path of the kubeconfig that the subject reads, relative to the scenario file. The run writes the file when
    /// it begins, readable only by you, and removes it when it ends. Default: a file in a temporary folder, whose path
    /// is printed.
    pub kubeconfig: Option<PathBuf>,
    /// `webhook`: the subject answers reviews and watches nothing. `both`: the subject also watches, and its answers
    /// are judged as with `webhook`.
    pub role: Option<Role>,
    /// The condition under which the attached subject counts as ready: `{url: ADDRESS}` or `{request: first}`. Default:
    /// the condition of `command`.
    pub ready: Option<Sign>,
}

/// Selects Pods of a namespace by their labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PodsOf {
    /// The namespace of the Pods.
    pub namespace: String,
    /// The label selector of the Pods, in the syntax of `kubectl get pods --selector`: `app=hook,tier!=test`.
    pub selector: String,
}

/// The condition under which an attached subject counts as ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Sign {
    /// `GET` of this address, over plain HTTP, is answered with a status from 200 to 399, as for a kubelet's probe.
    Url(String),
    /// The subject has sent any request to the control plane.
    Request(Which),
}

impl Kind for Attach {
    fn profile(&self) -> Profile<'_> {
        let files = [("ca", &self.ca), ("kubeconfig", &self.kubeconfig)];
        Profile {
            files: files.into_iter().filter_map(|(key, path)| Some((key, path.as_deref()?))).collect(),
            role: self.role,
            ready: self.ready.clone().map(|ready| match ready {
                Sign::Url(url) => Readiness::Url(url),
                Sign::Request(which) => Readiness::Request(which),
            }),
            url: self.url.as_deref(),
            ca: self.ca.as_deref(),
            server_name: self.server_name.as_deref(),
            attached_pods: self.pods.as_ref(),
            serving: "`url: https://127.0.0.1:9443/validate` and `ca: FILE`",
            plan: Some(("runs already", self.plan())),
            notes: self.notes(),
            ..Profile::of("attach")
        }
    }

    fn check(&self, subject: &Subject) -> Result<(), Wrong> {
        if self.pid == Some(0) {
            return wrong("pid", "`pid: 0` is no process: write the number that `pgrep` prints");
        }
        if let Some(PodsOf { namespace, selector }) = &self.pods {
            if self.pid.is_some() {
                return wrong("pods", "`attach` has both `pods` and `pid`: keep one");
            }
            if namespace.is_empty() || selector.trim().is_empty() {
                return wrong("pods", "`pods` needs both: `{namespace: team, selector: app=hook}`");
            }
            // The namespace becomes part of a path.
            if !namespace.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
                let text = format!("`namespace: {namespace}` is no name of a namespace: small letters, digits and `-`");
                return wrong("pods", text);
            }
        }
        if let Some(text) = self.url.as_ref().and_then(|url| problem(url)) {
            return wrong("url", text);
        }
        match (&self.url, &self.ca) {
            (Some(_), None) => {
                let text = "`url` needs `ca: FILE`: the CA that signed the webhook's certificate, as PEM";
                return wrong("url", text);
            }
            (None, None) if self.server_name.is_some() => {
                return wrong(
                    "serverName",
                    "`serverName` is for a webhook: add `url: https://127.0.0.1:9443/validate` and `ca`",
                );
            }
            (None, Some(_)) => return wrong("ca", "`ca` is for a webhook: add `url: https://127.0.0.1:9443/validate`"),
            _ => {}
        }
        if let Some(name) = self.server_name.as_deref().filter(|name| ServerName::try_from(*name).is_err()) {
            return wrong(
                "serverName",
                format!("`serverName: {name}` is no name of a host: write for example `hook.my-namespace.svc`"),
            );
        }
        let page = subject.metrics.as_ref().and_then(|metrics| metrics.url.as_ref());
        if page.is_some_and(|url| url.contains(METRICS_PORT)) {
            let text = format!("`metrics`: a process that already runs does not get `{METRICS_PORT}`: write its port");
            return wrong("metrics", text);
        }
        // This is checked here and not by a type: the witness is a key of every subject, and its kinds are one list
        // (`witness.rs`). A list for this subject alone would repeat it but for one row, in the schema too.
        if matches!(subject.witness, Witness::Log(_)) {
            let text =
                "`witness: {kind: log}` reads the output of a process that the harness starts: use `http` or `status`";
            return wrong("witness", text);
        }
        Ok(())
    }

    fn start(&self, scene: &Scene<'_>) -> Result<Start> {
        anyhow::ensure!(
            !scene.is_planted,
            "--plant: a bug cannot be planted in a subject that already runs (`subject: {{attach: …}}`)"
        );
        let attached =
            Attached::find(self.pid).map_err(|why| anyhow::anyhow!("{why}; correct `subject` of the scenario"))?;
        Ok(Start::Runs(attached, self.kubeconfig.as_ref().map(|path| scene.ground.folder().join(path))))
    }
}

impl Attach {
    /// The line about the subject in the printed plan.
    fn plan(&self) -> String {
        let pid = match (&self.pods, self.pid) {
            (Some(PodsOf { namespace, selector }), _) => format!("Pods of {namespace} with {selector}"),
            (None, Some(pid)) => format!("process {pid}"),
            (None, None) => "no `pid`, so memory, descriptors and threads are not known".to_owned(),
        };
        let url = self.url.iter().map(|url| format!("reviews at {url}"));
        let file = self.kubeconfig.iter().map(|path| format!("kubeconfig {}", path.display()));
        let all: Vec<String> = std::iter::once(pid).chain(url).chain(file).collect();
        format!("{}; neither started nor stopped", all.join(", "))
    }

    fn notes(&self) -> Notes {
        let unsampled = "it ran before the run (`attach`), and the scenario names no `pid`";
        Notes {
            unsampled: (self.pid.is_none() && self.pods.is_none()).then_some(unsampled),
            note: Some(
                "the subject ran before the run and was left running: its earlier actions are not in this record",
            ),
        }
    }
}

/// Host and port of a webhook's URL; `None` if the URL is invalid.
pub fn host_and_port(url: &str) -> Option<(String, u16)> {
    let uri: Uri = url.parse().ok().filter(|uri: &Uri| uri.scheme_str() == Some("https"))?;
    let host = uri.host().filter(|host| !host.is_empty())?;
    Some((host.trim_start_matches('[').trim_end_matches(']').to_owned(), uri.port_u16().unwrap_or(443)))
}

/// A mistake in the URL of a webhook, as a message.
fn problem(url: &str) -> Option<String> {
    match host_and_port(url) {
        Some(_) => None,
        None => Some(format!(
            "`url: {url}` is no address of a webhook: write for example `https://127.0.0.1:9443/validate`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_name_needs_a_webhook_and_is_a_name() {
        let subject =
            |attach: &str| serde_saphyr::from_str::<Subject>(&format!("attach: {attach}\nwitness: {{kind: none}}"));
        let told = |attach: &str| {
            let subject = subject(attach).unwrap();
            subject.kind().check(&subject).map_or_else(|(key, text)| format!("{key}: {text}"), |()| String::new())
        };
        assert_eq!(told("{url: 'https://127.0.0.1:9443/v', ca: ca.pem, serverName: hook.team.svc}"), "");
        assert!(told("{serverName: hook.team.svc}").starts_with("serverName: `serverName` is for a webhook"));
        assert!(
            told("{url: 'https://127.0.0.1:9443/v', ca: ca.pem, serverName: 'no name'}")
                .contains("is no name of a host")
        );
    }

    #[test]
    fn pods_are_named_by_a_namespace_and_a_selector_and_stand_alone() {
        let told = |attach: &str| {
            let subject: Subject =
                serde_saphyr::from_str(&format!("attach: {attach}\nwitness: {{kind: none}}")).unwrap();
            subject.kind().check(&subject).map_or_else(|(key, text)| format!("{key}: {text}"), |()| String::new())
        };
        assert_eq!(told("{pods: {namespace: team-1, selector: 'app in (a, b),!x'}}"), "");
        assert!(
            told("{pid: 1, pods: {namespace: team, selector: a=b}}")
                .starts_with("pods: `attach` has both `pods` and `pid`")
        );
        assert!(told("{pods: {namespace: team, selector: ' '}}").starts_with("pods: `pods` needs both"));
        assert!(told("{pods: {namespace: 'a/../b', selector: a=b}}").contains("is no name of a namespace"));
    }

    #[test]
    fn an_address_of_a_webhook_is_https() {
        assert_eq!(host_and_port("https://127.0.0.1:9443/validate"), Some(("127.0.0.1".to_owned(), 9443)));
        assert_eq!(host_and_port("https://[::1]:9443/v"), Some(("::1".to_owned(), 9443)));
        assert_eq!(host_and_port("https://hook.local/v"), Some(("hook.local".to_owned(), 443)));
        for wrong in ["http://127.0.0.1:9443/v", "127.0.0.1:9443", "/validate", ""] {
            assert!(problem(wrong).is_some_and(|text| text.contains("https://127.0.0.1:9443/validate")), "{wrong}");
        }
    }
}
