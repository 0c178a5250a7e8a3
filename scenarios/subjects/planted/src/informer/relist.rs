//! Requests lists: the first list, the list after a 410, and the periodic list while a watch is open.
//!
//! This module decides whether a list is accepted. The client at first refuses a list that is older than the state it
//! has seen. The client accepts an older list once consistent lists have been older for so long that the server's store
//! must have been restored from a backup.

use tokio::time::Instant;

use super::Informer;
use super::policy::End;
use crate::list::{Listing, list};
use crate::mistakes::Mistake;
use crate::store::Trust;
use crate::watch::{Backlog, Message, Stream};
use crate::wire::Trouble;

/// Maximum number of watch messages that are kept during a list. Further watch messages wait in the connection.
const BACKLOG_MAX: usize = 10_000;
/// Pause after a failed periodic list, as a multiple of the limit of silence, so that the watch has time to deliver.
const RETRY_SILENCES: f64 = 1.25;

impl Informer {
    /// Lists all objects while no watch is open.
    pub(super) async fn list(&mut self) -> End {
        match self.fetch().await {
            Ok((listing, trust)) => {
                self.take_in(listing, trust).await;
                End::Listed
            }
            Err(trouble) => End::Failed(trouble),
        }
    }

    /// Lists while a watch is open. Messages of the watch are kept during the list, so that an older list is not
    /// compared with newer messages. After the list, the messages that the list includes are handled first, and then
    /// the list. The caller handles the messages that are newer than the list.
    pub(super) async fn list_during(&mut self, stream: &mut Stream) -> Backlog {
        let mut backlog = Backlog::new();
        let parts = &self.parts;
        let (wire, path, mistakes) = (parts.wire.clone(), parts.path.clone(), parts.mistakes.clone());
        let not_older = self.not_older();
        let listing = {
            let list = list(&wire, &path, not_older.as_ref(), &mistakes);
            tokio::pin!(list);
            let mut over = false;
            loop {
                tokio::select! {
                    listing = &mut list => break listing,
                    message = stream.next(), if !over && backlog.len() < BACKLOG_MAX => {
                        over = !matches!(message, Message::Event(_) | Message::Bytes);
                        backlog.push_back(message);
                    }
                }
            }
        };
        match listing.and_then(|listing| self.judge(listing, not_older.is_none())) {
            Ok((listing, trust)) => {
                self.catch_up(&mut backlog, &listing).await;
                let covered = listing.revision.clone();
                self.take_in(listing, trust).await;
                self.covered = Some(covered);
            }
            Err(trouble) => {
                self.say(|| format!("the periodic list failed: {trouble}"));
                let asked = trouble.refusal().map_or(std::time::Duration::ZERO, |refusal| refusal.retry_after);
                self.relist_at = Instant::now() + self.parts.clocks.silence.mul_f64(RETRY_SILENCES).max(asked);
            }
        }
        backlog
    }

    /// With the mistake `relist-beside-watch`: watch messages are handled during the list, and then the list, which may
    /// be older.
    pub(super) async fn list_beside(&mut self, stream: &mut Stream) -> Option<End> {
        let parts = &self.parts;
        let (wire, path, mistakes) = (parts.wire.clone(), parts.path.clone(), parts.mistakes.clone());
        let list = list(&wire, &path, None, &mistakes);
        tokio::pin!(list);
        let listing = loop {
            tokio::select! {
                listing = &mut list => break listing,
                message = stream.next() => if let Some(end) = self.handle(message).await {
                    return Some(end);
                },
            }
        };
        self.relist_at = Instant::now() + self.parts.clocks.relist;
        if let Ok(listing) = listing {
            let mut changes = Vec::new();
            self.store.replace(&listing, Trust::Newer, &mut changes);
            self.tell(changes, None).await;
        }
        None
    }

    /// Handles the messages of the watch that are not newer than the list.
    async fn catch_up(&mut self, backlog: &mut Backlog, listing: &Listing) {
        while let Some(message) = backlog.front() {
            let before = match message {
                Message::Bytes => true,
                Message::Event(event) => {
                    event.revision.as_ref().is_some_and(|revision| !listing.revision.older_than(revision))
                }
                Message::End | Message::Broke(_) | Message::Unreadable(_) => false,
            };
            if !before {
                return;
            }
            // An event that ends the watch has no revision, so it is not here.
            let Some(message) = backlog.pop_front() else { return };
            self.handle(message).await;
        }
    }

    async fn fetch(&mut self) -> Result<(Listing, Trust), Trouble> {
        let parts = &self.parts;
        let not_older = self.not_older();
        let listing = list(&parts.wire, &parts.path, not_older.as_ref(), &parts.mistakes).await;
        if listing.as_ref().is_err_and(Trouble::is_too_large) && !self.made(Mistake::NoTooLargeFallback) {
            // This server has not reached the revision, or never will: its plain answer is the best available one.
            self.ask_not_older = false;
        }
        self.judge(listing?, not_older.is_none())
    }

    /// The lowest revision that the next list may have, if the request states such a revision.
    fn not_older(&self) -> Option<crate::revision::Revision> {
        let always = self.made(Mistake::NoTooLargeFallback);
        self.seen.clone().filter(|_| self.ask_not_older || always)
    }

    /// Decides whether a list is accepted.
    fn judge(&mut self, listing: Listing, consistent: bool) -> Result<(Listing, Trust), Trouble> {
        let Some(seen) = self.seen.as_ref().filter(|seen| listing.revision.older_than(seen)) else {
            (self.older_since, self.ask_not_older) = (None, false);
            return Ok((listing, Trust::Newer));
        };
        if self.made(Mistake::AcceptsOlderList) {
            return Ok((listing, Trust::Blind));
        }
        let since = *self.older_since.get_or_insert_with(Instant::now);
        let patient = since.elapsed() < self.parts.clocks.rewind_patience;
        if consistent && !patient && !self.made(Mistake::IgnoresRewind) {
            self.say(|| format!("the store went back from {seen} to {}", listing.revision));
            (self.older_since, self.ask_not_older, self.seen) = (None, false, None);
            return Ok((listing, Trust::Blind));
        }
        self.ask_not_older = consistent;
        Err(Trouble::Stale { listed: listing.revision.to_string(), seen: seen.to_string() })
    }

    /// Applies a list to the cache and reports the differences.
    async fn take_in(&mut self, listing: Listing, trust: Trust) {
        self.relist_at = Instant::now() + self.parts.clocks.relist;
        self.parts.growth.listed(&self.parts.mistakes);
        let mut changes = Vec::new();
        if !(self.listed_once && self.made(Mistake::RelistWithoutDiff)) {
            self.store.replace(&listing, trust, &mut changes);
        }
        if trust == Trust::Blind {
            self.position = None;
        }
        self.advance(&listing.revision);
        if let (true, Some(last)) = (self.made(Mistake::ResumesFromLastListedItem), listing.items.last()) {
            self.position = Some(last.revision.clone());
        }
        self.tell(changes, None).await;
        if listing.items.is_empty() && !self.listed_once && self.made(Mistake::WaitsForFirstItem) {
            // "Absent" is never reported, so a consumer that waits for it waits for ever.
            std::future::pending::<()>().await;
        }
        self.synced();
    }
}
