//! apps, batch, autoscaling, policy, scheduling and node.

use super::Row;

pub(super) const TABLE: &[Row] = &[
    ("ControllerRevision", "1:metadata:ObjectMeta 2:data:J 3:revision:i!"),
    ("DaemonSet", "1:metadata:ObjectMeta 2:spec:DaemonSetSpec 3:status:DaemonSetStatus"),
    (
        "DaemonSetSpec",
        "1:selector:LabelSelector 2:template:PodTemplateSpec 3:updateStrategy:DaemonSetUpdateStrategy \
         4:minReadySeconds:i 6:revisionHistoryLimit:i?",
    ),
    ("DaemonSetUpdateStrategy", "1:type:s 2:rollingUpdate:RollingUpdateDaemonSet"),
    ("RollingUpdateDaemonSet", "1:maxUnavailable:O? 2:maxSurge:O"),
    (
        "DaemonSetStatus",
        "1:currentNumberScheduled:i! 2:numberMisscheduled:i! 3:desiredNumberScheduled:i! 4:numberReady:i! \
         5:observedGeneration:i 6:updatedNumberScheduled:i 7:numberAvailable:i 8:numberUnavailable:i \
         9:collisionCount:i? 10:conditions:[DaemonSetCondition]",
    ),
    ("DaemonSetCondition", "1:type:s! 2:status:s! 3:lastTransitionTime:T 4:reason:s 5:message:s"),
    ("Deployment", "1:metadata:ObjectMeta 2:spec:DeploymentSpec 3:status:DeploymentStatus"),
    (
        "DeploymentSpec",
        "1:replicas:i? 2:selector:LabelSelector 3:template:PodTemplateSpec 4:strategy:DeploymentStrategy \
         5:minReadySeconds:i 6:revisionHistoryLimit:i? 7:paused:b 9:progressDeadlineSeconds:i?",
    ),
    ("DeploymentStrategy", "1:type:s 2:rollingUpdate:RollingUpdateDeployment"),
    ("RollingUpdateDeployment", "1:maxUnavailable:O? 2:maxSurge:O?"),
    (
        "DeploymentStatus",
        "1:observedGeneration:i 2:replicas:i 3:updatedReplicas:i 4:availableReplicas:i \
         5:unavailableReplicas:i 6:conditions:[DeploymentCondition] 7:readyReplicas:i 8:collisionCount:i? \
         9:terminatingReplicas:i?",
    ),
    ("DeploymentCondition", "1:type:s! 2:status:s! 4:reason:s 5:message:s 6:lastUpdateTime:T 7:lastTransitionTime:T"),
    ("ReplicaSet", "1:metadata:ObjectMeta 2:spec:ReplicaSetSpec 3:status:ReplicaSetStatus"),
    ("ReplicaSetSpec", "1:replicas:i? 2:selector:LabelSelector 3:template:PodTemplateSpec 4:minReadySeconds:i"),
    (
        "ReplicaSetStatus",
        "1:replicas:i! 2:fullyLabeledReplicas:i 3:observedGeneration:i 4:readyReplicas:i \
         5:availableReplicas:i 6:conditions:[ReplicaSetCondition] 7:terminatingReplicas:i?",
    ),
    ("ReplicaSetCondition", "1:type:s! 2:status:s! 3:lastTransitionTime:T 4:reason:s 5:message:s"),
    ("StatefulSet", "1:metadata:ObjectMeta 2:spec:StatefulSetSpec 3:status:StatefulSetStatus"),
    (
        "StatefulSetSpec",
        "1:replicas:i? 2:selector:LabelSelector 3:template:PodTemplateSpec \
         4:volumeClaimTemplates:[PersistentVolumeClaim] 5:serviceName:s! 6:podManagementPolicy:s \
         7:updateStrategy:StatefulSetUpdateStrategy 8:revisionHistoryLimit:i? 9:minReadySeconds:i \
         10:persistentVolumeClaimRetentionPolicy:StatefulSetPersistentVolumeClaimRetentionPolicy \
         11:ordinals:StatefulSetOrdinals",
    ),
    ("StatefulSetUpdateStrategy", "1:type:s 2:rollingUpdate:RollingUpdateStatefulSetStrategy"),
    ("RollingUpdateStatefulSetStrategy", "1:partition:i? 2:maxUnavailable:O"),
    (
        "StatefulSetStatus",
        "1:observedGeneration:i 2:replicas:i! 3:readyReplicas:i 4:currentReplicas:i 5:updatedReplicas:i \
         6:currentRevision:s 7:updateRevision:s 9:collisionCount:i? 10:conditions:[StatefulSetCondition] \
         11:availableReplicas:i",
    ),
    ("StatefulSetCondition", "1:type:s! 2:status:s! 3:lastTransitionTime:T 4:reason:s 5:message:s"),
    ("Job", "1:metadata:ObjectMeta 2:spec:JobSpec 3:status:JobStatus"),
    (
        "JobSpec",
        "1:parallelism:i? 2:completions:i? 3:activeDeadlineSeconds:i? 4:selector:LabelSelector \
         5:manualSelector:b? 6:template:PodTemplateSpec 7:backoffLimit:i? 8:ttlSecondsAfterFinished:i? \
         9:completionMode:s? 10:suspend:b? 11:podFailurePolicy:PodFailurePolicy 12:backoffLimitPerIndex:i? \
         13:maxFailedIndexes:i? 14:podReplacementPolicy:s? 15:managedBy:s? 16:successPolicy:SuccessPolicy",
    ),
    (
        "JobStatus",
        "1:conditions:[JobCondition] 2:startTime:T 3:completionTime:T 4:active:i 5:succeeded:i 6:failed:i \
         7:completedIndexes:s 8:uncountedTerminatedPods:UncountedTerminatedPods 9:ready:i? \
         10:failedIndexes:s? 11:terminating:i?",
    ),
    ("JobCondition", "1:type:s! 2:status:s! 3:lastProbeTime:T 4:lastTransitionTime:T 5:reason:s 6:message:s"),
    ("CronJob", "1:metadata:ObjectMeta 2:spec:CronJobSpec 3:status:CronJobStatus"),
    (
        "CronJobSpec",
        "1:schedule:s! 2:startingDeadlineSeconds:i? 3:concurrencyPolicy:s 4:suspend:b? \
         5:jobTemplate:JobTemplateSpec 6:successfulJobsHistoryLimit:i? 7:failedJobsHistoryLimit:i? \
         8:timeZone:s?",
    ),
    ("JobTemplateSpec", "1:metadata:ObjectMeta 2:spec:JobSpec"),
    ("CronJobStatus", "1:active:[ObjectReference] 4:lastScheduleTime:T 5:lastSuccessfulTime:T"),
    (
        "HorizontalPodAutoscaler",
        "1:metadata:ObjectMeta 2:spec:HorizontalPodAutoscalerSpec 3:status:HorizontalPodAutoscalerStatus",
    ),
    (
        "HorizontalPodAutoscalerSpec",
        "1:scaleTargetRef:CrossVersionObjectReference 2:minReplicas:i? 3:maxReplicas:i! \
         4:metrics:[MetricSpec] 5:behavior:HorizontalPodAutoscalerBehavior",
    ),
    ("CrossVersionObjectReference", "1:kind:s! 2:name:s! 3:apiVersion:s"),
    (
        "MetricSpec",
        "1:type:s! 2:object:ObjectMetricSource 3:pods:PodsMetricSource 4:resource:ResourceMetricSource \
         5:external:ExternalMetricSource 7:containerResource:ContainerResourceMetricSource",
    ),
    (
        "ObjectMetricSource",
        "1:describedObject:CrossVersionObjectReference 2:target:MetricTarget 3:metric:MetricIdentifier",
    ),
    ("MetricTarget", "1:type:s! 2:value:Q? 3:averageValue:Q? 4:averageUtilization:i?"),
    ("MetricIdentifier", "1:name:s! 2:selector:LabelSelector"),
    ("PodsMetricSource", "1:metric:MetricIdentifier 2:target:MetricTarget"),
    ("ResourceMetricSource", "1:name:s! 2:target:MetricTarget"),
    ("ContainerResourceMetricSource", "1:name:s! 2:target:MetricTarget 3:container:s!"),
    ("ExternalMetricSource", "1:metric:MetricIdentifier 2:target:MetricTarget"),
    ("HorizontalPodAutoscalerBehavior", "1:scaleUp:HPAScalingRules 2:scaleDown:HPAScalingRules"),
    (
        "HPAScalingRules",
        "1:selectPolicy:s? 2:policies:[HPAScalingPolicy] 3:stabilizationWindowSeconds:i? 4:tolerance:Q",
    ),
    ("HPAScalingPolicy", "1:type:s! 2:value:i! 3:periodSeconds:i!"),
    (
        "HorizontalPodAutoscalerStatus",
        "1:observedGeneration:i? 2:lastScaleTime:T 3:currentReplicas:i! 4:desiredReplicas:i! \
         5:currentMetrics:[MetricStatus]! 6:conditions:[HorizontalPodAutoscalerCondition]!",
    ),
    (
        "MetricStatus",
        "1:type:s! 2:object:ObjectMetricStatus 3:pods:PodsMetricStatus 4:resource:ResourceMetricStatus \
         5:external:ExternalMetricStatus 7:containerResource:ContainerResourceMetricStatus",
    ),
    (
        "ObjectMetricStatus",
        "1:metric:MetricIdentifier 2:current:MetricValueStatus 3:describedObject:CrossVersionObjectReference",
    ),
    ("MetricValueStatus", "1:value:Q? 2:averageValue:Q? 3:averageUtilization:i?"),
    ("PodsMetricStatus", "1:metric:MetricIdentifier 2:current:MetricValueStatus"),
    ("ResourceMetricStatus", "1:name:s! 2:current:MetricValueStatus"),
    ("ContainerResourceMetricStatus", "1:name:s! 2:current:MetricValueStatus 3:container:s!"),
    ("ExternalMetricStatus", "1:metric:MetricIdentifier 2:current:MetricValueStatus"),
    ("HorizontalPodAutoscalerCondition", "1:type:s! 2:status:s! 3:lastTransitionTime:T 4:reason:s 5:message:s"),
    (
        "HorizontalPodAutoscalerV1",
        "1:metadata:ObjectMeta 2:spec:HorizontalPodAutoscalerSpecV1 3:status:HorizontalPodAutoscalerStatusV1",
    ),
    (
        "HorizontalPodAutoscalerSpecV1",
        "1:scaleTargetRef:CrossVersionObjectReference 2:minReplicas:i? 3:maxReplicas:i! \
         4:targetCPUUtilizationPercentage:i?",
    ),
    (
        "HorizontalPodAutoscalerStatusV1",
        "1:observedGeneration:i? 2:lastScaleTime:T 3:currentReplicas:i! 4:desiredReplicas:i! \
         5:currentCPUUtilizationPercentage:i?",
    ),
    ("Scale", "1:metadata:ObjectMeta 2:spec:ScaleSpec 3:status:ScaleStatus"),
    ("ScaleSpec", "1:replicas:i"),
    ("ScaleStatus", "1:replicas:i! 2:selector:s"),
    ("PodDisruptionBudget", "1:metadata:ObjectMeta 2:spec:PodDisruptionBudgetSpec 3:status:PodDisruptionBudgetStatus"),
    (
        "PodDisruptionBudgetSpec",
        "1:minAvailable:O? 2:selector:LabelSelector 3:maxUnavailable:O? 4:unhealthyPodEvictionPolicy:s?",
    ),
    (
        "PodDisruptionBudgetStatus",
        "1:observedGeneration:i 2:disruptedPods:{T} 3:disruptionsAllowed:i! 4:currentHealthy:i! \
         5:desiredHealthy:i! 6:expectedPods:i! 7:conditions:[MetaCondition]",
    ),
    ("Eviction", "1:metadata:ObjectMeta 2:deleteOptions:DeleteOptions"),
    ("RuntimeClass", "1:metadata:ObjectMeta 2:handler:s! 3:overhead:Overhead 4:scheduling:Scheduling"),
    ("Overhead", "1:podFixed:{Q}"),
    ("Scheduling", "1:nodeSelector:{s} 2:tolerations:[Toleration]"),
    ("PriorityClass", "1:metadata:ObjectMeta 2:value:i! 3:globalDefault:b 4:description:s 5:preemptionPolicy:s?"),
    ("PodFailurePolicy", "1:rules:[PodFailurePolicyRule]"),
    (
        "PodFailurePolicyRule",
        "1:action:s! 2:onExitCodes:PodFailurePolicyOnExitCodesRequirement \
         3:onPodConditions:[PodFailurePolicyOnPodConditionsPattern]",
    ),
    ("PodFailurePolicyOnExitCodesRequirement", "1:containerName:s? 2:operator:s! 3:values:[i]"),
    ("PodFailurePolicyOnPodConditionsPattern", "1:type:s! 2:status:s!"),
    ("SuccessPolicy", "1:rules:[SuccessPolicyRule]"),
    ("SuccessPolicyRule", "1:succeededIndexes:s? 2:succeededCount:i?"),
    ("UncountedTerminatedPods", "1:succeeded:[s] 2:failed:[s]"),
    ("StatefulSetPersistentVolumeClaimRetentionPolicy", "1:whenDeleted:s 2:whenScaled:s"),
    ("StatefulSetOrdinals", "1:start:i!"),
];
