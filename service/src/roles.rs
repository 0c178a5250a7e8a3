//! The list of roles. A new one is a crate, and a line here.

use service_core::role::Role;

/// What a process can be, as far as it is built in. Whoever lends stands before those who borrow.
pub const ROLES: &[&dyn Role] = &[
    #[cfg(feature = "manager")]
    &service_admission::Manager,
    #[cfg(feature = "watch")]
    &service_packages::Packages,
    #[cfg(feature = "replicas")]
    &service_replicas::Replicas,
];
