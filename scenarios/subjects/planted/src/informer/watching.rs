//! Reads an open watch until the server or the client ends it.
//!
//! This module runs the timers of a watch (limit of silence, periodic list, end of the initial events) and handles each
//! event. `policy.rs` decides how the client continues after the watch has ended.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::Informer;
use super::policy::End;
use crate::handler::Queues;
use crate::mistakes::Mistake;
use crate::object::{Event, Kind, Object};
use crate::revision::Revision;
use crate::store::Change;
use crate::watch::{Backlog, Message, Start, Stream};
use crate::wire::{Refusal, Trouble};

/// Time limit for the bookmark that ends the initial events. A server that never sends this bookmark does not support
/// initial events.
const INITIAL_DEADLINE: Duration = Duration::from_secs(5);
/// With the mistake `aborts-healthy-streams`: time after which a watch is aborted.
const ABORT_AFTER: Duration = Duration::from_secs(2);
/// A timeout that never expires in a run.
const NEVER: Duration = Duration::from_hours(24 * 365);

/// The initial events of a watch that were received so far.
pub(super) struct Initial {
    listed: BTreeSet<Arc<str>>,
    /// The events that `waits-for-initial-end` holds back.
    kept: Vec<Event>,
}

struct Watching {
    stream: Stream,
    opened_at: Instant,
    message_at: Instant,
    backlog: Backlog,
    quiet: bool,
}

/// A message of the watch, or the timer that expired.
enum Struck {
    Message(Message),
    Silence,
    Relist,
    Abort,
    InitialDeadline,
}

impl Informer {
    /// Reads a watch until it ends.
    pub(super) async fn watch(&mut self, start: Start) -> End {
        let patient = self.watched_once && self.made(Mistake::TimerArmedByHeaders);
        let parts = &self.parts;
        let opened = Stream::open(&parts.wire, &parts.path, &start, patient, &parts.mistakes).await;
        let stream = match opened {
            Ok(stream) => stream,
            Err(trouble) => return self.refused(trouble, &start),
        };
        parts.growth.watched(&parts.mistakes);
        (self.watched_once, self.deaf, self.covered) = (true, false, None);
        self.initial = (start == Start::Initial).then(|| Initial { listed: BTreeSet::new(), kept: Vec::new() });
        if start == Start::Initial && self.listed_once && self.made(Mistake::AsksInitialEventsAgain) {
            self.store.forget();
        }
        let now = Instant::now();
        let mut watching = Watching { stream, opened_at: now, message_at: now, backlog: Backlog::new(), quiet: true };
        loop {
            let message = match self.struck(&mut watching).await {
                Struck::Message(message) => message,
                Struck::Silence => {
                    watching.stream.abandon();
                    return End::Silent;
                }
                Struck::Relist if self.made(Mistake::RelistBesideWatch) => {
                    match self.list_beside(&mut watching.stream).await {
                        Some(end) => return end,
                        None => continue,
                    }
                }
                // The watch is closed for the list, and waits for it.
                Struck::Relist if self.made(Mistake::ListFailureKillsWatch) => {
                    drop(watching);
                    return End::Doubt("it is time to list".to_owned());
                }
                Struck::Relist => {
                    watching.backlog = self.list_during(&mut watching.stream).await;
                    if !watching.backlog.is_empty() {
                        watching.message_at = Instant::now();
                    }
                    continue;
                }
                Struck::Abort => return End::Aborted { quiet: watching.quiet },
                Struck::InitialDeadline => {
                    self.parts.streaming = false;
                    return End::Doubt("the initial events have no end".to_owned());
                }
            };
            self.parts.shared_backoff.wait().await;
            watching.quiet &= !matches!(&message, Message::Event(event) if event.object.is_some());
            let clean = matches!(message, Message::End);
            match self.handle(message).await {
                Some(End::Clean { .. }) if clean => return End::Clean { lived: watching.opened_at.elapsed() },
                Some(end) => return end,
                None => {}
            }
        }
    }

    /// Waits for the next message or the next timer.
    async fn struck(&mut self, watching: &mut Watching) -> Struck {
        let now = Instant::now();
        if let Some(message) = watching.backlog.pop_front() {
            return Struck::Message(message);
        }
        let relist_at =
            if self.made(Mistake::NeverRelists) || self.initial.is_some() { now + NEVER } else { self.relist_at };
        let abort_at = watching.opened_at + if self.made(Mistake::AbortsHealthyStreams) { ABORT_AFTER } else { NEVER };
        // This is checked before the select below: a stream with constant traffic would never let the clocks strike.
        if now >= abort_at {
            return Struck::Abort;
        }
        if now >= relist_at {
            return Struck::Relist;
        }
        let waits = self.initial.is_none() || self.made(Mistake::WaitsForInitialEnd);
        let initial_at = watching.opened_at + if waits { NEVER } else { INITIAL_DEADLINE };
        let silent_at = if self.is_armed() { watching.message_at + self.parts.clocks.silence } else { now + NEVER };
        tokio::select! {
            biased;
            message = watching.stream.next() => {
                watching.message_at = Instant::now();
                Struck::Message(message)
            }
            () = sleep_until(silent_at) => Struck::Silence,
            () = sleep_until(initial_at) => Struck::InitialDeadline,
            () = sleep_until(relist_at) => Struck::Relist,
            () = sleep_until(abort_at) => Struck::Abort,
        }
    }

    /// Whether the limit of silence of the watch is active.
    fn is_armed(&self) -> bool {
        let never = self.parts.mistakes.any(&[
            Mistake::NoReadTimeout,
            Mistake::TrustsPing,
            Mistake::TrustsKeepalive,
            Mistake::SwallowsReadErrors,
        ]);
        let not_yet = self.made(Mistake::TimerArmedByFirstEvent) && !self.object_seen;
        !never && !not_yet && !self.deaf
    }

