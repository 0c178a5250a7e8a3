//! `deployment`: a subject in Pods, with the manifests that are applied to a cluster and the images that it needs
//! there.
//!
//! This module owns the keys of `deployment`, and converts them to objects and images. The module `run/deploy` of the
//! crate `scenarios` applies the objects, loads the images and follows the Pods.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::service::Wiring;
use super::{Kind, Notes, Profile, Role, Scene, Service, Start, Subject, Upkeep, Wrong, wrong};
use crate::scenario::manifests::{self, Manifest};
use crate::scenario::{Ground, Restart};
use crate::witness::Witness;

/// The name of the service's image in the service's manifests.
const SERVICE_IMAGE: &str = "docker.io/library/longhaul-service:dev";
/// The user ID that the service runs as in its manifests.
const SERVICE_USER: u32 = 65532;
const SERVICE_NAMESPACE: &str = "longhaul-system";
const SERVICE_WEBHOOK: &str = "longhaul-webhook";
const SERVICE_WATCH: &str = "longhaul-watch";
const SERVICE_SECRET: &str = "longhaul-webhook-tls";
/// The name of the Service that a run creates to reach the HTTP pages of the Pod that watches.
const PAGES: &str = "longhaul-watch-pages";
const PAGES_PORT: u16 = 9090;

/// The keys of `deployment`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Deployment {
    /// The manifests to apply, relative to the scenario file: files and folders of plain YAML, or folders with a
    /// `kustomization.yaml`, which `kubectl kustomize` builds. The output of `helm template` is plain YAML. All
    /// Deployments in the manifests together are the subject. Default with `build: service`: the manifests of the
    /// service.
    pub manifests: Vec<PathBuf>,
    /// Images that are loaded into the nodes first: archives of `docker save`, OCI layouts in a tar file, or folders
    /// with an OCI layout.
    pub images: Vec<PathBuf>,
    /// `service`: the run makes an image from the service's program and loads it.
    pub build: Option<Build>,
    /// With `build: service`: settings of the service, like `settings` of `subject: {service: …}`.
    pub settings: Option<Map<String, Value>>,
    /// Number of Pods of the Deployment that serves the webhook, or of the only Deployment. This number replaces the
    /// number of replicas in the manifest.
    pub replicas: Option<u32>,
    /// The Secret with the subject's serving certificate, as `tls.crt`, `tls.key` and `ca.crt`, in the namespace of the
    /// Deployment. The run creates this Secret.
    pub secret: Option<String>,
    /// `webhook`: the subject answers reviews and watches nothing. `both`: the subject also watches, and its answers are judged as with
    /// `webhook`.
    pub role: Option<Role>,
}

/// A program of Longhaul from which the run makes an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Build {
    /// The program of the built-in service.
    Service,
}

/// A subject in Pods, before the run applies its manifests.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The objects that the run applies to the cluster, in this order.
    pub objects: Vec<Manifest>,
    /// The images that the Pods need.
    pub images: Vec<Image>,
    /// The Service in front of the subject's webhook: namespace, name and port.
    pub webhook: Option<ServicePort>,
    /// The Service in front of the subject's HTTP pages.
    pub pages: Option<ServicePort>,
    /// Namespace and name of the Secret with the serving certificate, if the run creates it.
    pub secret: Option<(String, String)>,
}

/// The source of an image.
#[derive(Debug, Clone)]
pub enum Image {
    Archive(PathBuf),
    /// The run makes the image from one static program.
    Program {
        name: &'static str,
        program: PathBuf,
        /// The ID of the user that the program runs as.
        user: u32,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePort {
    pub namespace: String,
    pub name: String,
    pub port: u16,
}

impl Planned {
    /// The files from which the subject's images are made.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let file = |image: &Image| match image {
            // The index of a layout names the digest of its whole content.
            Image::Archive(path) if path.is_dir() => path.join("index.json"),
            Image::Archive(path) | Image::Program { program: path, .. } => path.clone(),
        };
        self.images.iter().map(file).collect()
    }
}

impl Deployment {
    /// Whether the service's own manifests deploy the subject.
    fn is_service(&self) -> bool {
        self.build == Some(Build::Service) && self.manifests.is_empty()
    }

    /// The line about the subject in the printed plan.
    fn plan(&self) -> String {
        let manifests = self.manifests.iter().map(|path| path.display().to_string());
        let own = self.is_service().then(|| "the manifests of the service, with an image of its program".to_owned());
        let images = self.images.iter().map(|path| format!("image {}", path.display()));
        manifests.chain(own).chain(images).collect::<Vec<_>>().join(", ")
    }
}

