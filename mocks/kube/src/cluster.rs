//! The cluster behind the sockets: the store, the catalogue, and other state that requests share.
//!
//! Owns the locks of the shared state. Code holds no lock across an await, and each method here leaves a consistent
//! state. This module must not know HTTP.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mock_faults::{Faults, Host, Moment, Newer, Restore, Watches};
use mock_objects::catalogue::{Catalogue, Resource, definition};
use mock_objects::object::{self, Fresh};
use mock_objects::status::Failure;
use mock_store::batch::{Batches, Next};
use mock_store::wakers::Wakers;
use mock_store::{Cursor, Event, Expect, Limits, Lost, Refused, ResourceId, RewindError, Rewound, Store, Version};
use parking_lot::{Mutex, RwLock};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use super::addresses::Addresses;
use super::audit::AuditLog;
use super::authorization::{Authorization, Record};
use super::followed;
use super::reserved::Reserved;
use super::serving::Serving;
use super::users::Users;
use super::wall::Wall;
use super::webhooks::Webhooks;

/// Kubernetes' alphabet for generated names, without vowels and without characters that look alike.
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const NAMESPACES: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

/// Maximum number of restores of the store that are remembered.
const REWINDS_MAX: usize = 256;

#[derive(Debug)]
pub(crate) struct Cluster {
    epoch: Instant,
    store: RwLock<Store>,
    catalogue: RwLock<Arc<Catalogue>>,
    random: Mutex<ChaCha8Rng>,
    next_watch: AtomicU64,
    next_connection: AtomicU64,
    users: Arc<Users>,
    committed: watch::Sender<u64>,
    pub wakers: Wakers,
    pub batches: Batches,
    pub audit: AuditLog,
    pub faults: Arc<Faults>,
    pub webhooks: Webhooks,
    pub addresses: Addresses,
    /// The amounts that admitted writes reserve in quotas until their commits.
    pub reserved: Arc<Reserved>,
    pub serving: Serving,
    /// Wakes the janitor after a deletion that needs further work.
    pub cleaning: Notify,
    /// The factor by which lifetimes are shortened: see [`super::Config::compress`].
    pub compress: u32,
    pub bookmarks_every: Duration,
    pub looks: facts::Looks,
    pub authorization: Authorization,
    /// The certificate of the certificate authority, which every new namespace gets; `None` leaves new namespaces
    /// empty.
    pub root_ca: Option<String>,
    /// True if no controller manager runs: see [`super::Config::alone`].
    pub alone: bool,
    /// The authority that signs certificate requests. Without an authority, no controller acts on certificate requests
    /// or on `PodDisruptionBudget`s.
    pub signer: Option<mock_pki::Authority>,
    pub permissions: Record,
    pub wall: Wall,
    rewinds: Mutex<Rewinds>,
}

/// The restores of the store so far, and how the server treats clients that know revisions newer than the restored
/// state.
#[derive(Debug, Default)]
struct Rewinds {
    made: VecDeque<Rewound>,
    newer: Option<Newer>,
    /// The highest revision that the store ever had, including revisions from before a restore.
    highest: u64,
}

#[derive(Debug)]
pub(crate) struct Setup {
    pub users: Arc<Users>,
    pub epoch: Instant,
    pub seed: u64,
    pub limits: Limits,
    pub requests_max: usize,
    pub compress: u32,
    pub bookmarks_every: Duration,
    pub looks: facts::Looks,
    pub authorization: Authorization,
    pub root_ca: Option<String>,
    pub alone: bool,
    pub signer: Option<mock_pki::Authority>,
    pub feature_gates: Vec<String>,
}

impl Cluster {
    /// A new cluster with the usual namespaces; `bootstrap` adds objects to each namespace.
    pub fn new(setup: Setup, bootstrap: impl Fn(&Self, &str)) -> Arc<Self> {
        let cluster = Arc::new(Self {
            epoch: setup.epoch,
            store: RwLock::new(Store::new(setup.limits)),
            catalogue: RwLock::new(Arc::new(Catalogue::with(&setup.feature_gates))),
            random: Mutex::new(ChaCha8Rng::seed_from_u64(setup.seed)),
            next_watch: AtomicU64::new(1),
            next_connection: AtomicU64::new(1),
            users: setup.users,
            committed: watch::Sender::new(0),
            wakers: Wakers::default(),
            batches: Batches::default(),
            audit: AuditLog::new(setup.requests_max),
            faults: Arc::new(Faults::new(setup.seed ^ 0xFA17)),
            webhooks: Webhooks::default(),
            addresses: Addresses::default(),
            reserved: Arc::default(),
            serving: Serving::default(),
            cleaning: Notify::new(),
            compress: setup.compress.max(1),
            bookmarks_every: setup.bookmarks_every,
            looks: setup.looks,
            authorization: setup.authorization,
            root_ca: setup.root_ca,
            alone: setup.alone,
            signer: setup.signer,
            permissions: Record::default(),
            wall: Wall::default(),
            rewinds: Mutex::default(),
        });
        cluster.faults.attach(Box::new(FaultHost(Arc::downgrade(&cluster))));
        for name in NAMESPACES {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            cluster.seed(namespace).expect("the built-in namespaces are valid");
            bootstrap(&cluster, name);
        }
        cluster
    }

