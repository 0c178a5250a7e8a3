//! The mistakes of the client that can be switched on: at least one for each bug of the catalogue that is the fault of
//! a client.
//!
//! This module has the name of each mistake, one sentence about it, and the numbers of the bugs that it repeats. The
//! code of each mistake is at the point where the real client has its bug, behind [`Mistakes::made`].
//!
//! [`ROWS`] maps bugs to mistakes. If a real client lists only once, its mistake also switches off the periodic list
//! ([`Mistake::never_relisted`]), because that list would repair the damage. Some bugs need further settings:
//!
//! | bug | note |
//! |---|---|
//! | 2 | the same mistake as for bug 1, because bug 2 is its return in a later version |
//! | 12 | bug 4 on HTTP/2: run with `--http 2` |
//! | 20, 25 | a client that gave up receives nothing any more, but its process continues |
//! | 26 | needs `--handler status` and a refused write |
//! | 40, 54 | a slow handler: `--handler-delay 2s`; `handlers-overtake` has 1.5 s by itself |
//! | 45, 58 | no client can avoid the bug; the mistake makes its effect permanent |
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
    /// Waits for ever on a silent watch.
    NoReadTimeout,
    /// Measures silence of a watch only after a first event or a first list item.
    TimerArmedByFirstEvent,
    /// Measures silence of a new watch only after its response headers have arrived, and has no other time limit.
    TimerArmedByHeaders,
    /// Waits for ever for the head of an answer.
    NoHeaderTimeout,
    /// Believes that a watch is alive as long as the peer answers HTTP/2 pings.
    TrustsPing,
    /// Believes that a watch is alive as long as the kernel's TCP keep-alive is answered.
    TrustsKeepalive,
    /// After a read error, goes on waiting for the next byte.
    SwallowsReadErrors,

    // The stream ended or failed, and the client read it wrong.
    /// Ignores every ERROR event and reads on.
    IgnoresErrorEvents,
    /// After a 410 in either form, watches again from the same revision.
    #[value(name = "keeps-rv-after-410")]
    KeepsRvAfter410,
    /// Recognizes 410 only as the status of a response.
    #[value(name = "expects-410-only-in-http-status")]
    Expects410OnlyInHttpStatus,
    /// Recognizes 410 only as an ERROR event.
    #[value(name = "expects-410-only-in-stream")]
    Expects410OnlyInStream,
    /// Stops watching at the first 410, while its process continues.
    #[value(name = "exits-on-410")]
    ExitsOn410,
    /// After an ERROR event other than 410, reads the same stream for ever.
    KeepsReadingAfterError,
    /// Gives the Status of an ERROR event to the handler as if it were an object.
    StatusAsObject,
    /// Watches again at once after a clean end, even if the watch delivered nothing.
    HotLoopOnEmpty,
    /// Stops watching after a clean end, without a message.
    GivesUpSilentlyAtEnd,
    /// Gives up after 5 errors in a row, while its process continues.
    GivesUpAfterNErrors,
    /// Gives up at the first 429 or 5xx, while its process continues.
    #[value(name = "gives-up-on-5xx")]
    GivesUpOn5xx,
    /// Keeps a flag "reconnect pending" after a failed connection attempt, which prevents all further attempts.
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
    /// Resumes a watch one revision after the one that it reached, as is right with etcd.
    ResumesOneFurther,
    /// Never accepts that the server's store went back to an older state.
    IgnoresRewind,
    /// Repeats a list that was refused as "too large resource version" with the same revision.
    NoTooLargeFallback,

    // Relist, pagination and cache bookkeeping.
    /// The client lists only at the start and after a 410.
    NeverRelists,
    /// Lists after each broken watch instead of resuming, but uses only the revision of that list.
    RelistWithoutDiff,
    /// Lists periodically beside the watch, and takes every object that the list lacks as deleted.
    RelistBesideWatch,
    /// Accepts a list that is older than its cache.
    AcceptsOlderList,
    /// Reads only the first page of a list.
    FirstPageOnly,
    /// Follows at most 10 page tokens.
    PageCeiling,
    /// Keeps the last page token after the last page, and never handles vanished objects.
    KeepsOldContinue,
    /// Waits for a first object before it watches, when the first list is empty.
    WaitsForFirstItem,
    /// Keeps objects by name, so that a new object with an old name counts as an update.
    ReplacesByName,

    /// Skips an event if its revision is not newer than that of the last event, even if that was of another object.
    SkipsWhatIsNotNewer,
    /// Accepts every event, even one that is older than its cache.
    BelievesEveryEvent,
    /// Puts the answer to its own write into its cache, and skips the watch event for that write as known.
    CachesItsOwnWrites,

    // Pacing, sharing, authentication, scope.
    /// Uses one back-off for all kinds, so that a failing kind also pauses the others.
    SharedBackoff,
    /// Aborts every watch after 2 s, and waits longer each time while no event comes.
    AbortsHealthyStreams,
    /// Sends at most 64 requests at a time; further requests wait for ever.
    QueuesWatches,
    /// Uses one HTTP/2 connection for everything; requests beyond its limit of streams wait.
    OneConnectionWaits,
    /// Reads its token only once, at the start.
    KeepsDeadToken,
    /// Runs no handler before every kind was listed.
    OneBadKindBlocksAll,
    /// Stops watching a kind after a 403.
    #[value(name = "stops-on-403")]
    StopsOn403,
    /// Starts a handler for each event and does not wait for earlier handlers.
    HandlersOvertake,

    // Bytes.
    /// Decodes every chunk separately as UTF-8; a character that is split between two chunks ends the process.
    DecodesPerChunk,
    /// Treats each chunk as one event.
    OneChunkOneEvent,
    /// Drops lines that are not JSON, and reads on.
    SwallowsBadLines,

    // Streaming lists.
    /// Ignores a DELETED event that comes before the end of the initial events.
    IgnoresDeleteBeforeInitialEnd,
    /// Requests the initial events again at every reconnect, and delivers them again.
    AsksInitialEventsAgain,
    /// Delivers no event before the bookmark that ends the initial events, however late it comes.
    WaitsForInitialEnd,

    // Growth.
    /// Opens a connection for every list and every watch, and never closes one.
    ConnectionPerReconnect,
    /// Does not close a watch that it has given up.
    WatchNotClosed,
    /// Opens two watches after each disconnect.
    DoubleReconnect,
    /// Opens a watch at the end of a stream and another when the stream closes, and reports the events of both.
    BothEndsReconnect,
    /// Keeps an entry for each name that it has ever seen.
    MapPerName,
    /// Keeps an entry for each list that it has ever requested.
    LabelPerRelist,
    /// Lets any number of events wait for a slow handler.
    UnboundedQueue,
    /// Holds every list twice: as bytes and as objects.
    ListHeldTwice,
    /// Starts a pool of 16 threads for each watch, and never ends the threads.
    ThreadsPerWatch,
    /// Opens a watch for each object, and closes none.
    WatchPerObject,
}

use Mistake as M;

/// Bugs of the catalogue (`missed-events.md`, tables 2.3 and 3), each with the mistakes that repeat it, the best one
/// first. The bugs 62 to 65, M15 and M16 are only in the library of bugs and not in the catalogue.
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

/// The mistakes that are switched on. This set is empty for the correct client.
#[derive(Debug, Clone, Default)]
pub struct Mistakes(Arc<BTreeSet<Mistake>>);

impl Mistakes {
    /// The set of the chosen mistakes and of all mistakes that these imply.
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

    /// The name of the mistake on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The mistake in one sentence.
    fn sentence(self) -> String {
        let value = self.to_possible_value();
        value.as_ref().and_then(|value| value.get_help()).map(ToString::to_string).unwrap_or_default()
    }

    /// The numbers of the bugs that the mistake repeats.
    fn rows(self) -> Vec<&'static str> {
        ROWS.iter().filter(|(_, mistakes)| mistakes.contains(&self)).map(|(row, _)| *row).collect()
    }
}

/// All mistakes, one per line: name, numbers of the bugs, sentence.
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
