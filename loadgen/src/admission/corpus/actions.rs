//! The reviews that Kubernetes sends for each user action; one function for each action. Pure: no I/O.
//!
//! Reviews of events, endpoints, leases and revisions are left out, because webhooks for workloads are not registered
//! for them. Bindings and status reports belong to separate user actions.

use rand::RngExt;
use serde_json::{Value, json};

use super::Pick;
use super::expand::{Expand, State, Workload};
use crate::admission::mix::Action;
use crate::admission::objects::manifest::CLIENT_SIDE;
use crate::admission::objects::{CREATED, Identity, Kind, defaults, fields, status};
use crate::admission::pods;
use crate::admission::review::{Actor, Options, Review};

/// The container number of the sidecar, which no user's container has.
const SIDECAR: usize = 99;
/// Number of containers with the same image: more than a webhook has connections to a registry, or entries in a small
/// cache.
const EQUAL_IMAGES: usize = 8;
/// The size of a review of nearly 8 MiB, which is the largest that webhooks commonly accept.
const LARGE_BODY_BYTES: usize = (8 << 20) - (64 << 10);
/// The namespace in which attackers may create Pods, as a tenant may.
const ATTACKER: &str = "hostile";
/// Number of images in an attack: more than any Pod can have that fits into etcd.
const MANY_IMAGES: usize = 500;
/// Number of characters in the name of a refused image. The longest names in registries have 255.
const LONG_NAME: usize = 200;

