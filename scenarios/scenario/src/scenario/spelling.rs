//! Suggestions for misspelt words in scenario files.

/// Minimum similarity, from 0 to 1, of a suggested word to the misspelt word; less similar words would not help.
const SIMILARITY_MIN: f64 = 0.7;

/// The message for an unknown word, with the most likely known word.
pub(super) fn unknown(what: &str, found: &str, known: &[&'static str]) -> String {
    match nearest(found, known) {
        Some(near) => format!("unknown {what} `{found}`: did you mean `{near}`? Known: {}", known.join(", ")),
        None if known.is_empty() => format!("unknown {what} `{found}`: there is none here"),
        None => format!("unknown {what} `{found}`. Known: {}", known.join(", ")),
    }
}

/// The word among `known` that the author of the misspelt word `found` most likely meant.
pub fn nearest<'a>(found: &str, known: &[&'a str]) -> Option<&'a str> {
    let scored = known.iter().map(|word| (strsim::jaro_winkler(&found.to_lowercase(), &word.to_lowercase()), *word));
    scored.filter(|(score, _)| *score >= SIMILARITY_MIN).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, word)| word)
}
