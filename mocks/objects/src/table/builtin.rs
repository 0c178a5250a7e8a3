//! Which printer each built-in kind has.

use super::print::Printer;
use super::{cluster, events, network, storage, workloads};
use crate::catalogue::Resource;

/// How the objects of a built-in resource are shown.
pub(super) fn printer(resource: &Resource) -> &'static Printer {
    match &*resource.full_name {
        "pods" => &workloads::POD,
        "podtemplates" => &workloads::POD_TEMPLATE,
        "deployments.apps" => &workloads::DEPLOYMENT,
        "replicasets.apps" => &workloads::REPLICA_SET,
        "replicationcontrollers" => &workloads::REPLICATION_CONTROLLER,
        "statefulsets.apps" => &workloads::STATEFUL_SET,
        "daemonsets.apps" => &workloads::DAEMON_SET,
        "jobs.batch" => &workloads::JOB,
        "cronjobs.batch" => &workloads::CRON_JOB,
        "controllerrevisions.apps" => &workloads::CONTROLLER_REVISION,
        "services" => &network::SERVICE,
        "endpoints" => &network::ENDPOINTS,
        "endpointslices.discovery.k8s.io" => &network::ENDPOINT_SLICE,
        "ingresses.networking.k8s.io" => &network::INGRESS,
        "ingressclasses.networking.k8s.io" => &network::INGRESS_CLASS,
        "networkpolicies.networking.k8s.io" => &network::NETWORK_POLICY,
        "persistentvolumeclaims" => &storage::CLAIM,
        "persistentvolumes" => &storage::VOLUME,
        "storageclasses.storage.k8s.io" => &storage::CLASS,
        "volumeattachments.storage.k8s.io" => &storage::ATTACHMENT,
        "csidrivers.storage.k8s.io" => &storage::DRIVER,
        "csinodes.storage.k8s.io" => &storage::NODE_DRIVERS,
        "namespaces" => &cluster::NAMESPACE,
        "nodes" => &cluster::NODE,
        "configmaps" => &cluster::CONFIG_MAP,
        "secrets" => &cluster::SECRET,
        "serviceaccounts" => &cluster::SERVICE_ACCOUNT,
        "leases.coordination.k8s.io" => &cluster::LEASE,
        "rolebindings.rbac.authorization.k8s.io" | "clusterrolebindings.rbac.authorization.k8s.io" => {
            &cluster::ROLE_BINDING
        }
        "resourcequotas" => &cluster::QUOTA,
        "poddisruptionbudgets.policy" => &cluster::DISRUPTION_BUDGET,
        "horizontalpodautoscalers.autoscaling" => &cluster::AUTOSCALER,
        "priorityclasses.scheduling.k8s.io" => &cluster::PRIORITY_CLASS,
        "runtimeclasses.node.k8s.io" => &cluster::RUNTIME_CLASS,
        "certificatesigningrequests.certificates.k8s.io" => &cluster::SIGNING_REQUEST,
        "validatingwebhookconfigurations.admissionregistration.k8s.io"
        | "mutatingwebhookconfigurations.admissionregistration.k8s.io" => &cluster::WEBHOOKS,
        "apiservices.apiregistration.k8s.io" => &cluster::API_SERVICE,
        "events" | "events.events.k8s.io" => &events::EVENT,
        _ => &cluster::PLAIN,
    }
}
