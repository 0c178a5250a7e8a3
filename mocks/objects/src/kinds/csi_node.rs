//! `CSINode`: which storage drivers a node has.

use super::print::{AGE, NAME, Printer};
use super::{Generation, Kind};
use crate::fields::shown_empty;

pub(super) const CSI_NODE: Kind = Kind {
    messages: &[
        ("CSINode", "1:metadata:ObjectMeta 2:spec:CSINodeSpec"),
        ("CSINodeSpec", "1:drivers:[CSINodeDriver]!"),
        ("CSINodeDriver", "1:name:s! 2:nodeID:s! 3:topologyKeys:[s]! 4:allocatable:VolumeNodeResources"),
        ("VolumeNodeResources", "1:count:i?"),
    ],
    printer: PRINTER,
    defaults: |value| shown_empty(value, &["spec"], "drivers"),
    generation: Generation::None,
    shown_when_deleted: true,
    ..Kind::cluster("storage.k8s.io", &["v1"], "csinodes", "CSINode")
};

const PRINTER: Printer = Printer {
    columns: &[NAME, ("Drivers", "integer", 0), AGE],
    cells: |row| vec![row.name(), row.items("/spec/drivers").len().into(), row.age()],
};
