//! The subject's own metrics: its Prometheus page, read every few seconds into the record.
//!
//! Owns the values that are read of a page. `exposition` parses its lines, `selector` picks series, `heap` knows the
//! names of the heap in use in runtimes and allocators, `scraper` makes the requests. The parser is our own, because
//! the needed part is small. Every tried library for this format takes a `}` in a label's value for the end of the
//! labels, or has an unsuitable licence.

mod exposition;
mod heap;
mod scraper;
mod selector;

pub use scraper::{Scraper, every};
pub use selector::{Labelled, Selector};
