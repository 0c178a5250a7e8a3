//! The built-in kinds: each is one static of the type `Kind`.
//!
//! Owns the list of kinds. Each kind has a file with its names, versions, types, defaults, rules and columns. All other
//! code reads a `Kind` and does not compare names of kinds. Names, short names and scopes are those of `kubectl
//! api-resources` against Kubernetes 1.3x. A kind does no I/O and knows neither the catalogue nor its callers.

mod at;
mod causes;
mod certificate_signing_request;
mod config_map;
mod controller_revision;
mod cron_job;
mod custom_resource_definition;
mod daemon_set;
mod deployment;
mod endpoint_slice;
mod endpoints;
mod event;
mod horizontal_pod_autoscaler;
mod ingress;
mod ingress_class;
mod job;
mod kind;
mod lease;
mod limit_range;
mod namespace;
mod network_policy;
mod node;
mod persistent_volume;
mod persistent_volume_claim;
mod pod;
mod pod_disruption_budget;
mod pod_spec;
mod pod_template;
pub(crate) mod print;
mod priority_class;
mod replica_set;
mod replication_controller;
mod reviews;
mod role_bindings;
mod roles;
mod runtime_class;
mod secret;
mod selectors;
mod service;
mod service_account;
mod stateful_set;
mod storage_class;
mod texts;
mod webhook_configurations;
mod workload;

pub use kind::{Bare, Ending, Kind, Meaning, Part, Review, Subresource};
pub(crate) use kind::{CUSTOM, Causes, Generation, Message, Mirror, Names};

/// Every built-in kind, in the order of discovery.
pub(crate) static ALL: &[Kind] = &[
    namespace::NAMESPACE,
    node::NODE,
    persistent_volume::PERSISTENT_VOLUME,
    reviews::BINDING,
    config_map::CONFIG_MAP,
    endpoints::ENDPOINTS,
    event::EVENT,
    limit_range::LIMIT_RANGE,
    persistent_volume_claim::PERSISTENT_VOLUME_CLAIM,
    pod::POD,
    pod_template::POD_TEMPLATE,
    replication_controller::REPLICATION_CONTROLLER,
    secret::SECRET,
    service_account::SERVICE_ACCOUNT,
    service::SERVICE,
    controller_revision::CONTROLLER_REVISION,
    daemon_set::DAEMON_SET,
    deployment::DEPLOYMENT,
    replica_set::REPLICA_SET,
    stateful_set::STATEFUL_SET,
    cron_job::CRON_JOB,
    job::JOB,
    horizontal_pod_autoscaler::HORIZONTAL_POD_AUTOSCALER,
    pod_disruption_budget::POD_DISRUPTION_BUDGET,
    ingress_class::INGRESS_CLASS,
    ingress::INGRESS,
    network_policy::NETWORK_POLICY,
    roles::CLUSTER_ROLE,
    role_bindings::CLUSTER_ROLE_BINDING,
    roles::ROLE,
    role_bindings::ROLE_BINDING,
    lease::LEASE,
    endpoint_slice::ENDPOINT_SLICE,
    event::EVENTS_EVENT,
    runtime_class::RUNTIME_CLASS,
    priority_class::PRIORITY_CLASS,
    storage_class::STORAGE_CLASS,
    certificate_signing_request::CERTIFICATE_SIGNING_REQUEST,
    webhook_configurations::MUTATING,
    webhook_configurations::VALIDATING,
    custom_resource_definition::CUSTOM_RESOURCE_DEFINITION,
    reviews::TOKEN,
    reviews::MYSELF,
    reviews::ACCESS,
    reviews::MY_ACCESS,
    reviews::MY_RULES,
    reviews::LOCAL_ACCESS,
];

#[cfg(test)]
mod tests;
