//! The types of meta/v1 and of core/v1 besides pods.

use super::Row;

pub(super) const TABLE: &[Row] = &[
    (
        "ObjectMeta",
        "1:name:s 2:generateName:s 3:namespace:s 4:selfLink:s 5:uid:s 6:resourceVersion:s 7:generation:i \
         8:creationTimestamp:T 9:deletionTimestamp:T 10:deletionGracePeriodSeconds:i? 11:labels:{s} \
         12:annotations:{s} 13:ownerReferences:[OwnerReference] 14:finalizers:[s] \
         17:managedFields:[ManagedFieldsEntry]",
    ),
    (
        "DeleteOptions",
        "1:gracePeriodSeconds:i? 2:preconditions:Preconditions 3:orphanDependents:b? 4:propagationPolicy:s? \
         5:dryRun:[s] 6:ignoreStoreReadErrorWithClusterBreakingPotential:b?",
    ),
    ("MetaCondition", "1:type:s! 2:status:s! 3:observedGeneration:i 4:lastTransitionTime:T 5:reason:s! 6:message:s!"),
    ("LabelSelector", "1:matchLabels:{s} 2:matchExpressions:[LabelSelectorRequirement]"),
    ("OwnerReference", "1:kind:s! 3:name:s! 4:uid:s! 5:apiVersion:s! 6:controller:b? 7:blockOwnerDeletion:b?"),
    (
        "ManagedFieldsEntry",
        "1:manager:s 2:operation:s 3:apiVersion:s 4:time:T 6:fieldsType:s 7:fieldsV1:J 8:subresource:s",
    ),
    ("Preconditions", "1:uid:s? 2:resourceVersion:s?"),
    ("LabelSelectorRequirement", "1:key:s! 2:operator:s! 3:values:[s]"),
    ("Namespace", "1:metadata:ObjectMeta 2:spec:NamespaceSpec 3:status:NamespaceStatus"),
    ("NamespaceSpec", "1:finalizers:[s]"),
    ("NamespaceStatus", "1:phase:s 2:conditions:[NamespaceCondition]"),
    ("NamespaceCondition", "1:type:s! 2:status:s! 4:lastTransitionTime:T 5:reason:s 6:message:s"),
    ("Node", "1:metadata:ObjectMeta 2:spec:NodeSpec 3:status:NodeStatus"),
    (
        "NodeSpec",
        "1:podCIDR:s 2:externalID:s 3:providerID:s 4:unschedulable:b 5:taints:[Taint] \
         6:configSource:NodeConfigSource 7:podCIDRs:[s]",
    ),
    ("Taint", "1:key:s! 2:value:s 3:effect:s! 4:timeAdded:T"),
    ("NodeConfigSource", "2:configMap:ConfigMapNodeConfigSource"),
    ("ConfigMapNodeConfigSource", "1:namespace:s! 2:name:s! 3:uid:s 4:resourceVersion:s 5:kubeletConfigKey:s!"),
    (
        "NodeStatus",
        "1:capacity:{Q} 2:allocatable:{Q} 3:phase:s 4:conditions:[NodeCondition] 5:addresses:[NodeAddress] \
         6:daemonEndpoints:NodeDaemonEndpoints 7:nodeInfo:NodeSystemInfo 8:images:[ContainerImage] \
         9:volumesInUse:[s] 10:volumesAttached:[AttachedVolume] 11:config:NodeConfigStatus \
         12:runtimeHandlers:[NodeRuntimeHandler] 13:features:NodeFeatures",
    ),
    ("NodeCondition", "1:type:s! 2:status:s! 3:lastHeartbeatTime:T 4:lastTransitionTime:T 5:reason:s 6:message:s"),
    ("NodeAddress", "1:type:s! 2:address:s!"),
    ("NodeDaemonEndpoints", "1:kubeletEndpoint:DaemonEndpoint"),
    ("DaemonEndpoint", "1:Port:i!"),
    (
        "NodeSystemInfo",
        "1:machineID:s! 2:systemUUID:s! 3:bootID:s! 4:kernelVersion:s! 5:osImage:s! \
         6:containerRuntimeVersion:s! 7:kubeletVersion:s! 8:kubeProxyVersion:s! 9:operatingSystem:s! \
         10:architecture:s!",
    ),
    ("ContainerImage", "1:names:[s]! 2:sizeBytes:i"),
    ("AttachedVolume", "1:name:s! 2:devicePath:s!"),
    (
        "NodeConfigStatus",
        "1:assigned:NodeConfigSource 2:active:NodeConfigSource 3:lastKnownGood:NodeConfigSource 4:error:s",
    ),
    ("PersistentVolume", "1:metadata:ObjectMeta 2:spec:PersistentVolumeSpec 3:status:PersistentVolumeStatus"),
    (
        "PersistentVolumeSpec",
        "1:capacity:{Q} 2:<inline>:PersistentVolumeSource 3:accessModes:[s] 4:claimRef:ObjectReference \
         5:persistentVolumeReclaimPolicy:s 6:storageClassName:s 7:mountOptions:[s] 8:volumeMode:s? \
         9:nodeAffinity:VolumeNodeAffinity 10:volumeAttributesClassName:s?",
    ),
    (
        "PersistentVolumeSource",
        "1:gcePersistentDisk:GCEPersistentDiskVolumeSource \
         2:awsElasticBlockStore:AWSElasticBlockStoreVolumeSource 3:hostPath:HostPathVolumeSource \
         4:glusterfs:GlusterfsPersistentVolumeSource 5:nfs:NFSVolumeSource 6:rbd:RBDPersistentVolumeSource \
         7:iscsi:ISCSIPersistentVolumeSource 8:cinder:CinderPersistentVolumeSource \
         9:cephfs:CephFSPersistentVolumeSource 10:fc:FCVolumeSource 11:flocker:FlockerVolumeSource \
         12:flexVolume:FlexPersistentVolumeSource 13:azureFile:AzureFilePersistentVolumeSource \
         14:vsphereVolume:VsphereVirtualDiskVolumeSource 15:quobyte:QuobyteVolumeSource \
         16:azureDisk:AzureDiskVolumeSource 17:photonPersistentDisk:PhotonPersistentDiskVolumeSource \
         18:portworxVolume:PortworxVolumeSource 19:scaleIO:ScaleIOPersistentVolumeSource \
         20:local:LocalVolumeSource 21:storageos:StorageOSPersistentVolumeSource \
         22:csi:CSIPersistentVolumeSource",
    ),
    ("GlusterfsPersistentVolumeSource", "1:endpoints:s! 2:path:s! 3:readOnly:b 4:endpointsNamespace:s?"),
    (
        "RBDPersistentVolumeSource",
        "1:monitors:[s]! 2:image:s! 3:fsType:s 4:pool:s 5:user:s 6:keyring:s 7:secretRef:SecretReference \
         8:readOnly:b",
    ),
    ("SecretReference", "1:name:s 2:namespace:s"),
    (
        "ISCSIPersistentVolumeSource",
        "1:targetPortal:s! 2:iqn:s! 3:lun:i! 4:iscsiInterface:s 5:fsType:s 6:readOnly:b 7:portals:[s] \
         8:chapAuthDiscovery:b 10:secretRef:SecretReference 11:chapAuthSession:b 12:initiatorName:s?",
    ),
    ("CinderPersistentVolumeSource", "1:volumeID:s! 2:fsType:s 3:readOnly:b 4:secretRef:SecretReference"),
    (
        "CephFSPersistentVolumeSource",
        "1:monitors:[s]! 2:path:s 3:user:s 4:secretFile:s 5:secretRef:SecretReference 6:readOnly:b",
    ),
    ("FlexPersistentVolumeSource", "1:driver:s! 2:fsType:s 3:secretRef:SecretReference 4:readOnly:b 5:options:{s}"),
    ("AzureFilePersistentVolumeSource", "1:secretName:s! 2:shareName:s! 3:readOnly:b 4:secretNamespace:s?"),
    (
        "ScaleIOPersistentVolumeSource",
        "1:gateway:s! 2:system:s! 3:secretRef:SecretReference 4:sslEnabled:b 5:protectionDomain:s \
         6:storagePool:s 7:storageMode:s 8:volumeName:s 9:fsType:s 10:readOnly:b",
    ),
    ("LocalVolumeSource", "1:path:s! 2:fsType:s?"),
    (
        "StorageOSPersistentVolumeSource",
        "1:volumeName:s 2:volumeNamespace:s 3:fsType:s 4:readOnly:b 5:secretRef:ObjectReference",
    ),
    ("ObjectReference", "1:kind:s 2:namespace:s 3:name:s 4:uid:s 5:apiVersion:s 6:resourceVersion:s 7:fieldPath:s"),
    (
        "CSIPersistentVolumeSource",
        "1:driver:s! 2:volumeHandle:s! 3:readOnly:b 4:fsType:s 5:volumeAttributes:{s} \
         6:controllerPublishSecretRef:SecretReference 7:nodeStageSecretRef:SecretReference \
         8:nodePublishSecretRef:SecretReference 9:controllerExpandSecretRef:SecretReference",
    ),
    ("VolumeNodeAffinity", "1:required:NodeSelector"),
    ("PersistentVolumeStatus", "1:phase:s 2:message:s 3:reason:s 4:lastPhaseTransitionTime:T"),
    ("Binding", "1:metadata:ObjectMeta 2:target:ObjectReference"),
    ("ConfigMap", "1:metadata:ObjectMeta 2:data:{s} 3:binaryData:{B} 4:immutable:b?"),
    ("Endpoints", "1:metadata:ObjectMeta 2:subsets:[EndpointSubset]"),
    ("EndpointSubset", "1:addresses:[EndpointAddress] 2:notReadyAddresses:[EndpointAddress] 3:ports:[EndpointPort]"),
    ("EndpointAddress", "1:ip:s! 2:targetRef:ObjectReference 3:hostname:s 4:nodeName:s?"),
    ("EndpointPort", "1:name:s 2:port:i! 3:protocol:s 4:appProtocol:s?"),
    (
        "Event",
        "1:metadata:ObjectMeta 2:involvedObject:ObjectReference 3:reason:s 4:message:s 5:source:EventSource \
         6:firstTimestamp:T 7:lastTimestamp:T 8:count:i 9:type:s 10:eventTime:U 11:series:EventSeries \
         12:action:s 13:related:ObjectReference 14:reportingComponent:s! 15:reportingInstance:s!",
    ),
    ("EventSource", "1:component:s 2:host:s"),
    ("EventSeries", "1:count:i 2:lastObservedTime:U"),
    ("LimitRange", "1:metadata:ObjectMeta 2:spec:LimitRangeSpec"),
    ("LimitRangeSpec", "1:limits:[LimitRangeItem]!"),
    ("LimitRangeItem", "1:type:s! 2:max:{Q} 3:min:{Q} 4:default:{Q} 5:defaultRequest:{Q} 6:maxLimitRequestRatio:{Q}"),
    (
        "PersistentVolumeClaim",
        "1:metadata:ObjectMeta 2:spec:PersistentVolumeClaimSpec 3:status:PersistentVolumeClaimStatus",
    ),
    (
        "PersistentVolumeClaimStatus",
        "1:phase:s 2:accessModes:[s] 3:capacity:{Q} 4:conditions:[PersistentVolumeClaimCondition] \
         5:allocatedResources:{Q} 7:allocatedResourceStatuses:{s} 8:currentVolumeAttributesClassName:s?",
    ),
    (
        "PersistentVolumeClaimCondition",
        "1:type:s! 2:status:s! 3:lastProbeTime:T 4:lastTransitionTime:T 5:reason:s 6:message:s",
    ),
    (
        "ReplicationController",
        "1:metadata:ObjectMeta 2:spec:ReplicationControllerSpec 3:status:ReplicationControllerStatus",
    ),
    ("ReplicationControllerSpec", "1:replicas:i? 2:selector:{s} 3:template:PodTemplateSpec 4:minReadySeconds:i"),
    (
        "ReplicationControllerStatus",
        "1:replicas:i! 2:fullyLabeledReplicas:i 3:observedGeneration:i 4:readyReplicas:i \
         5:availableReplicas:i 6:conditions:[ReplicationControllerCondition]",
    ),
    ("ReplicationControllerCondition", "1:type:s! 2:status:s! 3:lastTransitionTime:T 4:reason:s 5:message:s"),
    ("ResourceQuota", "1:metadata:ObjectMeta 2:spec:ResourceQuotaSpec 3:status:ResourceQuotaStatus"),
    ("ResourceQuotaSpec", "1:hard:{Q} 2:scopes:[s] 3:scopeSelector:ScopeSelector"),
    ("ScopeSelector", "1:matchExpressions:[ScopedResourceSelectorRequirement]"),
    ("ScopedResourceSelectorRequirement", "1:scopeName:s! 2:operator:s! 3:values:[s]"),
    ("ResourceQuotaStatus", "1:hard:{Q} 2:used:{Q}"),
    ("Secret", "1:metadata:ObjectMeta 2:data:{B} 3:type:s 4:stringData:{s} 5:immutable:b?"),
    (
        "ServiceAccount",
        "1:metadata:ObjectMeta 2:secrets:[ObjectReference] 3:imagePullSecrets:[LocalObjectReference] \
         4:automountServiceAccountToken:b?",
    ),
    ("Service", "1:metadata:ObjectMeta 2:spec:ServiceSpec 3:status:ServiceStatus"),
    (
        "ServiceSpec",
        "1:ports:[ServicePort] 2:selector:{s} 3:clusterIP:s 4:type:s 5:externalIPs:[s] 7:sessionAffinity:s \
         8:loadBalancerIP:s 9:loadBalancerSourceRanges:[s] 10:externalName:s 11:externalTrafficPolicy:s \
         12:healthCheckNodePort:i 13:publishNotReadyAddresses:b \
         14:sessionAffinityConfig:SessionAffinityConfig 16:topologyKeys:[s] 17:ipFamilyPolicy:s? \
         18:clusterIPs:[s] 19:ipFamilies:[s] 20:allocateLoadBalancerNodePorts:b? 21:loadBalancerClass:s? \
         22:internalTrafficPolicy:s? 23:trafficDistribution:s?",
    ),
    ("ServicePort", "1:name:s 2:protocol:s 3:port:i! 4:targetPort:O 5:nodePort:i 6:appProtocol:s?"),
    ("SessionAffinityConfig", "1:clientIP:ClientIPConfig"),
    ("ClientIPConfig", "1:timeoutSeconds:i?"),
    ("ServiceStatus", "1:loadBalancer:LoadBalancerStatus 2:conditions:[MetaCondition]"),
    ("LoadBalancerStatus", "1:ingress:[LoadBalancerIngress]"),
    ("LoadBalancerIngress", "1:ip:s 2:hostname:s 3:ipMode:s? 4:ports:[PortStatus]"),
    ("PortStatus", "1:port:i! 2:protocol:s! 3:error:s?"),
    ("NodeRuntimeHandler", "1:name:s! 2:features:NodeRuntimeHandlerFeatures"),
    ("NodeRuntimeHandlerFeatures", "1:recursiveReadOnlyMounts:b? 2:userNamespaces:b?"),
    ("NodeFeatures", "1:supplementalGroupsPolicy:b?"),
];
