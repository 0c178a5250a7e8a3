//! `ServiceAccount`: the identity of pods when they use the API.

use super::{Generation, Kind, Meaning};
use crate::fields::each;

pub(super) const SERVICE_ACCOUNT: Kind = Kind {
    about: "A name under which pods talk to the API.",
    cells: |row| vec![row.name(), row.items("/secrets").len().into(), row.age()],
    // Of a reference to a secret only the name counts.
    defaults: |value| {
        each(value, "secrets", |secret| {
            if let Some(fields) = secret.as_object_mut() {
                fields.retain(|name, _| name == "name");
            }
        });
    },
    generation: Generation::None,
    shown_when_deleted: true,
    meaning: Meaning::ServiceAccount,
    ..Kind::of("serviceaccounts")
};
