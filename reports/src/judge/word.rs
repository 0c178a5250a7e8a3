//! The words of a verdict: what a broken budget says about the subject, in one word.
//!
//! Owns how a word is spelled; which budget says it stands in the budget's row. Scenarios of documented bugs, planted mistakes and the
//! table of clients compare these words, so a word never changes its meaning.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Makes of the list of words their type and their spelling.
macro_rules! words {
    ($(#[doc = $doc:literal] $word:ident = $spelled:literal,)*) => {
        /// What is wrong with a subject.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum Word {
            $(
                #[doc = $doc]
                #[serde(rename = $spelled)]
                $word,
            )*
        }

        impl Word {
            /// As it is written in files and on the terminal.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => $spelled,)*
                }
            }

            /// Each, and what is wrong with a subject of which it is said.
            #[cfg(test)]
            pub(super) const ALL: &'static [(Self, &'static str)] = &[$((Self::$word, $doc)),*];
        }
    };
}

words! {
    /// Versions of which neither they nor a later one were ever observed.
    Missed = "missed",
    /// It believes in objects that are gone.
    Ghost = "ghost",
    /// It learnt of changes too late.
    Late = "late",
    /// It went back to an older version.
    Regressed = "regressed",
    /// It saw something that was never committed.
    Phantom = "phantom",
    /// It saw a deleted object again.
    Resurrected = "resurrected",
    /// It took an object for another one of the same name.
    IdentitySwap = "identity-swap",
    /// It saw the same version more than once.
    Duplicate = "duplicate",
    /// Its idea of the world is not what is there.
    Diverged = "diverged",
    /// It left alone what somebody did to its children.
    Drifted = "drifted",
    /// It made more children than it should have.
    Excess = "excess",
    /// Its finalizer holds what should be gone.
    Stuck = "stuck",
    /// It makes again what somebody deleted.
    MadeAgain = "made-again",
    /// It deletes what it did not make.
    DeletesOthers = "deletes-others",
    /// It leaves children behind that nobody takes.
    Orphaned = "orphaned",
    /// It goes on writing when nobody else does.
    WriteLoop = "write-loop",
    /// It stopped asking.
    Blind = "blind",
    /// It asks again and again without learning anything.
    HotLoop = "hot-loop",
    /// It asks too often.
    TooManyRequests = "too-many-requests",
    /// It watches from a revision that must not be used any more.
    WrongResourceVersion = "wrong-resource-version",
    /// It watches from anywhere, not from its list.
    UnanchoredWatch = "unanchored-watch",
    /// It follows fewer things than it should.
    TooFewWatches = "too-few-watches",
    /// It holds or opens too many connections.
    ConnectionLeak = "connection-leak",
    /// It holds more than one watch of the same.
    WatchLeak = "watch-leak",
    /// It has everything sent again.
    Replayed = "replayed",
    /// Its memory is too large, or grows, or stays.
    Leak = "leak",
    /// A series of its own metrics is too large, or grows.
    Metrics = "metrics",
    /// It has too many open descriptors, or ever more.
    Descriptors = "descriptors",
    /// It has too many threads.
    Threads = "threads",
    /// It ended by itself.
    Crashed = "crashed",
    /// Its admission answers are slow.
    Slow = "slow",
    /// Its admission answers are wrong.
    WrongAnswer = "wrong-answer",
    /// It did not answer admission reviews.
    NoAnswer = "no-answer",
    /// Its API tells what is not so, or what was so too long ago.
    StaleAnswer = "stale-answer",
    /// Its API says that it has stored what it has not.
    LostUpdate = "lost-update",
    /// It lets in who must be refused.
    LetIn = "let-in",
    /// Objects were stored as if it were not there.
    Unpinned = "unpinned",
    /// It does not keep to the digests that images are locked to.
    Unlocked = "unlocked",
    /// It keeps decisions from those who are to be told.
    AlertLost = "alert-lost",
    /// It tells more than was decided.
    AlertTwice = "alert-twice",
    /// It tells of what was only rehearsed.
    AlertOnDryRun = "alert-on-dry-run",
    /// It asks the registry too often.
    RegistryLoad = "registry-load",
    /// It refuses what it could have known.
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
