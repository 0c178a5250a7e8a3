//! The subject's own metrics: its Prometheus page, read every few seconds into the record.
//!
//! `exposition` parses lines of the page, `selector` selects series, `heap` has the names of heap metrics, and
//! `scraper` sends the requests. The parser of metrics pages is Longhaul's own, because only a small subset of the
//! format is needed. Every parser library that was tried ends the labels at a `}` inside a label's value, or has an
//! unsuitable licence.

mod exposition;
mod heap;
mod scraper;
mod selector;

pub use scraper::{Scraper, every};
pub use selector::{Labelled, Selector};