impl Kind for Deployment {
    fn profile(&self) -> Profile<'_> {
        let is_service = self.is_service();
        let webhook = is_service.then(|| format!("{SERVICE_WEBHOOK}.{SERVICE_NAMESPACE}.svc"));
        Profile {
            is_service,
            needs_node: true,
            user: is_service.then(|| format!("system:serviceaccount:{SERVICE_NAMESPACE}:{SERVICE_WATCH}")),
            service_names: webhook.into_iter().collect(),
            files: self.images.iter().map(|path| ("images", path.as_path())).collect(),
            manifests: &self.manifests,
            role: self.role,
            makes_certificate: is_service || self.secret.is_some(),
            serving: "`install: {webhooks: FILE}`",
            // For any manifests, the kubelet restarts the containers of a Deployment.
            upkeep: Upkeep { restart: Some(Restart::Always), ..Upkeep::default() },
            plan: Some(("deployed", self.plan())),
            notes: Notes {
                note: Some("the subject ran in Pods: its figures are those of all their processes together"),
                unsampled: None,
            },
            ..Profile::of("deployment")
        }
    }

    fn check(&self, subject: &Subject) -> Result<(), Wrong> {
        if self.manifests.is_empty() && self.build.is_none() {
            return wrong("manifests", "`deployment` applies nothing: add `manifests: [FOLDER]`, or `build: service`");
        }
        if self.settings.is_some() && (self.build.is_none() || !self.manifests.is_empty()) {
            return wrong(
                "settings",
                "`settings` are those of the service as its own manifests deploy it: `build: service`",
            );
        }
        if self.secret.is_some() && self.is_service() {
            return wrong("secret", "`secret`: the manifests of the service already name their Secret: leave it out");
        }
        if self.replicas == Some(0) {
            return wrong("replicas", "`replicas: 0` is no subject: write 1 or more");
        }
        if subject.rbac.is_some() {
            return wrong("rbac", "`rbac`: the rights of a Deployment are in its manifests: leave it out");
        }
        if matches!(subject.witness, Witness::Log(_)) && self.is_service() {
            return wrong("witness", "`witness: {kind: log}`: the service reports by `http`");
        }
        Ok(())
    }

    fn start(&self, scene: &Scene<'_>) -> Result<Start> {
        let mut images: Vec<Image> =
            self.images.iter().map(|path| Image::Archive(scene.ground.folder().join(path))).collect();
        if self.build.is_some() {
            let program = scene.program.context("no service binary was named")?.to_owned();
            images.push(Image::Program { name: SERVICE_IMAGE, program, user: SERVICE_USER });
        }
        let (mut objects, mut webhook, mut pages, mut kept) = (Vec::new(), None, None, None);
        if self.is_service() {
            objects = self.service(scene)?;
            let port =
                |name: &str, port| ServicePort { namespace: SERVICE_NAMESPACE.to_owned(), name: name.to_owned(), port };
            (webhook, pages) = (Some(port(SERVICE_WEBHOOK, 443)), Some(port(PAGES, PAGES_PORT)));
            kept = Some((SERVICE_NAMESPACE.to_owned(), SERVICE_SECRET.to_owned()));
        } else {
            objects.extend(read(scene.ground, &self.manifests)?);
            if let Some(secret) = &self.secret {
                let namespace = namespace_of_first(&objects);
                objects.insert(0, certificate(&namespace, secret, &(scene.wiring)()?)?);
                kept = Some((namespace, secret.clone()));
            }
        }
        if let Some(replicas) = self.replicas {
            set_replicas(&mut objects, replicas);
        }
        Ok(Start::Deployed(Box::new(Planned { objects, images, webhook, pages, secret: kept })))
    }
}

