//! HTTP/1.1 for a read-only registry: parses a request's head, finds its route, and makes the answer.
//!
//! The only I/O of this module is reading the served files. Requests that are too large are refused before they are
//! parsed.

mod answer;
mod head;
mod range;
mod route;

pub use answer::{Answer, Body, answer};
pub use head::{HEAD_BYTES_MAX, Head, HeadError, complete, parse};
