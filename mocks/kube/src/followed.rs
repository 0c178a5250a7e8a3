//! The resources whose commits the janitor follows, because it may have to commit other objects in reply.

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
