//! `service`: the keys of the built-in service, and its configuration for a run.
//!
//! The configuration of the service keeps the settings in the scenario. Addresses, certificates and the registry in the
//! configuration are replaced by those of the run. The service itself refuses a configuration with unknown keys.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use units::Span;

use super::{Kind, Profile, Scene, Start, Subject, Upkeep, Wrong, wrong};
use crate::scenario::{BackOff, Ground, Restart};
use crate::subject::Launch;

/// Maximum number of processes that verify signatures for the process with the webhook.
pub const VALIDATORS_MAX: usize = 4;
/// Maximum length of the service's configuration, in bytes. A usual configuration of the service has a few kilobytes.
const BYTES_MAX: u64 = 1 << 20;

/// The keys of `service`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Service {
    /// A file with a service configuration, relative to the scenario file. Addresses, certificates and registries in
    /// the file are replaced by those of the run.
    pub config: Option<PathBuf>,
    /// Settings of the service, written in the scenario instead of in a file. The service itself checks these settings.
    pub settings: Option<Map<String, Value>>,
    /// With `registry: {signed: true}`: number of additional processes that have the keys and verify signatures for the
    /// process with the webhook.
    pub validators: usize,
    /// After which ends a process is started again, as by a kubelet: `always` or `onFailure`. Default: the end of a
    /// process fails the run. `budgets.crashes` limits the number of restarts.
    pub restart: Option<Restart>,
    /// The delay between a crash and the restart.
    pub back_off: Option<BackOff>,
    /// How many times faster the service's own clock runs. The harness measures in real time; lifetimes on the server
    /// are shortened by the same factor.
    pub clock_rate: Option<u32>,
    /// Time to exit after SIGTERM. Default: 30s.
    pub stop_timeout: Option<Span>,
}

impl Kind for Service {
    fn profile(&self) -> Profile<'_> {
        let Self { validators, restart, back_off, clock_rate, stop_timeout, .. } = *self;
        Profile {
            is_service: true,
            files: self.config.iter().map(|path| ("config", path.as_path())).collect(),
            is_started: true,
            upkeep: Upkeep { restart, back_off, validators, clock_rate, stop_timeout },
            ..Profile::of("service")
        }
    }

    fn check(&self, _: &Subject) -> Result<(), Wrong> {
        if self.config.is_some() && self.settings.is_some() {
            return wrong("settings", "has both `config` and `settings`: keep one");
        }
        if self.validators > VALIDATORS_MAX {
            return wrong(
                "validators",
                format!("at most {VALIDATORS_MAX}, which is enough to compare several answers"),
            );
        }
        Ok(())
    }

    fn hurry(&mut self, rate: u32) {
        self.clock_rate = Some(rate);
    }

    fn start(&self, scene: &Scene<'_>) -> Result<Start> {
        let program = scene.program.context("no service binary was named")?;
        let mut wiring = (scene.wiring)()?;
        let program =
            std::path::absolute(program).with_context(|| format!("failed to resolve {}", program.display()))?;
        let launch = |name: Option<String>, role: &str, config: PathBuf| {
            let words = ["run", "--role", role, "--config"].map(str::to_owned);
            let arguments = words.into_iter().chain([config.display().to_string()]).collect();
            let (environment, directory) = (Vec::new(), None);
            let (program, awaited, clock, mounts) = (program.clone(), None, None, None);
            Launch { name, program, arguments, environment, directory, awaited, clock, mounts }
        };
        let mut launches = Vec::new();
        for (address, config) in self.others(&mut wiring) {
            let config = (scene.write)(&format!("validator-{}.yaml", address.port()), &config)?;
            launches.push(launch(Some(format!("validator-{}", launches.len())), "validator", config));
        }
        let config = self.configuration(scene.ground, &wiring)?;
        // Each process has its own file: an old process must not follow the addresses of the next.
        let config = (scene.write)(&format!("service-{}.yaml", wiring.admission.port()), &config)?;
        let name = (!launches.is_empty()).then(|| "manager".to_owned());
        // It comes first, because the numbers of the first process are read.
        launches.insert(0, launch(name, "all", config));
        Ok(Start::Programs(launches, Some(wiring.health)))
    }
}

/// The values of a run that go into the service's configuration.
pub struct Wiring {
    /// The address at which the service answers reviews.
    pub admission: SocketAddr,
    /// The address of the service's health and metrics pages.
    pub health: SocketAddr,
    /// The file with the service's serving certificate, as PEM.
    pub certificate: PathBuf,
    /// The file with the key of the serving certificate, as PEM.
    pub key: PathBuf,
    /// The certificate of the authority that issued the serving certificate, as PEM.
    pub authority: String,
    /// The registry's name in image references.
    pub registry: String,
    /// The address at which the registry really listens.
    pub endpoint: SocketAddr,
    /// The service's login to the registry, if the registry needs one: a name, and the file with the password.
    pub login: Option<(String, PathBuf)>,
    /// The configuration section of the API that scales Deployments, if the scenario has calls.
    pub replicas: Option<Value>,
    /// The configuration section of the receivers of alerts, if the scenario has receivers.
    pub alerts: Option<Value>,
    pub shared_cache: Option<Value>,
    pub lock: Option<PathBuf>,
    /// The configuration sections of the validators and of the policy's rules, if the registry of the run has signed
    /// images.
    pub trust: Option<(Value, Value)>,
    /// The folder with authority and client certificate for the service's processes: `ca.crt`, `client.crt`,
    /// `client.key`.
    pub installation: PathBuf,
    /// The addresses of the service's additional processes.
    pub others: Vec<Other>,
}

