//! Usual values of Pod fields, so that many random objects are valid.
//!
//! The tables of this module have values by type and field. A field that is in no table gets an arbitrary plain word.

use super::dice::Dice;

/// `(type or *, field, texts)`. For a field, the first entry that matches is used.
const TEXTS: &[(&str, &str, &[&str])] = &[
    ("PodSpec", "hostname", &["a", "b-1"]),
    ("PodSpec", "subdomain", &["a", "b-1"]),
    ("Container", "image", &["nginx", "a.b/c:1", "x:latest", "Registry:5000/y"]),
    ("EphemeralContainer", "image", &["nginx"]),
    ("ImageVolumeSource", "reference", &["x:1"]),
    ("*", "imagePullPolicy", &["Always", "IfNotPresent", "Never"]),
    ("*", "pullPolicy", &["Always", "Never"]),
    ("*", "terminationMessagePolicy", &["File", "FallbackToLogsOnError"]),
    ("ContainerResizePolicy", "resourceName", &["cpu", "memory"]),
    ("ContainerResizePolicy", "restartPolicy", &["NotRequired", "RestartContainer"]),
    ("Container", "restartPolicy", &["Always"]),
    ("PodSpec", "restartPolicy", &["Always", "Never", "OnFailure"]),
    ("PodSpec", "dnsPolicy", &["ClusterFirst", "Default", "ClusterFirstWithHostNet", "None"]),
    ("PodSpec", "preemptionPolicy", &["Never", "PreemptLowerPriority"]),
    ("PodOS", "name", &["linux", "linux", "windows"]),
    ("ContainerPort", "name", &["http", "a-1", "metrics"]),
    ("ContainerPort", "hostIP", &["127.0.0.1", ""]),
    ("*", "protocol", &["TCP", "UDP", "SCTP"]),
    (
        "ObjectFieldSelector",
        "fieldPath",
        &["metadata.name", "metadata.labels['a']", "metadata.uid", "spec.nodeName", "status.podIP"],
    ),
    ("ObjectFieldSelector", "apiVersion", &["v1"]),
    (
        "ResourceFieldSelector",
        "resource",
        &["limits.cpu", "requests.memory", "limits.ephemeral-storage", "limits.hugepages-2Mi"],
    ),
    ("ResourceFieldSelector", "containerName", &["c0"]),
    ("HTTPGetAction", "scheme", &["HTTP", "HTTPS"]),
    ("HTTPHeader", "name", &["X-A", "Host"]),
    ("Toleration", "operator", &["Exists", "Equal", ""]),
    ("Toleration", "effect", &["NoExecute", "NoSchedule", "PreferNoSchedule", ""]),
    ("Toleration", "value", &["", "v"]),
    ("LabelSelectorRequirement", "operator", &["In", "NotIn", "Exists", "DoesNotExist"]),
    ("NodeSelectorRequirement", "operator", &["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
    ("TopologySpreadConstraint", "whenUnsatisfiable", &["DoNotSchedule", "ScheduleAnyway"]),
    ("*", "nodeAffinityPolicy", &["Honor", "Ignore"]),
    ("*", "nodeTaintsPolicy", &["Honor", "Ignore"]),
    ("*", "topologyKey", &["zone", "kubernetes.io/hostname"]),
    ("SeccompProfile", "type", &["RuntimeDefault", "Unconfined", "Localhost"]),
    ("AppArmorProfile", "type", &["RuntimeDefault", "Unconfined", "Localhost"]),
    ("*", "localhostProfile", &["profile"]),
    ("SecurityContext", "procMount", &["Default", "Unmasked"]),
    ("*", "fsGroupChangePolicy", &["Always", "OnRootMismatch"]),
    ("*", "supplementalGroupsPolicy", &["Merge", "Strict"]),
    ("*", "seLinuxChangePolicy", &["Recursive", "MountOption"]),
    ("Sysctl", "name", &["net.ipv4.a", "kernel.shm_rmid_forced", "kernel/msgmax"]),
    ("VolumeMount", "mountPropagation", &["None", "HostToContainer", "Bidirectional"]),
    ("VolumeMount", "recursiveReadOnly", &["Disabled", "Enabled", "IfPossible"]),
    ("HostPathVolumeSource", "type", &["", "Directory", "Socket", "BlockDevice"]),
    ("HostPathVolumeSource", "path", &["/x", "y"]),
    ("NFSVolumeSource", "path", &["/x"]),
    ("EmptyDirVolumeSource", "medium", &["", "Memory"]),
    ("ISCSIVolumeSource", "iqn", &["iqn.2001-04.com.example:storage", "eui.0123456789abcdef"]),
    ("ISCSIVolumeSource", "initiatorName", &["iqn.2001-04.com.example:initiator"]),
    ("QuobyteVolumeSource", "registry", &["host:7861", "a:1,b:2"]),
    ("AzureDiskVolumeSource", "cachingMode", &["None", "ReadOnly", "ReadWrite"]),
    ("AzureDiskVolumeSource", "kind", &["Shared", "Dedicated", "Managed"]),
    ("AzureDiskVolumeSource", "diskURI", &["https://x", "/subscriptions/x"]),
    ("CSIVolumeSource", "driver", &["csi.example.com"]),
    ("*", "accessModes", &["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]),
    ("*", "volumeMode", &["Filesystem", "Block"]),
    ("TypedLocalObjectReference", "kind", &["PersistentVolumeClaim", "VolumeSnapshot"]),
    ("TypedLocalObjectReference", "apiGroup", &["snapshot.storage.k8s.io"]),
    ("TypedObjectReference", "kind", &["PersistentVolumeClaim", "VolumeSnapshot"]),
    ("TypedObjectReference", "apiGroup", &["snapshot.storage.k8s.io"]),
    ("PodDNSConfig", "nameservers", &["1.2.3.4", "::1", "01.2.3.4"]),
    ("PodDNSConfig", "searches", &["a.b", "x_y.z", "."]),
    ("HostAlias", "ip", &["1.2.3.4", "::1"]),
    ("Capabilities", "add", &["NET_ADMIN", "CAP_SYS_ADMIN"]),
    ("Lifecycle", "stopSignal", &["SIGTERM"]),
    ("*", "mountPath", &["/m0", "/m1", "/m2", "/m3", "/m4", "/m5"]),
    ("*", "devicePath", &["/dev/a", "/dev/b", "/m0"]),
    ("*", "subPath", &["a/b", ""]),
    ("*", "subPathExpr", &["", "$(A)"]),
    ("KeyToPath", "path", &["a", "b", "c/d", "e"]),
    ("DownwardAPIVolumeFile", "path", &["f", "g", "h/i"]),
    ("ServiceAccountTokenProjection", "path", &["token", "t/u"]),
    ("*", "schedule", &["* * * * *", "@hourly", "5 4 1,2 */3 mon-fri"]),
    ("*", "timeZone", &["Europe/Paris", "UTC"]),
    ("*", "concurrencyPolicy", &["Allow", "Forbid", "Replace"]),
    ("*", "completionMode", &["Indexed", "NonIndexed"]),
    ("*", "podReplacementPolicy", &["Failed", "TerminatingOrFailed"]),
    ("*", "managedBy", &["example.com/x"]),
    ("PodFailurePolicyRule", "action", &["Count", "Ignore", "FailJob", "FailIndex"]),
    ("PodFailurePolicyOnExitCodesRequirement", "operator", &["In", "NotIn"]),
    ("PodFailurePolicyOnExitCodesRequirement", "containerName", &["c0"]),
    ("PodFailurePolicyOnPodConditionsPattern", "status", &["True", "False"]),
    ("SuccessPolicyRule", "succeededIndexes", &["0", "0-1", "0,2"]),
    ("DeploymentStrategy", "type", &["RollingUpdate", "Recreate"]),
    ("DaemonSetUpdateStrategy", "type", &["RollingUpdate", "OnDelete"]),
    ("StatefulSetUpdateStrategy", "type", &["RollingUpdate", "OnDelete"]),
    ("*", "podManagementPolicy", &["OrderedReady", "Parallel"]),
    ("*", "whenDeleted", &["Retain", "Delete"]),
    ("*", "whenScaled", &["Retain", "Delete"]),
    ("ClusterTrustBundleProjection", "path", &["bundle"]),
    ("*", "directory", &["a"]),
    ("*", "path", &["/x"]),
    ("*", "targetContainerName", &["c0"]),
];

/// `(type or *, field, numbers)`. For a field, the first entry that matches is used.
const NUMBERS: &[(&str, &str, &[i64])] = &[
    ("ContainerPort", "containerPort", &[80, 8080, 443]),
    ("ContainerPort", "hostPort", &[80, 8080, 0]),
    ("*", "port", &[80, 8080]),
    ("*", "successThreshold", &[1, 1, 1, 2, 0]),
    ("*", "weight", &[1, 50, 100]),
    ("*", "maxSkew", &[1, 2]),
    ("*", "minDomains", &[1, 3]),
    ("*", "defaultMode", &[420, 256]),
    ("*", "mode", &[420, 0]),
    ("*", "expirationSeconds", &[3600, 600]),
    ("PodSpec", "terminationGracePeriodSeconds", &[30, 0, -1, 5]),
    ("Probe", "terminationGracePeriodSeconds", &[10]),
    ("PodSpec", "activeDeadlineSeconds", &[10]),
    ("SleepAction", "seconds", &[0, 5]),
    ("PodFailurePolicyOnExitCodesRequirement", "values", &[1, 2, 3]),
    ("*", "completions", &[3]),
    ("*", "maxFailedIndexes", &[1]),
    ("*", "succeededCount", &[1]),
    ("*", "progressDeadlineSeconds", &[600]),
    ("*", "minReadySeconds", &[0, 5]),
];

const AMOUNTS: [&str; 6] = ["1", "500m", "0.5", "1Gi", "1024Mi", "2Mi"];
const NAMES: [&str; 4] = ["a", "b-1", "c0", "d.e"];

fn row<'a, T>(rows: &'a [(&str, &str, &'a [T])], of: &str, field: &str) -> Option<&'a [T]> {
    rows.iter().find(|(kind, known, _)| (*kind == of || *kind == "*") && *known == field).map(|(.., values)| *values)
}

pub fn text(dice: &mut Dice, of: &str, field: &str) -> String {
    match row(TEXTS, of, field) {
        Some(values) => dice.of(values).to_owned(),
        // A label is a valid name everywhere.
        None => dice.of(&NAMES[..if field == "name" { 3 } else { 4 }]).to_owned(),
    }
}

pub fn number(dice: &mut Dice, of: &str, field: &str) -> i64 {
    match row(NUMBERS, of, field) {
        Some(values) => dice.of(values),
        None => dice.of(&[0, 1, 2, 10]),
    }
}

pub fn amount(dice: &mut Dice) -> &'static str {
    dice.of(&AMOUNTS)
}

pub fn key(dice: &mut Dice, field: &str) -> &'static str {
    match field {
        "limits" | "requests" | "overhead" => {
            let usual = ["cpu", "memory", "ephemeral-storage"];
            if dice.percent(90) {
                return dice.of(&usual);
            }
            dice.of(&["hugepages-2Mi", "example.com/gpu", "storage"])
        }
        "annotations" => dice.of(&[
            "a",
            "container.apparmor.security.beta.kubernetes.io/c0",
            "controller.kubernetes.io/pod-deletion-cost",
            "seccomp.security.alpha.kubernetes.io/pod",
            "example.com/B",
        ]),
        _ => dice.of(&["a", "example.com/b", "zone"]),
    }
}

/// Draws a text that hardly any field accepts.
pub fn odd(dice: &mut Dice) -> String {
    match dice.below(9) {
        0 => String::new(),
        1 => "Odd Value".to_owned(),
        2 => "-x".to_owned(),
        3 => "a".repeat(70),
        4 => "../x".to_owned(),
        5 => "/y".to_owned(),
        6 => "a".repeat(260),
        7 => "UPPER".to_owned(),
        _ => "x".to_owned(),
    }
}
