//! The words of a verdict: the subject's defect behind a broken budget, in one word.
//!
//! Owns how a word is spelled; the row of a budget selects its word. Scenarios of documented bugs, planted mistakes and
//! the table of clients compare these words, so a word never changes its meaning.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Builds the type of the words and their spelling from the list.
macro_rules! words {
    ($(#[doc = $doc:literal] $word:ident = $spelled:literal,)*) => {
        /// A defect of a subject.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum Word {
            $(
                #[doc = $doc]
                #[serde(rename = $spelled)]
                $word,
            )*
        }

        impl Word {
            /// The spelling in files and on the terminal.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => $spelled,)*
                }
            }

            /// Each word, and the defect that it names.
            #[cfg(test)]
            pub(super) const ALL: &'static [(Self, &'static str)] = &[$((Self::$word, $doc)),*];
        }
    };
}

words! {
    /// It observed neither a version nor a later one.
    Missed = "missed",
    /// It still has objects that are gone.
    Ghost = "ghost",
    /// It observed changes too late.
    Late = "late",
    /// It went back to an older version.
    Regressed = "regressed",
    /// It observed something that was never committed.
    Phantom = "phantom",
    /// It observed a deleted object again.
    Resurrected = "resurrected",
    /// It took an object for another one of the same name.
    IdentitySwap = "identity-swap",
    /// It observed the same version more than once.
    Duplicate = "duplicate",
    /// Its view differs from the control plane's.
    Diverged = "diverged",
    /// It did not restore changed children.
    Drifted = "drifted",
    /// It made more children than it should have.
    Excess = "excess",
    /// Its finalizer keeps a deleted object.
    Stuck = "stuck",
    /// It makes objects again that others deleted.
    MadeAgain = "made-again",
    /// It deletes objects that it did not make.
    DeletesOthers = "deletes-others",
    /// It leaves children without an owner behind.
    Orphaned = "orphaned",
    /// It keeps writing while nobody else writes.
    WriteLoop = "write-loop",
    /// It stopped sending requests.
    Blind = "blind",
    /// It repeats requests that bring nothing new.
    HotLoop = "hot-loop",
    /// It sends too many requests.
    TooManyRequests = "too-many-requests",
    /// It watches from a revision that must no longer be used.
    WrongResourceVersion = "wrong-resource-version",
    /// It watches without the revision of its list.
    UnanchoredWatch = "unanchored-watch",
    /// It has fewer watches open than it should.
    TooFewWatches = "too-few-watches",
    /// It holds or opens too many connections.
    ConnectionLeak = "connection-leak",
    /// It holds more than one watch of one scope.
    WatchLeak = "watch-leak",
    /// It asks for all objects again.
    Replayed = "replayed",
    /// Its memory is too large, grows, or is not returned.
    Leak = "leak",
    /// A series of its own metrics is too large, or grows.
    Metrics = "metrics",
    /// It has too many open descriptors, or their number grows.
    Descriptors = "descriptors",
    /// It has too many threads, or their number grows.
    Threads = "threads",
    /// It ended by itself.
    Crashed = "crashed",
    /// Its answers are slow.
    Slow = "slow",
    /// Its admission answers are wrong.
    WrongAnswer = "wrong-answer",
    /// It did not answer admission reviews or calls.
    NoAnswer = "no-answer",
    /// Its API reports a wrong or outdated count.
    StaleAnswer = "stale-answer",
    /// Its API confirms a write that was not stored.
    LostUpdate = "lost-update",
    /// It accepts callers that must be refused.
    LetIn = "let-in",
    /// Objects were stored unpinned.
    Unpinned = "unpinned",
    /// It ignores the digests that images are locked to.
    Unlocked = "unlocked",
    /// It does not report a decision.
    AlertLost = "alert-lost",
    /// It reports more than was decided.
    AlertTwice = "alert-twice",
    /// It reports decisions of dry runs.
    AlertOnDryRun = "alert-on-dry-run",
    /// It asks the registry too often.
    RegistryLoad = "registry-load",
    /// It refuses images that it could have known.
    Unavailable = "unavailable",
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budgets::{Memory, Requests};
    use crate::judge::rule::Section;
    use crate::judge::validity;

    #[test]
    fn a_word_is_spelled_the_same_everywhere() {
        for (word, _) in Word::ALL {
            assert_eq!(serde_json::to_string(word).unwrap(), format!("\"{word}\""));
        }
    }

    /// The word of the row with this key.
    fn word<S: Section>(key: &str) -> Option<&'static str> {
        S::ROWS.iter().find(|row| row.name.key == key)?.name.word.map(Word::as_str)
    }

    #[test]
    fn budgets_have_their_words() {
        assert_eq!(word::<Requests>("connections"), Some("connection-leak"));
        assert_eq!(word::<Memory>("growthPerObject"), Some("leak"));
        let fault = validity::FAULT.below("3-watch-reset");
        assert_eq!((fault.text.as_str(), fault.name.word), ("validity.fault.3-watch-reset", Some(Word::Missed)));
        assert_eq!(validity::COMPLETED.word, None);
    }
}