    pub fn now_us(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.catalogue.read().clone()
    }

    /// Reads the store. `look` must be fast, because writers wait for it.
    pub fn read<T>(&self, look: impl FnOnce(&Store) -> T) -> T {
        look(&self.store.read())
    }

    /// The next events for a watch at `cursor`, up to revision `through`; moves the cursor behind these events.
    pub fn next_batch(
        &self,
        resource: ResourceId,
        namespace: Option<&str>,
        cursor: &mut Cursor,
        through: u64,
    ) -> Result<Next, Lost> {
        let pull = |cursor: &mut Cursor, most, events: &mut Vec<Arc<Event>>| {
            self.read(|store| store.pull_within(resource, cursor, most, through, events))
        };
        self.batches.next(pull, resource, namespace, cursor, through)
    }

    pub fn get(&self, resource: &Resource, namespace: &str, name: &str) -> Option<Arc<Version>> {
        self.store.read().read(resource.id, namespace, name).cloned()
    }

    pub fn revision(&self) -> u64 {
        self.store.read().revision()
    }

    pub fn compact(&self, revision: u64) {
        self.store.write().compact(revision);
    }

    /// Advances the revision without a commit, as writes to other resources do in a real cluster, and compacts up to
    /// the new revision. All earlier revisions are then too old for a watch.
    pub fn compact_to_now(&self) {
        let mut store = self.store.write();
        store.skip();
        let now = store.revision();
        store.compact(now);
        // There is no event to wait for, and a bookmark from before would be too old to resume from.
        self.wakers.reach(now);
    }

    /// Restores the state at an older revision: see [`super::Server::rewind`].
    pub fn rewind(&self, to: u64, newer: Newer, watches: Watches) -> Result<Rewound, RewindError> {
        let rewound = {
            // The order of these locks is the same everywhere, so that the restored state and its record agree.
            let mut rewinds = self.rewinds.lock();
            let rewound = self.store.write().rewind(to, self.now_us())?;
            rewinds.newer = Some(newer);
            rewinds.highest = rewinds.highest.max(rewound.from);
            if rewinds.made.len() == REWINDS_MAX {
                rewinds.made.pop_front();
            }
            rewinds.made.push_back(rewound);
            rewound
        };
        self.batches.forget();
        self.serving.rewound(to);
        self.redefine();
        self.audit.rewound(to);
        if watches == Watches::Cut {
            self.faults.cut_all();
        }
        self.wakers.mark_all();
        self.committed.send_replace(to);
        self.cleaning.notify_one();
        Ok(rewound)
    }

    /// The newest restores, oldest first.
    pub fn rewinds(&self) -> Vec<Rewound> {
        self.rewinds.lock().made.iter().copied().collect()
    }

    /// How the server treats a watch from `revision` if the store had this revision before a restore; `None` if the
    /// store never had this revision. The returned number is the newest revision that the client and the restored store
    /// have in common.
    pub fn known_before(&self, revision: u64) -> Option<(Newer, u64)> {
        let rewinds = self.rewinds.lock();
        let common = rewinds.made.iter().map(|rewound| rewound.to).min()?;
        rewinds.newer.filter(|_| revision <= rewinds.highest).map(|newer| (newer, common))
    }

    /// Updates the catalogue to the definitions in the store. The janitor removes resources without a definition, and
    /// their objects.
    fn redefine(&self) {
        let catalogue = self.catalogue();
        let Some(definitions) = catalogue.by_full_name("customresourcedefinitions.apiextensions.k8s.io") else {
            return;
        };
        let page = self.read(|store| store.list(definitions.id, None, store.revision(), None, usize::MAX, |_| true));
        for version in page.map(|page| page.items).unwrap_or_default() {
            // The definition was accepted before, so it is valid.
            let _ = self.define(&version.value());
        }
    }

