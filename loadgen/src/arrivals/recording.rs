//! [`Recording`]: recorded requests that can be sent again. The file is read once, before the load starts.
//!
//! A recording has the format JSON lines, as described in `docs/load.md`. Memory is bounded: only distinct reviews are
//! stored, up to a limit. The times of requests are stored in a temporary file with twelve bytes for each request, from
//! which the pacing thread reads.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::seed::UID_LEN;

/// Maximum length of a line of the file in bytes: an object of 1.5 MiB, its old version, and the remaining fields.
const LINE_BYTES_MAX: usize = 4 << 20;
/// Maximum number of bytes of all distinct reviews. Reviews are stored in memory, because reading a disk can delay a
/// thread.
const REVIEWS_BYTES_MAX: usize = 256 << 20;
/// Maximum number of requests of a file; more than any soak sends.
const REQUESTS_MAX: u64 = 1_000_000_000;
/// The largest `atUs`: a year in microseconds, which is the limit of every duration.
const AT_US_MAX: u64 = 366 * 24 * 3600 * 1_000_000;
/// The bytes of an entry in the temporary file: offset in microseconds and number of the review, little endian.
const ENTRY_BYTES: usize = 12;
/// The number in an entry that means a request without a review.
const OPEN: u32 = u32::MAX;
/// Number of entries that are read at once: 12 KiB, which take a few microseconds from the page cache.
const BLOCK_ENTRIES: u64 = 1024;

/// The text in a review instead of its uid, which each call replaces by its own uid.
pub(crate) const UID_PLACE: &[u8; UID_LEN] = b"00000000-0000-0000-0000-000000000000";

/// Why a recording cannot be sent. The message names the file, and the line if the error is in a line.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The operating system refused an operation.
    #[error("read {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// A line of the file does not have the format of a recording.
    #[error("{}:{line}: {problem}", path.display())]
    Line {
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
        problem: LineError,
    },
    /// The file contains no request.
    #[error("{}: there is no request in it: write lines such as {{\"atUs\": 0}}", path.display())]
    Empty { path: PathBuf },
}

/// The error in a line, and what to write instead.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error("it is longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    /// The line is no JSON, or has unknown keys.
    #[error("{0}: write for example {{\"atUs\": 1500, \"body\": {{…}}}}")]
    Json(serde_json::Error),
    #[error("atUs is missing: write when the request is due, in microseconds from the start")]
    NoTime,
    #[error("atUs is {at_us}, before {last_us} of an earlier line: sort the lines by atUs")]
    Unsorted {
        /// The time of the line.
        at_us: u64,
        /// The time of the previous line.
        last_us: u64,
    },
    /// The time of the line is too late, or the file has too many requests.
    #[error("atUs is at most {AT_US_MAX} (a year), and a file has {REQUESTS_MAX} requests at most")]
    TooMuch,
    #[error("no earlier line has the review `{0}`: write it as {{\"review\": \"{0}\", \"body\": {{…}}}}")]
    Unknown(String),
    /// The line uses the name of an earlier review.
    #[error("there is a review `{0}` already: choose another name")]
    Twice(String),
    /// All reviews together are larger than allowed.
    #[error("the distinct reviews of this file have more than {} MiB: split it", REVIEWS_BYTES_MAX >> 20)]
    TooLarge,
    /// The file has more reviews than can be numbered.
    #[error("there are too many reviews")]
    TooMany,
    /// The body is no JSON of a review.
    #[error("the body is no AdmissionReview ({0})")]
    Body(serde_json::Error),
    /// The body is not an `AdmissionReview` of the expected version.
    #[error("the body is a `{version}` `{kind}`, not an admission.k8s.io/v1 AdmissionReview")]
    Kind { version: String, kind: String },
    #[error("the body has no `request`: record what kube-apiserver sends")]
    NoRequest,
    #[error("the body has no `request.uid`: write any, each call gets its own")]
    NoUid,
    /// The uid of the body is not a string that can be replaced.
    #[error("`request.uid` of the body is no text: write any, each call gets its own")]
    Uid,
}

/// A review from the file, ready to be sent.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub bytes: Vec<u8>,
    /// The position of [`UID_PLACE`] in the bytes.
    pub uid_at: usize,
    pub label: String,
}

/// A recording that was read from a file.
#[derive(Debug)]
pub(crate) struct Recording {
    spool: Arc<File>,
    path: PathBuf,
    count: u64,
    length: Duration,
    has_open: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Line<'a> {
    at_us: Option<u64>,
    review: Option<String>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(borrow)]
    request: Option<Request<'a>>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    uid: Option<&'a RawValue>,
    kind: Option<Kind>,
    #[serde(default)]
    operation: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    kind: String,
}

