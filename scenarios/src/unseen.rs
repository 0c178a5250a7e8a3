//! Removes limits that the chosen witness cannot judge, if the user did not write them for this witness.
//!
//! Each judge itself defines which facts must be observed for its limits.

use reports::judge::unseen_by;

use crate::scenario::Scenario;

/// Removes the limits that the witness cannot decide, and returns their keys.
pub(crate) fn forget(scenario: &mut Scenario) -> Vec<&'static str> {
    let sees = scenario.sees();
    let Some(events) = scenario.budgets.events.as_mut() else { return Vec::new() };
    let unseen: Vec<&'static str> = unseen_by(sees, events).into_iter().map(|(key, _)| key).collect();
    let Ok(serde_json::Value::Object(mut keys)) = serde_json::to_value(&*events) else { return Vec::new() };
    keys.retain(|key, _| !unseen.contains(&key.as_str()));
    if let Ok(left) = serde_json::from_value(serde_json::Value::Object(keys)) {
        *events = left;
    }
    unseen
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Own, Source};

    #[test]
    fn what_the_witness_cannot_tell_is_not_asked() {
        let mut source = Source::read("410-inside-200").unwrap();
        let own = Own { witness: Some(Own::witness("status").unwrap()), ..Own::default() };
        source.own(&own).unwrap();
        let unseen = super::forget(&mut source.scenario);
        assert!(unseen.contains(&"ghost") && !unseen.contains(&"missed"), "{unseen:?}");
        let events = source.scenario.budgets.events.as_ref().unwrap();
        assert!(events.ghost.is_none() && events.missed.is_some());
    }
}
