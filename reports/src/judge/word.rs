//! The words of a verdict, each of which names the defect of the subject behind a broken budget.
//!
//! Owns the spelling of these words; the rule of a budget selects its word. Scenarios of documented bugs, planted bugs
//! and the table of clients compare defects by these words, so a word never changes its meaning.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Builds the enum of the words of a verdict, and their spelling, from a list.
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
            /// The spelling of the word in files and on the terminal.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => $spelled,)*
                }
            }

            /// Each word, with the text of the defect.
            #[cfg(test)]
            pub(super) const ALL: &'static [(Self, &'static str)] = &[$((Self::$word, $doc)),*];
        }
    };
}

words! {
    /// The subject observed neither a version nor a later version.
    Missed = "missed",
    /// The subject still has deleted objects in its view.
    Ghost = "ghost",
    /// The subject observed changes too late.
    Late = "late",
    /// The subject went back to an older version.
    Regressed = "regressed",
    /// The subject observed a version that was never committed.
    Phantom = "phantom",
    /// The subject observed a deleted object again.
    Resurrected = "resurrected",
    /// The subject took an object for another object of the same name.
    IdentitySwap = "identity-swap",
    /// The subject observed the same version more than once.
    Duplicate = "duplicate",
    /// The subject's view differs from the control plane's.
    Diverged = "diverged",
    /// The subject did not restore changed children.
    Drifted = "drifted",
    /// The subject made too many children.
    Excess = "excess",
    /// The subject's finalizer keeps a deleted object.
    Stuck = "stuck",
    /// The subject makes objects again that other clients deleted.
    MadeAgain = "made-again",
    /// The subject deletes objects that it did not make.
    DeletesOthers = "deletes-others",
    /// The subject leaves children without an owner behind.
    Orphaned = "orphaned",
    /// The subject keeps writing while no other client writes.
    WriteLoop = "write-loop",
    /// The subject stopped sending requests.
    Blind = "blind",
    /// The subject repeats requests that give it nothing new.
    HotLoop = "hot-loop",
    /// The subject sends too many requests.
    TooManyRequests = "too-many-requests",
    /// The subject watches from a revision that must no longer be used.
    WrongResourceVersion = "wrong-resource-version",
    /// The subject watches without the revision of its list.
    UnanchoredWatch = "unanchored-watch",
    /// The subject has too few watches open.
    TooFewWatches = "too-few-watches",
    /// The subject holds or opens too many connections.
    ConnectionLeak = "connection-leak",
    /// The subject holds more than one watch of one scope.
    WatchLeak = "watch-leak",
    /// The subject asks for all objects again.
    Replayed = "replayed",
    /// The subject's memory is too large, grows, or is not returned.
    Leak = "leak",
    /// A series of the subject's own metrics is too large, or grows.
    Metrics = "metrics",
    /// The subject has too many open descriptors, or their number grows.
    Descriptors = "descriptors",
    /// The subject has too many threads, or their number grows.
    Threads = "threads",
    /// The subject ended by itself.
    Crashed = "crashed",
    /// The subject's answers are slow.
    Slow = "slow",
    /// The subject's admission answers are wrong.
    WrongAnswer = "wrong-answer",
    /// The subject's admission answers to the same question differ.
    InconsistentAnswer = "inconsistent-answer",
    /// The subject did not answer admission reviews or calls.
    NoAnswer = "no-answer",
    /// The subject's API reports a wrong or outdated replica count.
    StaleAnswer = "stale-answer",
    /// The subject's API confirms a write that was not stored.
    LostUpdate = "lost-update",
    /// The subject accepts callers without permission.
    LetIn = "let-in",
    /// Objects were stored with an image without a digest.
    Unpinned = "unpinned",
    /// The subject ignores the digests that images are locked to.
    Unlocked = "unlocked",
    /// The subject sends no alert for a decision.
    AlertLost = "alert-lost",
    /// The subject sends superfluous alerts.
    AlertTwice = "alert-twice",
    /// The subject sends alerts for dry runs.
    AlertOnDryRun = "alert-on-dry-run",
    /// The subject asks the registry too often.
    RegistryLoad = "registry-load",
    /// The subject refuses images that it could have had in its cache.
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
