//! All other groups: networking, rbac, coordination, discovery, events, storage, certificates, admissionregistration, and the
//! reviews of authentication and authorization.

use super::Row;

pub(super) const TABLE: &[Row] = &[
    ("IngressClass", "1:metadata:ObjectMeta 2:spec:IngressClassSpec"),
    ("IngressClassSpec", "1:controller:s 2:parameters:IngressClassParametersReference"),
    ("Ingress", "1:metadata:ObjectMeta 2:spec:IngressSpec 3:status:IngressStatus"),
    ("IngressSpec", "1:defaultBackend:IngressBackend 2:tls:[IngressTLS] 3:rules:[IngressRule] 4:ingressClassName:s?"),
    ("IngressBackend", "3:resource:TypedLocalObjectReference 4:service:IngressServiceBackend"),
    ("IngressServiceBackend", "1:name:s! 2:port:ServiceBackendPort"),
    ("ServiceBackendPort", "1:name:s 2:number:i"),
    ("IngressTLS", "1:hosts:[s] 2:secretName:s"),
    ("IngressRule", "1:host:s 2:<inline>:IngressRuleValue"),
    ("IngressRuleValue", "1:http:HTTPIngressRuleValue"),
    ("HTTPIngressRuleValue", "1:paths:[HTTPIngressPath]!"),
    ("HTTPIngressPath", "1:path:s 2:backend:IngressBackend 3:pathType:s?"),
    ("IngressStatus", "1:loadBalancer:LoadBalancerStatus"),
    ("NetworkPolicy", "1:metadata:ObjectMeta 2:spec:NetworkPolicySpec"),
    (
        "NetworkPolicySpec",
        "1:podSelector:LabelSelector 2:ingress:[NetworkPolicyIngressRule] 3:egress:[NetworkPolicyEgressRule] \
         4:policyTypes:[s]",
    ),
    ("NetworkPolicyIngressRule", "1:ports:[NetworkPolicyPort] 2:from:[NetworkPolicyPeer]"),
    ("NetworkPolicyPort", "1:protocol:s? 2:port:O? 3:endPort:i?"),
    ("NetworkPolicyPeer", "1:podSelector:LabelSelector 2:namespaceSelector:LabelSelector 3:ipBlock:IPBlock"),
    ("IPBlock", "1:cidr:s! 2:except:[s]"),
    ("NetworkPolicyEgressRule", "1:ports:[NetworkPolicyPort] 2:to:[NetworkPolicyPeer]"),
    ("ClusterRole", "1:metadata:ObjectMeta 2:rules:[PolicyRule]! 3:aggregationRule:AggregationRule"),
    ("PolicyRule", "1:verbs:[s]! 2:apiGroups:[s] 3:resources:[s] 4:resourceNames:[s] 5:nonResourceURLs:[s]"),
    ("AggregationRule", "1:clusterRoleSelectors:[LabelSelector]"),
    ("ClusterRoleBinding", "1:metadata:ObjectMeta 2:subjects:[Subject] 3:roleRef:RoleRef"),
    ("Subject", "1:kind:s! 2:apiGroup:s 3:name:s! 4:namespace:s"),
    ("RoleRef", "1:apiGroup:s! 2:kind:s! 3:name:s!"),
    ("Role", "1:metadata:ObjectMeta 2:rules:[PolicyRule]!"),
    ("RoleBinding", "1:metadata:ObjectMeta 2:subjects:[Subject] 3:roleRef:RoleRef"),
    ("Lease", "1:metadata:ObjectMeta 2:spec:LeaseSpec"),
    (
        "LeaseSpec",
        "1:holderIdentity:s? 2:leaseDurationSeconds:i? 3:acquireTime:U 4:renewTime:U 5:leaseTransitions:i? \
         6:strategy:s? 7:preferredHolder:s?",
    ),
    ("EndpointSlice", "1:metadata:ObjectMeta 2:endpoints:[Endpoint]! 3:ports:[EndpointPort]! 4:addressType:s!"),
    (
        "Endpoint",
        "1:addresses:[s]! 2:conditions:EndpointConditions 3:hostname:s? 4:targetRef:ObjectReference \
         5:deprecatedTopology:{s} 6:nodeName:s? 7:zone:s? 8:hints:EndpointHints",
    ),
    ("EndpointConditions", "1:ready:b? 2:serving:b? 3:terminating:b?"),
    (
        "EventsEvent",
        "1:metadata:ObjectMeta 2:eventTime:U 3:series:EventSeries 4:reportingController:s \
         5:reportingInstance:s 6:action:s 7:reason:s 8:regarding:ObjectReference 9:related:ObjectReference \
         10:note:s 11:type:s 12:deprecatedSource:EventSource 13:deprecatedFirstTimestamp:T \
         14:deprecatedLastTimestamp:T 15:deprecatedCount:i",
    ),
    (
        "StorageClass",
        "1:metadata:ObjectMeta 2:provisioner:s! 3:parameters:{s} 4:reclaimPolicy:s? 5:mountOptions:[s] \
         6:allowVolumeExpansion:b? 7:volumeBindingMode:s? 8:allowedTopologies:[TopologySelectorTerm]",
    ),
    ("TopologySelectorTerm", "1:matchLabelExpressions:[TopologySelectorLabelRequirement]"),
    ("TopologySelectorLabelRequirement", "1:key:s! 2:values:[s]!"),
    ("VolumeAttachment", "1:metadata:ObjectMeta 2:spec:VolumeAttachmentSpec 3:status:VolumeAttachmentStatus"),
    ("VolumeAttachmentSpec", "1:attacher:s! 2:source:VolumeAttachmentSource 3:nodeName:s!"),
    ("VolumeAttachmentSource", "1:persistentVolumeName:s? 2:inlineVolumeSpec:PersistentVolumeSpec"),
    (
        "VolumeAttachmentStatus",
        "1:attached:b! 2:attachmentMetadata:{s} 3:attachError:VolumeError 4:detachError:VolumeError",
    ),
    ("VolumeError", "1:time:T 2:message:s"),
    ("CSIDriver", "1:metadata:ObjectMeta 2:spec:CSIDriverSpec"),
    (
        "CSIDriverSpec",
        "1:attachRequired:b? 2:podInfoOnMount:b? 3:volumeLifecycleModes:[s] 4:storageCapacity:b? \
         5:fsGroupPolicy:s? 6:tokenRequests:[CsiTokenRequest] 7:requiresRepublish:b? 8:seLinuxMount:b? \
         9:nodeAllocatableUpdatePeriodSeconds:i?",
    ),
    ("CsiTokenRequest", "1:audience:s! 2:expirationSeconds:i?"),
    ("CSINode", "1:metadata:ObjectMeta 2:spec:CSINodeSpec"),
    ("CSINodeSpec", "1:drivers:[CSINodeDriver]!"),
    ("CSINodeDriver", "1:name:s! 2:nodeID:s! 3:topologyKeys:[s]! 4:allocatable:VolumeNodeResources"),
    ("VolumeNodeResources", "1:count:i?"),
    (
        "CertificateSigningRequest",
        "1:metadata:ObjectMeta 2:spec:CertificateSigningRequestSpec 3:status:CertificateSigningRequestStatus",
    ),
    (
        "CertificateSigningRequestSpec",
        "1:request:B 2:username:s 3:uid:s 4:groups:[s] 5:usages:[s] 6:extra:{L} 7:signerName:s! \
         8:expirationSeconds:i?",
    ),
    ("CertificateSigningRequestStatus", "1:conditions:[CertificateSigningRequestCondition] 2:certificate:B"),
    (
        "CertificateSigningRequestCondition",
        "1:type:s! 2:reason:s 3:message:s 4:lastUpdateTime:T 5:lastTransitionTime:T 6:status:s!",
    ),
    ("MutatingWebhookConfiguration", "1:metadata:ObjectMeta 2:webhooks:[MutatingWebhook]"),
    (
        "MutatingWebhook",
        "1:name:s! 2:clientConfig:WebhookClientConfig 3:rules:[RuleWithOperations] 4:failurePolicy:s? \
         5:namespaceSelector:LabelSelector 6:sideEffects:s? 7:timeoutSeconds:i? \
         8:admissionReviewVersions:[s]! 9:matchPolicy:s? 10:reinvocationPolicy:s? \
         11:objectSelector:LabelSelector 12:matchConditions:[MatchCondition]",
    ),
    ("WebhookClientConfig", "1:service:ServiceReference 2:caBundle:B 3:url:s?"),
    ("ServiceReference", "1:namespace:s! 2:name:s! 3:path:s? 4:port:i?"),
    ("RuleWithOperations", "1:operations:[s] 2:<inline>:Rule"),
    ("Rule", "1:apiGroups:[s] 2:apiVersions:[s] 3:resources:[s] 4:scope:s?"),
    ("ValidatingWebhookConfiguration", "1:metadata:ObjectMeta 2:webhooks:[ValidatingWebhook]"),
    (
        "ValidatingWebhook",
        "1:name:s! 2:clientConfig:WebhookClientConfig 3:rules:[RuleWithOperations] 4:failurePolicy:s? \
         5:namespaceSelector:LabelSelector 6:sideEffects:s? 7:timeoutSeconds:i? \
         8:admissionReviewVersions:[s]! 9:matchPolicy:s? 10:objectSelector:LabelSelector \
         11:matchConditions:[MatchCondition]",
    ),
    ("APIService", "1:metadata:ObjectMeta 2:spec:APIServiceSpec 3:status:APIServiceStatus"),
    (
        "APIServiceSpec",
        "1:service:ApiServiceReference 2:group:s 3:version:s 4:insecureSkipTLSVerify:b 5:caBundle:B \
         7:groupPriorityMinimum:i! 8:versionPriority:i!",
    ),
    ("ApiServiceReference", "1:namespace:s 2:name:s 3:port:i?"),
    ("APIServiceStatus", "1:conditions:[APIServiceCondition]"),
    ("APIServiceCondition", "1:type:s! 2:status:s! 3:lastTransitionTime:T 4:reason:s 5:message:s"),
    ("TokenReview", "1:metadata:ObjectMeta 2:spec:TokenReviewSpec 3:status:TokenReviewStatus"),
    ("TokenReviewSpec", "1:token:s 2:audiences:[s]"),
    ("TokenReviewStatus", "1:authenticated:b 2:user:UserInfo 3:error:s 4:audiences:[s]"),
    ("UserInfo", "1:username:s 2:uid:s 3:groups:[s] 4:extra:{L}"),
    ("TokenRequest", "1:metadata:ObjectMeta 2:spec:TokenRequestSpec 3:status:TokenRequestStatus"),
    ("TokenRequestSpec", "1:audiences:[s]! 3:boundObjectRef:BoundObjectReference 4:expirationSeconds:i?"),
    ("BoundObjectReference", "1:kind:s 2:apiVersion:s 3:name:s 4:uid:s"),
    ("TokenRequestStatus", "1:token:s! 2:expirationTimestamp:T"),
    ("SubjectAccessReview", "1:metadata:ObjectMeta 2:spec:SubjectAccessReviewSpec 3:status:SubjectAccessReviewStatus"),
    (
        "SubjectAccessReviewSpec",
        "1:resourceAttributes:ResourceAttributes 2:nonResourceAttributes:NonResourceAttributes 3:user:s \
         4:groups:[s] 5:extra:{L} 6:uid:s",
    ),
    (
        "ResourceAttributes",
        "1:namespace:s 2:verb:s 3:group:s 4:version:s 5:resource:s 6:subresource:s 7:name:s \
         8:fieldSelector:FieldSelectorAttributes 9:labelSelector:LabelSelectorAttributes",
    ),
    ("FieldSelectorAttributes", "1:rawSelector:s 2:requirements:[FieldSelectorRequirement]"),
    ("FieldSelectorRequirement", "1:key:s! 2:operator:s! 3:values:[s]"),
    ("LabelSelectorAttributes", "1:rawSelector:s 2:requirements:[LabelSelectorRequirement]"),
    ("NonResourceAttributes", "1:path:s 2:verb:s"),
    ("SubjectAccessReviewStatus", "1:allowed:b! 2:reason:s 3:evaluationError:s 4:denied:b"),
    (
        "SelfSubjectAccessReview",
        "1:metadata:ObjectMeta 2:spec:SelfSubjectAccessReviewSpec 3:status:SubjectAccessReviewStatus",
    ),
    (
        "SelfSubjectAccessReviewSpec",
        "1:resourceAttributes:ResourceAttributes 2:nonResourceAttributes:NonResourceAttributes",
    ),
    (
        "SelfSubjectRulesReview",
        "1:metadata:ObjectMeta 2:spec:SelfSubjectRulesReviewSpec 3:status:SubjectRulesReviewStatus",
    ),
    ("SelfSubjectRulesReviewSpec", "1:namespace:s"),
    (
        "SubjectRulesReviewStatus",
        "1:resourceRules:[ResourceRule]! 2:nonResourceRules:[NonResourceRule]! 3:incomplete:b! \
         4:evaluationError:s",
    ),
    ("ResourceRule", "1:verbs:[s]! 2:apiGroups:[s] 3:resources:[s] 4:resourceNames:[s]"),
    ("NonResourceRule", "1:verbs:[s]! 2:nonResourceURLs:[s]"),
    (
        "LocalSubjectAccessReview",
        "1:metadata:ObjectMeta 2:spec:SubjectAccessReviewSpec 3:status:SubjectAccessReviewStatus",
    ),
    ("IngressClassParametersReference", "1:apiGroup:s? 2:kind:s! 3:name:s! 4:scope:s? 5:namespace:s?"),
    ("EndpointHints", "1:forZones:[ForZone] 2:forNodes:[ForNode]"),
    ("ForZone", "1:name:s!"),
    ("ForNode", "1:name:s!"),
    ("MatchCondition", "1:name:s! 2:expression:s!"),
    ("SelfSubjectReview", "1:metadata:ObjectMeta 2:status:SelfSubjectReviewStatus"),
    ("SelfSubjectReviewStatus", "1:userInfo:UserInfo"),
];
