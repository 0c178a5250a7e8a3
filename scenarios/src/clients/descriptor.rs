//! `subject.yaml`: what there is to know of a client before it is run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use crate::scenario::Need;

/// One client with its versions and ways of use.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Client {
    /// As its registry calls it.
    #[serde(rename = "client")]
    pub(super) name: String,
    /// What runs the adapter.
    pub(super) run: Run,
    /// Which clocks were changed, for the reader of a table.
    #[serde(default)]
    pub(super) clocks: String,
    /// What installs it into its folder, for a command of its own.
    #[serde(default)]
    pub(super) install: Option<Install>,
    /// Variables for the adapter. They may only shorten what the client itself offers as an option.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// What it cannot do, whichever way it is used.
    #[serde(default)]
    pub(super) cannot: Vec<Need>,
    /// One column of a table each; without any it is one, called as the client is.
    #[serde(default)]
    pub(super) columns: Vec<Entry>,
}

/// How a client is installed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Install {
    /// Program and arguments, run in the folder.
    pub(super) run: Vec<String>,
    /// What is there afterwards, from the folder on: while it is there nothing is run.
    pub(super) makes: PathBuf,
}

/// What runs an adapter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) enum Run {
    /// Longhaul's own service, which needs no adapter.
    Service,
    /// This file, by node.
    Node(String),
    /// These arguments, by Python.
    Python(Vec<String>),
    /// This file of Go, built with the adapter's `go.mod`.
    Go(String),
    /// This class of Java, compiled with the packages of the adapter's `pom.xml`.
    Java(String),
    /// A program beside `longhaul`.
    Program(String),
    /// Program and arguments; those that are files of the folder are taken from there.
    Command(Vec<String>),
}

/// A version used in one way.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Entry {
    /// Unique; lower-case, such as `kfc-2.3.1`.
    pub(super) id: String,
    /// The exact version.
    #[serde(default)]
    pub(super) version: String,
    /// Which of the client's ways to watch is used.
    #[serde(default)]
    pub(super) mode: String,
    /// Further arguments of the adapter.
    #[serde(default)]
    pub(super) arguments: Vec<String>,
    /// What it cannot do in this version or used in this way.
    #[serde(default)]
    pub(super) cannot: Vec<Need>,
    /// The only HTTP version that it is offered; both when it is empty.
    #[serde(default)]
    pub(super) http: Vec<u8>,
}
