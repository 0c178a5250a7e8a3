//! [`Mix`]: the relative weights of users' actions. Pure: no I/O.
//!
//! The module `corpus` makes the reviews that Kubernetes sends for an action.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::objects::Kind;

/// Makes from one list: the actions, the type of their weights, and their names in scenarios.
macro_rules! actions {
    ($($(#[$doc:meta])* $action:ident $weight:ident $key:literal,)+) => {
        /// The relative weights of user actions. An action without a weight is never done.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct Mix {
            $($(#[$doc])* #[serde(rename = $key)] pub $weight: u32,)+
        }

        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Action {
            $($action,)+
        }

        impl Action {
            const COUNT: usize = [$($key),+].len();

            /// The name of the action in scenarios.
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
    /// A Pod is created by hand: one CREATE.
    CreatePod create_pod "createPod",
    /// A Deployment is created, then its `ReplicaSet` and its Pods.
    CreateDeployment create_deployment "createDeployment",
    /// A `ReplicaSet` without a Deployment is created, then its Pods.
    CreateReplicaSet create_replica_set "createReplicaSet",
    /// A `ReplicationController` is created, then its Pods.
    CreateReplicationController create_replication_controller "createReplicationController",
    /// A `StatefulSet` is created, then its Pods.
    CreateStatefulSet create_stateful_set "createStatefulSet",
    /// A `DaemonSet` is created, then its Pods.
    CreateDaemonSet create_daemon_set "createDaemonSet",
    /// A Job is created, then its Pod.
    CreateJob create_job "createJob",
    /// A `CronJob` is created, then its first Job and that Job's Pod.
    CreateCronJob create_cron_job "createCronJob",
    /// A custom resource with a pod template in `spec.template` is created, then a Pod of its operator. Opt-in, because
    /// many webhooks know only the built-in kinds.
    CreateCustomResource create_custom_resource "createCustomResource",
    /// A `ConfigMap` is created, which has no images and must be admitted unchanged.
    CreateConfigMap create_config_map "createConfigMap",
    /// A Secret is created, which has no images and must be admitted unchanged.
    CreateSecret create_secret "createSecret",
    /// A Service is created, which has no images and must be admitted unchanged.
    CreateService create_service "createService",
    /// A `CustomResourceDefinition` is created whose schema contains fields for containers and images. The definition
    /// must be admitted unchanged.
    CreateCustomResourceDefinition create_custom_resource_definition "createCustomResourceDefinition",
    /// A Namespace is created, then the `ServiceAccount` and the `ConfigMap` that controllers put into it. All these
    /// objects must be admitted unchanged.
    CreateNamespace create_namespace "createNamespace",
    /// A Deployment is sent with `kubectl apply --dry-run=server`: one CREATE without further reviews.
    DryRunDeployment dry_run_deployment "dryRunDeployment",
    /// A `ConfigMap` is changed: one UPDATE, which must be admitted unchanged.
    UpdateConfigMap update_config_map "updateConfigMap",
    /// One image of a Deployment is changed (`kubectl set image`): an UPDATE, a new `ReplicaSet`, new Pods. After that
    /// the old `ReplicaSet` is scaled down, and an old Pod is deleted.
    RollImage roll_image "rollImage",
    /// The replicas of a Deployment are changed by `kubectl apply`: UPDATE of Deployment and `ReplicaSet` without
    /// changed images, and Pods are created or deleted.
    ScaleDeployment scale_deployment "scaleDeployment",
    /// The replicas of a Deployment are changed by `kubectl scale`. The first UPDATE is of the subresource `scale`,
    /// whose object is no Deployment. Opt-in, because some webhooks are not registered for it.
    ScaleThroughSubresource scale_through_subresource "scaleThroughSubresource",
    /// A Deployment is deleted, then its dependents: DELETE of Deployment, `ReplicaSet` and Pods.
    DeleteDeployment delete_deployment "deleteDeployment",
    /// A label of a Pod is changed: one UPDATE without changed images.
    LabelPod label_pod "labelPod",
    /// A Pod is deleted: one DELETE by the user and one by the kubelet, with only the old object.
    DeletePod delete_pod "deletePod",
    /// A Pod is evicted through the subresource `eviction`, as by `kubectl drain`: CREATE of the eviction, DELETE by
    /// the kubelet. Opt-in, because some webhooks are not registered for it.
    EvictPod evict_pod "evictPod",
    /// `kubectl debug`: an ephemeral container is added through the subresource `ephemeralcontainers`. Opt-in, because
    /// some webhooks are not registered for it.
    DebugPod debug_pod "debugPod",
    /// A Pod is bound to a node and runs: CREATE of the `binding`, UPDATE of the `status` of Pod, `ReplicaSet` and
    /// Deployment. All these objects must be admitted unchanged. Opt-in, because few webhooks are registered for them.
    UpdateStatus update_status "updateStatus",
    /// A Pod is created that mounts an image as a volume (Kubernetes 1.31 and later). Opt-in, because many webhooks
    /// overlook the image.
    CreatePodWithImageVolume create_pod_with_image_volume "createPodWithImageVolume",
    /// A Pod is created, and another webhook adds a sidecar. The CREATE is sent twice; the second has the pins of the
    /// first answer and an unpinned sidecar (`reinvocationPolicy: IfNeeded`). Opt-in, because a webhook without that
    /// policy gets no second CREATE.
    CreatePodWithSidecar create_pod_with_sidecar "createPodWithSidecar",
    /// A Pod is created whose eight containers run the same image.
    CreatePodOfEqualImages create_pod_of_equal_images "createPodOfEqualImages",
    /// An attack: a Pod in a review of nearly 8 MiB. The answer that is right for the Pod is accepted, as are a refusal
    /// and shedding (413, 429).
    HostileBody hostile_body "hostileBody",
    /// An attack: a Pod with 500 images in the repository `hostile`, which does not exist. With the fault
    /// `registry-hang` for `hostile/*` the registry never answers. The Pod must be refused, or shed.
    HostileManyImages hostile_many_images "hostileManyImages",
    /// An attack: a Pod with an image that has twenty bundles of 8 MiB which sign nothing (`registry: {signed: true}`).
    /// The Pod must be refused, or shed.
    HostileBundles hostile_bundles "hostileBundles",
    /// An attack: a Pod with 500 images whose long names no registry can have. Each review is denied at once, and
    /// receivers of alerts get all names. The Pod must be refused, or shed.
    HostileRefusedImages hostile_refused_images "hostileRefusedImages",
}

impl Action {
    /// The kind that the action writes through an API server, and whether it makes a new object. `None` for actions of
    /// controllers, nodes and drains, and for kinds for which an API server must be configured first.
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
    /// Whether an action of the mix needs images with many large bundles.
    pub fn has_bundles(&self) -> bool {
        self.hostile_bundles > 0
    }

    /// The mix that a scenario has by default, as in the documentation's example.
    pub fn usual() -> Self {
        Self { create_pod: 5, create_deployment: 3, roll_image: 1, delete_pod: 2, ..Self::default() }
    }

    pub(super) fn total(&self) -> u64 {
        self.weights().iter().map(|&(_, weight)| u64::from(weight)).sum()
    }

    /// Draws an action by weight; `None` if every weight is 0.
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

        /// Each action is drawn in proportion to its weight; an action without a weight is never drawn.
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
