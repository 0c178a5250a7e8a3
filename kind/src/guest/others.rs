//! Other guests in a cluster: dead ones, whose things are taken away, and such as may be alive.

use std::time::Duration;

use serde_json::Value;

use super::{Error, GUEST, LABEL, OWNER};
use crate::labelled::Labelled;
use crate::state::Identity;
use crate::step::{Step, Tool};

const ASK_LIMIT: Duration = Duration::from_secs(20);

/// Takes away what guests of this machine left that are no more. Another one that may be alive is an error.
pub(super) async fn take_away_the_dead(tool: &Tool, own: &Labelled) -> Result<(), Error> {
    let words = ["get", "namespaces", "-l", GUEST, "-o", "json"];
    let list = Step::new("look for other guests", "use an administrator's kubeconfig", tool, words)
        .within(ASK_LIMIT)
        .call()
        .await?;
    let list: Value = serde_json::from_str(&list).unwrap_or_default();
    for namespace in list["items"].as_array().into_iter().flatten() {
        let mark = namespace["metadata"]["labels"][LABEL].as_str().unwrap_or_default();
        if mark == own.mark || mark.is_empty() {
            continue;
        }
        let owner = namespace["metadata"]["annotations"][OWNER].as_str();
        let who = owner.and_then(|owner| serde_json::from_str::<Identity>(owner).ok());
        if let Some(who) = occupant(who.as_ref()) {
            return Err(Error::Occupied { who, mark: mark.to_owned() });
        }
        own.with_mark(mark).take_away().await?;
    }
    Ok(())
}

/// Who may still be there; none of whom it is known that he is not.
fn occupant(owner: Option<&Identity>) -> Option<String> {
    let Some(owner) = owner else { return Some("nobody knows whose".to_owned()) };
    if owner.is_alive() {
        return Some(format!("the run of process {} on this machine", owner.pid));
    }
    let here = Identity::of_self().ok().map(|own| own.boot);
    (here.as_ref() != Some(&owner.boot))
        .then(|| "a run of another machine, or of this one before it was started anew".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_guest_that_surely_is_dead_is_no_occupant() {
        let own = Identity::of_self().unwrap();
        assert!(occupant(Some(&own)).unwrap().contains("the run of process"));
        let dead = Identity { start_ticks: own.start_ticks + 1, ..own.clone() };
        assert_eq!(occupant(Some(&dead)), None);
        let elsewhere = Identity { boot: "other".to_owned(), ..dead };
        assert!(occupant(Some(&elsewhere)).unwrap().contains("another machine"));
        assert!(occupant(None).is_some());
    }
}
