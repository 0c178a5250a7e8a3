//! The worker protocol: messages as JSON lines, and the encoding of intervals. Does no I/O. `docs/worker-protocol.md`
//! describes the protocol for other implementations. An incompatible change of the protocol needs a new version.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{DeserializeError, Deserializer, Serializer as _, V2SerializeError, V2Serializer};
use loadgen::admission::{Counts, Interval, Outcome, Phases, SLOWEST, Slow};
use loadgen::{HIGHEST_US, LOWEST_US, SIGNIFICANT_DIGITS};
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::load::{Job, hlog};

/// The version of the protocol. Coordinator and worker must have the same version.
pub(crate) const PROTOCOL: &str = "longhaul-worker/4";
/// Maximum length of a line. The longest lines are intervals: five histograms of at most 18,000 counters of a few bytes
/// each, in base64.
pub(crate) const LINE_BYTES_MAX: usize = 4 << 20;
/// Maximum number of example texts in one interval.
const EXAMPLES_MAX: usize = 8;
/// Maximum number of entries of a list or a map in one interval. A list of empty entries takes ten times its size as text in memory.
const ENTRIES_MAX: usize = 64;
/// Bytes of the header of a histogram in V2 format: cookie, length of the counters, offset, digits, lowest, highest,
/// ratio.
const HISTOGRAM_HEAD_BYTES: usize = 40;
/// The first bytes of an uncompressed histogram in V2 format.
const V2_COOKIE: u32 = 0x1c84_9303 | 0x10;
/// Maximum number of characters of a text from the peer that are shown.
const TEXT_CHARS_MAX: usize = 600;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum Order {
    /// The job, and the worker's share of the job. The coordinator may assign another job when the worker has ended
    /// this job.
    Assign(Box<Assignment>),
    /// Asks for the time of the worker's clock.
    Ping { id: u64 },
    /// Orders the worker to send the first request when its clock shows this time.
    #[serde(rename_all = "camelCase")]
    Start { at_clock_ns: u64 },
    /// Orders the worker to send no new requests, wait shortly for open calls, and end.
    Stop {},
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Assignment {
    pub(crate) protocol: String,
    pub(crate) job: Job,
    /// Index of the worker, from 0.
    pub(crate) worker: u32,
    pub(crate) workers: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum Word {
    /// The first message of a worker.
    Hello { protocol: String, version: String },
    /// The worker's payloads are ready. The fingerprint covers the whole plan.
    Ready { planned: u64, fingerprint: String },
    /// The answer to a ping, with nanoseconds on the worker's monotonic clock.
    #[serde(rename_all = "camelCase")]
    Pong { id: u64, clock_ns: u64 },
    /// The measurements since the previous interval.
    Interval(Box<Row>),
    /// The last message of a job, with the number of sent intervals.
    End { intervals: u64 },
    /// The worker cannot do the job, with the reason.
    Error { message: String },
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Row {
    /// Index of the interval, from 0, without gaps.
    pub(crate) number: u64,
    /// Begin of the interval, in milliseconds since the start.
    pub(crate) start_ms: u64,
    pub(crate) end_ms: u64,
    pub(crate) counts: Counts,
    /// Histograms by tag, as in `.hlog` files: `HdrHistogram` V2, base64. Empty histograms are left out.
    #[serde(deserialize_with = "few_named")]
    pub(crate) histograms: std::collections::BTreeMap<String, String>,
    #[serde(deserialize_with = "few")]
    pub(crate) examples: Vec<String>,
    /// The slowest calls, slowest first.
    #[serde(deserialize_with = "few")]
    pub(crate) slowest: Vec<SlowRow>,
}

/// An encoded slow call. All times are in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SlowRow {
    pub(crate) label: String,
    pub(crate) outcome: Outcome,
    pub(crate) queue_us: u64,
    pub(crate) connect_us: u64,
    pub(crate) tls_us: u64,
    pub(crate) wait_us: u64,
    pub(crate) body_us: u64,
}

impl SlowRow {
    fn of(slow: &Slow) -> Self {
        let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let Phases { queue, connect, tls, wait, body } = slow.phases;
        Self {
            label: slow.label.clone(),
            outcome: slow.outcome,
            queue_us: us(queue),
            connect_us: us(connect),
            tls_us: us(tls),
            wait_us: us(wait),
            body_us: us(body),
        }
    }

    /// Limits each phase to the highest value of a histogram, so that a sum of phases cannot overflow.
    fn slow(self) -> Slow {
        let time = |us: u64| Duration::from_micros(us.min(HIGHEST_US));
        let phases = Phases {
            queue: time(self.queue_us),
            connect: time(self.connect_us),
            tls: time(self.tls_us),
            wait: time(self.wait_us),
            body: time(self.body_us),
        };
        Slow { label: cut(&self.label), outcome: self.outcome, phases }
    }
}

/// Why an encoded interval is invalid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadRow {
    #[error("the histogram `{tag}` {why}")]
    Histogram { tag: &'static str, why: BadHistogram },
    #[error("the histogram `{tag}` cannot be added: {source}")]
    Addition { tag: &'static str, source: hdrhistogram::AdditionError },
    #[error("there is no histogram `{0}`")]
    UnknownHistogram(String),
    #[error("counts and histograms do not agree")]
    Counts,
    #[error("it lasts from {start_ms} ms to {end_ms} ms, and the run does not")]
    Times { start_ms: u64, end_ms: u64 },
}

/// Why a histogram is invalid, as a text after the name of the histogram.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadHistogram {
    #[error("is no base64: {0}")]
    Base64(#[from] base64::DecodeError),
    #[error("is damaged: {0}")]
    Damaged(#[from] DeserializeError),
    #[error("is no histogram in V2 format that is not compressed")]
    Format,
    #[error("says that {said} bytes follow its head, and {there} do")]
    Length { said: usize, there: usize },
    #[error("has the bounds {0:?}, not ({LOWEST_US}, {HIGHEST_US}, {SIGNIFICANT_DIGITS})")]
    Bounds((u64, u64, u8)),
}

impl Row {
    pub(crate) fn of(
        number: u64,
        (start_ms, end_ms): (u64, u64),
        interval: &Interval,
    ) -> Result<Self, V2SerializeError> {
        let mut histograms = std::collections::BTreeMap::new();
        for (tag, histogram) in hlog::tagged(interval).into_iter().filter(|(_, histogram)| !histogram.is_empty()) {
            let mut bytes = Vec::new();
            V2Serializer::new().serialize(histogram, &mut bytes)?;
            histograms.insert(tag.to_owned(), STANDARD.encode(bytes));
        }
        Ok(Self {
            number,
            start_ms,
            end_ms,
            counts: interval.counts,
            histograms,
            examples: interval.examples.clone(),
            slowest: interval.slowest.iter().map(SlowRow::of).collect(),
        })
    }

    /// Decodes the interval, and refuses values that no worker of this version sends, because they would distort all results. `longest_ms`
    /// is the end of the longest possible run of the plan.
    pub(crate) fn interval(mut self, longest_ms: u64) -> Result<Interval, BadRow> {
        let Self { start_ms, end_ms, .. } = self;
        if start_ms > end_ms || end_ms > longest_ms {
            return Err(BadRow::Times { start_ms, end_ms });
        }
        let mut interval = Interval { counts: self.counts, ..Interval::default() };
        for (tag, histogram) in hlog::tagged_mut(&mut interval) {
            if let Some(text) = self.histograms.remove(tag) {
                let other = histogram_of(&text).map_err(|why| BadRow::Histogram { tag, why })?;
                histogram.add(&other).map_err(|source| BadRow::Addition { tag, source })?;
            }
        }
        if let Some(tag) = self.histograms.keys().next() {
            return Err(BadRow::UnknownHistogram(cut(tag)));
        }
        let Counts { allowed, denied, sent, .. } = interval.counts;
        let answers = interval.response_allowed.len().checked_add(interval.response_denied.len());
        if answers.is_none() || answers != allowed.checked_add(denied) || interval.lateness.len() != sent {
            return Err(BadRow::Counts);
        }
        interval.examples = self.examples.iter().take(EXAMPLES_MAX).map(|text| cut(text)).collect();
        interval.slowest = self.slowest.into_iter().take(SLOWEST).map(SlowRow::slow).collect();
        Ok(interval)
    }
}

fn histogram_of(text: &str) -> Result<Histogram<u64>, BadHistogram> {
    let bytes = STANDARD.decode(text)?;
    // The library allocates the size that the head states before it reads more.
    let there = bytes.len().checked_sub(HISTOGRAM_HEAD_BYTES).ok_or(BadHistogram::Format)?;
    let word = |at: usize| u32::from_be_bytes(std::array::from_fn(|byte| bytes[at + byte]));
    let long = |at: usize| u64::from_be_bytes(std::array::from_fn(|byte| bytes[at + byte]));
    if word(0) != V2_COOKIE {
        return Err(BadHistogram::Format);
    }
    let said = usize::try_from(word(4)).unwrap_or(usize::MAX);
    if said != there {
        return Err(BadHistogram::Length { said, there });
    }
    let bounds = (long(16), long(24), u8::try_from(word(12)).unwrap_or(u8::MAX));
    if bounds != (LOWEST_US, HIGHEST_US, SIGNIFICANT_DIGITS) {
        return Err(BadHistogram::Bounds(bounds));
    }
    Ok(Deserializer::new().deserialize(&mut bytes.as_slice())?)
}

/// Parses a list of at most [`ENTRIES_MAX`] entries.
fn few<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(input: D) -> Result<Vec<T>, D::Error> {
    struct Few<T>(std::marker::PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Few<T> {
        type Value = Vec<T>;

        fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(out, "a list of at most {ENTRIES_MAX} entries")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(entry) = entries.next_element()? {
                if list.len() == ENTRIES_MAX {
                    return Err(A::Error::invalid_length(ENTRIES_MAX + 1, &self));
                }
                list.push(entry);
            }
            Ok(list)
        }
    }
    input.deserialize_seq(Few(std::marker::PhantomData))
}

/// Parses a map of at most [`ENTRIES_MAX`] entries.
fn few_named<'de, D: serde::Deserializer<'de>>(
    input: D,
) -> Result<std::collections::BTreeMap<String, String>, D::Error> {
    struct Few;
    impl<'de> Visitor<'de> for Few {
        type Value = std::collections::BTreeMap<String, String>;

        fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(out, "a map of at most {ENTRIES_MAX} entries")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut map = Self::Value::new();
            while let Some((key, value)) = entries.next_entry()? {
                if map.len() == ENTRIES_MAX {
                    return Err(A::Error::invalid_length(ENTRIES_MAX + 1, &self));
                }
                map.insert(key, value);
            }
            Ok(map)
        }
    }
    input.deserialize_map(Few)
}

/// A text from the peer, shortened and without line feeds.
pub(crate) fn cut(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of the longest run in these tests, in milliseconds.
    const LONGEST_MS: u64 = 60_000;

    fn sample() -> Interval {
        let counts =
            Counts { planned: 12, sent: 10, overflow: 2, allowed: 7, denied: 2, timeout: 1, ..Counts::default() };
        let mut interval = Interval { counts, ..Interval::default() };
        interval.response_allowed.record_n(1500, 7).unwrap();
        interval.response_denied.record_n(900, 2).unwrap();
        interval.response_error.record_n(10_000_000, 1).unwrap();
        interval.service.record_n(800, 10).unwrap();
        interval.lateness.record_n(50, 10).unwrap();
        interval.examples.push("timeout: no answer".to_owned());
        let phases = Phases { queue: Duration::from_micros(5), wait: Duration::from_secs(10), ..Phases::default() };
        interval.slowest.push(Slow { label: "Pod CREATE shop/cart".to_owned(), outcome: Outcome::Timeout, phases });
        interval
    }

    #[test]
    fn an_interval_arrives_as_it_was_sent() {
        let row = Row::of(3, (3000, 4000), &sample()).unwrap();
        let line = serde_json::to_string(&Word::Interval(Box::new(row))).unwrap();
        let Word::Interval(row) = serde_json::from_str(&line).unwrap() else { panic!("{line}") };
        assert_eq!((row.number, row.start_ms, row.end_ms), (3, 3000, 4000));
        let back = row.interval(4000).unwrap();
        assert_eq!(back.counts, sample().counts);
        assert_eq!(back.response_allowed, sample().response_allowed);
        assert_eq!(back.lateness, sample().lateness);
        assert_eq!((back.examples, back.slowest), (sample().examples, sample().slowest));
    }

    #[test]
    fn what_no_worker_writes_is_refused() {
        let row = || Row::of(0, (0, 1000), &sample()).unwrap();
        let refused = |change: &dyn Fn(&mut Row)| {
            let mut row = row();
            change(&mut row);
            row.interval(LONGEST_MS).unwrap_err().to_string()
        };
        let put = |text: String| move |row: &mut Row| drop(row.histograms.insert("service".to_owned(), text.clone()));
        assert!(refused(&put("?".to_owned())).contains("`service` is no base64"));
        assert!(refused(&put(STANDARD.encode("nonsense"))).contains("`service` is no histogram in V2 format"));
        let mut bytes = Vec::new();
        let wide = Histogram::<u64>::new_with_bounds(1, 1 << 40, 3).unwrap();
        V2Serializer::new().serialize(&wide, &mut bytes).unwrap();
        assert!(refused(&put(STANDARD.encode(bytes))).contains("has the bounds"));
        assert!(
            refused(&|row| drop(row.histograms.insert("more".to_owned(), String::new())))
                .contains("no histogram `more`")
        );
        // The right head, and one byte that is no counter.
        let mut good = Vec::new();
        V2Serializer::new().serialize(&sample().service, &mut good).unwrap();
        let changed = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = good.clone();
            change(&mut bytes);
            refused(&put(STANDARD.encode(bytes)))
        };
        let ends = changed(&|bytes| {
            *bytes.last_mut().unwrap() = 0x80;
        });
        assert!(ends.contains("`service` is damaged"), "{ends}");
        // Sixty bytes for which the library would allocate four gigabytes, and bytes that it would unpack without end.
        let huge = changed(&|bytes| bytes[4..8].fill(0xff));
        assert!(huge.contains("says that 4294967295 bytes follow its head"), "{huge}");
        let fine = changed(&|bytes| bytes[12..16].copy_from_slice(&5_u32.to_be_bytes()));
        assert!(fine.contains("has the bounds (1, 120000000, 5)"), "{fine}");
        let mut packed = Vec::new();
        let mut packer = hdrhistogram::serialization::V2DeflateSerializer::new();
        packer.serialize(&sample().service, &mut packed).unwrap();
        packed.resize(100, 0);
        assert!(refused(&put(STANDARD.encode(packed))).contains("is no histogram in V2 format"));
        assert!(refused(&|row| row.counts.sent = 11).contains("do not agree"));
        for (start_ms, end_ms) in [(2000, 1000), (0, LONGEST_MS + 1), (u64::MAX, u64::MAX)] {
            let times = refused(&|row| (row.start_ms, row.end_ms) = (start_ms, end_ms));
            assert!(times.contains(&format!("from {start_ms} ms to {end_ms} ms")), "{times}");
        }
        assert!(refused(&|row| row.counts.allowed = u64::MAX).contains("do not agree"));
        // More answers than a counter can hold, in a valid histogram.
        let mut many = Histogram::<u64>::new_with_bounds(LOWEST_US, HIGHEST_US, SIGNIFICANT_DIGITS).unwrap();
        (1..=3).for_each(|us| many.record_n(us, i64::MAX.cast_unsigned()).unwrap());
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&many, &mut bytes).unwrap();
        let many = STANDARD.encode(bytes);
        let all = |row: &mut Row| {
            row.histograms.insert("response.allowed".to_owned(), many.clone());
            row.counts.allowed = u64::MAX;
        };
        assert!(refused(&all).contains("do not agree"));
    }

    /// Long lists and maps of empty entries are refused, because such lists are short as JSON and large in memory.
    #[test]
    fn a_row_has_few_entries() {
        let line = |key: &str, value: String| {
            let mut row = serde_json::to_value(Row::of(0, (0, 1000), &sample()).unwrap()).unwrap();
            row[key] = serde_json::from_str(&value).unwrap();
            serde_json::json!({"interval": row}).to_string()
        };
        let error = |key: &str, value: String| serde_json::from_str::<Word>(&line(key, value)).unwrap_err().to_string();
        let texts = |count: usize| format!("[{}]", vec![r#""""#; count].join(","));
        assert!(serde_json::from_str::<Word>(&line("examples", texts(64))).is_ok());
        assert!(error("examples", texts(65)).contains("at most 64 entries"));
        let map: Vec<_> = (0..65).map(|number| format!(r#""{number}":"""#)).collect();
        assert!(error("histograms", format!("{{{}}}", map.join(","))).contains("a map of at most 64 entries"));
        let slow = serde_json::to_string(&Row::of(0, (0, 1), &sample()).unwrap().slowest[0]).unwrap();
        assert!(error("slowest", format!("[{}]", vec![slow; 65].join(","))).contains("at most 64 entries"));
    }

    /// Too large values in slow calls are limited, so that no sum overflows.
    #[test]
    fn foreign_slow_calls_are_bounded() {
        let mut row = Row::of(0, (0, 1000), &sample()).unwrap();
        row.slowest[0].wait_us = u64::MAX;
        row.slowest[0].label = "\n".repeat(10_000);
        row.slowest = vec![row.slowest[0].clone(); 100];
        let slowest = row.interval(LONGEST_MS).unwrap().slowest;
        assert_eq!(slowest.len(), SLOWEST);
        assert_eq!(slowest[0].phases.wait, Duration::from_micros(HIGHEST_US));
        assert_eq!(slowest[0].label, " ".repeat(TEXT_CHARS_MAX));
    }

    /// The messages of version 4 stay the same byte for byte, because workers in other languages may use the documented
    /// protocol.
    #[test]
    fn lines_are_those_of_the_description() {
        let text = |word: &Word| serde_json::to_string(word).unwrap();
        let hello = Word::Hello { protocol: PROTOCOL.to_owned(), version: "0.1.0".to_owned() };
        assert_eq!(text(&hello), r#"{"hello":{"protocol":"longhaul-worker/4","version":"0.1.0"}}"#);
        assert_eq!(text(&Word::Pong { id: 7, clock_ns: 12 }), r#"{"pong":{"id":7,"clockNs":12}}"#);
        assert_eq!(text(&Word::End { intervals: 60 }), r#"{"end":{"intervals":60}}"#);
        let order = |order: &Order| serde_json::to_string(order).unwrap();
        assert_eq!(order(&Order::Ping { id: 7 }), r#"{"ping":{"id":7}}"#);
        assert_eq!(order(&Order::Start { at_clock_ns: 5 }), r#"{"start":{"atClockNs":5}}"#);
        assert_eq!(order(&Order::Stop {}), r#"{"stop":{}}"#);
    }
}
