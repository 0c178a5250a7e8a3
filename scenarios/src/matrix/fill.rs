//! Filling the table: which cells are wanted, and running those that are not known yet.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::process::Command;
use tokio::task::JoinSet;

use super::table::{Cell, ColumnHead, Outcome, RowHead, Table};
use crate::clients::{self, Column};
use crate::out::out;

/// A cell may take as long as the slowest scenario, with its start and its end. More means that the run hangs.
const CELL_TIMEOUT: Duration = Duration::from_mins(20);
/// The file that an interrupted run goes on from.
const FILE: &str = "matrix.json";

/// What is wanted.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Names of columns; empty for all.
    pub clients: Vec<String>,
    /// Names of rows, or their numbers in the catalogue; empty for all.
    pub rows: Vec<String>,
    /// How many runs at once.
    pub jobs: usize,
    /// The folder of the table and of the run records.
    pub out: PathBuf,
    /// Whether cells that are in the folder's table stay as they are.
    pub resume: bool,
}

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that nobody has.
    #[error("there is no {what} `{name}`{suggestion}; `longhaul matrix --list` names all")]
    Unknown {
        /// `client` or `row`.
        what: &'static str,
        /// What was asked for.
        name: String,
        /// What is near.
        suggestion: String,
    },
    /// The table of an earlier run cannot be used.
    #[error("failed to go on from {path}: {why}; leave out --resume to begin anew")]
    Resume {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file of the table.
    #[error("failed to write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The page.
    #[error("failed to render the table: {0}")]
    Render(#[from] askama::Error),
}
