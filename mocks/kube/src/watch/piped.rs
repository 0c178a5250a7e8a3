//! A watch with effects of faults: events pass one by one through the effects.
//!
//! Owns the slower code for watches with effects, and how a fault ends a stream. This module must not decide the
//! effects of a fault.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use facts::Change;
use mock_faults::{Effect, Ending, EventLine, Flow, Http2Code, Item, Pipe};
use tokio::time::Instant;

use super::{Resting, WatchBody, bookmark, framed};
use crate::audit::{EndedBy, ShownBy};
use crate::broken::Broken;

/// Time for written bytes, including headers, to leave this process before a fault ends the stream, because a reset
/// discards waiting bytes.
const SETTLES: Duration = Duration::from_millis(10);

type Polled = Poll<Option<Result<Bytes, Broken>>>;

impl WatchBody {
    /// Adds new effects to the stream.
    pub(super) fn take_on(&mut self, effects: Vec<Box<dyn Effect>>) {
        if effects.is_empty() {
            return;
        }
        let pipe = self.pipe.get_or_insert_with(|| Box::new(Pipe::new()));
        for effect in effects {
            pipe.add(effect);
        }
    }

    /// The next bytes after all effects; `None` if the state of the stream has changed and the caller must examine it
    /// again.
    pub(super) fn poll_piped(&mut self, cx: &mut Context<'_>) -> Option<Polled> {
        let mut pipe = self.pipe.take()?;
        if pipe.is_done() {
            return None;
        }
        let now = Instant::now();
        self.with_flow(now, |flow| pipe.tick(flow));
        let out = pipe.next(now, cx);
        let polled = match out {
            Poll::Ready(Some(item)) => self.emit(item, cx),
            Poll::Pending => Some(Poll::Pending),
            Poll::Ready(None) => match self.upstream(cx) {
                Poll::Ready(item) => {
                    self.with_flow(now, |flow| pipe.feed(item, flow));
                    None
                }
                Poll::Pending => Some(Poll::Pending),
            },
        };
        self.pipe = Some(pipe);
        polled
    }

    fn with_flow(&self, now: Instant, act: impl FnOnce(&Flow<'_>)) {
        let renderer = &self.o.renderer;
        let line = |revision, closes| bookmark(renderer, revision, closes);
        act(&Flow { now, stream: &self.o.stream, bookmarks: self.o.bookmarks, bookmark: &line });
    }

    /// The next item that enters the chain of effects: initial events first, then the events of the log.
    fn upstream(&mut self, cx: &mut Context<'_>) -> Poll<Item> {
        if let Some(item) = self.initial_item() {
            return Poll::Ready(item);
        }
        loop {
            let drained_at = match self.pull(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(drained_at)) => drained_at,
                Poll::Ready(Err(_)) => return Poll::Ready(Item::Over(Ending::Clean)),
            };
            while let Some(event) = self.queue.pop_front() {
                if let Some((change, line)) = self.line(&event) {
                    let revision = event.version.revision;
                    let through = Some(revision);
                    return Poll::Ready(Item::Event(EventLine { change, revision, initial: false, line, through }));
                }
            }
            let Some(revision) = drained_at else { continue };
            return match self.resting(revision, cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Resting::Over) => Poll::Ready(Item::Over(Ending::Clean)),
                Poll::Ready(Resting::Bookmark) => {
                    let line = bookmark(&self.o.renderer, revision, false);
                    Poll::Ready(Item::Bookmark { revision, closes: false, line })
                }
            };
        }
    }

    fn initial_item(&mut self) -> Option<Item> {
        let initial = self.o.initial.as_mut()?;
        let next = initial.versions.pop_front();
        let last = initial.versions.is_empty();
        let (revision, announces) = (initial.revision, initial.announce_end);
        let Some(version) = next else {
            self.o.initial = None;
            self.o.delivered.handed(revision, self.o.cluster.now_us());
            return announces.then(|| Item::Bookmark {
                revision,
                closes: true,
                line: bookmark(&self.o.renderer, revision, true),
            });
        };
        if last && !announces {
            self.o.initial = None;
        }
        let line = framed(Change::Added, &self.o.renderer.object(&version));
        let through = (last && !announces).then_some(revision);
        let event = EventLine { change: Change::Added, revision: version.revision, initial: true, line, through };
        Some(Item::Event(event))
    }

    /// The bytes of an item that passed all effects; `None` if the item has no bytes.
    fn emit(&mut self, item: Item, cx: &mut Context<'_>) -> Option<Polled> {
        if let Item::Bookmark { revision, closes, .. } = &item {
            let by = if *closes { ShownBy::Snapshot } else { ShownBy::Event };
            self.note_shown(by, *revision, self.o.cluster.now_us());
            if *closes {
                self.o.audit.snapshot_closed(&self.o.resource.full_name, &self.o.delivered, *revision);
            }
        }
        match item.into_block() {
            Ok(block) => {
                let now_us = self.o.cluster.now_us();
                if let Some(through) = block.through {
                    self.o.delivered.handed(through, now_us);
                }
                let (id, resource) = (self.o.stream.id, self.o.resource.id);
                if let Some((last, _)) = block.events.last() {
                    let (events, last) = (block.events.len(), *last);
                    let lines = block.events.iter().map(|(revision, line)| (*revision, line));
                    self.o.audit.sent(id, resource, now_us, lines);
                    self.note_sent(events, last, now_us);
                }
                Some(Poll::Ready(Some(Ok(block.bytes))))
            }
            Err(Item::Withheld { revision, by }) => {
                let now_us = self.o.cluster.now_us();
                self.o.audit.withheld(self.o.stream.id, self.o.resource.id, revision, now_us, by);
                None
            }
            Err(Item::Over(ending)) => Some(self.finish(ending, cx)),
            Err(_) => None,
        }
    }

    /// Ends the stream as the fault demands.
    pub(super) fn finish(&mut self, ending: Ending, cx: &mut Context<'_>) -> Polled {
        match ending {
            Ending::Clean => self.end(),
            Ending::Error { line, hold } => {
                self.tell(|request| request.failed(mock_objects::status::code_of(&line)));
                match hold {
                    Some(fault) => self.o.stream.fall_silent(fault),
                    None => self.last = true,
                }
                Poll::Ready(Some(Ok(line)))
            }
            Ending::Reset(_) | Ending::Eof => {
                let settles = self.settles.get_or_insert_with(|| Box::pin(tokio::time::sleep(SETTLES)));
                if settles.as_mut().poll(cx).is_pending() {
                    // An ending out of the pipe is not the stream's state yet, and this poll may be the last of the
                    // pipe.
                    self.parting = Some(ending);
                    return Poll::Pending;
                }
                self.break_off(&ending)
            }
        }
    }

    fn break_off(&mut self, ending: &Ending) -> Polled {
        self.done = true;
        self.tell(|request| request.ends(EndedBy::Reset));
        self.o.delivered.was_reset(self.o.cluster.now_us());
        let (connection, http1) = (&self.o.connection, self.o.connection.http_version == 1);
        let code = match ending {
            Ending::Reset(code) => *code,
            _ => Http2Code::InternalError,
        };
        match ending {
            Ending::Reset(_) if http1 => connection.reset.store(true, std::sync::atomic::Ordering::Release),
            // A single HTTP/2 stream cannot end like this, so the connection does.
            Ending::Eof if !http1 => {
                connection.sever();
                return Poll::Pending;
            }
            _ => {}
        }
        Poll::Ready(Some(Err(Broken::because(code))))
    }
}
