//! `RuntimeClass`: a container runtime that pods can choose.

use mock_cel::formats::{LABEL, is_label};
use serde_json::Value;

use super::print::Printer;
use super::{Causes, Generation, Kind};
use crate::status::Cause;

pub(super) const RUNTIME_CLASS: Kind = Kind {
    about: "A way to run containers that pods can ask for.",
    messages: &[
        "RuntimeClass 1:metadata:ObjectMeta 2:handler:s! 3:overhead:Overhead 4:scheduling:Scheduling",
        "Overhead 1:podFixed:{Q}",
        "Scheduling 1:nodeSelector:{s} 2:tolerations:[Toleration]",
    ],
    printer: PRINTER,
    check,
    generation: Generation::None,
    ..Kind::cluster("node.k8s.io", &["v1"], "runtimeclasses", "RuntimeClass")
};

/// Checks that the handler is a DNS label, because every node uses the handler in a file name.
fn check(value: &Value, causes: &mut Causes) {
    let handler = value["handler"].as_str().unwrap_or_default();
    if !is_label(handler) {
        causes.push(Cause::invalid("handler", &format!("\"{handler}\""), LABEL));
    }
}

const PRINTER: Printer =
    Printer { columns: "Name, Handler, Age", cells: |row| vec![row.name(), row.text("/handler").into(), row.age()] };