    /// The result if a watch could not be opened.
    fn refused(&mut self, trouble: Trouble, start: &Start) -> End {
        if *start == Start::Initial && matches!(trouble.code(), Some(400 | 422)) {
            // The server does not support initial events, so lists are used.
            self.parts.streaming = false;
        }
        match trouble.refusal() {
            Some(refusal) if refusal.is_gone() && !self.made(Mistake::Expects410OnlyInStream) => End::Gone,
            _ => End::Failed(trouble),
        }
    }

    /// Handles a message of the watch. Returns the reason if the message ends the watch.
    pub(super) async fn handle(&mut self, message: Message) -> Option<End> {
        match message {
            Message::Bytes => None,
            Message::End => Some(End::Clean { lived: Duration::ZERO }),
            Message::Broke(trouble) => Some(End::Failed(trouble)),
            Message::Unreadable(_) if self.made(Mistake::SwallowsBadLines) => None,
            Message::Unreadable(why) => Some(End::Doubt(why)),
            Message::Event(event) if event.kind == Kind::Error => self.error(&event).await,
            Message::Event(event) => {
                self.policy.received();
                if event.object.is_some() {
                    self.parts.shared_backoff.received();
                }
                self.event(event).await
            }
        }
    }

    /// Handles an ERROR event. Returns the reason if the event ends the watch.
    async fn error(&mut self, event: &Event) -> Option<End> {
        if self.made(Mistake::IgnoresErrorEvents) {
            return None;
        }
        let refusal = Refusal::new(0, Duration::ZERO, &event.status);
        if refusal.is_gone() {
            return (!self.made(Mistake::Expects410OnlyInHttpStatus)).then_some(End::Gone);
        }
        if self.made(Mistake::StatusAsObject) {
            let nothing: Arc<str> = "undefined".into();
            let (uid, namespace, name) = (nothing.clone(), nothing.clone(), nothing);
            let revision = Revision::zero();
            let object = Object { uid, namespace, name, revision, generation: None, observed: None, marked: false };
            self.tell(vec![(Change::Modified, object)], None).await;
            return None;
        }
        if self.made(Mistake::KeepsReadingAfterError) {
            self.deaf = true;
            return None;
        }
        Some(End::Failed(Trouble::Refused(refusal)))
    }

    async fn event(&mut self, event: Event) -> Option<End> {
        if event.initial_end && self.initial.is_some() {
            return self.initial_end(event).await;
        }
        if let Some(initial) = &mut self.initial {
            if self.parts.mistakes.made(Mistake::WaitsForInitialEnd) {
                initial.kept.push(event);
                return None;
            }
            self.apply_initial(event).await;
            return None;
        }
        let revision = event.revision.clone()?;
        if event.kind == Kind::Bookmark {
            let back = self.position.as_ref().is_some_and(|position| revision.older_than(position));
            if back && !self.made(Mistake::IgnoresRewind) {
                return Some(End::Doubt(format!("a bookmark of revision {revision} after a newer one")));
            }
        }
        let mut known = self.covered.as_ref().is_some_and(|covered| !covered.older_than(&revision));
        if self.made(Mistake::SkipsWhatIsNotNewer) {
            known |= self.position.as_ref().is_some_and(|position| !position.older_than(&revision));
        }
        if !known {
            self.apply(event).await;
        }
        self.advance(&revision);
        None
    }

    async fn apply(&mut self, event: Event) {
        let mut changes = Vec::new();
        let answered = self.parts.queues.as_ref().map(Queues::answered).unwrap_or_default();
        self.store.know(answered);
        match (event.kind, event.object) {
            (Kind::Added | Kind::Modified, Some(object)) => self.store.upsert(object, &mut changes),
            (Kind::Deleted, Some(object)) => self.store.delete(object, &mut changes),
            _ => {}
        }
        self.tell(changes, event.raw).await;
    }

    /// Handles an initial event. The revision of an initial event means nothing, because initial events come in any
    /// order (KEP-3157).
    async fn apply_initial(&mut self, event: Event) {
        let (Some(initial), Some(object)) = (&mut self.initial, &event.object) else { return };
        if event.kind == Kind::Deleted {
            if self.parts.mistakes.made(Mistake::IgnoresDeleteBeforeInitialEnd) {
                return;
            }
            initial.listed.remove(&object.uid);
        } else {
            initial.listed.insert(object.uid.clone());
        }
        self.apply(event).await;
    }

    /// Handles the bookmark that ends the initial events. Known objects that were not among the initial events are
    /// gone.
    async fn initial_end(&mut self, event: Event) -> Option<End> {
        let revision = event.revision?;
        if let Some(seen) = self.seen.as_ref().filter(|seen| revision.older_than(seen)) {
            let (listed, seen) = (revision.to_string(), seen.to_string());
            // A plain list follows, which is judged like any other.
            self.parts.streaming = false;
            return Some(End::Failed(Trouble::Stale { listed, seen }));
        }
        let kept = self.initial.as_mut().map(|initial| std::mem::take(&mut initial.kept)).unwrap_or_default();
        for event in kept {
            self.apply_initial(event).await;
        }
        let initial = self.initial.take()?;
        let mut changes = Vec::new();
        self.store.retain(|known| initial.listed.contains(&known.uid), &mut changes);
        self.tell(changes, None).await;
        self.position = None;
        self.advance(&revision);
        self.relist_at = Instant::now() + self.parts.clocks.relist;
        self.policy.listed_by_watch();
        self.synced();
        None
    }
}
