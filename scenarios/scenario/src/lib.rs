//! The definition of a run: its scenario, its subject and the subject's witness.
//!
//! Reads and checks files, starts and ends a subject, and reads its witness. The crate `scenarios` runs a scenario.

pub mod accept;
pub mod clock;
pub mod fetch;
pub mod keeper;
pub mod machine;
pub mod metrics;
pub mod out;
pub mod scenario;
pub mod shown;
pub mod subject;
pub mod witness;