impl Deployment {
    /// The service's own manifests, with the settings of the run in the `ConfigMap`.
    fn service(&self, scene: &Scene<'_>) -> Result<Vec<Manifest>> {
        let wiring = (scene.wiring)()?;
        anyhow::ensure!(
            wiring.login.is_none() && wiring.trust.is_none() && wiring.replicas.is_none(),
            "a Deployment of the service gets no login, keys or API over Deployments from the run: use `subject: {{service: …}}`"
        );
        let mut objects = Vec::new();
        for (file, text) in kind::manifests::all() {
            // The run registers the webhook itself, and the resource exists already.
            if file == "webhook.yaml" || file == "package-crd.yaml" {
                continue;
            }
            let read = kind::manifests::objects(file, text)?;
            objects.extend(read.into_iter().map(|object| Manifest { file: PathBuf::from(file), object }));
        }
        let configuration = self.configuration(scene.ground, &wiring)?;
        for manifest in objects.iter_mut().filter(|manifest| manifest.object["kind"] == "ConfigMap") {
            manifest.object["data"] = configuration.clone();
        }
        objects.push(certificate(SERVICE_NAMESPACE, SERVICE_SECRET, &wiring)?);
        let pages = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": PAGES, "namespace": SERVICE_NAMESPACE},
            "spec": {
                "selector": {"app.kubernetes.io/name": SERVICE_WATCH},
                "ports": [{"name": "health", "port": PAGES_PORT, "targetPort": "health"}]
            }
        });
        objects.push(Manifest { file: PathBuf::from(PAGES), object: pages });
        Ok(objects)
    }

    /// The files of the service's `ConfigMap`. This configuration has the addresses of a Pod, and names certificates at
    /// the paths where the manifests mount them.
    fn configuration(&self, ground: &Ground, wiring: &Wiring) -> Result<Value> {
        let service = Service { settings: Some(self.settings.clone().unwrap_or_default()), ..Service::default() };
        let all: Value = serde_json::from_str(&service.configuration(ground, wiring)?)?;
        let mut webhook = all.clone();
        if let Some(sections) = webhook.as_object_mut() {
            sections.remove("watch");
        }
        webhook["admission"]["listen"] = json!("0.0.0.0:8443");
        webhook["admission"]["certificate"] = json!("/etc/longhaul-tls/tls.crt");
        webhook["admission"]["key"] = json!("/etc/longhaul-tls/tls.key");
        webhook["health"]["listen"] = json!("0.0.0.0:9090");
        webhook["log"] = json!({"format": "json"});
        let mut watch =
            json!({"health": {"listen": "0.0.0.0:9090"}, "watch": {"resource": "packages"}, "log": {"format": "json"}});
        for (key, value) in all["watch"].as_object().into_iter().flatten() {
            watch["watch"][key] = value.clone();
        }
        Ok(json!({"webhook.yaml": webhook.to_string(), "watch.yaml": watch.to_string()}))
    }
}

/// Reads manifests; a folder with a `kustomization.yaml` is built with `kubectl kustomize`.
fn read(ground: &Ground, paths: &[PathBuf]) -> Result<Vec<Manifest>> {
    let mut objects = Vec::new();
    for path in paths {
        match kustomization(ground, path) {
            Some(folder) => objects.extend(kustomized(&folder)?),
            None => objects.extend(plain(ground, path).map_err(anyhow::Error::msg)?),
        }
    }
    objects.retain(|manifest| is_installed(&manifest.object));
    Ok(objects)
}

/// Whether `helm install` creates an object of a chart. `helm template` also prints hooks for tests, upgrades and
/// deletions, which a run must not apply (Helm documentation, "Chart Hooks").
fn is_installed(object: &Value) -> bool {
    let Some(hooks) = object["metadata"]["annotations"]["helm.sh/hook"].as_str() else { return true };
    hooks.split(',').any(|hook| ["pre-install", "post-install", "crd-install"].contains(&hook.trim()))
}

/// Checks the path of manifests that the run reads later. kubectl itself checks the files of a kustomization, and reads
/// files outside of the kustomization's folder only with a flag.
pub fn look(ground: &Ground, path: &PathBuf) -> Result<(), String> {
    match kustomization(ground, path) {
        Some(_) => ground.look(path).map(drop),
        None => plain(ground, path).map(drop),
    }
}

/// The folder at `path`, if the folder contains a `kustomization.yaml`.
fn kustomization(ground: &Ground, path: &Path) -> Option<PathBuf> {
    let folder = ground.folder().join(path);
    folder.join("kustomization.yaml").is_file().then_some(folder)
}

fn plain(ground: &Ground, path: &PathBuf) -> Result<Vec<Manifest>, String> {
    let read = manifests::read(ground, std::slice::from_ref(path));
    read.map_err(|text| text.replacen("controlPlane.manifests", "deployment: {manifests: …}", 1))
}

/// The output of `kubectl kustomize` for a folder.
fn kustomized(folder: &Path) -> Result<Vec<Manifest>> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(|assets| PathBuf::from(assets).join("kubectl"));
    let kubectl = assets.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("kubectl"));
    let built = std::process::Command::new(&kubectl).arg("kustomize").arg(folder).output();
    let built = built.with_context(|| {
        format!("{} has a kustomization, which needs kubectl: install it, or name plain manifests", folder.display())
    })?;
    let said = String::from_utf8_lossy(&built.stderr);
    anyhow::ensure!(built.status.success(), "`kubectl kustomize {}` failed: {}", folder.display(), said.trim());
    let objects: Vec<Value> = serde_saphyr::from_multiple(&String::from_utf8_lossy(&built.stdout))
        .with_context(|| format!("`kubectl kustomize {}` wrote no YAML", folder.display()))?;
    Ok(objects.into_iter().map(|object| Manifest { file: folder.to_owned(), object }).collect())
}

fn certificate(namespace: &str, name: &str, wiring: &Wiring) -> Result<Manifest> {
    let read =
        |path: &Path| std::fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()));
    let object = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": name, "namespace": namespace},
        "stringData": {"tls.crt": read(&wiring.certificate)?, "tls.key": read(&wiring.key)?, "ca.crt": wiring.authority}
    });
    Ok(Manifest { file: PathBuf::from(name), object })
}

