//! `subject.yaml`: the description of a client, read before it is run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use crate::scenario::Need;

/// One client with its versions and ways of use.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Client {
    /// The client's name in its package registry.
    #[serde(rename = "client")]
    pub(super) name: String,
    /// The way to run the adapter.
    pub(super) run: Run,
    /// The clocks that were changed, in words for a table.
    #[serde(default)]
    pub(super) clocks: String,
    /// The installation into its folder, for a client with a command of its own.
    #[serde(default)]
    pub(super) install: Option<Install>,
    /// Variables for the adapter. They may only shorten periods that the client itself offers as an option.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// Abilities that it lacks in every column.
    #[serde(default)]
    pub(super) cannot: Vec<Need>,
    /// Columns of a table. Without any, the client is one column under its own name.
    #[serde(default)]
    pub(super) columns: Vec<Entry>,
}

/// The installation of a client.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Install {
    /// Program and arguments, run in the folder.
    pub(super) run: Vec<String>,
    /// Path of a result, relative to the folder. If it exists, nothing is run.
    pub(super) makes: PathBuf,
}

/// The way to run an adapter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) enum Run {
    /// Longhaul's own service, which needs no adapter.
    Service,
    /// A JavaScript file that node runs.
    Node(String),
    /// Arguments of the Python interpreter.
    Python(Vec<String>),
    /// A Go file, built with the adapter's `go.mod`.
    Go(String),
    /// A Java class, compiled with the packages of the adapter's `pom.xml`.
    Java(String),
    /// A program beside `longhaul`.
    Program(String),
    /// Program and arguments. Names of files in the folder are resolved there.
    Command(Vec<String>),
}

/// One version of a client, used in one way.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Entry {
    /// A unique lower-case name, such as `kfc-2.3.1`.
    pub(super) id: String,
    #[serde(default)]
    pub(super) version: String,
    /// The client's way to watch that is used.
    #[serde(default)]
    pub(super) mode: String,
    /// Further arguments of the adapter.
    #[serde(default)]
    pub(super) arguments: Vec<String>,
    /// Abilities that it lacks in this version or way of use.
    #[serde(default)]
    pub(super) cannot: Vec<Need>,
    /// The only HTTP version that it is offered; empty for both.
    #[serde(default)]
    pub(super) http: Vec<u8>,
}