impl Expand<'_> {
    /// The reviews of one user action, in the order in which Kubernetes sends them.
    pub(super) fn action(&mut self, action: Action, pick: Pick) -> Vec<Review> {
        match action {
            Action::CreatePod => self.create(Kind::Pod, pick),
            Action::CreateDeployment => self.create(Kind::Deployment, pick),
            Action::CreateReplicaSet => self.create(Kind::ReplicaSet, pick),
            Action::CreateReplicationController => self.create(Kind::ReplicationController, pick),
            Action::CreateStatefulSet => self.create(Kind::StatefulSet, pick),
            Action::CreateDaemonSet => self.create(Kind::DaemonSet, pick),
            Action::CreateJob => self.create(Kind::Job, pick),
            Action::CreateCronJob => self.create(Kind::CronJob, pick),
            Action::CreateCustomResource => self.create(Kind::Worker, pick),
            Action::CreateConfigMap => self.create(Kind::ConfigMap, Pick::Existing),
            Action::CreateSecret => self.create(Kind::Secret, Pick::Existing),
            Action::CreateService => self.create(Kind::Service, Pick::Existing),
            Action::CreateCustomResourceDefinition => self.create_definition(),
            Action::CreateNamespace => self.create_namespace(),
            Action::DryRunDeployment => self.dry_run(pick),
            Action::UpdateConfigMap => self.update_config_map(),
            Action::RollImage => self.roll_image(pick),
            Action::ScaleDeployment => self.scale_deployment(false),
            Action::ScaleThroughSubresource => self.scale_deployment(true),
            Action::DeleteDeployment => self.delete_deployment(),
            Action::LabelPod => self.label_pod(),
            Action::DeletePod => self.delete_pod(),
            Action::EvictPod => self.evict_pod(),
            Action::DebugPod => self.debug_pod(pick),
            Action::UpdateStatus => self.update_status(),
            Action::CreatePodWithImageVolume => self.image_volume(pick),
            Action::CreatePodWithSidecar => self.sidecar(pick),
            Action::CreatePodOfEqualImages => self.equal_images(pick),
            Action::HostileBody => self.large_body(),
            Action::HostileManyImages => self.many_images(),
            Action::HostileBundles => self.heavy_bundles(),
            Action::HostileRefusedImages => self.refused_images(),
        }
    }

    fn create(&mut self, kind: Kind, pick: Pick) -> Vec<Review> {
        let workload = self.workload(kind, pick);
        let mut reviews = vec![self.create_review(&workload)];
        if workload.exists {
            let replicas = workload.replicas;
            reviews.extend(self.children(&workload, kind, &workload.identity, replicas));
        }
        reviews
    }

    /// The CREATE review of a user's request.
    fn create_review(&mut self, workload: &Workload) -> Review {
        let draft = workload.draft();
        self.sized(|this, growth, rng| {
            let object = this.object(&draft, State::Asked, growth, rng);
            Review::create(draft.kind, draft.identity, Actor::Person, object).managed_by(draft.manager(growth))
        })
    }

    /// The CREATE reviews of the objects that controllers make from an admitted object.
    fn children(&mut self, workload: &Workload, kind: Kind, owner: &Identity, count: u32) -> Vec<Review> {
        let (next, count) = match kind {
            Kind::Deployment => (Kind::ReplicaSet, 1),
            Kind::CronJob => (Kind::Job, 1),
            Kind::Job | Kind::Worker => (Kind::Pod, 1),
            Kind::ReplicaSet | Kind::ReplicationController | Kind::StatefulSet | Kind::DaemonSet => (Kind::Pod, count),
            _ => return Vec::new(),
        };
        let actor = match kind {
            Kind::Worker => Actor::Account("workers-system", "workers-operator"),
            kind => Actor::ControllerOf(kind),
        };
        let mut reviews = Vec::new();
        for ordinal in 0..count {
            let identity = owner.child(&mut self.rng, kind, ordinal);
            reviews.push(self.copied(workload, next, &identity, actor));
            reviews.extend(self.children(workload, next, &identity, workload.replicas));
        }
        reviews
    }

    /// The CREATE review of an object that a controller makes.
    fn copied(&mut self, workload: &Workload, kind: Kind, identity: &Identity, actor: Actor) -> Review {
        let draft = workload.draft_of(kind, identity);
        self.sized(|this, growth, rng| {
            Review::create(kind, identity, actor, this.object(&draft, State::Copied, growth, rng))
        })
    }

    /// The UPDATE review of a stored object: the old state, and a new state that `change` makes.
    fn changed(
        &mut self,
        workload: &Workload,
        (kind, identity, actor): (Kind, &Identity, Actor),
        change: impl Fn(&mut Value),
    ) -> Review {
        let draft = workload.draft_of(kind, identity);
        self.sized(|this, growth, rng| {
            let old = this.object(&draft, State::Stored, growth, rng);
            let mut new = old.clone();
            change(&mut new);
            Review::update(kind, identity, actor, new, old)
        })
    }

    fn deleted(
        &mut self,
        workload: &Workload,
        (kind, identity, actor): (Kind, &Identity, Actor),
        options: &Options,
    ) -> Review {
        let draft = workload.draft_of(kind, identity);
        self.sized(|this, growth, rng| {
            let mut old = this.object(&draft, State::Stored, growth, rng);
            if let Options::DeleteNow { .. } = options {
                old["metadata"]["deletionTimestamp"] = json!(CREATED);
                old["metadata"]["deletionGracePeriodSeconds"] = json!(30);
            }
            Review::delete(kind, identity, actor, options.clone(), old)
        })
    }

    /// The reviews of a Pod's end: the delete request, and the kubelet's deletion after the Pod has stopped.
    fn end(&mut self, workload: &Workload, identity: &Identity, actor: Actor, options: &Options) -> Vec<Review> {
        vec![
            self.deleted(workload, (Kind::Pod, identity, actor), options),
            self.deleted(
                workload,
                (Kind::Pod, identity, Actor::Kubelet),
                &Options::DeleteNow { uid: identity.uid.clone() },
            ),
        ]
    }

    fn create_namespace(&mut self) -> Vec<Review> {
        let mut namespace = self.workload(Kind::Namespace, Pick::Existing);
        namespace.identity.name.clone_from(&namespace.identity.namespace);
        let mut reviews = vec![self.create_review(&namespace)];
        for (kind, name, controller) in [
            (Kind::ServiceAccount, "default", "service-account-controller"),
            (Kind::ConfigMap, "kube-root-ca.crt", "root-ca-cert-publisher"),
        ] {
            let within = namespace.identity.name.clone();
            let identity = Identity::new(&mut self.rng, &within, name.to_owned());
            reviews.push(self.copied(&namespace, kind, &identity, Actor::Account("kube-system", controller)));
        }
        reviews
    }

    fn create_definition(&mut self) -> Vec<Review> {
        let mut definition = self.workload(Kind::CustomResourceDefinition, Pick::Existing);
        let singular = definition.identity.app.replace('-', "");
        definition.identity.name = format!("{singular}s.example.com");
        definition.identity.app = singular;
        vec![self.create_review(&definition)]
    }

    fn dry_run(&mut self, pick: Pick) -> Vec<Review> {
        let workload = self.workload(Kind::Deployment, pick);
        vec![Review { dry_run: true, ..self.create_review(&workload) }]
    }

    fn update_config_map(&mut self) -> Vec<Review> {
        let workload = self.workload(Kind::ConfigMap, Pick::Existing);
        let changed = self.changed(&workload, (Kind::ConfigMap, &workload.identity, Actor::Person), |new| {
            new["data"]["app.yaml"] = json!("server:\n  listen: :8080\n  workers: 16\nlog:\n  format: json\n");
        });
        vec![changed.managed_by(CLIENT_SIDE)]
    }

    fn roll_image(&mut self, pick: Pick) -> Vec<Review> {
        let before = self.workload(Kind::Deployment, Pick::Existing);
        let image = self.pick(1, pick).remove(0);
        let exists = self.exist(std::slice::from_ref(&image));
        let set = |spec: &str| {
            let (at, image) = (format!("{spec}/containers/0/image"), json!(image));
            move |new: &mut Value| {
                if let Some(place) = new.pointer_mut(&at) {
                    place.clone_from(&image);
                }
            }
        };
        let change = set("/spec/template/spec");
        let part = |new: &Value| {
            let name = new.pointer("/spec/template/spec/containers/0/name").cloned().unwrap_or_default();
            json!({"spec": {"template": {"spec": {"containers": [{"name": name, "image": image}]}}}})
        };
        let rolled = self.changed(&before, (Kind::Deployment, &before.identity, Actor::Person), |new| {
            change(new);
            let entry = fields::entry("kubectl-set", Kind::Deployment, &part(new));
            if let Some(entries) = new["metadata"]["managedFields"].as_array_mut() {
                entries.push(entry);
            }
        });
        let mut reviews = vec![rolled.managed_by("kubectl-set")];
        if !exists {
            return reviews;
        }
        let mut after = Workload { template: before.template.clone(), identity: before.identity.clone(), ..before };
        set("/spec")(&mut after.template);
        // One Pod more than wanted, then one of the old ones less.
        after.replicas = 1;
        reviews.extend(self.children(&after, Kind::Deployment, &after.identity, 1));
        let old_set = before.identity.child(&mut self.rng, Kind::Deployment, 0);
        let old_pod = old_set.child(&mut self.rng, Kind::ReplicaSet, 0);
        let controller = Actor::ControllerOf(Kind::Deployment);
        reviews.push(self.changed(&before, (Kind::ReplicaSet, &old_set, controller), |new| {
            new["spec"]["replicas"] = json!(before.replicas - 1);
        }));
        reviews.extend(self.end(&before, &old_pod, Actor::ControllerOf(Kind::ReplicaSet), &Options::Delete));
        reviews
    }

    fn scale_deployment(&mut self, through_subresource: bool) -> Vec<Review> {
        let mut workload = self.workload(Kind::Deployment, Pick::Existing);
        workload.replicas += 1;
        let before = workload.replicas;
        let more = self.rng.random_bool(0.5);
        let after = if more { before + 2 } else { before - 1 };
        let identity = workload.identity.clone();
        let mut reviews = vec![if through_subresource {
            scale(&identity, before, after)
        } else {
            let changed = self.changed(&workload, (Kind::Deployment, &identity, Actor::Person), |new| {
                new["spec"]["replicas"] = json!(after);
            });
            changed.managed_by(CLIENT_SIDE)
        }];
        let set = identity.child(&mut self.rng, Kind::Deployment, 0);
        reviews.push(self.changed(&workload, (Kind::ReplicaSet, &set, Actor::ControllerOf(Kind::Deployment)), |new| {
            new["spec"]["replicas"] = json!(after);
            new["metadata"]["annotations"]["deployment.kubernetes.io/desired-replicas"] = json!(after.to_string());
        }));
        if more {
            reviews.extend(self.children(&workload, Kind::ReplicaSet, &set, after - before));
        } else {
            let pod = set.child(&mut self.rng, Kind::ReplicaSet, 0);
            reviews.extend(self.end(&workload, &pod, Actor::ControllerOf(Kind::ReplicaSet), &Options::Delete));
        }
        reviews
    }

    /// After the Deployment is deleted, the garbage collector deletes its dependents.
    fn delete_deployment(&mut self) -> Vec<Review> {
        let workload = self.workload(Kind::Deployment, Pick::Existing);
        let set = workload.identity.child(&mut self.rng, Kind::Deployment, 0);
        let collected = |identity: &Identity| Options::DeleteInBackground { uid: Some(identity.uid.clone()) };
        let by_hand = Options::DeleteInBackground { uid: None };
        let collector = Actor::GARBAGE_COLLECTOR;
        let mut reviews = vec![
            self.deleted(&workload, (Kind::Deployment, &workload.identity, Actor::Person), &by_hand),
            self.deleted(&workload, (Kind::ReplicaSet, &set, collector), &collected(&set)),
        ];
        for ordinal in 0..workload.replicas {
            let pod = set.child(&mut self.rng, Kind::ReplicaSet, ordinal);
            reviews.extend(self.end(&workload, &pod, collector, &collected(&pod)));
        }
        reviews
    }

    fn label_pod(&mut self) -> Vec<Review> {
        let (workload, _, pod) = self.running_pod();
        let tier = pods::word(&mut self.rng);
        let labelled = self.changed(&workload, (Kind::Pod, &pod, Actor::Person), |new| {
            new["metadata"]["labels"]["tier"] = json!(tier);
        });
        vec![labelled.managed_by("kubectl-label")]
    }

    fn delete_pod(&mut self) -> Vec<Review> {
        let (workload, _, pod) = self.running_pod();
        self.end(&workload, &pod, Actor::Person, &Options::DeleteInBackground { uid: None })
    }

    /// The API server deletes an evicted Pod itself; webhooks are called again for the kubelet's deletion.
    fn evict_pod(&mut self) -> Vec<Review> {
        let (workload, _, pod) = self.running_pod();
        let object = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "creationTimestamp": null}
        });
        let eviction = Review::create(Kind::Eviction, &pod, Actor::Person, object).through("eviction", Kind::Pod);
        let gone = Options::DeleteNow { uid: pod.uid.clone() };
        vec![eviction, self.deleted(&workload, (Kind::Pod, &pod, Actor::Kubelet), &gone)]
    }

    fn debug_pod(&mut self, pick: Pick) -> Vec<Review> {
        let (workload, _, pod) = self.running_pod();
        let image = self.pick(1, pick).remove(0);
        let target = workload.template.pointer("/spec/containers/0/name").and_then(Value::as_str).unwrap_or_default();
        let mut debugger = pods::debugger(&mut self.rng, &image, target);
        defaults::container(&mut debugger);
        let debugged = self.changed(&workload, (Kind::Pod, &pod, Actor::Person), |new| {
            new["spec"]["ephemeralContainers"] = json!([debugger]);
        });
        vec![debugged.managed_by("kubectl-debug").through("ephemeralcontainers", Kind::Pod)]
    }

    /// A Pod is bound to a node and runs, and its owners update their counts.
    fn update_status(&mut self) -> Vec<Review> {
        let (mut workload, set, pod) = self.running_pod();
        workload.replicas = 1;
        let deployment = workload.identity.clone();
        let bound = Review::create(Kind::Binding, &pod, Actor::Scheduler, status::binding(&pod));
        let mut reviews = vec![bound.through("binding", Kind::Pod)];
        for (kind, identity, actor) in [
            (Kind::Pod, &pod, Actor::Kubelet),
            (Kind::ReplicaSet, &set, Actor::ControllerOf(Kind::ReplicaSet)),
            (Kind::Deployment, &deployment, Actor::ControllerOf(Kind::Deployment)),
        ] {
            let draft = workload.draft_of(kind, identity);
            let reported = self.sized(|this, growth, rng| {
                let new = this.object(&draft, State::Stored, growth, rng);
                let mut old = new.clone();
                // The old status is the default.
                old["status"] = defaults::status(kind).unwrap_or_default();
                Review::update(kind, identity, actor, new, old)
            });
            reviews.push(reported.through("status", kind));
        }
        reviews
    }

    fn image_volume(&mut self, pick: Pick) -> Vec<Review> {
        let image = self.pick(1, pick).remove(0);
        let mut workload = self.workload(Kind::Pod, Pick::Existing);
        let volume = json!({"name": "model", "image": {"reference": image}});
        match workload.template["spec"]["volumes"].as_array_mut() {
            Some(volumes) => volumes.push(volume),
            None => workload.template["spec"]["volumes"] = json!([volume]),
        }
        vec![self.create_review(&workload)]
    }

    /// The second review of a Pod with a sidecar contains the object after the first answer and after another webhook's
    /// change. Like kube-apiserver, this function gives the second review a new uid.
    fn sidecar(&mut self, pick: Pick) -> Vec<Review> {
        let workload = self.workload(Kind::Pod, pick);
        let mut reviews = vec![self.create_review(&workload)];
        if !workload.exists {
            return reviews;
        }
        let image = self.pick(1, Pick::Existing).remove(0);
        let sidecar = pods::sidecar(&mut self.rng, SIDECAR, &image);
        let draft = workload.draft();
        reviews.push(self.sized(|this, growth, rng| {
            let mut object = this.object(&draft, State::Copied, growth, rng);
            if let Some(containers) = object.pointer_mut("/spec/containers").and_then(Value::as_array_mut) {
                containers.push(sidecar.clone());
            }
            Review::create(draft.kind, draft.identity, Actor::Person, object).managed_by(draft.manager(growth))
        }));
        reviews
    }

    fn equal_images(&mut self, pick: Pick) -> Vec<Review> {
        let image = self.pick(1, pick).remove(0);
        let workload = self.workload_with(Kind::Pod, &vec![image; EQUAL_IMAGES]);
        vec![self.create_review(&workload)]
    }

    fn large_body(&mut self) -> Vec<Review> {
        let mut workload = self.workload(Kind::Pod, Pick::Existing);
        ATTACKER.clone_into(&mut workload.identity.namespace);
        let mut review = self.create_review(&workload);
        if let Some(object) = &mut review.object {
            object["metadata"]["annotations"]["filler"] = "x".repeat(LARGE_BODY_BYTES).into();
        }
        vec![review.hostile()]
    }

    fn many_images(&mut self) -> Vec<Review> {
        let (team, (_, host)) = (self.rng.random_range(0..100_000), self.hostile());
        let images: Vec<_> = (0..MANY_IMAGES).map(|app| format!("{host}/hostile/team-{team}/app-{app}:1")).collect();
        self.pod_of_many(&images)
    }

    /// A name with upper case is in no repository, so the webhook can refuse the image without a request to a registry.
    fn refused_images(&mut self) -> Vec<Review> {
        let (team, (_, host), filler) = (self.rng.random_range(0..100_000), self.hostile(), "x".repeat(LONG_NAME));
        let images: Vec<_> = (0..MANY_IMAGES).map(|app| format!("{host}/HOSTILE/{team}-{app}-{filler}:1")).collect();
        self.pod_of_many(&images)
    }

    fn pod_of_many(&mut self, images: &[String]) -> Vec<Review> {
        let mut workload = self.workload_with(Kind::Pod, &images[..1]);
        ATTACKER.clone_into(&mut workload.identity.namespace);
        workload.template["spec"] = pods::lean(images);
        vec![self.create_review(&workload).hostile()]
    }

    fn heavy_bundles(&mut self) -> Vec<Review> {
        // A registry without hostile images has others; those are no attack.
        let image = self.hostile().0.unwrap_or_else(|| self.pick(1, Pick::Existing).remove(0));
        let mut workload = self.workload_with(Kind::Pod, &[image]);
        ATTACKER.clone_into(&mut workload.identity.namespace);
        vec![self.create_review(&workload).hostile()]
    }

    /// A Deployment that was admitted some time ago, its `ReplicaSet` and one of its Pods.
    fn running_pod(&mut self) -> (Workload, Identity, Identity) {
        let workload = self.workload(Kind::Deployment, Pick::Existing);
        let set = workload.identity.child(&mut self.rng, Kind::Deployment, 0);
        let pod = set.child(&mut self.rng, Kind::ReplicaSet, 0);
        (workload, set, pod)
    }
}

/// The review of `kubectl scale`: its object is the scale, not the Deployment.
fn scale(deployment: &Identity, before: u32, after: u32) -> Review {
    let Identity { namespace, name, uid, app, .. } = deployment;
    let object = |replicas: u32| {
        json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {
                "name": name, "namespace": namespace, "uid": uid, "resourceVersion": "482134", "creationTimestamp": CREATED
            },
            "spec": {"replicas": replicas},
            "status": {"replicas": before, "selector": format!("app.kubernetes.io/name={app}")}
        })
    };
    Review::update(Kind::Scale, deployment, Actor::Person, object(after), object(before))
        .through("scale", Kind::Deployment)
}
