//! `RuntimeClass`: a container runtime that pods can choose.

use mock_cel::formats::{LABEL, is_label};
use serde_json::Value;

use super::print::Cells;
use super::{Causes, Generation, Kind};
use crate::status::Cause;

pub(super) const RUNTIME_CLASS: Kind = Kind {
    about: "A way to run containers that pods can ask for.",
    cells: CELLS,
    check,
    fixed: &["/handler"],
    needs_revision: true,
    generation: Generation::None,
    created_by_update: true,
    ..Kind::of("runtimeclasses.node.k8s.io")
};

/// Checks that the handler is a DNS label, because every node uses the handler in a file name.
fn check(value: &Value, causes: &mut Causes) {
    let handler = value["handler"].as_str().unwrap_or_default();
    if !is_label(handler) {
        causes.push(Cause::invalid("handler", &format!("\"{handler}\""), LABEL));
    }
}

const CELLS: Cells = |row| vec![row.name(), row.text("/handler").into(), row.age()];
