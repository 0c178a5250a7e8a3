//! The words of a verdict: what a broken budget says about the subject, in one word.
//!
//! Owns which budget says which word. Scenarios of documented bugs, planted mistakes and the table of clients compare these words,
//! so a word never changes its meaning.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Finding, Verdict, requests};

/// What is wrong with a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// Versions of which neither they nor a later one were ever observed.
    Missed,
    /// It believes in objects that are gone.
    Ghost,
    /// It learnt of changes too late.
    Late,
    /// It went back to an older version.
    Regressed,
    /// It saw something that was never committed.
    Phantom,
    /// It saw a deleted object again.
    Resurrected,
    /// It took an object for another one of the same name.
    IdentitySwap,
    /// It saw the same version more than once.
    Duplicate,
    /// It stopped asking.
    Blind,
    /// It asks again and again without learning anything.
    HotLoop,
    /// It asks too often.
    TooManyRequests,
    /// It watches from a revision that must not be used any more.
    WrongResourceVersion,
    /// It watches from anywhere, not from its list.
    UnanchoredWatch,
    /// It follows fewer things than it should.
    TooFewWatches,
    /// It holds or opens too many connections.
    ConnectionLeak,
    /// It holds more than one watch of the same.
    WatchLeak,
    /// It has everything sent again.
    Replayed,
    /// Its memory is too large, or grows.
    Leak,
    /// It has too many open descriptors, or ever more.
    Descriptors,
    /// It has too many threads.
    Threads,
    /// It ended by itself.
    Crashed,
    /// Its admission answers are slow.
    Slow,
    /// Its admission answers are wrong.
    WrongAnswer,
    /// It did not answer admission reviews.
    NoAnswer,
    /// Objects were stored as if it were not there.
    Unpinned,
    /// It asks the registry too often.
    RegistryLoad,
    /// It refuses what it could have known.
    Unavailable,
}

/// Which budgets say which word; a name that ends with a dot stands for all that begin so. Rules on requests say it in their rows.
const WORDS: [(&str, Word); 27] = [
    ("events.missed", Word::Missed),
    // A version that was asked for itself and superseded unseen.
    ("events.delivery", Word::Missed),
    // The probe after a fault was lost.
    ("validity.fault.", Word::Missed),
    ("events.ghost", Word::Ghost),
    ("events.late", Word::Late),
    ("events.lagP99", Word::Late),
    ("events.heal", Word::Late),
    ("events.regressed", Word::Regressed),
    ("events.phantom", Word::Phantom),
    ("events.resurrected", Word::Resurrected),
    ("events.identitySwap", Word::IdentitySwap),
    ("events.duplicate", Word::Duplicate),
    ("events.blind", Word::Blind),
    ("events.hotLoop", Word::HotLoop),
    ("memory.", Word::Leak),
    ("descriptors.", Word::Descriptors),
    ("threads.", Word::Threads),
    ("subject.exited", Word::Crashed),
    ("admission.p50", Word::Slow),
    ("admission.p99", Word::Slow),
    ("admission.p999", Word::Slow),
    ("admission.wrongVerdicts", Word::WrongAnswer),
    ("admission.errors", Word::NoAnswer),
    ("admission.unpinned", Word::Unpinned),
    ("registry.requests", Word::RegistryLoad),
    ("registry.requestsPerImage", Word::RegistryLoad),
    ("registry.unavailable", Word::Unavailable),
];

impl Word {
    /// The word that a broken budget says; none for a budget that nobody knows.
    pub fn of(budget: &str) -> Option<Self> {
        let says = |name: &str| if name.ends_with('.') { budget.starts_with(name) } else { budget == name };
        let row = requests::ROWS.iter().find(|row| row.owns(budget)).map(|row| row.word);
        row.or_else(|| WORDS.iter().find(|(name, _)| says(name)).map(|(_, word)| *word))
    }

    /// As it is written in files and on the terminal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missed => "missed",
            Self::Ghost => "ghost",
            Self::Late => "late",
            Self::Regressed => "regressed",
            Self::Phantom => "phantom",
            Self::Resurrected => "resurrected",
            Self::IdentitySwap => "identity-swap",
            Self::Duplicate => "duplicate",
            Self::Blind => "blind",
            Self::HotLoop => "hot-loop",
            Self::TooManyRequests => "too-many-requests",
            Self::WrongResourceVersion => "wrong-resource-version",
            Self::UnanchoredWatch => "unanchored-watch",
            Self::TooFewWatches => "too-few-watches",
            Self::ConnectionLeak => "connection-leak",
            Self::WatchLeak => "watch-leak",
            Self::Replayed => "replayed",
            Self::Leak => "leak",
            Self::Descriptors => "descriptors",
            Self::Threads => "threads",
            Self::Crashed => "crashed",
            Self::Slow => "slow",
            Self::WrongAnswer => "wrong-answer",
            Self::NoAnswer => "no-answer",
            Self::Unpinned => "unpinned",
            Self::RegistryLoad => "registry-load",
            Self::Unavailable => "unavailable",
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The words of all broken budgets, each once.
pub(super) fn words(findings: &[Finding]) -> Vec<Word> {
    let broken = findings.iter().filter(|finding| finding.verdict == Verdict::Fail);
    let mut words: Vec<Word> = broken.filter_map(|finding| Word::of(&finding.budget)).collect();
    words.sort_unstable();
    words.dedup();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_spelled_the_same_everywhere() {
        for (_, word) in WORDS {
            assert_eq!(serde_json::to_string(&word).unwrap(), format!("\"{word}\""));
        }
    }

    #[test]
    fn budgets_have_their_words() {
        let words = |budget| Word::of(budget).map(Word::as_str);
        assert_eq!(words("requests.connections.perReconnect"), Some("connection-leak"));
        assert_eq!(words("memory.growthPerObject"), Some("leak"));
        assert_eq!(words("validity.fault.3-watch-reset"), Some("missed"));
        assert_eq!([words("validity.completed"), words("events.missedX")], [None, None]);
    }
}