/// The addresses of an additional process of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Other {
    pub listens: SocketAddr,
    /// The address at which other processes reach this process.
    pub asked: SocketAddr,
}

/// The reason why a configuration could not be created.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the service configuration {path} cannot be read: {why}")]
    Read { path: PathBuf, why: String },
    #[error("the service configuration {path} is no YAML mapping: {detail}")]
    Parse { path: PathBuf, detail: String },
}

impl Service {
    /// The service's configuration as text for a file, in JSON, which is also YAML.
    pub(super) fn configuration(&self, ground: &Ground, wiring: &Wiring) -> Result<String, Error> {
        let mut config = self.written(ground)?;
        let mut section = |name: &str, values: Value| {
            let entry = config.entry(name).or_insert_with(|| json!({}));
            // A section that is no mapping is replaced: the service would refuse it anyway.
            if !entry.is_object() {
                *entry = json!({});
            }
            if let (Some(entry), Value::Object(values)) = (entry.as_object_mut(), values) {
                entry.extend(values);
            }
        };
        section("admission", json!({"listen": wiring.admission, "certificate": wiring.certificate, "key": wiring.key}));
        section("health", json!({"listen": wiring.health}));
        if let Some(replicas) = &wiring.replicas {
            section("replicas", replicas.clone());
        }
        if let Some(alerts) = &wiring.alerts {
            section("alerting", alerts.clone());
        }
        if let Some(shared) = &wiring.shared_cache {
            section("sharedCache", shared.clone());
        }
        if let Some(lock) = &wiring.lock {
            section("resolve", json!({"lock": lock}));
        }
        if let Some((_, rules)) = &wiring.trust {
            section("policy", json!({"rules": rules}));
        }
        let mut registry = json!({"host": wiring.registry, "endpoint": wiring.endpoint, "plainHttp": true});
        if let Some((name, password)) = &wiring.login {
            registry["username"] = json!(name);
            registry["passwordFile"] = json!(password);
        }
        section("resolve", json!({"registries": [registry]}));
        if let Some((validators, _)) = &wiring.trust {
            config.insert("validators".to_owned(), validators.clone());
        }
        Ok(serde_json::to_string_pretty(&Value::Object(config)).unwrap_or_default())
    }

    /// Address and configuration of each additional process that has keys and verifies signatures. If such processes
    /// exist, the process with the webhook has no keys and calls these processes.
    fn others(&self, wiring: &mut Wiring) -> Vec<(SocketAddr, String)> {
        let others: Vec<Other> = wiring.others.iter().copied().take(self.validators).collect();
        let Some((validators, _)) = &mut wiring.trust else { return Vec::new() };
        if others.is_empty() {
            return Vec::new();
        }
        let file = |name: &str| wiring.installation.join(name);
        let mut registry = json!({"host": wiring.registry, "endpoint": wiring.endpoint, "plainHttp": true});
        if let Some((name, password)) = &wiring.login {
            (registry["username"], registry["passwordFile"]) = (json!(name), json!(password));
        }
        let config = |address: &SocketAddr| {
            let listen = json!({"listen": address, "certificate": wiring.certificate, "key": wiring.key, "clientCA": [file("ca.crt")]});
            let mut config =
                json!({"validator": listen, "validators": validators, "resolve": {"registries": [registry]}});
            if let Some(shutdown) = self.settings.as_ref().and_then(|settings| settings.get("shutdown")) {
                config["shutdown"] = shutdown.clone();
            }
            config.to_string()
        };
        let configs = others.iter().map(|other| (other.listens, config(&other.listens))).collect();
        let instances: Vec<_> = others.iter().map(|other| json!({"url": format!("https://{}", other.asked)})).collect();
        let remote = json!({
            "instances": instances, "caFile": file("ca.crt"), "certificate": file("client.crt"), "key": file("client.key"),
        });
        for validator in validators.as_array_mut().into_iter().flatten().filter(|one| one["type"] == "cosign") {
            *validator = json!({"name": validator["name"], "type": "remote", "remote": remote});
        }
        configs
    }

    fn written(&self, ground: &Ground) -> Result<Map<String, Value>, Error> {
        if let Some(settings) = &self.settings {
            return Ok(settings.clone());
        }
        let Some(path) = &self.config else { return Ok(Map::new()) };
        let text = ground.text(path, BYTES_MAX).map_err(|why| Error::Read { path: path.clone(), why })?;
        serde_saphyr::from_str(&text.text)
            .map_err(|error| Error::Parse { path: path.clone(), detail: text.problem(&error) })
    }
}
