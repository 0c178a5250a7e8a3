//! The pretend outside world: what a subject talks to when there is no cluster.
//!
//! Owns the mock API server with its faults, the mock registry, and the certificates that both serve with. It must not
//! know what a run or a verdict is.

pub mod kube;

pub use mock_faults as faults;
pub use mock_pki as pki;
pub use mock_proxy as proxy;
pub use mock_registry as registry;
