//! The resources that the janitor follows: it may answer a commit to one of them with a commit of its own.

use mock_objects::catalogue::Resource;
use mock_objects::kinds::Meaning;

/// Roles that can be aggregated.
pub(crate) fn roles(resource: &Resource) -> bool {
    resource.rules.meaning == Meaning::ClusterRole
}

/// Namespaces, which get an account and a config map.
pub(crate) fn namespaces(resource: &Resource) -> bool {
    resource.rules.meaning == Meaning::Namespace
}
