//! Calls of the service's API that scales Deployments: the API's address, its certificates, and its callers.
//!
//! The service itself makes the certificates, with `certs dev`: valid certificates, and each kind of certificate that
//! must be refused. Owns the section `replicas` of the service's configuration.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use loadgen::calls::{Filled, Identity, Intruder, Load, Plan, Target};
use reports::record::{CallsRow, Quantiles};
use serde_json::{Value, json};

use super::Options;
use super::ports::free_port;
use super::world::World;

/// Callers that the API must refuse, by the names of their certificates in `certs dev`.
const INTRUDERS: [&str; 5] = ["revoked", "expired", "early", "other", "wrong-purpose"];
/// A rate far above that of any scenario, because rate limits are not judged.
const RATE: u64 = 1_000_000;

/// The API's address and the folder with its certificates.
#[derive(Debug, Clone)]
pub(super) struct ApiAccess {
    address: SocketAddr,
    folder: PathBuf,
}

impl ApiAccess {
    pub(super) fn make(options: &Options, world: &World) -> Result<Option<Self>> {
        if options.source.scenario.api.is_none() {
            return Ok(None);
        }
        let Some(program) = &options.service else { bail!("no service binary was named") };
        let folder = world.folder("api");
        let mut command = Command::new(program);
        command.args(["certs", "dev"]).arg(&folder).stdin(Stdio::null());
        let output = command.output().with_context(|| format!("failed to start {}", program.display()))?;
        if !output.status.success() {
            bail!("`certs dev` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port(Ipv4Addr::LOCALHOST)?));
        Ok(Some(Self { address, folder }))
    }

    /// The section `replicas` of the service's configuration.
    pub(super) fn section(&self) -> Value {
        let file = |name: &str| self.folder.join(name);
        let bucket = json!({"perSecond": RATE, "burst": RATE});
        json!({
            "listen": self.address, "certificate": file("server.crt"), "key": file("server.key"),
            "clientCA": [file("ca.crt")], "crl": [file("crl.pem")], "rate": {"client": bucket, "all": bucket},
        })
    }

    /// The authorized callers, and the callers that must be refused.
    pub(super) fn target(&self) -> Result<Target> {
        let intruders = INTRUDERS
            .into_iter()
            .map(|name| Ok(Intruder { name: name.to_owned(), identity: Some(identity(&self.folder, name)?) }));
        let nobody = Intruder { name: "no certificate".to_owned(), identity: None };
        Ok(Target {
            url: format!("https://{}", self.address),
            ca_pem: read(&self.folder.join("ca.crt"))?,
            client: identity(&self.folder, "client")?,
            intruders: intruders.chain([Ok(nobody)]).collect::<Result<_>>()?,
        })
    }
}

/// The calls of a scenario, and the API that receives them.
pub(super) fn plan(options: &Options, door: Option<&ApiAccess>) -> Result<Option<(Plan, Target)>> {
    let scenario = &options.source.scenario;
    let (Some(config), Some(door)) = (&scenario.api, door) else { return Ok(None) };
    let plan = Plan::build(config, scenario.seed, scenario.phases.loaded()).context("failed to plan the calls")?;
    Ok(Some((plan, door.target()?)))
}

/// Creates the Deployments that the calls scale. The Deployments must exist before the subject starts, so that its
/// first list contains them.
pub(super) async fn filled(planned: Option<(Plan, Target)>, world: &World) -> Result<Option<(Filled, Target)>> {
    let Some((plan, target)) = planned else { return Ok(None) };
    let filled = Load::fill(plan, &world.api()).await.context("failed to make what is called for")?;
    Ok(Some((filled, target)))
}

pub(super) fn row(interval: loadgen::calls::Interval) -> CallsRow {
    let counts = interval.counts;
    CallsRow {
        planned: counts.planned,
        sent: counts.sent,
        overflow: counts.overflow,
        read: counts.read,
        set: counts.set,
        errors: counts.errors,
        by_others: counts.by_others,
        others_failed: counts.others_failed,
        turned_away: counts.turned_away,
        let_in: counts.let_in,
        unanswered: counts.unanswered,
        judged: counts.judged,
        wrong: counts.wrong,
        lost: counts.lost,
        unjudged: counts.unjudged,
        response: Quantiles::of_any(&interval.read),
        set_response: Quantiles::of_any(&interval.set),
        lateness: Quantiles::of_any(&interval.lateness),
        staleness: Quantiles::of_any(&interval.staleness),
        examples: interval.examples,
    }
}

fn identity(folder: &Path, name: &str) -> Result<Identity> {
    let file = |extension: &str| read(&folder.join(format!("{name}.{extension}")));
    Ok(Identity { certificate_pem: file("crt")?, key_pem: file("key")? })
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))
}