    pub fn expire_history(&self) {
        let now_us = self.now_us();
        self.store.write().expire(now_us);
    }

    /// A channel with the revision of the newest commit, which reports each change.
    pub fn committed(&self) -> watch::Receiver<u64> {
        self.committed.subscribe()
    }

    /// A number for a new connection, which is unique among the connections of all endpoints.
    pub fn next_connection(&self) -> u64 {
        self.next_connection.fetch_add(1, Ordering::Relaxed)
    }

    /// Gives a user a new token and accepts the old token for `stays`. Returns the new token, and whether the token
    /// file could be written.
    pub fn rotate_token(&self, user: &str, stays: Duration) -> Option<(String, std::io::Result<()>)> {
        let token = self.fresh().uid;
        let written = self.users.rotate(user, &token, stays)?;
        Some((token, written))
    }

    pub fn next_watch(&self) -> u64 {
        self.next_watch.fetch_add(1, Ordering::Relaxed)
    }

    /// A uid and a name suffix, drawn from the seed.
    pub fn fresh(&self) -> Fresh {
        let mut random = self.random.lock();
        let bits: u128 = random.random();
        // RFC 9562, version 4: four version bits and two variant bits are fixed.
        let bits = bits & !(0xF << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
        let hex = format!("{bits:032x}");
        let uid = format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
        let letter =
            |random: &mut ChaCha8Rng| char::from(SUFFIX_ALPHABET[random.random_range(0..SUFFIX_ALPHABET.len())]);
        let suffix = (0..5).map(|_| letter(&mut random)).collect();
        Fresh { uid, suffix }
    }

    /// Commits a new object or a new version of an object.
    pub fn put(&self, resource: &Resource, expect: Expect, mut value: Value) -> Result<Arc<Event>, Refused> {
        let original = self.original(resource);
        let resource = original.as_deref().unwrap_or(resource);
        let mut facts = object::facts(&value, resource);
        facts.progress = self.looks.at(&value);
        let (event, cooling) = {
            let mut store = self.store.write();
            let known = store.read(resource.id, object::meta(&value, "namespace"), object::meta(&value, "name"));
            let identity = if let Some(known) = known {
                known.identity.clone()
            } else {
                let mut identity = object::identity(&value, resource);
                if let Some(shared) = store.namespace(resource.id, &identity.namespace) {
                    identity.namespace = shared;
                }
                Arc::new(identity)
            };
            let now_us = self.now_us();
            (store.put(&identity, expect, &mut value, facts, now_us)?, store.cooling())
        };
        self.announce(&event);
        if let Some(cooling) = cooling {
            let (resource, worth) = cooling.run();
            self.store.write().cooled(resource, worth);
        }
        let furnished = self.root_ca.is_some() && followed::namespaces(resource);
        let consequences = !event.version.facts().owners.is_empty() || event.version.facts().finalizing;
        if consequences || followed::roles(resource) || furnished {
            self.cleaning.notify_one();
        }
        Ok(event)
    }

    /// Commits a deletion; `value` is the last state of the object.
    pub fn remove(&self, current: &Version, resource: &Resource, mut value: Value) -> Result<Arc<Event>, Refused> {
        let original = self.original(resource);
        let mut facts = object::facts(&value, original.as_deref().unwrap_or(resource));
        facts.progress = self.looks.at(&value);
        let event = {
            let mut store = self.store.write();
            let now_us = self.now_us();
            store.remove(&current.identity, current.revision, &mut value, facts, now_us)?
        };
        self.announce(&event);
        self.cleaning.notify_one();
        Ok(event)
    }

    /// The resource that stores the objects, if `resource` only shows the objects of another API. The storing resource
    /// decides which fields are selectable.
    fn original(&self, resource: &Resource) -> Option<Arc<Resource>> {
        if resource.mirrors { self.catalogue().by_id(resource.id).cloned() } else { None }
    }

    fn announce(&self, event: &Event) {
        self.wakers.mark(event.version.identity.resource);
        self.committed.send_replace(event.version.revision);
    }

    /// Adds the resource of a definition, or refuses the definition.
    pub fn define(&self, crd: &Value) -> Result<(), Failure> {
        let mut resource = definition(crd).map_err(|causes| {
            let about = mock_objects::status::About {
                group: "apiextensions.k8s.io",
                kind: "CustomResourceDefinition",
                name: object::meta(crd, "name"),
            };
            Failure::invalid(about, &causes)
        })?;
        let mut catalogue = self.catalogue.write();
        let mut next = Catalogue::clone(&catalogue);
        if let Some(before) = next.by_full_name(&resource.full_name) {
            let schema = |of: &Resource| of.storage_version().schema.clone();
            // One change is enough: an object may have been written before any of them.
            resource.moved = before.moved || before.storage != resource.storage;
            resource.edition = before.edition + 1;
            resource.late_defaults |= before.late_defaults || resource.moved || schema(before) != schema(&resource);
        }
        next.insert(resource);
        *catalogue = Arc::new(next);
        Ok(())
    }

    /// Records that the commit with this revision changed the definition of a custom resource.
    pub fn redefined(&self, full_name: &str, revision: u64) {
        if let Some(resource) = self.catalogue().by_full_name(full_name) {
            self.serving.changed(resource.id, revision);
        }
    }

    pub fn undefine(&self, full_name: &str) {
        let id = {
            let mut catalogue = self.catalogue.write();
            let id = catalogue.by_full_name(full_name).map(|resource| resource.id);
            let mut next = Catalogue::clone(&catalogue);
            next.forget(full_name);
            *catalogue = Arc::new(next);
            id
        };
        if let Some(id) = id {
            self.serving.gone(id);
        }
    }

    /// Creates an object at the start of the server, without a request.
    pub fn seed(&self, mut value: Value) -> Result<Arc<Event>, Failure> {
        let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let catalogue = self.catalogue();
        let (api_version, kind) = (text(&value, "apiVersion"), text(&value, "kind"));
        let unknown = || Failure::bad_request(format!("no kind \"{kind}\" is registered for \"{api_version}\""));
        let resource = catalogue.by_kind(&api_version, &kind).ok_or_else(unknown)?;
        let served = resource.storage_version();
        let namespace = object::meta(&value, "namespace").to_owned();
        let now = self.wall.now();
        object::begin_create(&mut value, resource, served, &namespace)?;
        mock_objects::defaults::apply(&mut value, resource, now);
        let name = object::finish_create(&mut value, resource, &self.fresh(), now)?;
        if resource.is_definition() {
            self.define(&value)?;
        }
        self.put(resource, Expect::Absent, value).map_err(|_| Failure::already_exists(resource.about(&name)))
    }
}

/// Gives faults access to the cluster. The reference is weak, because the cluster owns the faults.
#[derive(Debug)]
struct FaultHost(std::sync::Weak<Cluster>);

impl Host for FaultHost {
    fn now_us(&self) -> u64 {
        self.0.upgrade().map_or(0, |cluster| cluster.now_us())
    }

