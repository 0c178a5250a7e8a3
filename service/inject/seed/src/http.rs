//! HTTP/1.1 as a read-only registry needs it: a request's head, its route, and the answer.
//!
//! The only I/O is reading the served files. Input from strangers is bounded before it is parsed.

mod answer;
mod head;
mod range;
mod route;

pub use answer::{Answer, Body, answer};
pub use head::{HEAD_BYTES_MAX, Head, HeadError, complete, parse};
