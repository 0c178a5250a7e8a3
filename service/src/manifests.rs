//! The command `longhaul-service manifests` prints all objects that run the webhook in a cluster. The command
//! `ca-bundle` prints the field `caBundle` for clusters with their own certificates.
//!
//! This module owns the options of the two commands and refuses options that contradict each other. The objects come
//! from `kind/manifests` (module `templates`); `render` applies the options. No manifest has a `caBundle`: if a
//! manifest with an empty or different `caBundle` were applied over a working webhook, calls to the webhook would fail.

mod render;
mod templates;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use service_admission::config::{Admission, OwnCertificates};
use service_core::config::Health;
use service_core::wire::certificates_from_pem;

use crate::config::{Config, parse};
use templates::{NAMESPACE, Piece};

/// Maximum number of bytes of the configuration file, which is put into a `ConfigMap` of at most 1 MiB. A usual
/// configuration file has some KiB.
const CONFIG_BYTES_MAX: usize = 512 << 10;
/// Maximum number of replicas. A larger number counts as a typing mistake, because more replicas than nodes are
/// useless.
const REPLICAS_MAX: u16 = 100;
/// The container ports in the manifests: webhook and health.
const PORTS: (u16, u16) = (8443, 9090);
/// The paths of certificate and key in the mounted Secret.
const MOUNTED: (&str, &str) = ("/etc/longhaul-tls/tls.crt", "/etc/longhaul-tls/tls.key");
/// The field manager of `caBundle`. A service with own certificates writes the field under the same name.
const FIELD_MANAGER: &str = "longhaul-service-certificates";

/// The default of `--certificates`. A build without the feature `own-certificates` cannot make certificates.
const DEFAULT_CERTIFICATES: &str = if cfg!(feature = "own-certificates") { "own" } else { "secret" };

/// The options of `longhaul-service manifests`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The image of the service, as nodes pull it.
    #[arg(long, value_name = "REF")]
    image: String,
    /// The source of the webhook's certificate: the replicas make it, cert-manager issues it, or you create the Secret
    /// longhaul-webhook-tls.
    #[arg(long, value_enum, default_value = DEFAULT_CERTIFICATES)]
    certificates: Certificates,
    /// The `failurePolicy` of the webhook: refuse or accept objects while no replica answers. You must choose one.
    #[arg(long, value_enum)]
    failure_policy: Option<FailurePolicy>,
    /// The namespace of the service.
    #[arg(long, default_value = NAMESPACE)]
    namespace: String,
    /// The service's configuration file. Default: a minimal configuration that pins images and verifies nothing.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The number of replicas.
    #[arg(long, default_value_t = 2)]
    replicas: u16,
    /// Write files and a kustomization for `kubectl apply -k` into this folder. Nothing is printed.
    #[arg(long, value_name = "FOLDER")]
    write: Option<PathBuf>,
}

/// Print the field that makes the API server trust your own certificate, for `kubectl apply --server-side`.
#[derive(Debug, Args)]
pub struct CaBundle {
    /// The CA certificates (PEM).
    file: PathBuf,
}

/// The source of the webhook's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Certificates {
    /// The replicas make and renew the certificate.
    Own,
    /// cert-manager issues the certificate and writes `caBundle`.
    CertManager,
    /// You put the certificate into the Secret longhaul-webhook-tls, and you renew it.
    Secret,
}

/// `failurePolicy` of the webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailurePolicy {
    /// Objects are refused while no replica answers.
    Fail,
    /// Objects are accepted while no replica answers.
    Ignore,
}

/// The checked options of `longhaul-service manifests`.
#[derive(Debug)]
struct Choice {
    image: String,
    certificates: Certificates,
    failure_policy: FailurePolicy,
    namespace: String,
    replicas: u16,
    config: String,
    /// Whether the configuration enables the check that the webhook is registered.
    registration: bool,
}

impl Arguments {
    /// Prints the manifests, or writes them to a folder.
    pub fn run(&self) -> anyhow::Result<String> {
        let choice = self.choice()?;
        let pieces = render::all(&choice)?;
        match &self.write {
            None => stream(&pieces),
            Some(folder) => write(folder, &pieces),
        }
    }

