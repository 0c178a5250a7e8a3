//! The total resources of a pod's containers.
//!
//! The resources of running containers add up. Of the init containers that end, only the largest counts, together with
//! the sidecars that run at the same time (KEP-753, "Resources calculation for scheduling and pod admission").

use std::collections::BTreeMap;

use mock_cel::Quantity;
use serde_json::{Map, Value};

type Amounts<'a> = BTreeMap<&'a str, Quantity>;

/// The total of `requests` or `limits`, by the name of the resource.
pub(in crate::kinds) fn of<'a>(spec: &'a Value, which: &str) -> Amounts<'a> {
    let of = |container: &'a Value| -> Amounts<'a> {
        let amounts = container["resources"][which].as_object().into_iter().flat_map(Map::iter);
        amounts.filter_map(|(name, value)| Some((name.as_str(), Quantity::parse(value.as_str()?)?))).collect()
    };
    let list = |list: &str| spec[list].as_array().map_or(&[][..], Vec::as_slice);
    let mut total = Amounts::new();
    for container in list("containers") {
        add(&mut total, &of(container));
    }
    let (mut staying, mut before) = (Amounts::new(), Amounts::new());
    for container in list("initContainers") {
        let mut now = of(container);
        if container["restartPolicy"] == "Always" {
            add(&mut total, &now);
            add(&mut staying, &now);
            now.clone_from(&staying);
        } else {
            add(&mut now, &staying);
        }
        most(&mut before, &now);
    }
    most(&mut total, &before);
    total
}

fn add<'a>(sum: &mut Amounts<'a>, more: &Amounts<'a>) {
    for (name, amount) in more {
        sum.entry(name).and_modify(|all| *all = all.plus(*amount)).or_insert(*amount);
    }
}

fn most<'a>(highest: &mut Amounts<'a>, others: &Amounts<'a>) {
    for (name, amount) in others {
        let known = highest.entry(name).or_insert(*amount);
        if *amount > *known {
            *known = *amount;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_ends_before_needs_no_room_of_its_own() {
        let one = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let mut sidecar = one("2");
        sidecar["restartPolicy"] = json!("Always");
        let total = |init: Value| {
            let spec = json!({"containers": [one("1"), one("500m")], "initContainers": init});
            of(&spec, "requests")["cpu"].canonical()
        };
        assert_eq!(total(json!([])), "1500m");
        assert_eq!(total(json!([one("1")])), "1500m");
        assert_eq!(total(json!([one("3")])), "3");
        assert_eq!(total(json!([sidecar])), "3500m");
        assert_eq!(total(json!([sidecar, one("3")])), "5");
        assert_eq!(total(json!([one("3"), sidecar])), "3500m");
    }
}