fn namespace_of_first(objects: &[Manifest]) -> String {
    let first = objects.iter().find(|manifest| manifest.is_deployment());
    let namespace = first.and_then(|manifest| manifest.object["metadata"]["namespace"].as_str());
    namespace.unwrap_or("default").to_owned()
}

/// Sets the number of Pods: of the webhook's Deployment in the service's own manifests, of every Deployment in other
/// manifests.
fn set_replicas(objects: &mut [Manifest], replicas: u32) {
    for manifest in objects.iter_mut().filter(|manifest| manifest.is_deployment()) {
        if manifest.object["metadata"]["name"] != SERVICE_WATCH {
            manifest.object["spec"]["replicas"] = json!(replicas);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn wiring() -> Wiring {
        let address = |port| SocketAddr::from(([10, 200, 0, 1], port));
        Wiring {
            admission: address(1),
            health: address(2),
            certificate: "/run/tls.crt".into(),
            key: "/run/tls.key".into(),
            authority: "pem".to_owned(),
            registry: "registry.test".to_owned(),
            endpoint: address(3),
            login: None,
            replicas: None,
            alerts: None,
            shared_cache: None,
            lock: None,
            trust: None,
            installation: "/run".into(),
            others: Vec::new(),
        }
    }

    /// The service's `ConfigMap` has the run's values: a Pod's listening address, the mounted certificate, and the
    /// registry's address.
    #[test]
    fn the_configuration_of_the_service_is_that_of_a_pod() {
        let settings = serde_json::from_value(json!({"watch": {"silenceLimit": "4s"}})).unwrap();
        let deployment = Deployment { build: Some(Build::Service), settings: Some(settings), ..Deployment::default() };
        let files = deployment.configuration(&Ground::looked_at(Path::new("")), &wiring()).unwrap();
        let file = |name: &str| serde_json::from_str::<Value>(files[name].as_str().unwrap()).unwrap();
        let (webhook, watch) = (file("webhook.yaml"), file("watch.yaml"));
        assert_eq!(webhook["admission"]["listen"], "0.0.0.0:8443");
        assert_eq!(webhook["admission"]["key"], "/etc/longhaul-tls/tls.key");
        assert_eq!(webhook["resolve"]["registries"][0]["endpoint"], "10.200.0.1:3");
        assert!(webhook.get("watch").is_none());
        assert_eq!(watch["watch"], json!({"resource": "packages", "silenceLimit": "4s"}));
    }

    /// A folder with a `kustomization.yaml` is built; a folder without one is read as plain YAML.
    #[test]
    fn manifests_are_read_plain_or_as_kustomize_builds_them() {
        let folder = tempfile::tempdir().unwrap();
        let deploy = folder.path().join("deploy");
        std::fs::create_dir(&deploy).unwrap();
        let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1}\n";
        std::fs::write(deploy.join("web.yaml"), deployment).unwrap();
        let ground = Ground::looked_at(folder.path());
        let names = || {
            let read = read(&ground, &[PathBuf::from("deploy")]).unwrap();
            read.iter().map(Manifest::name).collect::<Vec<_>>()
        };
        assert_eq!(names(), ["Deployment web"]);
        std::fs::write(deploy.join("kustomization.yaml"), "namespace: team\nnamePrefix: my-\nresources: [web.yaml]\n")
            .unwrap();
        let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
        if !assets.is_some_and(|assets| assets.join("kubectl").is_file()) {
            println!("skipped: needs kubectl in KUBEBUILDER_ASSETS");
            return;
        }
        assert_eq!(names(), ["Deployment team/my-web"]);
    }

    #[test]
    fn hooks_of_a_chart_are_applied_where_they_install_it() {
        let hook = |hooks: &str| json!({"metadata": {"annotations": {"helm.sh/hook": hooks}}});
        assert!(is_installed(&json!({"metadata": {"name": "a"}})) && is_installed(&hook("pre-install, pre-upgrade")));
        assert!(!is_installed(&hook("test")) && !is_installed(&hook("pre-delete,post-delete")));
    }

    #[test]
    fn replicas_are_those_of_the_webhook() {
        let deployment = |name: &str| Manifest {
            file: PathBuf::new(),
            object: json!({"kind": "Deployment", "metadata": {"name": name, "namespace": "a"}, "spec": {"replicas": 1}}),
        };
        let mut objects = [deployment(SERVICE_WEBHOOK), deployment(SERVICE_WATCH)];
        set_replicas(&mut objects, 3);
        let replicas: Vec<_> = objects.iter().map(|manifest| manifest.object["spec"]["replicas"].clone()).collect();
        assert_eq!(replicas, [3, 1]);
        assert_eq!(namespace_of_first(&objects), "a");
    }
}
