//! The mistakes that can be switched on, one for each bug of the corpus that a client can be blamed for.
//!
//! Owns their names, one sentence each, and the rows that each repeats. It must not contain their code: each mistake is
//! made where the real client made it, behind [`Mistakes::made`].
//!
//! [`ROWS`] is the table "row of the corpus, matching mistakes". A mistake of a client that never listed a second time
//! switches the periodic list off too ([`Mistake::never_relisted`]); otherwise that list would repair the damage. The
//! notes list further needs of a row:
//!
//! | row | note |
//! |---|---|
//! | 2 | the same mistake as row 1: the row is that it came back |
//! | 12 | row 4 on HTTP/2: run with `--http 2` |
//! | 20, 25 | a client that gave up is *blind*: its process goes on |
//! | 26 | needs `--handler status` and a refused write |
//! | 40, 54 | a slow handler: `--handler-delay 2s`; `handlers-overtake` has 1.5 s by itself |
//! | 45, 58 | no client can avoid it; this mistake makes it permanent |
//! | 49, 50 | `--copies 70`, `--copies 12 --http 2`: the last copy is the one that reports |
//! | 59 to 61 | need `--streaming-lists` |
//! | 65 | needs `--handler status` |
//! | M4 | one label a list: make lists frequent with `--relist 2s` |

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::ValueEnum;