/// The reviews of a file that were read so far.
#[derive(Default)]
struct Reviews {
    all: Vec<Recorded>,
    bytes: usize,
    named: HashMap<String, u32>,
    known: HashMap<[u8; 32], u32>,
}

impl Recording {
    /// Reads and checks the whole file, and returns the recording and its distinct reviews.
    pub(crate) fn read(path: &Path) -> Result<(Self, Vec<Recorded>), RecordingError> {
        let io = |source| RecordingError::Io { path: path.to_owned(), source };
        let mut input = BufReader::new(File::open(path).map_err(io)?);
        let mut spool = BufWriter::new(tempfile::tempfile().map_err(io)?);
        let mut reviews = Reviews::default();
        let (mut count, mut last_us, mut has_open) = (0u64, 0u64, false);
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            (&mut input).take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut text).map_err(io)?;
            if text.is_empty() {
                break;
            }
            let bad = |problem| RecordingError::Line { path: path.to_owned(), line, problem };
            if text.len() > LINE_BYTES_MAX {
                return Err(bad(LineError::TooLong));
            }
            if text.trim_ascii().is_empty() {
                continue;
            }
            let Some((at_us, review)) = reviews.line(&text).map_err(bad)? else { continue };
            if at_us < last_us {
                return Err(bad(LineError::Unsorted { at_us, last_us }));
            }
            if at_us > AT_US_MAX || count >= REQUESTS_MAX {
                return Err(bad(LineError::TooMuch));
            }
            (last_us, count) = (at_us, count + 1);
            has_open |= review == OPEN;
            spool.write_all(&at_us.to_le_bytes()).and_then(|()| spool.write_all(&review.to_le_bytes())).map_err(io)?;
        }
        if count == 0 {
            return Err(RecordingError::Empty { path: path.to_owned() });
        }
        let spool = spool.into_inner().map_err(|error| io(error.into_error()))?;
        // The last request is inside the length, as in every other schedule.
        let length = Duration::from_micros(last_us + 1);
        Ok((Self { spool: Arc::new(spool), path: path.to_owned(), count, length, has_open }, reviews.all))
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn length(&self) -> Duration {
        self.length
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether any request has no review of its own.
    pub(crate) fn has_open(&self) -> bool {
        self.has_open
    }

    pub(crate) fn before(&self, until: Duration) -> u64 {
        let until_us = u64::try_from(until.as_micros()).unwrap_or(u64::MAX);
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            let mut entry = [0; ENTRY_BYTES];
            // If the temporary file cannot be read, the entry counts as behind the end: a plan must not fail half-way.
            let known = self.spool.read_exact_at(&mut entry, middle * ENTRY_BYTES as u64).is_ok();
            if known && unpack(&entry).0 < until_us { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The requests of the recording in order: the time, and the review; `None` if the file contains no review for the
    /// request.
    pub(crate) fn entries(&self) -> Entries {
        Entries { spool: Arc::clone(&self.spool), count: self.count, next: 0, block: Vec::new(), in_block: 0 }
    }
}

/// Reads the requests of a recording in blocks.
#[derive(Debug, Clone)]
pub(crate) struct Entries {
    spool: Arc<File>,
    count: u64,
    next: u64,
    block: Vec<u8>,
    in_block: usize,
}

impl Iterator for Entries {
    type Item = (Duration, Option<u32>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.count {
            return None;
        }
        if self.in_block >= self.block.len() {
            let entries = BLOCK_ENTRIES.min(self.count - self.next);
            self.block.resize(usize::try_from(entries).unwrap_or(0) * ENTRY_BYTES, 0);
            // If the temporary file cannot be read, the plan ends here and the run is short, which is noticed.
            self.spool.read_exact_at(&mut self.block, self.next * ENTRY_BYTES as u64).ok()?;
            self.in_block = 0;
        }
        let entry: &[u8; ENTRY_BYTES] = self.block[self.in_block..].first_chunk()?;
        let (at_us, review) = unpack(entry);
        self.in_block += ENTRY_BYTES;
        self.next += 1;
        Some((Duration::from_micros(at_us), (review != OPEN).then_some(review)))
    }
}

fn unpack(entry: &[u8; ENTRY_BYTES]) -> (u64, u32) {
    let (mut at_us, mut review) = ([0; 8], [0; 4]);
    at_us.copy_from_slice(&entry[..8]);
    review.copy_from_slice(&entry[8..]);
    (u64::from_le_bytes(at_us), u32::from_le_bytes(review))
}

impl Reviews {
    /// Parses a line; `None` for a line that only names a review.
    fn line(&mut self, text: &[u8]) -> Result<Option<(u64, u32)>, LineError> {
        let line: Line<'_> = serde_json::from_slice(text).map_err(LineError::Json)?;
        let number = match (&line.review, line.body) {
            (None, None) => OPEN,
            (None, Some(body)) => self.add(body)?,
            (Some(name), None) => *self.named.get(name).ok_or_else(|| LineError::Unknown(name.clone()))?,
            (Some(name), Some(body)) => {
                let number = self.add(body)?;
                if self.named.insert(name.clone(), number).is_some() {
                    return Err(LineError::Twice(name.clone()));
                }
                number
            }
        };
        match line.at_us {
            Some(at_us) => Ok(Some((at_us, number))),
            None if line.review.is_some() && line.body.is_some() => Ok(None),
            None => Err(LineError::NoTime),
        }
    }

    fn add(&mut self, body: &RawValue) -> Result<u32, LineError> {
        let recorded = recorded(body.get())?;
        let digest: [u8; 32] = Sha256::digest(&recorded.bytes).into();
        if let Some(&known) = self.known.get(&digest) {
            return Ok(known);
        }
        self.bytes += recorded.bytes.len();
        if self.bytes > REVIEWS_BYTES_MAX {
            return Err(LineError::TooLarge);
        }
        let number = u32::try_from(self.all.len()).map_err(|_| LineError::TooMany)?;
        self.known.insert(digest, number);
        self.all.push(recorded);
        Ok(number)
    }
}

/// A review as it will be sent: only the uid differs from the file.
fn recorded(text: &str) -> Result<Recorded, LineError> {
    let review: Review<'_> = serde_json::from_str(text).map_err(LineError::Body)?;
    if review.api_version != "admission.k8s.io/v1" || review.kind != "AdmissionReview" {
        return Err(LineError::Kind { version: review.api_version, kind: review.kind });
    }
    let request = review.request.ok_or(LineError::NoRequest)?;
    let uid = request.uid.ok_or(LineError::NoUid)?.get();
    if !uid.starts_with('"') {
        return Err(LineError::Uid);
    }
    // `uid` borrows from `text`, so its place is the distance between the two.
    let at = uid.as_ptr() as usize - text.as_ptr() as usize;
    let mut bytes = Vec::with_capacity(text.len() + UID_LEN);
    bytes.extend_from_slice(&text.as_bytes()[..=at]);
    bytes.extend_from_slice(UID_PLACE);
    bytes.extend_from_slice(&text.as_bytes()[at + uid.len() - 1..]);
    let kind = request.kind.map(|kind| kind.kind).unwrap_or_default();
    let label = format!("{kind} {} {}/{}", request.operation, request.namespace, request.name);
    Ok(Recorded { bytes, uid_at: at + 1, label })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Recording, Vec<Recorded>), String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Recording::read(file.path())
            .map_err(|error| error.to_string().replace(&file.path().display().to_string(), "FILE"))
    }

    fn body(uid: &str, name: &str) -> String {
        format!(
            r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{{"name":"{name}", "uid" : "{uid}","operation":"CREATE","kind":{{"group":"","version":"v1","kind":"Pod"}},"z":1.50}}}}"#
        )
    }

    #[test]
    fn lines_become_requests_in_order_and_reviews_are_kept_once() {
        let (one, other) = (body("short", "a"), body("705ab4f5-6393-11e8-b7cc-42010a800002", "a"));
        let text = format!(
            "{{\"review\": \"x\", \"body\": {one}}}\n\n{{\"atUs\": 5, \"review\": \"x\"}}\n{{\"atUs\": 5}}\n{{\"atUs\": 9, \"body\": {other}}}\n{{\"atUs\":12,\"body\":{}}}",
            body("u", "b")
        );
        let (recording, reviews) = read(&text).unwrap();
        let entries: Vec<_> = recording.entries().collect();
        let us = Duration::from_micros;
        assert_eq!(entries, [(us(5), Some(0)), (us(5), None), (us(9), Some(0)), (us(12), Some(1))]);
        assert_eq!((recording.count(), recording.length(), recording.has_open()), (4, us(13), true));
        assert_eq!([0, 5, 6, 12, 13].map(|at| recording.before(us(at))), [0, 0, 2, 3, 4]);
        assert_eq!(reviews.len(), 2, "bodies that differ in the uid only are one");
        let sent = String::from_utf8(reviews[0].bytes.clone()).unwrap();
        assert_eq!(sent, body("00000000-0000-0000-0000-000000000000", "a"), "nothing else is touched");
        assert_eq!(&reviews[0].bytes[reviews[0].uid_at..][..UID_LEN], UID_PLACE);
        assert_eq!(reviews[0].label, "Pod CREATE /a");
    }

    #[test]
    fn many_requests_cross_the_blocks() {
        let lines: Vec<String> = (0..5000).map(|i| format!("{{\"atUs\":{}}}", i * 10)).collect();
        let text = lines.join("\n");
        let (recording, _) = read(&text).unwrap();
        assert!(recording.entries().map(|(at, _)| at).eq((0..5000).map(|i| Duration::from_micros(i * 10))));
        assert_eq!(recording.before(Duration::from_millis(25)), 2500);
    }

    #[test]
    fn the_longest_line_is_a_line() {
        let line = format!("{{\"atUs\":1}}{}\n", " ".repeat(LINE_BYTES_MAX - 11));
        assert_eq!((line.len(), read(&line).unwrap().0.count()), (LINE_BYTES_MAX, 1));
    }

    /// A review that is known takes no memory; a new review must fit below the limit.
    #[test]
    fn distinct_reviews_have_a_bound() {
        let raw = |name: &str| RawValue::from_string(body("u", name)).unwrap();
        let mut reviews = Reviews::default();
        reviews.add(&raw("a")).unwrap();
        let length = reviews.bytes;
        reviews.bytes = REVIEWS_BYTES_MAX - length;
        assert_eq!(reviews.add(&raw("b")).unwrap(), 1);
        assert_eq!((reviews.add(&raw("a")).unwrap(), reviews.bytes), (0, REVIEWS_BYTES_MAX));
        let error = reviews.add(&raw("c")).unwrap_err().to_string();
        assert_eq!(error, "the distinct reviews of this file have more than 256 MiB: split it");
    }

    #[test]
    fn bad_lines_are_named() {
        let good = body("u", "a");
        for (text, expected) in [
            (String::new(), "FILE: there is no request in it"),
            ("{\"atUs\": 1}\nnonsense".to_owned(), "FILE:2: expected"),
            ("{\"atUs\": -1}".to_owned(), "FILE:1: invalid value"),
            ("{\"at\": 1}".to_owned(), "FILE:1: unknown field `at`"),
            ("{}".to_owned(), "FILE:1: atUs is missing"),
            ("{\"atUs\": 2}\n\n{\"atUs\": 1}".to_owned(), "FILE:3: atUs is 1, before 2 of an earlier line: sort"),
            ("{\"atUs\": 99999999999999999}".to_owned(), "FILE:1: atUs is at most"),
            ("{\"atUs\": 1, \"review\": \"x\"}".to_owned(), "FILE:1: no earlier line has the review `x`"),
            (
                format!("{{\"review\":\"x\",\"body\":{good}}}\n{{\"review\":\"x\",\"body\":{good}}}"),
                "FILE:2: there is a review `x` already",
            ),
            ("{\"atUs\": 1, \"body\": {}}".to_owned(), "FILE:1: the body is a `` ``, not an admission"),
            ("{\"atUs\": 1, \"body\": 5}".to_owned(), "FILE:1: the body is no AdmissionReview"),
            (format!("{{\"atUs\":1,\"body\":{}}}", good.replace("uid", "id")), "FILE:1: the body has no `request.uid`"),
            (
                format!("{{\"atUs\":1,\"body\":{}}}", good.replace("\"u\"", "5")),
                "FILE:1: `request.uid` of the body is no text",
            ),
            (
                format!("{{\"atUs\":1,\"body\":{}}}", good.replace("k8s.io/v1", "k8s.io/v1beta1")),
                "FILE:1: the body is a `admission.k8s.io/v1beta1`",
            ),
            (format!("{{\"atUs\":1,\"review\":\"{}\"}}", "x".repeat(LINE_BYTES_MAX)), "FILE:1: it is longer than"),
        ] {
            let error = read(&text).map(|_| ()).unwrap_err();
            assert!(error.starts_with(expected), "{error}\nshould begin with\n{expected}");
        }
        let error = Recording::read(Path::new("/nowhere/file")).map(|_| ()).unwrap_err().to_string();
        assert!(error.starts_with("read /nowhere/file: No such file"), "{error}");
    }
}
