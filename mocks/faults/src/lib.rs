//! Faults: named misbehaviour of the mock API server, with a proof of every real effect.
//!
//! Owns the configuration of a fault, the engine that begins and ends faults, and the record of their hits. Each fault
//! is one file with the fault's catalogue entry, and one line in `catalogue!`. A fault acts on a request before its
//! answer (`Injection`), or on the events of a watch (`Effect`). Faults affect only requests of their target users
//! ([`Faults::target_users`]), so the harness's own clients always see a healthy server. Three faults change the store
//! itself: `watch-410` and `compact` remove history, and `rewind` restores an old state. This crate knows requests,
//! streams and revisions, but not HTTP.

mod active;
mod answer_lost;
mod behaviour;
mod bookmark_ahead;
mod catalogue;
mod clocks;
mod compact;
mod connection;
mod cut;
mod delay;
mod draw;
mod empty_200;
mod engine;
mod event_delayed;
mod event_dropped;
mod event_edited;
mod event_repeated;
mod forced_pages;
pub mod handle;
mod hold_buffer;
mod http_error;
mod initial_end;
mod later;
mod merge_lines;
mod network;
mod no_answer;
mod no_bookmarks;
mod out_of_order;
mod plane;
mod player;
mod pods;
mod process;
pub mod random;
mod reason;
mod registry;
mod request;
mod rewind;
mod schedule;
mod settings;
mod silent_watch;
mod slices;
mod stale_view;
mod stream;
mod subject;
pub mod table;
mod token_rotated;
mod too_large;
mod truncated_line;
mod unordered;
mod view;
mod watch_410;
mod watch_duplicate;
mod workloads;
mod wrong_content_type;
mod wrote;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

pub use active::ActiveFault;
pub(crate) use behaviour::{Behaviour, PlayedRow, Scene};
pub use behaviour::{Host, Moment, Restore};
pub use clocks::{DriftKeys, JumpKeys, JumpOf, passed, process_of};
pub use draw::Draw;
pub use network::{BandwidthKeys, CutKeys, FreezeKeys, LatencyKeys, LossKeys, RefuseKeys};
pub use plane::{ApiserverRestartKeys, EndBy, EtcdSlowKeys, STALL, STALL_EVERY};
pub use player::Player;
pub use pods::{CertificateExpiryKeys, KillBy, NodePressureKeys, PauseKeys, PodKillKeys, ScaleKeys, VALID};
pub use reason::reason_of;
pub use registry::{DownKeys, ErrorKeys, SlowKeys};
pub use request::{Injection, Instead, Lost, Refusal, RequestFacts, Stale};
pub use schedule::{Schedule, Step};
pub use settings::{
    Code, Connections, Direction, Drawn, Error, ErrorBody, Every, Family, Fault, Form, How, Http2Code, Kind, Lasting,
    NewConnections, NewStreams, Newer, Nth, On, PAUSE, Row, Settings, Side, Takes, Target, Then, Watches, When,
    WriteOf, Wrote, check_all,
};
pub use silent_watch::Keys as SilentWatchKeys;
pub use stream::pipe::{Effect, EventLine, Flow, Item, Pipe};
pub use stream::{Ending, Stream, Streaming, WatchState};
pub use subject::{
    CERTIFICATE_VALID, CertificateRotationKeys, ChildrenDriftKeys, ConfigReloadKeys, DRIFT_SHARE, LAG,
    SubjectRestartKeys, TrustedKeysKeys, VALIDATOR_LATE, ValidatorDelayKeys, ValidatorRestartKeys,
};
pub use view::View;
pub use workloads::{FlappingKeys, NotReadyKeys, PERIOD};
pub use wrote::Fired;

use catalogue::catalogue;
use engine::Core;
use handle::{Handle, Welcome};

