//! `PodTemplate`: a stored template of pods.

use super::at::At;
use super::print::{Cells, labels};
use super::{Kind, pod_spec};

pub(super) const POD_TEMPLATE: Kind = Kind {
    cells: CELLS,
    defaults: |value| pod_spec::fill_template(value, "/template"),
    check: |value, causes| pod_spec::check_template(&value["template"], At::from("template"), causes),
    shown_when_deleted: true,
    ..Kind::of("podtemplates")
};

const CELLS: Cells = |row| {
    let spec = "/template/spec";
    let own = labels(row.at("/template/metadata/labels"));
    vec![row.name(), row.containers(spec, "name"), row.containers(spec, "image"), own]
};
