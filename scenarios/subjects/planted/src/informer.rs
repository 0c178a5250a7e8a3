//! Lists and watches one kind of objects in an endless loop.
//!
//! This module keeps the state between lists and watches: the revision from which to continue, the newest revision ever
//! seen, and the cache. `informer/policy.rs` decides whether a list or a watch comes next, `informer/relist.rs` lists,
//! and `informer/watching.rs` watches. The handler, and not this module, writes and reports.

mod policy;
mod relist;
mod shared_backoff;
mod watching;

use std::pin::Pin;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

pub use shared_backoff::SharedBackoff;

use crate::args::Clocks;
use crate::growth::Growth;
use crate::handler::{Observation, Queues};
use crate::mistakes::{Mistake, Mistakes};
use crate::object::Object;
use crate::revision::Revision;
use crate::store::{Change, Store};
use crate::watch::Start;
use crate::wire::Wire;
use policy::{End, Policy, Step};

pub struct Parts {
    /// The path to list and watch the objects of this kind.
    pub path: String,
    /// The connections to the API server.
    pub wire: Wire,
    pub clocks: Clocks,
    pub mistakes: Mistakes,
    /// Whether the client requests initial events instead of listing.
    pub streaming: bool,
    /// The queues of changes; `None` for an additional watch that does not report.
    pub queues: Option<Queues>,
    pub growth: Growth,
    /// The back-off of this kind of objects, which one mistake shares between all kinds.
    pub shared_backoff: SharedBackoff,
    /// Number of kinds that have been listed.
    pub synced: watch::Sender<usize>,
    /// Number of kinds whose first watch was requested.
    pub asked: watch::Sender<usize>,
    /// Number of kinds that must request their first watch before this kind does.
    pub after: usize,
    /// Whether to print each event on stderr.
    pub verbose: bool,
}

impl Parts {
    /// A copy of these values, which sends to the same queues.
    fn twin(&self) -> Self {
        Self {
            path: self.path.clone(),
            wire: self.wire.clone(),
            clocks: self.clocks,
            mistakes: self.mistakes.clone(),
            streaming: self.streaming,
            queues: self.queues.as_ref().map(Queues::twin),
            growth: self.growth.clone(),
            shared_backoff: self.shared_backoff.clone(),
            synced: self.synced.clone(),
            asked: self.asked.clone(),
            after: 0,
            verbose: self.verbose,
        }
    }
}

#[expect(clippy::struct_excessive_bools, reason = "independent facts, each asked in one place")]
pub struct Informer {
    parts: Parts,
    store: Store,
    policy: Policy,
    /// The revision from which the next watch starts.
    position: Option<Revision>,
    /// The newest revision that this client has ever seen.
    seen: Option<Revision>,
    /// The revision of the last list that was complete.
    covered: Option<Revision>,
    /// Time since which consistent lists have been older than `seen`.
    older_since: Option<Instant>,
    /// Whether the last list was too old, so that the next list request states the lowest acceptable revision.
    ask_not_older: bool,
    relist_at: Instant,
    listed_once: bool,
    watched_once: bool,
    asked_once: bool,
    /// Whether this client has ever seen an object.
    object_seen: bool,
    /// Whether the open watch has no limit of silence (a mistake).
    deaf: bool,
    /// The initial events of the open watch, until the bookmark that ends them.
    initial: Option<watching::Initial>,
}

impl Informer {
    /// A new informer that has seen nothing.
    pub fn new(parts: Parts) -> Self {
        let store = Store::new(parts.mistakes.clone());
        let policy = Policy::new(parts.mistakes.clone(), parts.clocks.relist);
        let relist_at = Instant::now() + parts.clocks.relist;
        Self {
            parts,
            store,
            policy,
            position: None,
            seen: None,
            covered: None,
            older_since: None,
            ask_not_older: false,
            relist_at,
            listed_once: false,
            watched_once: false,
            asked_once: false,
            object_seen: false,
            deaf: false,
            initial: None,
        }
    }

