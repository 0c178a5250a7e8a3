//! Field numbers of the built-in types, as the API publishes them.
//!
//! Owns one table in a notation of its own: `number:name:kind`. Kinds: `s` text, `i` integer, `b` flag, `B` bytes,
//! `T` time, `U` time with microseconds, `Q` quantity, `O` integer or text, `J` raw JSON, a capitalised word is a
//! message. `[k]` is a list, `{k}` a map from text, `k?` is optional, so that zero is a value; the name `<inline>`
//! puts a message's fields into its parent.

use std::collections::HashMap;
use std::sync::LazyLock;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kube) enum Kind {
    Text,
    Integer,
    Flag,
    Bytes,
    Time,
    MicroTime,
    Quantity,
    IntOrText,
    Json,
    Message(&'static str),
}

#[derive(Debug)]
pub(in crate::kube) struct Field {
    pub number: u64,
    pub name: &'static str,
    pub kind: Kind,
    pub list: bool,
    pub map: bool,
    pub optional: bool,
}

const TABLE: &[(&str, &str)] = &[
    // meta/v1
    (
        "ObjectMeta",
        "1:name:s 2:generateName:s 3:namespace:s 4:selfLink:s 5:uid:s 6:resourceVersion:s 7:generation:i \
         8:creationTimestamp:T 9:deletionTimestamp:T 10:deletionGracePeriodSeconds:i? 11:labels:{s} \
         12:annotations:{s} 13:ownerReferences:[OwnerReference] 14:finalizers:[s] 17:managedFields:[ManagedFields]",
    ),
    ("OwnerReference", "1:kind:s 3:name:s 4:uid:s 5:apiVersion:s 6:controller:b? 7:blockOwnerDeletion:b?"),
    ("ManagedFields", "1:manager:s 2:operation:s 3:apiVersion:s 4:time:T 6:fieldsType:s 7:fieldsV1:J 8:subresource:s"),
    (
        "DeleteOptions",
        "1:gracePeriodSeconds:i? 2:preconditions:Preconditions 3:orphanDependents:b? 4:propagationPolicy:s 5:dryRun:[s]",
    ),
    ("Preconditions", "1:uid:s 2:resourceVersion:s"),
    ("LabelSelector", "1:matchLabels:{s} 2:matchExpressions:[LabelRequirement]"),
    ("LabelRequirement", "1:key:s 2:operator:s 3:values:[s]"),
    ("MetaCondition", "1:type:s 2:status:s 3:observedGeneration:i 4:lastTransitionTime:T 5:reason:s 6:message:s"),
    // core/v1
    ("Namespace", "1:metadata:ObjectMeta 2:spec:NamespaceSpec 3:status:NamespaceStatus"),
    ("NamespaceSpec", "1:finalizers:[s]"),
    ("NamespaceStatus", "1:phase:s"),
    ("ConfigMap", "1:metadata:ObjectMeta 2:data:{s} 3:binaryData:{B} 4:immutable:b?"),
    ("Secret", "1:metadata:ObjectMeta 2:data:{B} 3:type:s 4:stringData:{s} 5:immutable:b?"),
    (
        "ServiceAccount",
        "1:metadata:ObjectMeta 2:secrets:[ObjectReference] 3:imagePullSecrets:[LocalObjectReference] \
         4:automountServiceAccountToken:b?",
    ),
    ("ObjectReference", "1:kind:s 2:namespace:s 3:name:s 4:uid:s 5:apiVersion:s 6:resourceVersion:s 7:fieldPath:s"),
    ("LocalObjectReference", "1:name:s"),
    ("Binding", "1:metadata:ObjectMeta 2:target:ObjectReference"),
    (
        "Event",
        "1:metadata:ObjectMeta 2:involvedObject:ObjectReference 3:reason:s 4:message:s 5:source:EventSource \
         6:firstTimestamp:T 7:lastTimestamp:T 8:count:i 9:type:s 10:eventTime:U 11:series:EventSeries 12:action:s \
         13:related:ObjectReference 14:reportingComponent:s 15:reportingInstance:s",
    ),
    ("EventSource", "1:component:s 2:host:s"),
    ("EventSeries", "1:count:i 2:lastObservedTime:U"),
    (
        "EventsEvent",
        "1:metadata:ObjectMeta 2:eventTime:U 3:series:EventSeries 4:reportingController:s 5:reportingInstance:s \
         6:action:s 7:reason:s 8:regarding:ObjectReference 9:related:ObjectReference 10:note:s 11:type:s \
         12:deprecatedSource:EventSource 13:deprecatedFirstTimestamp:T 14:deprecatedLastTimestamp:T \
         15:deprecatedCount:i",
    ),
    ("Service", "1:metadata:ObjectMeta 2:spec:ServiceSpec 3:status:ServiceStatus"),
    (
        "ServiceSpec",
        "1:ports:[ServicePort] 2:selector:{s} 3:clusterIP:s 4:type:s 5:externalIPs:[s] 7:sessionAffinity:s \
         8:loadBalancerIP:s 9:loadBalancerSourceRanges:[s] 10:externalName:s 11:externalTrafficPolicy:s \
         12:healthCheckNodePort:i 13:publishNotReadyAddresses:b 17:ipFamilyPolicy:s? 18:clusterIPs:[s] \
         19:ipFamilies:[s] 20:allocateLoadBalancerNodePorts:b? 21:loadBalancerClass:s? 22:internalTrafficPolicy:s?",
    ),
    ("ServicePort", "1:name:s 2:protocol:s 3:port:i 4:targetPort:O 5:nodePort:i 6:appProtocol:s?"),
    ("ServiceStatus", "1:loadBalancer:Nothing 2:conditions:[MetaCondition]"),
    ("Nothing", ""),
    ("Pod", "1:metadata:ObjectMeta 2:spec:PodSpec 3:status:PodStatus"),
    ("PodStatus", "1:phase:s 3:message:s 4:reason:s 5:hostIP:s 6:podIP:s 7:startTime:T 9:qosClass:s"),
    (
        "PodSpec",
        "1:volumes:[Volume] 2:containers:[Container] 3:restartPolicy:s 4:terminationGracePeriodSeconds:i? \
         5:activeDeadlineSeconds:i? 6:dnsPolicy:s 7:nodeSelector:{s} 8:serviceAccountName:s 9:serviceAccount:s \
         10:nodeName:s 11:hostNetwork:b 12:hostPID:b 13:hostIPC:b 14:securityContext:PodSecurityContext \
         15:imagePullSecrets:[LocalObjectReference] 16:hostname:s 17:subdomain:s 19:schedulerName:s \
         20:initContainers:[Container] 21:automountServiceAccountToken:b? 22:tolerations:[Toleration] \
         23:hostAliases:[HostAlias] 24:priorityClassName:s 25:priority:i? 27:shareProcessNamespace:b? \
         29:runtimeClassName:s? 30:enableServiceLinks:b? 31:preemptionPolicy:s? 35:setHostnameAsFQDN:b? 37:hostUsers:b?",
    ),
    (
        "PodSecurityContext",
        "2:runAsUser:i? 3:runAsNonRoot:b? 4:supplementalGroups:[i] 5:fsGroup:i? 6:runAsGroup:i? \
         9:fsGroupChangePolicy:s? 10:seccompProfile:SeccompProfile",
    ),
    ("SeccompProfile", "1:type:s 2:localhostProfile:s?"),
    ("Toleration", "1:key:s 2:operator:s 3:value:s 4:effect:s 5:tolerationSeconds:i?"),
    ("HostAlias", "1:ip:s 2:hostnames:[s]"),
    (
        "Container",
        "1:name:s 2:image:s 3:command:[s] 4:args:[s] 5:workingDir:s 6:ports:[ContainerPort] 7:env:[EnvVar] \
         8:resources:ResourceRequirements 9:volumeMounts:[VolumeMount] 10:livenessProbe:Probe 11:readinessProbe:Probe \
         13:terminationMessagePath:s 14:imagePullPolicy:s 15:securityContext:SecurityContext 16:stdin:b 17:stdinOnce:b \
         18:tty:b 19:envFrom:[EnvFromSource] 20:terminationMessagePolicy:s 22:startupProbe:Probe 24:restartPolicy:s?",
    ),
    ("ContainerPort", "1:name:s 2:hostPort:i 3:containerPort:i 4:protocol:s 5:hostIP:s"),
    ("EnvVar", "1:name:s 2:value:s 3:valueFrom:EnvVarSource"),
    ("EnvVarSource", "1:fieldRef:FieldRef 3:configMapKeyRef:KeySelector 4:secretKeyRef:KeySelector"),
    ("FieldRef", "1:apiVersion:s 2:fieldPath:s"),
    ("KeySelector", "1:<inline>:LocalObjectReference 2:key:s 3:optional:b?"),
    ("EnvFromSource", "1:prefix:s 2:configMapRef:EnvSource 3:secretRef:EnvSource"),
    ("EnvSource", "1:<inline>:LocalObjectReference 2:optional:b?"),
    ("ResourceRequirements", "1:limits:{Q} 2:requests:{Q}"),
    ("VolumeMount", "1:name:s 2:readOnly:b 3:mountPath:s 4:subPath:s 5:mountPropagation:s? 6:subPathExpr:s"),
    (
        "Probe",
        "1:<inline>:ProbeHandler 2:initialDelaySeconds:i 3:timeoutSeconds:i 4:periodSeconds:i 5:successThreshold:i \
         6:failureThreshold:i 7:terminationGracePeriodSeconds:i?",
    ),
    ("ProbeHandler", "1:exec:ExecAction 2:httpGet:HttpGetAction 3:tcpSocket:TcpAction 4:grpc:GrpcAction"),
    ("ExecAction", "1:command:[s]"),
    ("HttpGetAction", "1:path:s 2:port:O 3:host:s 4:scheme:s 5:httpHeaders:[HttpHeader]"),
    ("HttpHeader", "1:name:s 2:value:s"),
    ("TcpAction", "1:port:O 2:host:s"),
    ("GrpcAction", "1:port:i 2:service:s?"),
    (
        "SecurityContext",
        "1:capabilities:Capabilities 2:privileged:b? 4:runAsUser:i? 5:runAsNonRoot:b? 6:readOnlyRootFilesystem:b? \
         7:allowPrivilegeEscalation:b? 8:runAsGroup:i? 11:seccompProfile:SeccompProfile",
    ),
    ("Capabilities", "1:add:[s] 2:drop:[s]"),
    ("Volume", "1:name:s 2:<inline>:VolumeSource"),
    (
        "VolumeSource",
        "1:hostPath:HostPath 2:emptyDir:EmptyDir 6:secret:SecretVolume 10:persistentVolumeClaim:ClaimVolume \
         19:configMap:ConfigMapVolume",
    ),
    ("HostPath", "1:path:s 2:type:s?"),
    ("EmptyDir", "1:medium:s 2:sizeLimit:Q"),
    ("SecretVolume", "1:secretName:s 2:items:[KeyToPath] 3:defaultMode:i? 4:optional:b?"),
    ("ClaimVolume", "1:claimName:s 2:readOnly:b"),
    ("ConfigMapVolume", "1:<inline>:LocalObjectReference 2:items:[KeyToPath] 3:defaultMode:i? 4:optional:b?"),
    ("KeyToPath", "1:key:s 2:path:s 3:mode:i?"),
    ("PodTemplateSpec", "1:metadata:ObjectMeta 2:spec:PodSpec"),
    // apps/v1
    ("Deployment", "1:metadata:ObjectMeta 2:spec:DeploymentSpec 3:status:DeploymentStatus"),
    (
        "DeploymentSpec",
        "1:replicas:i? 2:selector:LabelSelector 3:template:PodTemplateSpec 4:strategy:DeploymentStrategy \
         5:minReadySeconds:i 6:revisionHistoryLimit:i? 7:paused:b 9:progressDeadlineSeconds:i?",
    ),
    ("DeploymentStrategy", "1:type:s 2:rollingUpdate:RollingUpdate"),
    ("RollingUpdate", "1:maxUnavailable:O 2:maxSurge:O"),
    (
        "DeploymentStatus",
        "1:observedGeneration:i 2:replicas:i 3:updatedReplicas:i 4:availableReplicas:i 5:unavailableReplicas:i \
         6:conditions:[DeploymentCondition] 7:readyReplicas:i 8:collisionCount:i? 9:terminatingReplicas:i?",
    ),
    ("DeploymentCondition", "1:type:s 2:status:s 4:reason:s 5:message:s 6:lastUpdateTime:T 7:lastTransitionTime:T"),
    // batch/v1
    ("Job", "1:metadata:ObjectMeta 2:spec:JobSpec 3:status:JobStatus"),
    (
        "JobSpec",
        "1:parallelism:i? 2:completions:i? 3:activeDeadlineSeconds:i? 4:selector:LabelSelector 5:manualSelector:b? \
         6:template:PodTemplateSpec 7:backoffLimit:i? 8:ttlSecondsAfterFinished:i? 9:completionMode:s? 10:suspend:b?",
    ),
    ("JobStatus", "2:startTime:T 3:completionTime:T 4:active:i 5:succeeded:i 6:failed:i"),
    ("CronJob", "1:metadata:ObjectMeta 2:spec:CronJobSpec 3:status:Nothing"),
    (
        "CronJobSpec",
        "1:schedule:s 2:startingDeadlineSeconds:i? 3:concurrencyPolicy:s 4:suspend:b? 5:jobTemplate:JobTemplate \
         6:successfulJobsHistoryLimit:i? 7:failedJobsHistoryLimit:i? 8:timeZone:s?",
    ),
    ("JobTemplate", "1:metadata:ObjectMeta 2:spec:JobSpec"),
    // rbac.authorization.k8s.io/v1
    ("Role", "1:metadata:ObjectMeta 2:rules:[PolicyRule]"),
    ("ClusterRole", "1:metadata:ObjectMeta 2:rules:[PolicyRule] 3:aggregationRule:AggregationRule"),
    ("AggregationRule", "1:clusterRoleSelectors:[LabelSelector]"),
    ("PolicyRule", "1:verbs:[s] 2:apiGroups:[s] 3:resources:[s] 4:resourceNames:[s] 5:nonResourceURLs:[s]"),
    ("RoleBinding", "1:metadata:ObjectMeta 2:subjects:[Subject] 3:roleRef:RoleRef"),
    ("ClusterRoleBinding", "1:metadata:ObjectMeta 2:subjects:[Subject] 3:roleRef:RoleRef"),
    ("Subject", "1:kind:s 2:apiGroup:s 3:name:s 4:namespace:s"),
    ("RoleRef", "1:apiGroup:s 2:kind:s 3:name:s"),
    // coordination.k8s.io/v1
    ("Lease", "1:metadata:ObjectMeta 2:spec:LeaseSpec"),
    (
        "LeaseSpec",
        "1:holderIdentity:s? 2:leaseDurationSeconds:i? 3:acquireTime:U 4:renewTime:U 5:leaseTransitions:i? \
         6:strategy:s? 7:preferredHolder:s?",
    ),
    // networking.k8s.io/v1
    ("Ingress", "1:metadata:ObjectMeta 2:spec:IngressSpec 3:status:Nothing"),
    ("IngressSpec", "1:defaultBackend:IngressBackend 2:tls:[IngressTls] 3:rules:[IngressRule] 4:ingressClassName:s?"),
    ("IngressTls", "1:hosts:[s] 2:secretName:s"),
    ("IngressRule", "1:host:s 2:<inline>:IngressRuleValue"),
    ("IngressRuleValue", "1:http:IngressHttp"),
    ("IngressHttp", "1:paths:[IngressPath]"),
    ("IngressPath", "1:path:s 2:backend:IngressBackend 3:pathType:s?"),
    ("IngressBackend", "4:service:IngressService"),
    ("IngressService", "1:name:s 2:port:IngressPort"),
    ("IngressPort", "1:name:s 2:number:i"),
    ("NetworkPolicy", "1:metadata:ObjectMeta 2:spec:NetworkPolicySpec"),
    (
        "NetworkPolicySpec",
        "1:podSelector:LabelSelector 2:ingress:[NetworkPolicyIngress] 3:egress:[NetworkPolicyEgress] 4:policyTypes:[s]",
    ),
    ("NetworkPolicyIngress", "1:ports:[NetworkPolicyPort] 2:from:[NetworkPolicyPeer]"),
    ("NetworkPolicyEgress", "1:ports:[NetworkPolicyPort] 2:to:[NetworkPolicyPeer]"),
    ("NetworkPolicyPort", "1:protocol:s? 2:port:O 3:endPort:i?"),
    ("NetworkPolicyPeer", "1:podSelector:LabelSelector 2:namespaceSelector:LabelSelector 3:ipBlock:IpBlock"),
    ("IpBlock", "1:cidr:s 2:except:[s]"),
    // policy/v1, scheduling.k8s.io/v1, autoscaling/v1
    ("PodDisruptionBudget", "1:metadata:ObjectMeta 2:spec:BudgetSpec 3:status:BudgetStatus"),
    ("BudgetSpec", "1:minAvailable:O 2:selector:LabelSelector 3:maxUnavailable:O 4:unhealthyPodEvictionPolicy:s?"),
    (
        "BudgetStatus",
        "1:observedGeneration:i 3:disruptionsAllowed:i 4:currentHealthy:i 5:desiredHealthy:i 6:expectedPods:i",
    ),
    ("Eviction", "1:metadata:ObjectMeta 2:deleteOptions:DeleteOptions"),
    ("PriorityClass", "1:metadata:ObjectMeta 2:value:i 3:globalDefault:b 4:description:s 5:preemptionPolicy:s?"),
    ("Scale", "1:metadata:ObjectMeta 2:spec:ScaleSpec 3:status:ScaleStatus"),
    ("ScaleSpec", "1:replicas:i"),
    ("ScaleStatus", "1:replicas:i 2:selector:s"),
    // authentication.k8s.io/v1 and authorization.k8s.io/v1
    ("TokenRequest", "1:metadata:ObjectMeta 2:spec:TokenRequestSpec 3:status:TokenRequestStatus"),
    ("TokenRequestSpec", "1:audiences:[s] 3:boundObjectRef:BoundObject 4:expirationSeconds:i?"),
    ("BoundObject", "1:kind:s 2:apiVersion:s 3:name:s 4:uid:s"),
    ("TokenRequestStatus", "1:token:s 2:expirationTimestamp:T"),
    ("TokenReview", "1:metadata:ObjectMeta 2:spec:TokenReviewSpec 3:status:TokenReviewStatus"),
    ("TokenReviewSpec", "1:token:s 2:audiences:[s]"),
    ("TokenReviewStatus", "1:authenticated:b 2:user:UserInfo 3:error:s 4:audiences:[s]"),
    ("UserInfo", "1:username:s 2:uid:s 3:groups:[s]"),
    ("SelfSubjectReview", "1:metadata:ObjectMeta 2:status:SelfSubjectReviewStatus"),
    ("SelfSubjectReviewStatus", "1:userInfo:UserInfo"),
    ("SelfSubjectAccessReview", "1:metadata:ObjectMeta 2:spec:SelfAccessSpec 3:status:AccessStatus"),
    ("SelfAccessSpec", "1:resourceAttributes:ResourceAttributes 2:nonResourceAttributes:NonResourceAttributes"),
    ("SubjectAccessReview", "1:metadata:ObjectMeta 2:spec:AccessSpec 3:status:AccessStatus"),
    ("LocalSubjectAccessReview", "1:metadata:ObjectMeta 2:spec:AccessSpec 3:status:AccessStatus"),
    (
        "AccessSpec",
        "1:resourceAttributes:ResourceAttributes 2:nonResourceAttributes:NonResourceAttributes 3:user:s 4:groups:[s] \
         6:uid:s",
    ),
    ("ResourceAttributes", "1:namespace:s 2:verb:s 3:group:s 4:version:s 5:resource:s 6:subresource:s 7:name:s"),
    ("NonResourceAttributes", "1:path:s 2:verb:s"),
    ("AccessStatus", "1:allowed:b 2:reason:s 3:evaluationError:s 4:denied:b"),
    ("SelfSubjectRulesReview", "1:metadata:ObjectMeta 2:spec:RulesSpec 3:status:RulesStatus"),
    ("RulesSpec", "1:namespace:s"),
    ("RulesStatus", "3:incomplete:b 4:evaluationError:s"),
];

static MESSAGES: LazyLock<HashMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    TABLE.iter().map(|(name, fields)| (*name, fields.split_whitespace().map(field).collect())).collect()
});

