//! Descriptions of built-in types and their fields, one sentence each.
//!
//! Owns the texts that `kubectl explain` shows. Most fields have the same meaning in every type; an entry that names a
//! type describes a field that has another meaning in that type. A field without an entry has no description.

use crate::{builtin, kinds};

/// `(type, text)` for types other than kinds; the `Kind` of each kind contains its text.
const TYPES: &[(&str, &str)] = &[
    ("Affinity", "Which nodes and which neighbours a pod prefers or needs."),
    ("Container", "One program of a pod: its image, its command and what it may use."),
    ("DeploymentSpec", "What a Deployment keeps running, and how it goes from one template to the next."),
    ("ObjectMeta", "What every object has: its names, labels, owners and times."),
    ("PodSpec", "What a pod runs, and under which conditions."),
    ("PodStatus", "What became of a pod, as its node last said."),
    ("PodTemplateSpec", "What the pods look like that a controller makes."),
    ("Probe", "How it is found out whether a container is well."),
    ("ResourceRequirements", "How much a container needs at least and may use at most."),
    ("Volume", "A folder that the containers of a pod can mount."),
];

/// `(type, field, text)` for fields with a special meaning in a type.
const FIELDS_OF: &[(&str, &str, &str)] = &[
    ("Container", "name", "The name of the container, unique in its pod."),
    ("Container", "ports", "The ports that the container listens on; for people to know."),
    (
        "DeploymentSpec",
        "selector",
        "Which pods are its own. It must match the labels of the template and never changes.",
    ),
    ("EnvVar", "name", "The name of the environment variable."),
    ("EnvVar", "value", "The text that it has."),
    ("ServiceSpec", "ports", "The ports that the Service listens on."),
    ("ServiceSpec", "selector", "The labels of the pods that it leads to."),
    (
        "ServiceSpec",
        "type",
        "Where the Service can be reached from: ClusterIP, NodePort, LoadBalancer or ExternalName.",
    ),
    ("Secret", "type", "What the secret holds; some types demand certain keys."),
    ("Volume", "name", "The name by which containers mount it."),
];

