//! Who writes, as `managedFields` names it.

use jiff::Timestamp;

/// Who applies.
#[derive(Debug, Clone, Copy)]
pub struct Manager<'a> {
    /// `fieldManager`.
    pub name: &'a str,
    /// It takes fields from others.
    pub force: bool,
    /// The version that the intent is written in.
    pub api_version: &'a str,
    /// Empty for the object itself.
    pub subresource: &'a str,
    /// The time of the entry.
    pub now: Timestamp,
}
