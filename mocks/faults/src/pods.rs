//! Catalogue entries of faults of a subject's Pods in a cluster. The code that deploys the Pods injects the faults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Span};

use super::later::{begins_later, lasts};
use super::settings::keys;
use super::settings::{Family, Row};
use super::{Error, Fault};

/// The default remaining validity of a certificate that `certificate-expiry` sets. The kubelet mounts a new certificate
/// into a Pod within seconds.
pub const VALID: Span = Span::from_secs(30);
/// Shortest allowed validity: long enough to mount a certificate into a Pod, and then its successor.
const VALID_LEAST: Span = Span::from_secs(15);

const fn row(name: &'static str, doc: &'static str) -> Row {
    Row::new(Family::Pods, name, doc).refuses(begins_later)
}

/// How a Pod is killed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum KillBy {
    /// SIGKILL to the first process of each container: the kubelet starts them again in the same Pod.
    #[default]
    Signal,
    /// The Pod is deleted without a grace period, and another Pod replaces it.
    Delete,
    /// The Pod is evicted, as by `kubectl drain`: its containers get time to end, and `PodDisruptionBudget`s are
    /// respected.
    Evict,
}

/// The default CPU limit of a container, in CPUs.
const CPU: f64 = 0.2;

keys! {
    pub struct PodKillKeys {
        by "by": KillBy = ("`signal`", "`signal`, `delete` or `evict`"),
        pause "pause": Span = ("20s", "from one start to the next, with `count`"),
    }
}

keys! {
    /// The settings of faults that repeat their effect after a pause.
    pub struct PauseKeys {
        pause "pause": Span = ("20s", "from one start to the next, with `count`"),
    }
}

keys! {
    pub struct ScaleKeys {
        to "to": u32 = ("0", "number of Pods"),
    }
}

keys! {
    pub struct NodePressureKeys {
        memory "memory": Bytes = ("", "memory limit of each container; one that uses more is killed"),
        cpu "cpu": f64 = ("0.2 without `memory`", "processor limit of each container"),
    }
}

impl NodePressureKeys {
    /// The limit of each container in CPUs; `None` if the fault limits only memory.
    pub fn processor(&self) -> Option<f64> {
        self.cpu.or_else(|| self.memory.is_none().then_some(CPU))
    }
}

keys! {
    pub struct CertificateExpiryKeys {
        valid "valid": Span = ("30s", "validity of the expiring certificate; its successor is there after two thirds"),
        pause "pause": Span = ("20s", "from one start to the next, with `count`; the one before has to expire first"),
    }
}

pub(super) const POD_KILL: Row = row("pod-kill", "Pods of the subject are killed, one after the other.")
    .takes::<PodKillKeys>()
    .instant()
    .once()
    .sees("a Pod dies during its work; the next one follows when all are ready again")
    .hit("a killed Pod, when all are ready again")
    .drawn(20, None);

pub(super) const ROLLING_RESTART: Row =
    row("rolling-restart", "Every Pod of the subject is replaced, as `kubectl rollout restart` does it.")
        .takes::<PauseKeys>()
        .instant()
        .once()
        .sees("Pods are asked to end once others are ready")
        .hit("a finished rollout")
        .drawn(45, None);

pub(super) const SCALE: Row = row("scale", "The subject has other numbers of Pods for a while, or none.")
    .takes::<ScaleKeys>()
    .refuses(lasts)
    .sees("with 0 nothing answers; later Pods start with empty caches")
    .hit("a Deployment that has reached this number, and its own number again");

pub(super) const NODE_PRESSURE: Row =
    row("node-pressure", "Containers of the subject may have less memory or less of a processor for a while.")
        .takes::<NodePressureKeys>()
        .refuses(presses)
        .sees("everything is slow, or the kernel kills a process that uses too much")
        .hit("a container with the new limit");

pub(super) const CERTIFICATE_EXPIRY: Row =
    row("certificate-expiry", "The serving certificate of the subject ends, and the next one is in its Secret before.")
        .takes::<CertificateExpiryKeys>()
        .instant()
        .once()
        .refuses(ends_in_time)
        .sees("the Secret changes twice; a subject that keeps an old certificate is no longer trusted")
        .hit("an expired certificate")
        .drawn(40, None);

pub(super) const NETWORK_POLICY: Row =
    row("network-policy", "A NetworkPolicy cuts the Pods of the subject off from the registry.")
        .refuses(lasts)
        .sees("connections to the registry hang; everything else works")
        .hit("the policies, once they exist");

fn presses(fault: &Fault) -> Result<(), Error> {
    lasts(fault)?;
    let keys: NodePressureKeys = fault.keys();
    if let Some(cpu) = keys.cpu.filter(|cpu| !(0.01..=64.0).contains(cpu)) {
        return Err(Error::Value { key: "cpu", given: cpu.to_string(), instead: "write a number from 0.01 to 64" });
    }
    Ok(())
}

fn ends_in_time(fault: &Fault) -> Result<(), Error> {
    begins_later(fault)?;
    let valid = fault.keys::<CertificateExpiryKeys>().valid.unwrap_or(VALID);
    if valid < VALID_LEAST {
        let instead = "write 15s or more: it has to come into a Pod, and the next one after it";
        return Err(Error::Value { key: "valid", given: valid.to_string(), instead });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Fault, Name};

    fn refused(text: &str) -> String {
        let fault: Fault = serde_json::from_str(text).unwrap();
        fault.check().map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn what_nobody_could_play_is_refused_with_what_to_write() {
        assert_eq!(refused(r#"{"name": "pod-kill"}"#), "`pod-kill`: say when it begins: `at: 5s`");
        assert_eq!(refused(r#"{"name": "pod-kill", "at": "5s", "by": "evict", "count": 3}"#), "");
        assert!(refused(r#"{"name": "scale", "at": "5s"}"#).contains("`for: 10s`"));
        assert!(refused(r#"{"name": "node-pressure", "at": "5s", "for": "9s", "cpu": 0}"#).contains("0.01 to 64"));
        assert!(refused(r#"{"name": "certificate-expiry", "at": "5s", "valid": "9s"}"#).contains("15s or more"));
        assert_eq!(Name::PodKill.row().drawn.for_s, 20);
    }
}
