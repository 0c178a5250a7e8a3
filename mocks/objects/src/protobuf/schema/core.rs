//! The messages of meta/v1, and other messages that no single kind owns.

use super::Row;

pub(super) const TABLE: &[Row] = &[
    "ObjectMeta 1:name:s 2:generateName:s 3:namespace:s 4:selfLink:s 5:uid:s 6:resourceVersion:s 7:generation:i \
     8:creationTimestamp:T 9:deletionTimestamp:T 10:deletionGracePeriodSeconds:i? 11:labels:{s} 12:annotations:{s} \
     13:ownerReferences:[OwnerReference] 14:finalizers:[s] 17:managedFields:[ManagedFieldsEntry]",
    "DeleteOptions 1:gracePeriodSeconds:i? 2:preconditions:Preconditions 3:orphanDependents:b? \
     4:propagationPolicy:s? 5:dryRun:[s] 6:ignoreStoreReadErrorWithClusterBreakingPotential:b?",
    "MetaCondition 1:type:s! 2:status:s! 3:observedGeneration:i 4:lastTransitionTime:T 5:reason:s! 6:message:s!",
    "LabelSelector 1:matchLabels:{s} 2:matchExpressions:[LabelSelectorRequirement]",
    "OwnerReference 1:kind:s! 3:name:s! 4:uid:s! 5:apiVersion:s! 6:controller:b? 7:blockOwnerDeletion:b?",
    "ManagedFieldsEntry 1:manager:s 2:operation:s 3:apiVersion:s 4:time:T 6:fieldsType:s 7:fieldsV1:J 8:subresource:s",
    "Preconditions 1:uid:s? 2:resourceVersion:s?",
    "LabelSelectorRequirement 1:key:s! 2:operator:s! 3:values:[s]",
    "SecretReference 1:name:s 2:namespace:s",
    "ObjectReference 1:kind:s 2:namespace:s 3:name:s 4:uid:s 5:apiVersion:s 6:resourceVersion:s 7:fieldPath:s",
    "Scale 1:metadata:ObjectMeta 2:spec:ScaleSpec 3:status:ScaleStatus",
    "ScaleSpec 1:replicas:i",
    "ScaleStatus 1:replicas:i! 2:selector:s",
    "ListMeta 1:selfLink:s 2:resourceVersion:s 3:continue:s 4:remainingItemCount:i?",
    "PartialObjectMetadata 1:metadata:ObjectMeta",
    "Status 1:metadata:ListMeta 2:status:s 3:message:s 4:reason:s 5:details:StatusDetails 6:code:i",
    "StatusDetails 1:name:s 2:group:s 3:kind:s 4:causes:[StatusCause] 5:retryAfterSeconds:i 6:uid:s",
    "StatusCause 1:reason:s 2:message:s 3:field:s",
];