/// One mistake; its name on the command line is the variant's in kebab-case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Mistake {
    // The connection is dead without a sign of it.
    /// A watch may stay silent for ever.
    NoReadTimeout,
    /// The silence limit runs only once a first event or a first list item was seen.
    TimerArmedByFirstEvent,
    /// The silence limit of a reconnect runs only once its response headers are there, and nothing else bounds the wait.
    TimerArmedByHeaders,
    /// Waits for ever for the head of an answer.
    NoHeaderTimeout,
    /// Believes that a watch is alive as long as the peer answers HTTP/2 pings.
    TrustsPing,
    /// Believes that a watch is alive as long as the kernel's TCP keep-alive is answered.
    TrustsKeepalive,
    /// A read error ends nothing: it goes on waiting for the next byte.
    SwallowsReadErrors,

    // The stream ended or failed, and the client read it wrong.
    /// Skips ERROR events, whatever they say, and reads on.
    IgnoresErrorEvents,
    /// Sees a 410 in either form, and watches again from the same revision.
    #[value(name = "keeps-rv-after-410")]
    KeepsRvAfter410,
    /// Knows 410 as the status of a response only.
    #[value(name = "expects-410-only-in-http-status")]
    Expects410OnlyInHttpStatus,
    /// Knows 410 as an event only.
    #[value(name = "expects-410-only-in-stream")]
    Expects410OnlyInStream,
    /// The first 410 ends the watching; the process goes on.
    #[value(name = "exits-on-410")]
    ExitsOn410,
    /// After an ERROR event other than 410 it stays on the same stream, for ever.
    KeepsReadingAfterError,
    /// Gives the Status of an ERROR event to the handler as if it were an object.
    StatusAsObject,
    /// Watches again at once after a clean end, however empty the answer was.
    HotLoopOnEmpty,
    /// Stops watching after a clean end, without a message.
    GivesUpSilentlyAtEnd,
    /// Gives up after 5 errors in a row; the process goes on.
    GivesUpAfterNErrors,
    /// Gives up at the first 429 or 5xx; the process goes on.
    #[value(name = "gives-up-on-5xx")]
    GivesUpOn5xx,
    /// A flag "reconnect pending" stays set when a connection attempt fails, and forbids all further ones.
    PendingFlagStuck,
    /// Closes the watch for a list. If that list fails, there is no watch until the next periodic list.
    ListFailureKillsWatch,
    /// Remembers a version before its handler succeeded, so that a failed handler is never run again.
    CacheBeforeCallback,

    // Wrong resourceVersion kept or sent.
    /// Watches from the revision of the last listed item instead of the list's own revision.
    ResumesFromLastListedItem,
    /// Watches without a resourceVersion after a list.
    WatchesWithoutRv,
    /// Resumes a watch from the revision after the one that it reached, as one does with etcd.
    ResumesOneFurther,
    /// Never believes that a store went back to an older state.
    IgnoresRewind,
    /// Repeats a list that was refused as "too large resource version" with the same revision.
    NoTooLargeFallback,

    // Relist, pagination and cache bookkeeping.
    /// Lists at the start and after a 410 only.
    NeverRelists,
    /// Lists after each break instead of resuming, and takes only the revision from that list.
    RelistWithoutDiff,
    /// Lists periodically beside the watch, and takes every object that the list lacks as deleted.
    RelistBesideWatch,
    /// Accepts a list that is older than its cache.
    AcceptsOlderList,
    /// Reads the first page of a list only.
    FirstPageOnly,
    /// Follows at most 10 page tokens.
    PageCeiling,
    /// Keeps the last page token after the last page, and never handles vanished objects.
    KeepsOldContinue,
    /// Waits for a first object before it watches, when the first list is empty.
    WaitsForFirstItem,
    /// Keeps objects by name: another object under a name is an update.
    ReplacesByName,

    /// Skips an event if its revision is not newer than that of the last event, even if that was of another object.
    SkipsWhatIsNotNewer,
    /// Accepts every event, also one that is older than its cache.
    BelievesEveryEvent,
    /// Puts the answer to its own write into its cache, and skips the watch event for that write as known.
    CachesItsOwnWrites,

    // Pacing, sharing, authentication, scope.
    /// Uses one back-off for all kinds, which also pauses the healthy ones.
    SharedBackoff,
    /// Aborts every watch after 2 s, and waits longer each time while no event comes.
    AbortsHealthyStreams,
    /// At most 64 requests at a time; further ones wait for ever.
    QueuesWatches,
    /// One HTTP/2 connection for everything; requests beyond its stream limit wait.
    OneConnectionWaits,
    /// Reads its token once.
    KeepsDeadToken,
    /// No handler runs before every kind was listed.
    OneBadKindBlocksAll,
    /// A 403 ends the watching of that kind.
    #[value(name = "stops-on-403")]
    StopsOn403,
    /// Starts a handler for each event and waits for none.
    HandlersOvertake,

    // Bytes.
    /// Decodes every chunk as UTF-8 by itself; a cut character ends the process.
    DecodesPerChunk,
    /// Takes a chunk for an event.
    OneChunkOneEvent,
    /// Drops lines that are not JSON, and goes on.
    SwallowsBadLines,

    // Streaming lists.
    /// Takes a DELETED before the end of the initial events for impossible, and ignores it.
    IgnoresDeleteBeforeInitialEnd,
    /// Every reconnect asks for the initial events again, and delivers them again.
    AsksInitialEventsAgain,
    /// Delivers no event before the closing bookmark, however long that takes.
    WaitsForInitialEnd,

    // Growth.
    /// Every list and every watch has a connection of its own, and none is ever closed.
    ConnectionPerReconnect,
    /// A watch that is given up is not closed.
    WatchNotClosed,
    /// Each disconnect opens two watches.
    DoubleReconnect,
    /// The end of a stream and its close both open the next watch, and every watch reports its events.
    BothEndsReconnect,
    /// Keeps an entry for each name it ever saw.
    MapPerName,
    /// Keeps an entry for each list it ever made.
    LabelPerRelist,
    /// Any number of events wait for a slow handler.
    UnboundedQueue,
    /// Holds every list twice: as bytes and as objects.
    ListHeldTwice,
    /// Each watch starts a pool of 16 threads that never ends.
    ThreadsPerWatch,
    /// Opens a watch for each object, and closes none.
    WatchPerObject,
}

use Mistake as M;