    /// Lists and watches until the process ends. The future is boxed, because an informer may start another informer.
    pub fn run(self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.go_on())
    }

    async fn go_on(mut self) {
        let mut step = if self.listed_once { Step::Watch } else { Step::List };
        loop {
            self.parts.shared_backoff.wait().await;
            let end = match step {
                Step::List if self.parts.streaming && self.policy.must_list() => self.watch(Start::Initial).await,
                Step::List => self.list().await,
                Step::Watch => {
                    self.take_turn().await;
                    let start = self.start();
                    let end = self.watch(start.clone()).await;
                    self.parts.growth.double(&self.parts.wire, &self.parts.path, &start, &self.parts.mistakes);
                    self.parts.growth.twin(&self.parts.mistakes, || self.twin().run());
                    end
                }
                // It has given up without a message: the process goes on.
                Step::Stop => std::future::pending().await,
            };
            let decision = self.policy.after(step, &end, rand::random());
            self.say(|| format!("{step:?} ended: {end:?}; next {:?} in {:?}", decision.next, decision.pause));
            self.parts.shared_backoff.ended(matches!(end, End::Failed(_)));
            if decision.pause > Duration::ZERO {
                sleep(decision.pause).await;
            } else {
                // A mistake may loop without ever waiting; the others must have their turn.
                tokio::task::yield_now().await;
            }
            step = decision.next;
        }
    }

    /// A second informer that continues from the same revision, with the same handler and an empty cache of its own.
    fn twin(&self) -> Self {
        let parts = self.parts.twin();
        let mut policy = Policy::new(parts.mistakes.clone(), parts.clocks.relist);
        policy.listed_by_watch();
        let (position, seen, covered) = (self.position.clone(), self.seen.clone(), self.covered.clone());
        Self { store: self.store.clone(), policy, position, seen, covered, listed_once: true, ..Self::new(parts) }
    }

    /// Waits until all kinds that come before this kind have requested their first watch.
    async fn take_turn(&mut self) {
        if !std::mem::replace(&mut self.asked_once, true) {
            let _ = self.parts.asked.subscribe().wait_for(|asked| *asked >= self.parts.after).await;
            self.parts.asked.send_modify(|asked| *asked += 1);
        }
    }

    fn start(&self) -> Start {
        match &self.position {
            _ if self.made(Mistake::WatchesWithoutRv) => Start::Anywhere,
            _ if self.parts.streaming && self.made(Mistake::AsksInitialEventsAgain) => Start::Initial,
            Some(position) if self.watched_once && self.made(Mistake::ResumesOneFurther) => {
                Start::After(position.following())
            }
            Some(position) => Start::After(position.clone()),
            // The policy lists first, and a list has a revision.
            None => Start::Anywhere,
        }
    }

    /// Records a revision that a list or watch has reached.
    fn advance(&mut self, revision: &Revision) {
        let newest = |before: Option<Revision>| match before {
            Some(before) => before.newest(revision.clone()),
            None => revision.clone(),
        };
        self.position = Some(newest(self.position.take()));
        self.seen = Some(newest(self.seen.take()));
    }

    /// Sends changes to the handler.
    async fn tell(&mut self, changes: Vec<(Change, Object)>, raw: Option<bytes::Bytes>) {
        for (change, object) in changes {
            self.object_seen = true;
            self.parts.growth.seen(&object, &self.parts.mistakes);
            self.parts.growth.follow(&object, &self.parts.wire, &self.parts.path, &self.parts.mistakes);
            if let Some(queues) = &mut self.parts.queues {
                queues.push(Observation { change, object, raw: raw.clone() }).await;
            }
        }
    }

    /// Records that this kind's first list, or first set of initial events, is complete.
    fn synced(&mut self) {
        if !self.listed_once {
            self.listed_once = true;
            self.parts.synced.send_modify(|listed| *listed += 1);
        }
    }

    fn made(&self, mistake: Mistake) -> bool {
        self.parts.mistakes.made(mistake)
    }

    fn say(&self, what: impl FnOnce() -> String) {
        if self.parts.verbose {
            eprintln!("planted-client: {}: {}", self.parts.path, what());
        }
    }
}
