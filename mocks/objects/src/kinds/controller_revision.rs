//! `ControllerRevision`: an earlier template of a workload.

use serde_json::{Value, json};

use super::causes::at_least;
use super::print::{Cells, NONE};
use super::{Causes, Generation, Kind};
use crate::status::Cause;

pub(super) const CONTROLLER_REVISION: Kind =
    Kind { cells: CELLS, check, generation: Generation::None, ..Kind::of("controllerrevisions.apps") };

fn check(value: &Value, causes: &mut Causes) {
    if value["data"].is_null() {
        causes.push(Cause::required("data", "data is mandatory"));
    }
    at_least(value, "/revision", "revision", 0, causes);
}

const CELLS: Cells = |row| {
    let owner = row.items("/metadata/ownerReferences").find(|owner| owner["controller"] == json!(true));
    let owner = owner.map(|owner| {
        let text = |key: &str| owner[key].as_str().unwrap_or_default();
        let kind = text("kind").to_lowercase();
        match text("apiVersion").split_once('/') {
            Some((group, _)) => format!("{kind}.{group}/{}", text("name")),
            None => format!("{kind}/{}", text("name")),
        }
    });
    vec![row.name(), owner.map_or(NONE.into(), Value::from), row.number("/revision").into(), row.age()]
};
