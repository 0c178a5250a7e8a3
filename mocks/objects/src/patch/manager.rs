//! The writer of fields, as `managedFields` names it.

use jiff::Timestamp;

#[derive(Debug, Clone, Copy)]
pub struct Manager<'a> {
    /// The field manager's name.
    pub name: &'a str,
    /// Whether the manager takes fields from others.
    pub force: bool,
    /// The version in which the intent is written.
    pub api_version: &'a str,
    /// Empty for the object itself.
    pub subresource: &'a str,
    /// The time of the entry.
    pub now: Timestamp,
}
