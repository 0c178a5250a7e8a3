//! [`Mix`]: what users do, in relative weights. Pure.
//!
//! An action is what a person or a controller does; `corpus` expands it to the reviews that Kubernetes sends for it.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::objects::Kind;

/// Relative weights of user actions. An action that is not named does not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Mix {
    /// A Pod by hand: one CREATE.
    pub create_pod: u32,
    /// A Deployment, its `ReplicaSet` and its Pods.
    pub create_deployment: u32,
    /// A `ReplicaSet` without a Deployment, and its Pods.
    pub create_replica_set: u32,
    /// A `ReplicationController` and its Pods.
    pub create_replication_controller: u32,
    /// A `StatefulSet` and its Pods.
    pub create_stateful_set: u32,
    /// A `DaemonSet` and its Pods.
    pub create_daemon_set: u32,
    /// A Job and its Pod.
    pub create_job: u32,
    /// A `CronJob`, the first Job that it makes, and that Job's Pod.
    pub create_cron_job: u32,
    /// A custom resource with a pod template in `spec.template`, and a Pod of its operator. Opt-in, because many webhooks
    /// know the built-in kinds only.
    pub create_custom_resource: u32,
    /// A `ConfigMap`: no images; to be admitted as it is.
    pub create_config_map: u32,
    /// A Secret: no images; to be admitted as it is.
    pub create_secret: u32,
    /// A Service: no images; to be admitted as it is.
    pub create_service: u32,
    /// A `CustomResourceDefinition` whose schema names containers and images; to be admitted as it is.
    pub create_custom_resource_definition: u32,
    /// A Namespace with the `ServiceAccount` and the `ConfigMap` that controllers put into it; to be admitted as they are.
    pub create_namespace: u32,
    /// A Deployment with `kubectl apply --dry-run=server`: one CREATE that nothing follows.
    pub dry_run_deployment: u32,
    /// A `ConfigMap` changed: one UPDATE; to be admitted as it is.
    pub update_config_map: u32,
    /// One image of a Deployment changed (`kubectl set image`): UPDATE, a new `ReplicaSet`, new Pods, the old `ReplicaSet`
    /// scaled down, an old Pod deleted.
    pub roll_image: u32,
    /// A Deployment's replicas changed by `kubectl apply`: UPDATE of Deployment and `ReplicaSet` without image changes, Pods
    /// created or deleted.
    pub scale_deployment: u32,
    /// The same by `kubectl scale`: the first UPDATE is of the `scale` subresource, whose object is no Deployment. Opt-in,
    /// because some webhooks are not registered for it.
    pub scale_through_subresource: u32,
    /// A Deployment deleted, and what it owned after it: DELETE of Deployment, `ReplicaSet` and Pods.
    pub delete_deployment: u32,
    /// A Pod's label changed: one UPDATE without image changes.
    pub label_pod: u32,
    /// A Pod deleted: one DELETE of whoever wants it gone and one of the kubelet, with only the old object.
    pub delete_pod: u32,
    /// A Pod evicted through the `eviction` subresource, as `kubectl drain` does: CREATE of the eviction, DELETE of the
    /// kubelet. Opt-in, because some webhooks are not registered for it.
    pub evict_pod: u32,
    /// `kubectl debug`: an ephemeral container added through the `ephemeralcontainers` subresource. Opt-in, because
    /// some webhooks are not registered for it.
    pub debug_pod: u32,
    /// A Pod bound to a node and running: CREATE of the `binding`, UPDATE of the `status` of Pod, `ReplicaSet` and
    /// Deployment; to be admitted as they are. Opt-in, because few webhooks are registered for it.
    pub update_status: u32,
    /// A Pod that mounts an image as a volume (Kubernetes 1.31 and later). Opt-in, because many webhooks overlook it.
    pub create_pod_with_image_volume: u32,
    /// A Pod into which another webhook puts a sidecar: its CREATE, and the same CREATE once more with what the first answer
    /// pinned and a sidecar that is not (`reinvocationPolicy: IfNeeded`). Opt-in, because a webhook that never asks for it gets none.
    pub create_pod_with_sidecar: u32,
    /// A Pod of eight containers that all run the same image.
    pub create_pod_of_equal_images: u32,
    /// An attack: a Pod in a review of nearly 8 MiB. What is right for the Pod is right, and so is to refuse or to shed it (413, 429).
    pub hostile_body: u32,
    /// An attack: a Pod of 500 images in the repository `hostile`, which does not exist; with the fault `registry-hang` about `hostile/*`
    /// nobody ever says so. To be refused, or shed.
    pub hostile_many_images: u32,
    /// An attack: a Pod of an image with twenty bundles of 8 MiB that sign nothing (`registry: {signed: true}`). To be refused, or shed.
    pub hostile_bundles: u32,
}

