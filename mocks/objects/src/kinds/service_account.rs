//! `ServiceAccount`: the identity of pods when they use the API.

use super::print::Printer;
use super::{Generation, Kind, Meaning, Subresource};

pub(super) const SERVICE_ACCOUNT: Kind = Kind {
    short_names: &["sa"],
    about: "A name under which pods talk to the API.",
    subresources: &[Subresource {
        name: "token",
        kind: "TokenRequest",
        group_version: ("authentication.k8s.io", "v1"),
        verbs: &["create"],
        part: None,
    }],
    messages: &[
        "ServiceAccount 1:metadata:ObjectMeta 2:secrets:[ObjectReference] 3:imagePullSecrets:[LocalObjectReference] \
         4:automountServiceAccountToken:b?",
        "TokenRequest 1:metadata:ObjectMeta 2:spec:TokenRequestSpec 3:status:TokenRequestStatus",
        "TokenRequestSpec 1:audiences:[s]! 3:boundObjectRef:BoundObjectReference 4:expirationSeconds:i?",
        "BoundObjectReference 1:kind:s 2:apiVersion:s 3:name:s 4:uid:s",
        "TokenRequestStatus 1:token:s! 2:expirationTimestamp:T",
    ],
    merge_keys: &[(&["secrets"], "name")],
    published_merges: &[("ServiceAccount", "secrets", "merge", "name")],
    printer: Printer {
        columns: "Name, Secrets, Age",
        cells: |row| vec![row.name(), row.items("/secrets").len().into(), row.age()],
    },
    generation: Generation::None,
    shown_when_deleted: true,
    meaning: Meaning::ServiceAccount,
    ..Kind::namespaced("", &["v1"], "serviceaccounts", "ServiceAccount")
};