    fn choice(&self) -> anyhow::Result<Choice> {
        let failure_policy = self.failure_policy.context(
            "--failure-policy is missing. It decides on Pods while no replica answers:\n  --failure-policy fail     Pods cannot be \
             created in labelled namespaces\n  --failure-policy ignore   they are accepted unpinned and unverified",
        )?;
        let plain =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        ensure!(
            plain(&self.namespace) && (1..=63).contains(&self.namespace.len()) && !self.namespace.starts_with('-'),
            "--namespace {}: a namespace has lower-case letters, digits and dashes",
            self.namespace
        );
        ensure!(
            !self.image.is_empty() && !self.image.contains(char::is_whitespace),
            "--image `{}` is no reference: write for example registry.corp/longhaul-service:1.0",
            self.image
        );
        ensure!((1..=REPLICAS_MAX).contains(&self.replicas), "--replicas {}: use 1 to {REPLICAS_MAX}", self.replicas);
        let text = match &self.config {
            Some(path) => {
                std::fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?
            }
            None => templates::minimal(self.certificates),
        };
        ensure!(text.len() <= CONFIG_BYTES_MAX, "--config: a ConfigMap has no room for {} bytes", text.len());
        let path = self.config.as_deref().unwrap_or(Path::new("the minimal configuration"));
        let config = parse(&text, path)?;
        let admission = config
            .find::<Admission>()
            .with_context(|| format!("{}: there is no section `admission`", path.display()))?;
        fits(&config, admission, self.certificates).with_context(|| path.display().to_string())?;
        Ok(Choice {
            image: self.image.clone(),
            certificates: self.certificates,
            failure_policy,
            namespace: self.namespace.clone(),
            replicas: self.replicas,
            registration: admission.registration.is_some(),
            config: text,
        })
    }
}

impl CaBundle {
    /// The `caBundle` field of the webhook configuration, as an object for server-side apply.
    pub fn run(&self) -> anyhow::Result<String> {
        use base64::Engine as _;
        let pem = std::fs::read(&self.file).with_context(|| format!("failed to read {}", self.file.display()))?;
        certificates_from_pem(&pem).with_context(|| self.file.display().to_string())?;
        let bundle = base64::engine::general_purpose::STANDARD.encode(pem);
        let mut objects = Piece::WEBHOOK.objects(NAMESPACE)?;
        for object in &mut objects {
            let names = object["webhooks"].as_array().into_iter().flatten();
            let entry = |webhook: &Value| json!({"name": webhook["name"], "clientConfig": {"caBundle": bundle}});
            let entries: Vec<Value> = names.map(entry).collect();
            *object = json!({
                "apiVersion": object["apiVersion"], "kind": object["kind"],
                "metadata": {"name": object["metadata"]["name"]}, "webhooks": entries,
            });
        }
        let how = format!("# kubectl apply --server-side --field-manager={FIELD_MANAGER} --force-conflicts -f -\n");
        Ok(how + &stream(&[("webhook.yaml", objects)])?)
    }
}

/// Checks that the configuration's ports, paths and certificates match these manifests.
fn fits(config: &Config, admission: &Admission, certificates: Certificates) -> anyhow::Result<()> {
    let (admission_port, health_port) = PORTS;
    let port = admission.listen.port();
    ensure!(
        port == admission_port,
        "admission.listen: the manifests send reviews to port {admission_port}, not {port}"
    );
    let health = config.find::<Health>().map(|health| health.listen.port());
    ensure!(health == Some(health_port), "health.listen: the probes of the manifests ask \"0.0.0.0:{health_port}\"");
    match (certificates, &admission.own) {
        (Certificates::Own, None) => {
            anyhow::bail!("--certificates own needs `admission.ownCertificates: {{}}` in place of certificate and key")
        }
        (Certificates::Own, Some(own)) => {
            let usual = OwnCertificates::default();
            let names = (&own.service, &own.secret, &own.lease, &own.webhooks);
            ensure!(
                names == (&usual.service, &usual.secret, &usual.lease, &usual.webhooks) && own.namespace.is_none(),
                "admission.ownCertificates: leave out service, namespace, secretName, lease and webhooks: the manifests have the usual ones"
            );
        }
        (_, Some(_)) => {
            anyhow::bail!("admission.ownCertificates is for --certificates own: write certificate and key instead")
        }
        (_, None) => {
            let (certificate, key) = MOUNTED;
            ensure!(
                admission.certificate == Path::new(certificate) && admission.key == Path::new(key),
                "admission.certificate and key: the manifests mount {certificate} and {key}"
            );
        }
    }
    Ok(())
}

type Pieces = [(&'static str, Vec<Value>)];

fn stream(pieces: &Pieces) -> anyhow::Result<String> {
    let mut text = String::new();
    for (index, object) in pieces.iter().flat_map(|(_, objects)| objects).enumerate() {
        let separator = if index == 0 { "" } else { "---\n" };
        let yaml = serde_saphyr::to_string(object).context("an object has no YAML form")?;
        let _ = writeln!(text, "{separator}{}", yaml.trim_end());
    }
    Ok(text)
}

/// Writes one file for each group of objects into a folder, and a kustomization that lists these files.
fn write(folder: &Path, pieces: &Pieces) -> anyhow::Result<String> {
    std::fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
    let put = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))
    };
    for piece in pieces {
        put(piece.0, stream(std::slice::from_ref(piece))?)?;
    }
    let names: Vec<_> = pieces.iter().map(|(name, _)| *name).collect();
    let kustomization =
        json!({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": names});
    put("kustomization.yaml", serde_saphyr::to_string(&kustomization).context("the kustomization has no YAML form")?)?;
    Ok(format!("{}: {} files; kubectl apply -k {}\n", folder.display(), names.len() + 1, folder.display()))
}

#[cfg(test)]
mod tests;