/// `(field, text)` for fields with the same meaning in all other types.
const FIELDS: &[(&str, &str)] = &[
    ("accessModes", "How a volume may be mounted: by one or by many, to read or to write."),
    ("action", "What was done."),
    ("activeDeadlineSeconds", "After so many seconds it is ended, done or not."),
    ("affinity", "Which nodes and which neighbours are preferred or needed."),
    ("annotations", "Notes of programs and people. Nobody selects by them."),
    ("args", "The arguments of the command; those of the image when absent."),
    ("automountServiceAccountToken", "Whether a token of the service account is mounted."),
    ("availableReplicas", "Pods that have been ready for long enough."),
    ("backoffLimit", "How many failures there may be before all has failed."),
    ("binaryData", "Bytes under keys, in base64."),
    ("blockOwnerDeletion", "Whether the owner, deleted in the foreground, waits for this object."),
    ("capacity", "How much there is."),
    ("clusterIP", "The address of the Service inside the cluster; \"None\" for none."),
    ("command", "The program; that of the image when absent."),
    ("completions", "How many pods must end well."),
    ("concurrencyPolicy", "What happens when the one before still runs: Allow, Forbid or Replace."),
    ("conditions", "What was found out about the object, by type."),
    ("configMap", "Files from a ConfigMap."),
    ("containerPort", "The number of the port."),
    ("containerStatuses", "What became of each container."),
    ("containers", "The programs of the pod, at least one."),
    ("controller", "Whether the owner is the one that manages the object."),
    ("count", "How often it happened."),
    ("creationTimestamp", "When the object was made. The server sets it."),
    ("data", "The values under their keys."),
    ("deletionGracePeriodSeconds", "How many seconds the object is given to end."),
    ("deletionTimestamp", "When the object is to be gone. The server sets it at a deletion."),
    ("dnsPolicy", "Where names are looked up."),
    ("emptyDir", "An empty folder that goes with the pod."),
    ("env", "Environment variables of the container."),
    ("envFrom", "Environment variables from all keys of ConfigMaps and Secrets."),
    ("failurePolicy", "What happens when the webhook cannot be asked: Fail or Ignore."),
    ("finalizers", "Who has something to do before the object may go. It is gone when the list is empty."),
    ("generateName", "The beginning of a name that the server completes."),
    ("generation", "Counts the changes of what is wanted."),
    ("holderIdentity", "Who holds the lease."),
    ("hostNetwork", "Whether the pod uses the network of its node."),
    ("hostname", "The host name that the pod sees."),
    ("image", "The name of the image, with a tag or a digest."),
    ("imagePullPolicy", "When the image is fetched: Always, IfNotPresent or Never."),
    ("imagePullSecrets", "Secrets with what registries ask for."),
    ("immutable", "Whether the data may not change any more."),
    ("initContainers", "Programs that run one after the other before the containers start."),
    ("involvedObject", "The object that it happened to."),
    ("labels", "Words by which objects are selected."),
    ("leaseDurationSeconds", "For how long a lease holds that is not renewed."),
    ("limits", "How much may be used at most."),
    ("livenessProbe", "How it is found out whether the container must be started again."),
    ("managedFields", "Who set which field, for server-side apply."),
    ("matchLabels", "Labels and the values that they must have."),
    ("maxReplicas", "The most replicas there may be."),
    ("message", "A sentence for people."),
    ("metadata", "Names, labels, owners and times of the object."),
    ("minReadySeconds", "For how long a pod must be ready to count as available."),
    ("minReplicas", "The fewest replicas there may be."),
    ("mountPath", "Where in the container it is mounted."),
    ("name", "The name of the object, unique among its kind and, where it has one, in its namespace."),
    ("namespace", "The namespace that the object lives in."),
    ("nodeName", "The node that the pod runs on. A scheduler sets it."),
    ("nodeSelector", "Labels that the node must have."),
    ("note", "A sentence for people."),
    ("observedGeneration", "The generation that the status speaks of."),
    ("ownerReferences", "The objects that this one depends on. When all of them are gone it is deleted."),
    ("parallelism", "How many pods run at a time."),
    ("paused", "Whether changes of the template wait."),
    ("phase", "How far it has come, in one word."),
    ("podIP", "The address of the pod."),
    ("podSelector", "Which pods are meant."),
    ("policyTypes", "Which directions the policy speaks of: Ingress, Egress or both."),
    ("port", "The number or the name of a port."),
    ("ports", "The ports."),
    ("priorityClassName", "How important the pod is, by name."),
    ("progressDeadlineSeconds", "After so many seconds without progress it has failed."),
    ("protocol", "TCP, UDP or SCTP."),
    ("readOnly", "Whether it can only be read."),
    ("readinessProbe", "How it is found out whether the container takes requests."),
    ("readyReplicas", "Pods that are ready."),
    ("reason", "Why, in one word for programs."),
    ("regarding", "The object that it happened to."),
    ("replicas", "How many pods are wanted; in a status, how many there are."),
    ("reportingController", "The program that noticed it."),
    ("requests", "How much is set aside, so how much is there for sure."),
    ("resourceVersion", "The version of the object. It changes with every write and means nothing else."),
    ("resources", "How much is needed and allowed."),
    ("restartPolicy", "When containers are started again: Always, OnFailure or Never."),
    ("revisionHistoryLimit", "How many older versions are kept to go back to."),
    ("roleRef", "The role that is given. It never changes."),
    ("rules", "What is allowed or looked at."),
    ("schedule", "When, in the notation of cron."),
    ("schedulerName", "Who chooses the node."),
    ("secret", "Files from a Secret."),
    ("securityContext", "Which rights the processes have."),
    ("selector", "Which objects are meant, by their labels."),
    ("series", "How often and until when it happened again."),
    ("serviceAccountName", "The service account that the pod goes by."),
    ("serviceName", "The Service that gives the pods their names."),
    ("sideEffects", "Whether a call changes something elsewhere."),
    ("spec", "What is wanted."),
    ("startupProbe", "How it is found out whether the container has started."),
    ("status", "What is. The system writes it."),
    ("storageClassName", "The class of storage that is wanted."),
    ("strategy", "How old pods are replaced by new ones."),
    ("stringData", "Values as plain texts, for writing only; they go to data."),
    ("subjects", "Who is given the role."),
    ("suspend", "Whether nothing is started for now."),
    ("targetPort", "The port of the pod, by number or name."),
    ("template", "What the pods look like that are made."),
    ("terminationGracePeriodSeconds", "How many seconds a pod is given to end."),
    ("timeoutSeconds", "After so many seconds without an answer it counts as failed."),
    ("tolerations", "Which taints of nodes do not matter."),
    ("topologySpreadConstraints", "How pods are spread over zones and nodes."),
    ("ttlSecondsAfterFinished", "After so many seconds a job that ended is deleted."),
    ("type", "Which sort it is."),
    ("uid", "The one name that no other object ever has. The server sets it."),
    ("updatedReplicas", "Pods of the newest template."),
    ("volumeMounts", "Which volumes are mounted where."),
    ("volumes", "The folders that containers can mount."),
    ("webhooks", "The webhooks, by name."),
    ("workingDir", "The folder in which the command starts."),
];

pub(super) fn of_type(name: &str) -> Option<&'static str> {
    let is = |resource: &&builtin::Resource| resource.versions.iter().any(|version| version.of_type == name);
    let of_kind = builtin::resources().iter().find(is).map(|resource| kinds::of(&resource.full_name()).about);
    let shared = || TYPES.iter().find(|(known, _)| *known == short(name)).map(|(_, text)| *text);
    of_kind.filter(|text| !text.is_empty()).or_else(shared)
}

pub(super) fn of_field(of: &str, name: &str) -> Option<&'static str> {
    let own = FIELDS_OF.iter().find(|(known, field, _)| *known == short(of) && *field == name);
    let own = own.map(|(_, _, text)| *text);
    own.or_else(|| FIELDS.iter().find(|(field, _)| *field == name).map(|(_, text)| *text))
}

/// The name of a type without its package.
fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every text belongs to an existing field, so a misspelt field name is noticed.
    #[test]
    fn every_text_is_about_something() {
        let packages = ["core.v1", "apps.v1", "meta.v1"];
        for (name, _) in TYPES {
            assert!(packages.iter().any(|of| builtin::message(&format!("{of}.{name}")).is_some()), "{name}");
        }
        for (of, name, _) in FIELDS_OF {
            assert!(
                packages.iter().any(|package| builtin::find(&format!("{package}.{of}"), name).is_some()),
                "{of}.{name}"
            );
        }
    }
}
