//! What a run is: its scenario, its subject and the witness of what that saw.
//!
//! Reads and checks files, starts and ends a subject, asks a witness. How a run goes is said in `scenarios`.

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