// The list of faults: one line each, in the order of the page.
catalogue! {
    played {
        WatchReset = cut::WATCH_RESET,
        WatchEnd = cut::WATCH_END,
        WatchEof = cut::WATCH_EOF,
        Watch410 = watch_410::ROW,
        SilentWatch = silent_watch::ROW,
        ErrorEvent = cut::ERROR_EVENT,
        EventDropped = event_dropped::ROW,
        EventDelayed = event_delayed::ROW,
        EventRepeated = event_repeated::ROW,
        EventEdited = event_edited::ROW,
        WatchDuplicate = watch_duplicate::ROW,
        OutOfOrder = out_of_order::ROW,
        TruncatedLine = truncated_line::ROW,
        Split = slices::SPLIT,
        MergeLines = merge_lines::ROW,
        HoldBuffer = hold_buffer::ROW,
        SlowDrip = slices::SLOW_DRIP,
        BookmarkAhead = bookmark_ahead::ROW,
        NoBookmarks = no_bookmarks::ROW,
        InitialEndMissing = initial_end::MISSING,
        InitialEndHeld = initial_end::HELD,
        HttpError = http_error::ROW,
        NoAnswer = no_answer::ROW,
        AnswerLost = answer_lost::ROW,
        DelayAnswer = delay::DELAY_ANSWER,
        HoldHeaders = delay::HOLD_HEADERS,
        Empty200 = empty_200::ROW,
        StaleView = stale_view::ROW,
        TooLarge = too_large::ROW,
        ForcedPages = forced_pages::ROW,
        Unordered = unordered::ROW,
        WrongContentType = wrong_content_type::ROW,
        Compact = compact::ROW,
        TokenRotated = token_rotated::ROW,
        Rewind = rewind::ROW,
        NotReady = workloads::NOT_READY,
        Flapping = workloads::FLAPPING,
        Freeze = connection::freeze::ROW,
        NoPong = connection::no_pong::ROW,
        Goaway = connection::goaway::ROW,
        RefuseConnections = connection::refuse_connections::ROW,
        MaxStreams = connection::max_streams::ROW,
        Certificate = connection::certificate::ROW,
    }
    elsewhere {
        NetFreeze = network::FREEZE,
        NetReset = network::RESET,
        NetRefuse = network::REFUSE,
        NetLatency = network::LATENCY,
        NetBandwidth = network::BANDWIDTH,
        NetCut = network::CUT,
        NetLoss = network::LOSS,
        RegistryError = registry::ERROR,
        RegistryHang = registry::HANG,
        RegistrySlow = registry::SLOW,
        RegistryCut = registry::CUT,
        RegistryDown = registry::DOWN,
        RegistryAuthFailing = registry::AUTH_FAILING,
        RegistryWrongDigest = registry::WRONG_DIGEST,
        RegistryTagMoved = registry::TAG_MOVED,
        RegistryReferrers404 = registry::REFERRERS_404,
        RegistryRedirectLoop = registry::REDIRECT_LOOP,
        ClockJump = clocks::JUMP,
        ClockDrift = clocks::DRIFT,
        ProcessKill = process::KILL,
        PodKill = pods::POD_KILL,
        RollingRestart = pods::ROLLING_RESTART,
        Scale = pods::SCALE,
        NodePressure = pods::NODE_PRESSURE,
        CertificateExpiry = pods::CERTIFICATE_EXPIRY,
        NetworkPolicy = pods::NETWORK_POLICY,
        ApiserverRestart = plane::APISERVER_RESTART,
        EtcdSlow = plane::ETCD_SLOW,
        LeaderLoss = plane::LEADER_LOSS,
        SubjectRestart = subject::SUBJECT_RESTART,
        CertificateRotation = subject::CERTIFICATE_ROTATION,
        TrustedKeys = subject::TRUSTED_KEYS,
        ValidatorRestart = subject::VALIDATOR_RESTART,
        ValidatorDelay = subject::VALIDATOR_DELAY,
        SharedCacheAway = subject::SHARED_CACHE_AWAY,
        SharedCacheForges = subject::SHARED_CACHE_FORGES,
        TagsMoved = subject::TAGS_MOVED,
        ChildrenDrift = subject::CHILDREN_DRIFT,
        ConfigReload = subject::CONFIG_RELOAD,
    }
}

/// The number of a fault in a schedule; the caller chooses the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FaultId(pub u32);

/// The proof that a fault had an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub fault: FaultId,
    /// The time of the effect in microseconds since the epoch.
    pub at_us: u64,
    /// A description, for example `watch 7 of packages.longhaul.dev by subject on connection 3 reset`.
    pub detail: String,
}

#[derive(Debug)]
pub struct Faults {
    /// False while no fault was ever begun or drawn, so that most requests take no lock.
    any: AtomicBool,
    core: Arc<Core>,
    /// The hook that draws random faults for single requests.
    draw: OnceLock<Box<dyn Draw>>,
    /// Locked from the draw for a request until the faults have handled that request, so that a drawn fault affects
    /// only that request.
    drawing: Mutex<()>,
    /// The writes with which faults begin.
    awaited: wrote::Awaited,
}

