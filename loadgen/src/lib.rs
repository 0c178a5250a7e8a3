//! Open-loop load: admission reviews at a webhook, and object churn at a Kubernetes API.
//!
//! This crate owns the time at which each request is sent and its measured duration: planned arrivals, the pacing
//! thread, the clients and the histograms. Arrivals never wait for answers, so a slow subject cannot slow its own test
//! down; latency counts from the planned time. It knows nothing of scenarios, run records or verdicts, and never judges
//! its numbers: it counts.
//!
//! All workloads share one engine (`open_loop`: the due times, the lateness, and the end):
//!
//! - [`admission`] sends `AdmissionReview`s made before the clock starts, as kube-apiserver sends them, and knows the
//!   right answer to each;
//! - [`churn`] keeps a constant population of objects under ever-new names, uids and namespaces;
//! - [`script`] writes the objects of a scenario at the scenario's times;
//! - [`calls`] reads and sets the counts of Deployments through a subject that offers that, and gets the right counts
//!   from the control plane.
//!
//! Beside them, [`audit`] watches the commits of a real control plane, whose inside is not accessible.

pub mod admission;
mod arrivals;
pub mod audit;
pub mod calls;
pub mod churn;
mod examples;
mod failure;
mod histogram;
mod one_or_more;
mod open_loop;
pub mod script;
mod seed;
mod size;
mod socket;
mod wire;

pub use arrivals::{Arrivals, LineError, Ramp, RecordingError, Schedule, Shape, Sine, Stairs, Step};
pub use histogram::{HIGHEST_US, LOWEST_US, SIGNIFICANT_DIGITS};
pub use size::Size;