    fn compact(&self, keep: u64) -> (u64, u64) {
        let Some(cluster) = self.0.upgrade() else { return (0, 0) };
        let before = cluster.read(Store::floor);
        match keep {
            0 => cluster.compact_to_now(),
            keep => cluster.compact(cluster.revision().saturating_sub(keep)),
        }
        (before, cluster.read(Store::floor))
    }

    fn moment(&self, age: Duration) -> Moment {
        let Some(cluster) = self.0.upgrade() else {
            return Moment { revision: 0, revision_then: 0, next_connection: 0 };
        };
        let age_us = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
        let then_us = cluster.now_us().saturating_sub(age_us);
        let (revision, revision_then) = cluster.read(|store| (store.revision(), store.revision_at(then_us)));
        Moment { revision, revision_then, next_connection: cluster.next_connection.load(Ordering::Relaxed) }
    }

    fn rotate_token(&self, user: &str, stays: Duration) -> Option<String> {
        let (_, written) = self.0.upgrade()?.rotate_token(user, stays)?;
        Some(match written {
            Ok(()) => format!("the token of {user} is another one from now on"),
            Err(error) => {
                format!("the token of {user} is another one from now on, but its file was not written: {error}")
            }
        })
    }

    fn restore(&self, restore: Restore) -> Option<String> {
        let cluster = self.0.upgrade()?;
        let age_us = u64::try_from(restore.age.as_micros()).unwrap_or(u64::MAX);
        let then_us = cluster.now_us().saturating_sub(age_us);
        let to = cluster.read(|store| store.revision_at(then_us));
        // Only a concurrent compaction can refuse it; then nothing happened, and no hit is counted.
        let rewound = cluster.rewind(to, restore.newer, restore.watches).ok().filter(|rewound| rewound.undone > 0)?;
        Some(format!("revision {} restored at {}: {} commits undone", rewound.to, rewound.from, rewound.undone))
    }
}
