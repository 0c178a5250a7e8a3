//! Other runs in a foreign cluster: objects of dead runs are removed; a run that may be alive is an error.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::{Error, LABEL, OWNER};
use crate::labelled::Labelled;
use crate::state::Identity;
use crate::step::{Step, Tool};

const ASK_LIMIT: Duration = Duration::from_secs(20);

/// Removes the objects of dead runs of this machine. If another run may be alive, that is an error.
pub(super) async fn take_away_the_dead(tool: &Tool, own: &Labelled) -> Result<(), Error> {
    let words = ["get", "namespaces", "-l", LABEL, "-o", "json"];
    let list = Step::new("look for other guests", "use an administrator's kubeconfig", tool, words)
        .within(ASK_LIMIT)
        .call()
        .await?;
    let list: Value = serde_json::from_str(&list).unwrap_or_default();
    let mut owners: BTreeMap<&str, Owner> = BTreeMap::new();
    for namespace in list["items"].as_array().into_iter().flatten() {
        let mark = namespace["metadata"]["labels"][LABEL].as_str().unwrap_or_default();
        if mark == own.mark || mark.is_empty() {
            continue;
        }
        let told = namespace["metadata"]["annotations"][OWNER].as_str();
        let owner = owners.entry(mark).or_insert(Owner { who: None, is_going: true });
        owner.who = owner.who.take().or_else(|| told.and_then(|text| serde_json::from_str(text).ok()));
        owner.is_going &= namespace["metadata"]["deletionTimestamp"].is_string();
    }
    for (mark, owner) in owners {
        if let Some(who) = occupant(&owner) {
            return Err(Error::Occupied { who, mark: mark.to_owned() });
        }
        own.with_mark(mark).take_away().await?;
    }
    Ok(())
}

/// The run that made some namespaces of the cluster.
struct Owner {
    /// The process of the run; `None` if the run's own namespace no longer exists.
    who: Option<Identity>,
    /// Whether all namespaces of the run are being deleted, because another process removes the run's objects.
    is_going: bool,
}

/// Describes a run that may still be alive; `None` if the run is known to be dead.
fn occupant(owner: &Owner) -> Option<String> {
    let Some(owner) = &owner.who else { return (!owner.is_going).then(|| "nobody knows whose".to_owned()) };
    if owner.is_alive() {
        return Some(format!("the run of process {} on this machine", owner.pid));
    }
    let here = Identity::of_self().ok().map(|own| own.boot);
    (here.as_ref() != Some(&owner.boot))
        .then(|| "a run of another machine, or of this one before its restart".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_guest_that_surely_is_dead_is_no_occupant() {
        let own = Identity::of_self().unwrap();
        let occupant = |who: Option<&Identity>, is_going| occupant(&Owner { who: who.cloned(), is_going });
        assert!(occupant(Some(&own), false).unwrap().contains("the run of process"));
        let dead = Identity { start_ticks: own.start_ticks + 1, ..own.clone() };
        assert_eq!(occupant(Some(&dead), false), None);
        let elsewhere = Identity { boot: "other".to_owned(), ..dead };
        assert!(occupant(Some(&elsewhere), false).unwrap().contains("another machine"));
        assert!(occupant(None, false).is_some());
        assert_eq!(occupant(None, true), None, "its own namespace went first");
    }
}
