//! The subject's own metrics: its Prometheus page, read every few seconds into the record.
//!
//! This module owns the values that are read from a page. `exposition` parses lines, `selector` picks series, `heap`
//! knows the names of heap metrics, `scraper` makes the requests. The parser is Longhaul's own, because the needed
//! subset is small. Every parser library that was tried ends the labels at a `}` inside a label's value, or has an
//! unsuitable licence.

mod exposition;
mod heap;
mod scraper;
mod selector;

pub use scraper::{Scraper, every};
pub use selector::{Labelled, Selector};
