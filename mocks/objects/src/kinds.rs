//! The built-in kinds: each is one static of the type `Kind`.
//!
//! Owns the server's behaviour for the objects of a kind: defaults, rules, cells of tables. The module `builtin` owns
//! names, versions, types and columns. Other code reads the static of a kind and never compares the names of kinds. If
//! a kind has no static, its objects are only checked against their types. A kind does no I/O and knows neither the
//! catalogue nor its callers.

mod admission_policies;
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
mod flow_control;
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
mod others;
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
mod storage_drivers;
mod texts;
mod webhook_configurations;
mod workload;

use std::collections::BTreeMap;

use mock_cel::Quantity;
use serde_json::Value;

pub use kind::{Bare, Ending, Kind, Meaning, Review, SubresourceFields};
pub(crate) use kind::{CUSTOM, Causes, Generation, Mirror, Names, Older};

/// The sum of `requests` or of `limits` of all containers in a pod's specification, for each resource name.
pub fn pod_total<'a>(spec: &'a Value, which: &str) -> BTreeMap<&'a str, Quantity> {
    pod_spec::total::of(spec, which)
}

pub(crate) fn of(full_name: &str) -> &'static Kind {
    ALL.iter().chain(&reviews::ALL).find(|kind| kind.name == full_name).unwrap_or(&kind::PLAIN)
}

/// The built-in kinds with behaviour of their own, except reviews.
static ALL: &[Kind] = &[
    namespace::NAMESPACE,
    node::NODE,
    persistent_volume::PERSISTENT_VOLUME,
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
    admission_policies::POLICY,
    admission_policies::BINDING,
    admission_policies::MUTATING_POLICY,
    admission_policies::MUTATING_BINDING,
    flow_control::FLOW_SCHEMA,
    flow_control::PRIORITY_LEVEL,
    storage_drivers::CSI_DRIVER,
    storage_drivers::CSI_NODE,
    storage_drivers::CSI_STORAGE_CAPACITY,
    storage_drivers::VOLUME_ATTACHMENT,
    storage_drivers::VOLUME_ATTRIBUTES_CLASS,
    storage_drivers::DEVICE_CLASS,
    storage_drivers::RESOURCE_CLAIM,
    storage_drivers::RESOURCE_CLAIM_TEMPLATE,
    storage_drivers::RESOURCE_SLICE,
    others::COMPONENT_STATUS,
    others::RESOURCE_QUOTA,
    others::SERVICE_CIDR,
    others::IP_ADDRESS,
    others::API_SERVICE,
];

#[cfg(test)]
mod tests;