/// Rows of the corpus (`missed-events.md`, tables 2.3 and 3) with the mistakes that repeat them, the best one first.
/// Rows 62 to 65, M15 and M16 are only in the library of bugs and not in the corpus.
pub const ROWS: &[(&str, &[Mistake])] = &[
    ("1", &[M::NoReadTimeout]),
    ("2", &[M::NoReadTimeout]),
    ("3", &[M::TimerArmedByHeaders]),
    ("4", &[M::TimerArmedByFirstEvent]),
    ("5", &[M::SwallowsReadErrors, M::NoReadTimeout]),
    ("6", &[M::NoHeaderTimeout]),
    ("7", &[M::NoReadTimeout]),
    ("8", &[M::NoReadTimeout]),
    ("9", &[M::NoReadTimeout]),
    ("10", &[M::TrustsPing]),
    ("11", &[M::TrustsKeepalive]),
    ("12", &[M::TimerArmedByFirstEvent]),
    ("13", &[M::NoHeaderTimeout]),
    ("14", &[M::GivesUpSilentlyAtEnd]),
    ("15", &[M::Expects410OnlyInHttpStatus]),
    ("16", &[M::IgnoresErrorEvents, M::KeepsRvAfter410]),
    ("17", &[M::Expects410OnlyInStream]),
    ("18", &[M::HotLoopOnEmpty]),
    ("19", &[M::ExitsOn410]),
    ("20", &[M::GivesUpOn5xx]),
    ("21", &[M::KeepsReadingAfterError]),
    ("22", &[M::StatusAsObject]),
    ("23", &[M::PendingFlagStuck]),
    ("24", &[M::ListFailureKillsWatch]),
    ("25", &[M::GivesUpAfterNErrors]),
    ("26", &[M::CacheBeforeCallback]),
    ("27", &[M::ResumesFromLastListedItem]),
    ("28", &[M::WatchesWithoutRv]),
    ("29", &[M::RelistWithoutDiff]),
    ("31", &[M::RelistWithoutDiff]),
    ("32", &[M::IgnoresRewind]),
    ("33", &[M::NoTooLargeFallback]),
    ("34", &[M::RelistBesideWatch]),
    ("35", &[M::AcceptsOlderList]),
    ("36", &[M::KeepsOldContinue]),
    ("37", &[M::PageCeiling]),
    ("38", &[M::FirstPageOnly]),
    ("39", &[M::WaitsForFirstItem]),
    ("40", &[M::ReplacesByName]),
    ("41", &[M::NeverRelists]),
    ("42", &[M::NeverRelists]),
    ("44", &[M::AcceptsOlderList]),
    ("45", &[M::RelistWithoutDiff]),
    ("46", &[M::SharedBackoff]),
    ("47", &[M::AbortsHealthyStreams]),
    ("49", &[M::QueuesWatches]),
    ("50", &[M::OneConnectionWaits]),
    ("51", &[M::KeepsDeadToken]),
    ("52", &[M::OneBadKindBlocksAll, M::StopsOn403]),
    ("54", &[M::HandlersOvertake]),
    ("55", &[M::DecodesPerChunk]),
    ("56", &[M::OneChunkOneEvent]),
    ("57", &[M::SwallowsBadLines]),
    ("58", &[M::NoHeaderTimeout]),
    ("59", &[M::IgnoresDeleteBeforeInitialEnd]),
    ("60", &[M::AsksInitialEventsAgain]),
    ("61", &[M::WaitsForInitialEnd]),
    ("62", &[M::SkipsWhatIsNotNewer]),
    ("63", &[M::BelievesEveryEvent]),
    ("64", &[M::GivesUpSilentlyAtEnd, M::DoubleReconnect]),
    ("65", &[M::CachesItsOwnWrites]),
    ("M1", &[M::ConnectionPerReconnect]),
    ("M2", &[M::WatchNotClosed, M::ConnectionPerReconnect]),
    ("M3", &[M::MapPerName]),
    ("M4", &[M::LabelPerRelist]),
    ("M5", &[M::DoubleReconnect, M::BothEndsReconnect]),
    ("M7", &[M::UnboundedQueue]),
    ("M8", &[M::ListHeldTwice]),
    ("M9", &[M::MapPerName]),
    ("M10", &[M::WatchNotClosed]),
    ("M12", &[M::ThreadsPerWatch]),
    ("M13", &[M::HotLoopOnEmpty]),
    ("M15", &[M::MapPerName]),
    ("M16", &[M::WatchPerObject]),
];