/// Makes the behaviour of a fault; refuses a fault that the mock API server does not inject.
fn behaviour(fault: &Fault) -> Result<Box<dyn Behaviour>, Error> {
    let row = fault.name.row();
    let why = match row.family {
        Family::Network => "it is about the network in front of the API server",
        Family::Clock => "it is about the clock of a process, which only a run can start",
        Family::Process => "it is about the processes of a subject, which only a run starts",
        Family::Pods => "it is about the Pods of a subject, and there are none",
        Family::Plane => "it is about the programs of a real control plane",
        Family::Subject => "it is about a subject, which only a run starts",
        _ => "it is about the registry",
    };
    fault.name.play().map(|play| play(fault)).ok_or(Error::NotPlayed { fault: row.name, why })
}

player!(Faults);

impl Faults {
    /// An engine without faults; `seed` decides all probabilities.
    pub fn new(seed: u64) -> Self {
        let (draw, drawing) = (OnceLock::new(), Mutex::default());
        let awaited = wrote::Awaited::default();
        Self { any: AtomicBool::new(false), core: Arc::new(Core::new(seed)), draw, drawing, awaited }
    }

    /// Connects the engine with its server; only the first call has an effect.
    pub fn attach(&self, host: Box<dyn Host>) {
        let _ = self.core.host.set(host);
    }

    /// Sets the users whose requests faults may affect. Before this call, faults affect no user.
    pub fn target_users<I: IntoIterator<Item = S>, S: AsRef<str>>(&self, users: I) {
        self.core.inner.lock().targets = users.into_iter().map(|user| Arc::from(user.as_ref())).collect();
    }

    /// Lets faults affect the requests of every user.
    pub fn target_everybody(&self) {
        self.core.inner.lock().everybody = true;
    }

    /// Draws random faults for each request from now on; only the first call has an effect. The caller must end these
    /// faults.
    pub fn draw_by(&self, draw: Box<dyn Draw>) {
        let _ = self.draw.set(draw);
        self.any.store(true, Ordering::Release);
    }

    /// Sets the endpoints whose connections faults may affect before the user is known. 0 is the server's own endpoint;
    /// replicas have higher numbers. Before this call, faults affect no connection whose user is unknown. Name only
    /// endpoints that the subject alone uses.
    pub fn target_endpoints<I: IntoIterator<Item = u32>>(&self, endpoints: I) {
        self.core.inner.lock().endpoints = endpoints.into_iter().collect();
    }

    /// Begins a fault. A fault whose settings contradict each other is refused.
    pub fn begin(&self, id: FaultId, fault: &Fault) -> Result<(), Error> {
        fault.check()?;
        let behaviour = behaviour(fault)?;
        self.any.store(true, Ordering::Release);
        self.core.begin(id, fault, behaviour)
    }

    /// Ends a fault, whose hits stay readable. An unknown id is ignored.
    pub fn end(&self, id: FaultId) {
        self.core.end(id);
    }

    /// Number of real effects of a fault. A fault with no hit proves nothing about the subject.
    pub fn hits(&self, id: FaultId) -> u64 {
        self.core.inner.lock().hits_of(id)
    }

    /// The hits since the last call, oldest first; at most the newest 8192.
    pub fn take_hits(&self) -> Vec<Hit> {
        self.core.inner.lock().take_hits()
    }

    /// Waits until any fault has a hit since this function last returned. [`Faults::take_hits`] then returns the hit,
    /// unless a call has taken it already. Only one task may wait; dropping the future loses no hit.
    pub async fn struck(&self) {
        let struck = self.core.inner.lock().struck();
        struck.notified().await;
    }

    /// Every fault that was begun: id, settings, whether it is active, and its number of hits.
    pub fn all(&self) -> Vec<(FaultId, Fault, bool, u64)> {
        self.core.inner.lock().all()
    }

    /// The open watches, oldest first, at most `max`.
    pub fn open_streams(&self, max: usize) -> Vec<Arc<Stream>> {
        self.core.inner.lock().streams.values().take(max).cloned().collect()
    }

