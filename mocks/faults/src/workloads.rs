//! `not-ready` and `flapping`: workloads do not become ready, stop being ready, or alternate between ready and not
//! ready. The mock API server's simulation of kubelet and controllers injects these faults and counts their hits.

use units::Span;

use super::settings::keys;
use super::settings::{Family, Row};
use super::{Behaviour, Error, Fault, PlayedRow};

/// The default time for which a flapping workload is ready, and then not ready.
pub const PERIOD: Span = Span::from_secs(2);
/// The shortest period of a flapping workload, shorter than in a real cluster: a kubelet checks its containers only
/// once a second.
const PERIOD_LEAST: Span = Span::from_millis(100);

keys! {
    pub struct NotReadyKeys {
        share "share": f64 = ("1", "share of the workloads, 0 to 1, chosen by the seed"),
    }
}

keys! {
    pub struct FlappingKeys {
        share "share": f64 = ("1", "share of the workloads, 0 to 1, chosen by the seed"),
        period "period": Span = ("2s", "length of each state"),
    }
}

const fn row(name: &'static str, doc: &'static str) -> Row {
    Row::new(Family::Workloads, name, doc)
}

pub(super) const NOT_READY: PlayedRow = row("not-ready", "Workloads stop being ready, and new ones do not become so.")
    .takes::<NotReadyKeys>()
    .refuses(|fault| chosen(fault, fault.keys::<NotReadyKeys>().share))
    .sees("Pods are not ready, claims stay pending and load balancers have no address until the fault ends")
    .hit("a Pod, claim or service that would be ready")
    .played(|_: &Fault| Box::new(WithoutEffect));

pub(super) const FLAPPING: PlayedRow = row("flapping", "Workloads stop being ready, become ready again, and so on.")
    .takes::<FlappingKeys>()
    .refuses(|fault| {
        let keys = fault.keys::<FlappingKeys>();
        if let Some(given) = keys.period.filter(|period| *period < PERIOD_LEAST) {
            let instead = "write 100ms or more: a shorter period cannot be seen";
            return Err(Error::Value { key: "period", given: given.to_string(), instead });
        }
        chosen(fault, keys.share)
    })
    .sees("as `not-ready`, by turns off and on; it begins with not ready")
    .hit("each time that a Pod, claim or service stops being ready")
    .played(|_: &Fault| Box::new(WithoutEffect));

fn chosen(fault: &Fault, share: Option<f64>) -> Result<(), Error> {
    if let Some(given) = fault.probability {
        let instead = "leave it out: `share` says how many of the workloads are struck";
        return Err(Error::Value { key: "probability", given: given.to_string(), instead });
    }
    match share.filter(|share| !(*share > 0.0 && *share <= 1.0)) {
        Some(given) => {
            Err(Error::Value { key: "share", given: given.to_string(), instead: "write a number from 0.01 to 1" })
        }
        None => Ok(()),
    }
}

/// A behaviour without effects: the simulation of workloads asks for the active faults itself.
#[derive(Debug)]
struct WithoutEffect;

impl Behaviour for WithoutEffect {}

#[cfg(test)]
mod tests {
    use super::super::Fault;

    #[test]
    fn a_share_is_a_part_and_a_period_can_be_seen() {
        let said = |text: &str| {
            let fault: Fault = serde_json::from_str(text).unwrap();
            fault.check().map_or_else(|error| error.to_string(), |()| String::new())
        };
        assert_eq!(
            said(r#"{"name": "not-ready", "at": "5s", "for": "9s", "share": 0.3, "resource": "deployments"}"#),
            ""
        );
        assert!(said(r#"{"name": "not-ready", "share": 0}"#).contains("0.01 to 1"));
        assert!(said(r#"{"name": "flapping", "share": 1.5}"#).contains("0.01 to 1"));
        assert!(said(r#"{"name": "flapping", "period": "5ms"}"#).contains("100ms or more"));
        assert!(said(r#"{"name": "not-ready", "probability": 0.5}"#).contains("`share` says"));
        assert!(said(r#"{"name": "flapping", "on": "list"}"#).contains("`on`"));
    }
}
