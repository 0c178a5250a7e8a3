//! Open-loop load: admission reviews for a webhook, object churn in a Kubernetes API, scripted writes, and calls of an
//! API over Deployments.
//!
//! This crate owns the planned times of requests and their measured durations: the pacing thread, the clients and the
//! histograms. Arrivals never wait for answers, so a slow subject cannot slow its own test down. Latency counts from
//! the planned time. The crate knows nothing of scenarios, run records or verdicts. It counts, and does not judge its
//! numbers.
//!
//! All kinds of load use one engine (`open_loop`), which owns due times, lateness and the end:
//!
//! - [`admission`] sends `AdmissionReview`s made before the clock starts, as kube-apiserver sends them, and knows the
//!   right answer to each;
//! - [`churn`] keeps a constant population of objects under ever-new names, uids and namespaces;
//! - [`script`] writes the objects of a scenario at the scenario's times;
//! - [`calls`] reads and sets the counts of Deployments through a subject that offers that, and gets the right counts
//!   from the control plane.
//!
//! The module [`audit`] watches the commits of a real control plane, whose internal state cannot be read.

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
