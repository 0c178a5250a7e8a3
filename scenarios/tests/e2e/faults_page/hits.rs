//! The expected hits of the faults in an example of `docs/faults.md`.
//!
//! The document states the hits in a comment before the example, one entry for each fault: `<!-- hits: 1, 2 to 4, 3+, -
//! -->`. The entry `-`, or no comment, means that the fault's own keys decide the number of hits: its count, its
//! selected requests, or its single time. If the keys of a fault do not decide the number of hits, the comment must
//! state it.

use std::fmt;

use mock_faults::{Family, Fault, Name};
use serde_json::Value;

/// The expected hits of one fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hits {
    pub least: u64,
    /// The highest allowed number of hits; `None` if there is no limit.
    pub most: Option<u64>,
}

impl Hits {
    pub fn hold(self, hits: u64) -> bool {
        hits >= self.least && self.most.is_none_or(|most| hits <= most)
    }

    fn read(text: &str) -> Option<Self> {
        if let Some(least) = text.strip_suffix('+') {
            return Some(Self { least: least.parse().ok()?, most: None });
        }
        let (least, most) = text.split_once(" to ").unwrap_or((text, text));
        Some(Self { least: least.parse().ok()?, most: Some(most.parse().ok()?) })
    }
}

impl fmt::Display for Hits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.most {
            None => write!(f, "{} or more", self.least),
            Some(most) if most == self.least => write!(f, "{most}"),
            Some(most) => write!(f, "{} to {most}", self.least),
        }
    }
}

/// The expected hits of each fault of an example. `comment` is the text before the example, if there is one.
pub fn meant(comment: Option<&str>, faults: &[Value]) -> Result<Vec<Hits>, String> {
    let words: Vec<&str> = comment.map_or(vec!["-"; faults.len()], |text| text.split(", ").collect());
    if words.len() != faults.len() {
        return Err(format!("{} numbers of hits for {} faults", words.len(), faults.len()));
    }
    let one = |(word, fault): (&&str, &Value)| match *word {
        "-" => by_keys(fault)
            .map(|most| Hits { least: 1, most: Some(most) })
            .ok_or_else(|| format!("{fault} may be hit any number of times: write in a comment how often it is")),
        word => Hits::read(word).filter(|hits| hits.least > 0).ok_or_else(|| format!("`{word}` is no number of hits")),
    };
    words.iter().zip(faults).map(one).collect()
}

/// Maximum number of hits that the keys of a fault allow, if the keys set a limit.
fn by_keys(fault: &Value) -> Option<u64> {
    let parsed: Fault = serde_json::from_value(fault.clone()).expect("a fault of the page is one");
    let counted = parsed.count_most();
    let chosen = match &fault["nth"] {
        // A chosen watch may have several events.
        _ if parsed.name.row().family != Family::Requests => None,
        Value::Number(_) => Some(1),
        Value::Array(numbers) => Some(numbers.len() as u64),
        Value::Object(range) => {
            range["from"].as_u64().zip(range.get("to").and_then(Value::as_u64)).map(|(from, to)| to - from + 1)
        }
        _ => None,
    };
    // The client has one watch open that can be hit. A 410 goes to each resuming watch, as often as it asks.
    let goes_on = ["for", "nth", "every", "afterEvents"].iter().any(|key| fault.get(*key).is_some());
    let timed = fault.get("at").is_some() || fault.get("when").is_some();
    let ends = matches!(parsed.name, Name::WatchReset | Name::WatchEnd | Name::WatchEof | Name::ErrorEvent);
    let moment = (ends && timed && !goes_on).then_some(1);
    [counted, chosen, moment].into_iter().flatten().min()
}

#[test]
#[ignore = "slow"]
fn hits_are_what_the_page_says_or_what_the_keys_allow() {
    let faults = |text: &str| -> Vec<Value> { serde_saphyr::from_str(text).unwrap() };
    let four = faults(
        "[{name: watch-410, at: 1s}, {name: split}, {name: merge-lines}, {name: http-error, nth: {from: 2, to: 4}, status: 500}]",
    );
    let hits = |least, most| Hits { least, most };
    let told = meant(Some("1, 2 to 4, 3+, -"), &four);
    assert_eq!(told, Ok(vec![hits(1, Some(1)), hits(2, Some(4)), hits(3, None), hits(1, Some(3))]));
    for wrong in ["1, 2", "0, 1, 1, 1", "1, a few, 1, 1", "1, 1, -, 1"] {
        assert!(meant(Some(wrong), &four).is_err(), "{wrong}");
    }
    // By default these have one hit. A momentary fault hits the open watch; with a number it hits each.
    for (text, most) in [
        ("[{name: event-dropped, at: 1s}]", 1),
        ("[{name: watch-end, at: 1s}]", 1),
        ("[{name: http-error, nth: [2, 4, 6], status: 500}]", 3),
        ("[{name: split, count: 7}]", 7),
    ] {
        assert_eq!(meant(None, &faults(text)), Ok(vec![hits(1, Some(most))]), "{text}");
    }
    assert!(meant(None, &faults("[{name: watch-end, at: 1s, for: 2s}]")).unwrap_err().contains("any number of times"));
    assert!(hits(2, Some(3)).hold(3) && !hits(2, Some(3)).hold(4) && !hits(2, None).hold(1) && hits(2, None).hold(99));
}