/// The mistakes that are switched on; empty for the correct client.
#[derive(Debug, Clone, Default)]
pub struct Mistakes(Arc<BTreeSet<Mistake>>);

impl Mistakes {
    /// The chosen mistakes and those that they imply.
    pub fn new(chosen: &[Mistake]) -> Self {
        let mut all: BTreeSet<Mistake> = chosen.iter().copied().collect();
        if chosen.iter().any(|mistake| mistake.never_relisted()) {
            all.insert(Mistake::NeverRelists);
        }
        Self(Arc::new(all))
    }

    pub fn made(&self, mistake: Mistake) -> bool {
        self.0.contains(&mistake)
    }

    pub fn any(&self, mistakes: &[Mistake]) -> bool {
        mistakes.iter().any(|mistake| self.made(*mistake))
    }
}

impl Mistake {
    /// Whether the real client with this mistake listed only at the start and after a 410.
    pub fn never_relisted(self) -> bool {
        // Mistakes about lists, or about growth with each list, keep listing.
        !matches!(
            self,
            M::ListFailureKillsWatch
                | M::AcceptsOlderList
                | M::NoTooLargeFallback
                | M::RelistWithoutDiff
                | M::RelistBesideWatch
                | M::KeepsOldContinue
                | M::ReplacesByName
                | M::CacheBeforeCallback
                | M::HandlersOvertake
                | M::ConnectionPerReconnect
                | M::WatchNotClosed
                | M::DoubleReconnect
                | M::BothEndsReconnect
                | M::MapPerName
                | M::LabelPerRelist
                | M::UnboundedQueue
                | M::ListHeldTwice
                | M::ThreadsPerWatch
                | M::WatchPerObject
        )
    }

    /// The name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The mistake in one sentence.
    fn sentence(self) -> String {
        let value = self.to_possible_value();
        value.as_ref().and_then(|value| value.get_help()).map(ToString::to_string).unwrap_or_default()
    }

    /// The rows that it repeats.
    fn rows(self) -> Vec<&'static str> {
        ROWS.iter().filter(|(_, mistakes)| mistakes.contains(&self)).map(|(row, _)| *row).collect()
    }
}

/// All mistakes, a line each: name, rows, sentence.
pub fn listing() -> String {
    let line =
        |mistake: &Mistake| format!("{:<34} {:<16} {}\n", mistake.name(), mistake.rows().join(","), mistake.sentence());
    Mistake::value_variants().iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_has_a_sentence_and_every_row_has_a_mistake() {
        for mistake in Mistake::value_variants() {
            assert!(!mistake.sentence().is_empty(), "{mistake:?}");
        }
        let without = |number: &u32| [30, 43, 48, 53].contains(number);
        for number in (1..=65).filter(|number| !without(number)) {
            assert!(ROWS.iter().any(|(row, _)| *row == number.to_string()), "row {number}");
        }
    }

    #[test]
    fn names_are_spelled_as_scenarios_spell_them() {
        for (mistake, name) in [
            (M::KeepsRvAfter410, "keeps-rv-after-410"),
            (M::GivesUpOn5xx, "gives-up-on-5xx"),
            (M::WatchesWithoutRv, "watches-without-rv"),
            (M::IgnoresDeleteBeforeInitialEnd, "ignores-delete-before-initial-end"),
            (M::StopsOn403, "stops-on-403"),
        ] {
            assert_eq!(mistake.name(), name);
        }
    }

    #[test]
    fn a_client_that_never_relisted_does_not_relist() {
        assert!(Mistakes::new(&[M::NoReadTimeout]).made(M::NeverRelists));
        assert!(!Mistakes::new(&[M::RelistBesideWatch]).made(M::NeverRelists));
        assert!(!Mistakes::new(&[]).made(M::NeverRelists));
    }
}
