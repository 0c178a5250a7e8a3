//! `cargo xtask matrix`: runs real clients against documented bugs and writes one table.
//!
//! Owns the table (`table`), its formats (`render`) and the order in which cells are filled (`fill`). Each cell is one
//! `longhaul soak bugs/NAME` in its own process, so that runs cannot affect each other. A cell shows only facts from
//! the record of its run.

mod fill;
mod render;
mod table;

pub use fill::{Choice, Error, fill, table_for};
pub use render::{html, markdown};
pub use table::{Cell, ColumnHead, Outcome, RowHead, Table};