/// The fields of a message.
pub(in crate::kube) fn message(name: &str) -> Option<&'static [Field]> {
    MESSAGES.get(name).map(Vec::as_slice)
}

fn field(spec: &'static str) -> Field {
    let mut parts = spec.splitn(3, ':');
    let mut part = || parts.next().expect("an entry of the table has three parts");
    let (number, name, kind) = (part(), part(), part());
    let optional = kind.ends_with('?');
    let kind = kind.trim_end_matches('?');
    let (list, map) = (kind.starts_with('['), kind.starts_with('{'));
    let kind = match kind.trim_matches(['[', ']', '{', '}']) {
        "s" => Kind::Text,
        "i" => Kind::Integer,
        "b" => Kind::Flag,
        "B" => Kind::Bytes,
        "T" => Kind::Time,
        "U" => Kind::MicroTime,
        "Q" => Kind::Quantity,
        "O" => Kind::IntOrText,
        "J" => Kind::Json,
        message => Kind::Message(message),
    };
    let number = number.parse().expect("an entry of the table begins with a number");
    Field { number, name, kind, list, map, optional }
}

/// That the table names no message that it does not have, and no number twice.
#[cfg(test)]
pub(in crate::kube) fn check() {
    for (name, fields) in MESSAGES.iter() {
        for field in fields {
            if let Kind::Message(inner) = &field.kind {
                assert!(message(inner).is_some(), "{name}.{} is a {inner}", field.name);
            }
            let same = fields.iter().filter(|other| other.number == field.number).count();
            assert_eq!(same, 1, "{name} has {} twice", field.number);
        }
    }
}
