//! The client that writes fields, as `managedFields` names it.

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
    /// The time of the entry in `managedFields`.
    pub now: Timestamp,
}
