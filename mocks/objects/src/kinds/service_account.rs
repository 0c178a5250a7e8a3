//! `ServiceAccount`: a name under which pods talk to the API.

use super::{Generation, Kind, Meaning};

pub(super) const SERVICE_ACCOUNT: Kind = Kind {
    about: "A name under which pods talk to the API.",
    cells: |row| vec![row.name(), row.items("/secrets").len().into(), row.age()],
    generation: Generation::None,
    shown_when_deleted: true,
    meaning: Meaning::ServiceAccount,
    ..Kind::of("serviceaccounts")
};
