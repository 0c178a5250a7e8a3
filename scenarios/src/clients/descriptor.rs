//! The format of `subject.yaml`, which describes a client.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use crate::scenario::Need;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Client {
    /// The client's name in its package registry.
    #[serde(rename = "client")]
    pub(super) name: String,
    pub(super) run: Run,
    /// Timeouts and intervals that are shorter than the client's defaults, as text for a table.
    #[serde(default)]
    pub(super) clocks: String,
    /// The installation into the client's folder, for a client that is started by `command`.
    #[serde(default)]
    pub(super) install: Option<Install>,
    /// Environment variables for the adapter. Variables may only shorten periods that the client itself offers as
    /// options.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// Features that the client lacks in every version and mode.
    #[serde(default)]
    pub(super) cannot: Vec<Need>,
    /// The client's columns of the matrix. If the list is empty, the client has one column with its own name.
    #[serde(default)]
    pub(super) columns: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Install {
    /// Program and arguments, run in the client's folder.
    pub(super) run: Vec<String>,
    /// Path of a file that the installation creates, relative to the folder. If the file exists, the installation is
    /// skipped.
    pub(super) makes: PathBuf,
}

/// How an adapter is started.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) enum Run {
    /// The built-in service, which needs no adapter.
    Service,
    /// A JavaScript file for node.
    Node(String),
    /// Arguments of the Python interpreter.
    Python(Vec<String>),
    /// A Go file, built with the adapter's `go.mod`.
    Go(String),
    /// A Java class, compiled with the packages of the adapter's `pom.xml`.
    Java(String),
    /// A program that a build puts beside `longhaul`.
    Program(String),
    /// Program and arguments. File names in the client's folder are replaced by paths.
    Command(Vec<String>),
}

/// A column of the matrix: one version and one mode of a client.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Entry {
    /// A unique lower-case name, such as `kfc-2.3.1`.
    pub(super) id: String,
    #[serde(default)]
    pub(super) version: String,
    /// The client's function that watches, such as an informer.
    #[serde(default)]
    pub(super) mode: String,
    /// Further arguments of the adapter.
    #[serde(default)]
    pub(super) arguments: Vec<String>,
    /// Features that the client lacks in this version or mode.
    #[serde(default)]
    pub(super) cannot: Vec<Need>,
    /// The only HTTP version that the client is offered; empty for HTTP/1.1 and HTTP/2.
    #[serde(default)]
    pub(super) http: Vec<u8>,
}