/// A user action of the [`Mix`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Action {
    CreatePod,
    CreateDeployment,
    CreateReplicaSet,
    CreateReplicationController,
    CreateStatefulSet,
    CreateDaemonSet,
    CreateJob,
    CreateCronJob,
    CreateCustomResource,
    CreateConfigMap,
    CreateSecret,
    CreateService,
    CreateCustomResourceDefinition,
    CreateNamespace,
    DryRunDeployment,
    UpdateConfigMap,
    RollImage,
    ScaleDeployment,
    ScaleThroughSubresource,
    DeleteDeployment,
    LabelPod,
    DeletePod,
    EvictPod,
    DebugPod,
    UpdateStatus,
    CreatePodWithImageVolume,
    CreatePodWithSidecar,
    CreatePodOfEqualImages,
    HostileBody,
    HostileManyImages,
    HostileBundles,
}

impl Action {
    /// The kind that it writes through an API server, and whether it makes a new object. None for what only controllers, nodes and drains do, and for
    /// what an API server must be told of first.
    pub(super) fn kind(self) -> Option<(Kind, bool)> {
        Some(match self {
            Self::CreatePod => (Kind::Pod, true),
            Self::CreateDeployment | Self::DryRunDeployment => (Kind::Deployment, true),
            Self::CreateReplicaSet => (Kind::ReplicaSet, true),
            Self::CreateReplicationController => (Kind::ReplicationController, true),
            Self::CreateStatefulSet => (Kind::StatefulSet, true),
            Self::CreateDaemonSet => (Kind::DaemonSet, true),
            Self::CreateJob => (Kind::Job, true),
            Self::CreateCronJob => (Kind::CronJob, true),
            Self::CreateConfigMap => (Kind::ConfigMap, true),
            Self::CreateSecret => (Kind::Secret, true),
            Self::CreateService => (Kind::Service, true),
            Self::UpdateConfigMap => (Kind::ConfigMap, false),
            Self::RollImage | Self::ScaleDeployment | Self::ScaleThroughSubresource | Self::DeleteDeployment => {
                (Kind::Deployment, false)
            }
            Self::LabelPod | Self::DeletePod => (Kind::Pod, false),
            _ => return None,
        })
    }

    /// As it is written in a scenario.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::CreatePod => "createPod",
            Self::CreateDeployment => "createDeployment",
            Self::CreateReplicaSet => "createReplicaSet",
            Self::CreateReplicationController => "createReplicationController",
            Self::CreateStatefulSet => "createStatefulSet",
            Self::CreateDaemonSet => "createDaemonSet",
            Self::CreateJob => "createJob",
            Self::CreateCronJob => "createCronJob",
            Self::CreateCustomResource => "createCustomResource",
            Self::CreateConfigMap => "createConfigMap",
            Self::CreateSecret => "createSecret",
            Self::CreateService => "createService",
            Self::CreateCustomResourceDefinition => "createCustomResourceDefinition",
            Self::CreateNamespace => "createNamespace",
            Self::DryRunDeployment => "dryRunDeployment",
            Self::UpdateConfigMap => "updateConfigMap",
            Self::RollImage => "rollImage",
            Self::ScaleDeployment => "scaleDeployment",
            Self::ScaleThroughSubresource => "scaleThroughSubresource",
            Self::DeleteDeployment => "deleteDeployment",
            Self::LabelPod => "labelPod",
            Self::DeletePod => "deletePod",
            Self::EvictPod => "evictPod",
            Self::DebugPod => "debugPod",
            Self::UpdateStatus => "updateStatus",
            Self::CreatePodWithImageVolume => "createPodWithImageVolume",
            Self::CreatePodWithSidecar => "createPodWithSidecar",
            Self::CreatePodOfEqualImages => "createPodOfEqualImages",
            Self::HostileBody => "hostileBody",
            Self::HostileManyImages => "hostileManyImages",
            Self::HostileBundles => "hostileBundles",
        }
    }
}

