//! The resources that the janitor follows: it may react to a commit of such an object with another commit.

use mock_objects::catalogue::Resource;
use mock_objects::kinds::Meaning;

/// Whether objects of the resource are roles that can be aggregated.
pub(crate) fn roles(resource: &Resource) -> bool {
    resource.rules.meaning == Meaning::ClusterRole
}

/// Whether objects of the resource are namespaces, each of which gets a service account and a config map.
pub(crate) fn namespaces(resource: &Resource) -> bool {
    resource.rules.meaning == Meaning::Namespace
}
