//! `PodTemplate`: a stored template of pods.

use super::at::At;
use super::print::{Printer, labels};
use super::{Kind, pod_spec};

pub(super) const POD_TEMPLATE: Kind = Kind {
    messages: &["PodTemplate 1:metadata:ObjectMeta 2:template:PodTemplateSpec"],
    pod_spec: &["template", "spec"],
    printer: PRINTER,
    defaults: |value| pod_spec::fill_template(value, "/template"),
    check: |value, causes| pod_spec::check_template(&value["template"], At::from("template"), causes),
    shown_when_deleted: true,
    ..Kind::namespaced("", &["v1"], "podtemplates", "PodTemplate")
};

const PRINTER: Printer = Printer {
    columns: "Name, Containers, Images, Pod Labels",
    cells: |row| {
        let spec = "/template/spec";
        let own = labels(row.at("/template/metadata/labels"));
        vec![row.name(), row.containers(spec, "name"), row.containers(spec, "image"), own]
    },
};
