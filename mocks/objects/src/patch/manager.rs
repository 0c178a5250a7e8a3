//! The field manager of a request: the client whose writes `managedFields` records.

use jiff::Timestamp;

#[derive(Debug, Clone, Copy)]
pub struct Manager<'a> {
    pub name: &'a str,
    /// Whether the manager takes over fields of other managers.
    pub force: bool,
    /// The `apiVersion` of the object that the manager sent.
    pub api_version: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The time for the manager's entry in `managedFields`.
    pub now: Timestamp,
}
