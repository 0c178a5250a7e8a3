//! [`Mix`]: users' actions, in relative weights. Pure.
//!
//! An action is done by a user or a controller; `corpus` expands it to the reviews that Kubernetes sends for it.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::objects::Kind;

/// Makes the weights of the mix, the actions and their keys in a scenario file from one list.
macro_rules! actions {
    ($($(#[$doc:meta])* $action:ident $weight:ident $key:literal,)+) => {
        /// Relative weights of user actions. An action that is not named does not happen.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct Mix {
            $($(#[$doc])* #[serde(rename = $key)] pub $weight: u32,)+
        }

        /// A user action of the [`Mix`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Action {
            $($action,)+
        }

        impl Action {
            const COUNT: usize = [$($key),+].len();

            /// The spelling in a scenario.
            pub(super) fn key(self) -> &'static str {
                match self {
                    $(Self::$action => $key,)+
                }
            }
        }

        impl Mix {
            /// Every action with its weight, always in the same order.
            pub(super) fn weights(&self) -> [(Action, u32); Action::COUNT] {
                [$((Action::$action, self.$weight)),+]
            }
        }
    };
}

actions! {
    /// A Pod by hand: one CREATE.
    CreatePod create_pod "createPod",
    /// A Deployment, its `ReplicaSet` and its Pods.
    CreateDeployment create_deployment "createDeployment",
    /// A `ReplicaSet` without a Deployment, and its Pods.
    CreateReplicaSet create_replica_set "createReplicaSet",
    /// A `ReplicationController` and its Pods.
    CreateReplicationController create_replication_controller "createReplicationController",
    /// A `StatefulSet` and its Pods.
    CreateStatefulSet create_stateful_set "createStatefulSet",
    /// A `DaemonSet` and its Pods.
    CreateDaemonSet create_daemon_set "createDaemonSet",
    /// A Job and its Pod.
    CreateJob create_job "createJob",
    /// A `CronJob`, the first Job that it makes, and that Job's Pod.
    CreateCronJob create_cron_job "createCronJob",
    /// A custom resource with a pod template in `spec.template`, and a Pod of its operator. Opt-in, because many
    /// webhooks know only the built-in kinds.
    CreateCustomResource create_custom_resource "createCustomResource",
    /// A `ConfigMap`: no images; must be admitted unchanged.
    CreateConfigMap create_config_map "createConfigMap",
    /// A Secret: no images; must be admitted unchanged.
    CreateSecret create_secret "createSecret",
    /// A Service: no images; must be admitted unchanged.
    CreateService create_service "createService",
    /// A `CustomResourceDefinition` whose schema names containers and images; must be admitted unchanged.
    CreateCustomResourceDefinition create_custom_resource_definition "createCustomResourceDefinition",
    /// A Namespace with the `ServiceAccount` and the `ConfigMap` that controllers put into it; all must be admitted
    /// unchanged.
    CreateNamespace create_namespace "createNamespace",
    /// A Deployment with `kubectl apply --dry-run=server`: one CREATE without further reviews.
    DryRunDeployment dry_run_deployment "dryRunDeployment",
    /// A `ConfigMap` changed: one UPDATE; must be admitted unchanged.
    UpdateConfigMap update_config_map "updateConfigMap",
    /// One image of a Deployment changed (`kubectl set image`): UPDATE, a new `ReplicaSet`, new Pods, the old `ReplicaSet`
    /// scaled down, an old Pod deleted.
    RollImage roll_image "rollImage",
    /// A Deployment's replicas changed by `kubectl apply`: UPDATE of Deployment and `ReplicaSet` without image changes, Pods
    /// created or deleted.
    ScaleDeployment scale_deployment "scaleDeployment",
    /// A Deployment's replicas changed by `kubectl scale`: the first UPDATE is of the `scale` subresource, whose object
    /// is no Deployment. Opt-in, because some webhooks are not registered for it.
    ScaleThroughSubresource scale_through_subresource "scaleThroughSubresource",
    /// A Deployment deleted, and its dependents after it: DELETE of Deployment, `ReplicaSet` and Pods.
    DeleteDeployment delete_deployment "deleteDeployment",
    /// A Pod's label changed: one UPDATE without image changes.
    LabelPod label_pod "labelPod",
    /// A Pod deleted: one DELETE of the user and one of the kubelet, with only the old object.
    DeletePod delete_pod "deletePod",
    /// A Pod evicted through the `eviction` subresource, as `kubectl drain` does: CREATE of the eviction, DELETE of the
    /// kubelet. Opt-in, because some webhooks are not registered for it.
    EvictPod evict_pod "evictPod",
    /// `kubectl debug`: an ephemeral container added through the `ephemeralcontainers` subresource. Opt-in, because
    /// some webhooks are not registered for it.
    DebugPod debug_pod "debugPod",
    /// A Pod bound to a node and running: CREATE of the `binding`, UPDATE of the `status` of Pod, `ReplicaSet` and
    /// Deployment; all must be admitted unchanged. Opt-in, because few webhooks are registered for it.
    UpdateStatus update_status "updateStatus",
    /// A Pod that mounts an image as a volume (Kubernetes 1.31 and later). Opt-in, because many webhooks overlook it.
    CreatePodWithImageVolume create_pod_with_image_volume "createPodWithImageVolume",
    /// A Pod into which another webhook puts a sidecar: its CREATE, and the same CREATE once more with the pins of the
    /// first answer and an unpinned sidecar (`reinvocationPolicy: IfNeeded`). Opt-in, because a webhook without that
    /// policy gets none.
    CreatePodWithSidecar create_pod_with_sidecar "createPodWithSidecar",
    /// A Pod of eight containers that all run the same image.
    CreatePodOfEqualImages create_pod_of_equal_images "createPodOfEqualImages",
    /// An attack: a Pod in a review of nearly 8 MiB. Right is the answer that is right for the Pod, or a refusal, or
    /// shedding (413, 429).
    HostileBody hostile_body "hostileBody",
    /// An attack: a Pod of 500 images in the repository `hostile`, which does not exist; with the fault `registry-hang`
    /// for `hostile/*` the registry never answers. Must be refused, or shed.
    HostileManyImages hostile_many_images "hostileManyImages",
    /// An attack: a Pod of an image with twenty bundles of 8 MiB that sign nothing (`registry: {signed: true}`). Must
    /// be refused, or shed.
    HostileBundles hostile_bundles "hostileBundles",
    /// An attack: a Pod of 500 images whose long names no registry can have, so that each review is denied at once and
    /// receivers of alerts get all of them. Must be refused, or shed.
    HostileRefusedImages hostile_refused_images "hostileRefusedImages",
}

impl Action {
    /// The kind that it writes through an API server, and whether it makes a new object. None for actions of
    /// controllers, nodes and drains, and for kinds that an API server must be configured for first.
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
}

impl Mix {
    /// Whether the mix needs images with heavy signatures.
    pub fn has_bundles(&self) -> bool {
        self.hostile_bundles > 0
    }

    /// The default of a scenario: the mix of the documentation's example.
    pub fn usual() -> Self {
        Self { create_pod: 5, create_deployment: 3, roll_image: 1, delete_pod: 2, ..Self::default() }
    }

    pub(super) fn total(&self) -> u64 {
        self.weights().iter().map(|&(_, weight)| u64::from(weight)).sum()
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

        /// Each action is drawn in proportion to its weight, and an action without weight never.
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
}