impl Mix {
    /// Whether images with heavy signatures are wanted.
    pub fn has_bundles(&self) -> bool {
        self.hostile_bundles > 0
    }

    /// What a scenario gets that does not say: the mix of the documentation's example.
    pub fn usual() -> Self {
        Self { create_pod: 5, create_deployment: 3, roll_image: 1, delete_pod: 2, ..Self::default() }
    }

    /// The sum of all weights.
    pub(super) fn total(&self) -> u64 {
        self.weights().iter().map(|&(_, weight)| u64::from(weight)).sum()
    }

    /// Every action with its weight, always in the same order.
    pub(super) fn weights(&self) -> [(Action, u32); 31] {
        [
            (Action::CreatePod, self.create_pod),
            (Action::CreateDeployment, self.create_deployment),
            (Action::CreateReplicaSet, self.create_replica_set),
            (Action::CreateReplicationController, self.create_replication_controller),
            (Action::CreateStatefulSet, self.create_stateful_set),
            (Action::CreateDaemonSet, self.create_daemon_set),
            (Action::CreateJob, self.create_job),
            (Action::CreateCronJob, self.create_cron_job),
            (Action::CreateCustomResource, self.create_custom_resource),
            (Action::CreateConfigMap, self.create_config_map),
            (Action::CreateSecret, self.create_secret),
            (Action::CreateService, self.create_service),
            (Action::CreateCustomResourceDefinition, self.create_custom_resource_definition),
            (Action::CreateNamespace, self.create_namespace),
            (Action::DryRunDeployment, self.dry_run_deployment),
            (Action::UpdateConfigMap, self.update_config_map),
            (Action::RollImage, self.roll_image),
            (Action::ScaleDeployment, self.scale_deployment),
            (Action::ScaleThroughSubresource, self.scale_through_subresource),
            (Action::DeleteDeployment, self.delete_deployment),
            (Action::LabelPod, self.label_pod),
            (Action::DeletePod, self.delete_pod),
            (Action::EvictPod, self.evict_pod),
            (Action::DebugPod, self.debug_pod),
            (Action::UpdateStatus, self.update_status),
            (Action::CreatePodWithImageVolume, self.create_pod_with_image_volume),
            (Action::CreatePodWithSidecar, self.create_pod_with_sidecar),
            (Action::CreatePodOfEqualImages, self.create_pod_of_equal_images),
            (Action::HostileBody, self.hostile_body),
            (Action::HostileManyImages, self.hostile_many_images),
            (Action::HostileBundles, self.hostile_bundles),
        ]
    }

    /// Draws an action by weight, or `None` when every weight is 0.
    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> Option<Action> {
        let total = self.total();
        if total == 0 {
            return None;
        }
        let mut at = rng.random_range(0..total);
        for (action, weight) in self.weights() {
            if at < u64::from(weight) {
                return Some(action);
            }
            at -= u64::from(weight);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Each action is drawn in proportion to its weight, and one without weight never.
        #[test]
        fn weights_are_kept(pod in 0u32..10, roll in 0u32..10, delete in 1u32..10, seed: u64) {
            let mix = Mix { create_pod: pod, roll_image: roll, delete_pod: delete, ..Mix::default() };
            let mut rng = seed::stream(seed, "mix");
            let draws = 20_000u32;
            let mut counts = std::collections::BTreeMap::new();
            for _ in 0..draws {
                *counts.entry(mix.draw(&mut rng).unwrap()).or_insert(0u32) += 1;
            }
            for (action, weight) in mix.weights() {
                let share = f64::from(weight) / mix.total() as f64;
                let drawn = f64::from(counts.get(&action).copied().unwrap_or(0)) / f64::from(draws);
                // Six standard errors of a proportion at its widest: 6 * sqrt(0.25/20000) = 0.021.
                prop_assert!((share - drawn).abs() < 0.022, "{action:?} {drawn} instead of {share}");
                prop_assert!(weight > 0 || drawn == 0.0);
            }
        }
    }

    #[test]
    fn keys_are_those_of_the_scenario_file() {
        let json = serde_json::to_value(Mix::default()).unwrap();
        let mut written: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        let mut keys: Vec<&str> = Mix::default().weights().iter().map(|(action, _)| action.key()).collect();
        written.sort_unstable();
        keys.sort_unstable();
        assert_eq!(written, keys);
    }
}
