//! HTTP/1.1 as a read-only registry needs it: a request's head, what it asks for, and the answer.
//!
//! No I/O but reading the files that are served. What a stranger sends is bounded before it is looked at.

mod answer;
mod head;
mod range;
mod route;

pub use answer::{Answer, Body, answer};
pub use head::{HEAD_BYTES_MAX, Head, HeadError, complete, parse};