    /// Whether no fault was ever begun; the server then need not call the engine for requests.
    #[inline]
    pub fn never_any(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// The effects of the faults on an incoming request.
    #[inline]
    pub fn injection(&self, asked: &RequestFacts<'_>) -> Injection {
        if self.never_any() {
            return Injection::default();
        }
        let Some(draw) = self.draw.get() else { return self.core.injection(asked) };
        let _drawing = self.drawing.lock();
        if self.core.touches(asked.user) {
            for (id, fault) in draw.draw(asked) {
                // A refused fault is not played; the tests of a draw make sure that it draws none.
                let _ = self.begin(id, &fault);
            }
        }
        self.core.injection(asked)
    }

    /// Begins these faults with the writes in their `when`. Writes of target users count from this call on.
    pub fn await_writes(&self, faults: impl IntoIterator<Item = (FaultId, Fault)>) {
        self.awaited.add(faults);
        if !self.awaited.is_empty() {
            self.any.store(true, Ordering::Release);
        }
    }

    /// Whether a fault waits for writes. The server then calls [`Faults::written`] for each write.
    #[inline]
    pub fn awaits_writes(&self) -> bool {
        !self.never_any() && !self.awaited.is_empty()
    }

    /// Whether faults may affect the requests of a user.
    pub fn touches(&self, user: &str) -> bool {
        self.core.touches(user)
    }

    /// Handles one side of a write, and returns when all faults that wait for the write have begun.
    pub async fn written(&self, wrote: &Wrote<'_>, side: Side) {
        if !self.awaits_writes() || !self.core.touches(wrote.user) {
            return;
        }
        let mut held = Vec::new();
        for (id, fault) in self.awaited.count(wrote, side) {
            let is_later = fault.when.as_ref().is_some_and(|when| when.plus.is_some());
            // A refused fault is begun again by the caller of `take_fired`, who handles the error.
            let begun = !is_later && fault.name.play().is_some() && self.begin(id, &fault).is_ok();
            let holds = !is_later && !begun;
            self.awaited.fire(Fired { fault: id, at_us: self.core.now_us(), begun }, holds);
            held.extend(holds.then_some(id));
        }
        if !held.is_empty() || self.awaited.has_fired() {
            self.core.inner.lock().struck().notify_one();
        }
        if !held.is_empty() {
            self.awaited.begun(&held).await;
        }
    }

    /// The faults whose writes have come since the last call, oldest first. [`Faults::struck`] reports each.
    pub fn take_fired(&self) -> Vec<Fired> {
        self.awaited.take()
    }

    /// Lets the requests continue that wait for a fault of another program; see [`Fired::begun`].
    pub fn began(&self, id: FaultId) {
        self.awaited.release(id);
    }

    /// Handles a watch that was accepted; `injection` has the effects on the watch's request.
    pub fn opened(&self, stream: &Arc<Stream>, injection: &Injection) {
        self.core.opened(stream, injection);
    }

    /// Removes a watch that has ended.
    pub fn closed(&self, id: u64) {
        self.core.inner.lock().streams.remove(&id);
    }

    /// Handles an event that stays unsent because the stream is silent.
    pub fn withheld(&self, by: FaultId, stream: &Stream, revision: u64) {
        let act = |behaviour: &mut dyn Behaviour, scene: &mut Scene<'_>| {
            if scene.active.id() == by {
                behaviour.withheld(stream, revision, scene);
            }
        };
        self.core.each(stream, act);
    }

    /// Handles a watch from a revision that the store had before a restore.
    pub fn ahead(&self, stream: &Stream, requested: u64) {
        let mut counted = false;
        self.core.each_newest_first(stream, |behaviour, scene| {
            counted = counted || behaviour.ahead(stream, requested, scene);
        });
    }

    /// The active faults of workloads that may have an effect, for the simulation of workloads.
    pub fn of_workloads(&self) -> Vec<(ActiveFault, Fault)> {
        if self.never_any() { Vec::new() } else { self.core.inner.lock().of_workloads() }
    }

    /// Resets every open watch of every user, as after a restart of the server.
    pub fn cut_all(&self) {
        for stream in self.open_streams(usize::MAX) {
            stream.decide(WatchState::Over(Ending::Reset(Http2Code::InternalError)));
        }
    }

    /// How a watch from a compacted revision gets its 410; `None` lets the server choose.
    #[inline]
    pub fn gone(&self, stream: &Stream, requested: u64) -> Option<Form> {
        if self.never_any() {
            return None;
        }
        let mut form = None;
        // The newest fault wins, and only it counts the hit.
        self.core.each_newest_first(stream, |behaviour, scene| {
            if form.is_none() {
                form = behaviour.gone(stream, requested, scene);
            }
        });
        form
    }

    /// The effects on a new connection.
    #[inline]
    pub fn welcome(&self, handle: &Handle) -> Welcome {
        if self.never_any() { Welcome::default() } else { self.core.welcome(handle) }
    }

    /// Counts an effect on a connection: with `each` every effect, otherwise only the first.
    pub fn on_connection(&self, handle: &Handle, by: FaultId, what: &str, each: bool) {
        if each || handle.is_first(by) {
            self.core.note(by, format!("{}: {what}", handle.describe()));
        }
    }

    /// Handles the refusal of a replaced token of this user.
    pub fn old_token_refused(&self, user: &str) {
        self.core.old_token_refused(user);
    }
}
