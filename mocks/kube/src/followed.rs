//! What the janitor follows: a commit to one of these may be followed by another.

use mock_objects::catalogue::Resource;
use mock_objects::kinds::Meaning;

/// Roles that can be aggregated.
pub(crate) fn roles(resource: &Resource) -> bool {
    resource.rules.meaning == Meaning::ClusterRole
}

/// What is furnished with an account and a config map.
pub(crate) fn namespaces(resource: &Resource) -> bool {
    resource.rules.meaning == Meaning::Namespace
}
