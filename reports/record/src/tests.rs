//! Tests of writing a record and reading it back. Incomplete or missing files are noted, and invalid ones are refused
//! with file and line. The tests of this crate's files are together, because each writes a record, damages it in one
//! way, and reads it back.

use std::fs;
use std::path::Path;

use facts::{Change, Commit, Observation, Order};
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use statistics::hlog::Histogram;

use crate::example::Example;
use crate::*;

fn written(example: &Example) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    example.write(dir.path());
    dir
}

fn tear(dir: &Path, name: &str, bytes: usize) {
    let path = dir.join(name);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - bytes]).unwrap();
}

#[test]
fn a_record_is_read_back_as_it_was_written() {
    let example = Example::failing();
    let dir = written(&example);
    let record = Record::open(dir.path()).unwrap();
    assert_eq!(record.manifest, example.manifest);
    assert_eq!(record.intervals, example.intervals);
    assert_eq!(record.samples, example.samples);
    assert_eq!(record.faults, example.faults);
    assert_eq!(record.anomalies, example.anomalies);
    assert_eq!(Some(record.requests.rows), example.requests);
    assert!(record.requests.told && record.requests.summaries.is_empty());
    assert_eq!(record.end, example.end);
    assert_eq!(record.notes, Vec::<String>::new());
    let steady = record.latency.in_phase(tag::RESPONSE, Phase::Steady).unwrap();
    assert_eq!(steady.len(), 24_000);
    assert_eq!(record.latency.whole(tag::RESPONSE_ALLOWED).unwrap().len(), 28_000);
    assert_eq!(record.latency.slices(tag::LAG).len(), 25);
}

#[test]
fn a_directory_with_a_record_is_not_overwritten() {
    let example = Example::clean();
    let dir = written(&example);
    assert!(matches!(Writer::create(dir.path(), &example.manifest), Err(Error::Io { action: "create", .. })));
}

/// If a killed run leaves an incomplete last line in each file, all files can still be read.
#[test]
fn torn_last_lines_are_noted_and_left_out() {
    let mut example = Example::failing();
    example.end = None;
    let dir = written(&example);
    for name in [file::INTERVALS, file::SAMPLES, file::FAULTS, file::ANOMALIES, file::LATENCY] {
        tear(dir.path(), name, 20);
    }
    let record = Record::open(dir.path()).unwrap();
    assert_eq!(record.intervals.len(), example.intervals.len() - 1);
    assert_eq!(record.samples.len(), example.samples.len() - 1);
    assert_eq!(record.notes.len(), 6, "{:?}", record.notes);
    assert!(record.notes.contains(&"the last line of latency.hlog is torn and was left out".to_owned()));
    assert!(record.notes.contains(&"end.json is missing: the harness was killed".to_owned()));
}

#[test]
fn missing_files_are_noted() {
    let dir = written(&Example::clean());
    for name in [file::SAMPLES, file::LATENCY] {
        fs::remove_file(dir.path().join(name)).unwrap();
    }
    let record = Record::open(dir.path()).unwrap();
    assert_eq!(record.notes, ["samples.jsonl is missing", "latency.hlog is missing"]);
}

#[test]
fn a_broken_line_in_the_middle_is_an_error_with_its_line() {
    let dir = written(&Example::clean());
    let path = dir.path().join(file::SAMPLES);
    let text = fs::read_to_string(&path).unwrap();
    let broken: Vec<&str> = text.lines().enumerate().map(|(n, line)| if n == 6 { "{\"tMs\":" } else { line }).collect();
    fs::write(&path, broken.join("\n")).unwrap();
    let error = Record::open(dir.path()).unwrap_err().to_string();
    assert!(error.starts_with("read line 7 of ") && error.ends_with(file::SAMPLES), "{error}");
}

#[test]
fn other_schemas_and_other_directories_are_refused_clearly() {
    let dir = written(&Example::clean());
    let path = dir.path().join(file::MANIFEST);
    let text = fs::read_to_string(&path).unwrap().replace("longhaul.record/v1", "longhaul.record/v9");
    fs::write(&path, text).unwrap();
    let error = Record::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("it has the schema `longhaul.record/v9`, this build reads `longhaul.record/v1`"), "{error}");
    fs::write(&path, "{}").unwrap();
    assert!(matches!(Record::open(dir.path()), Err(Error::Schema { found, .. }) if found == "none"));
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(Record::open(empty.path()), Err(Error::NotARecord { .. })));
}

#[test]
fn unknown_fields_of_rows_are_tolerated() {
    let dir = written(&Example::clean());
    let path = dir.path().join(file::FAULTS);
    let text = fs::read_to_string(&path).unwrap().replace("\"hits\"", "\"later\":{\"x\":1},\"hits\"");
    fs::write(&path, text).unwrap();
    assert_eq!(Record::open(dir.path()).unwrap().faults, Example::clean().faults);
}

/// `latency.hlog` has the standard format: a reader without knowledge of Longhaul finds tags, times and encoded
/// histograms.
#[test]
fn latencies_are_a_standard_interval_log() {
    let dir = written(&Example::clean());
    let bytes = fs::read(dir.path().join(file::LATENCY)).unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert!(text.starts_with("#[Histogram log format version 1.3]\n"));
    assert!(
        text.contains("\n\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n")
    );
    let entries: Vec<_> = IntervalLogIterator::new(&bytes).map(|entry| entry.unwrap()).collect();
    let base = entries.iter().find_map(|entry| match entry {
        LogEntry::BaseTime(time) => Some(time.as_secs()),
        _ => None,
    });
    assert_eq!(base, Some(1_795_169_700), "2026-11-20T10:15:00Z");
    let lag = entries.iter().filter_map(|entry| match entry {
        LogEntry::Interval(row) if row.tag().is_some_and(|tag| tag.as_str() == tag::LAG) => Some(row),
        _ => None,
    });
    let second = lag.clone().nth(1).unwrap();
    assert_eq!((second.start_timestamp().as_millis(), second.duration().as_millis()), (5000, 5000));
    // "HISTF": the cookie of a compressed V2 histogram in base64.
    assert!(lag.clone().count() == 25 && lag.clone().all(|row| row.encoded_histogram().starts_with("HISTF")));
}

/// Very many anomalies of one outcome must not hide the only row of another outcome, and the number of rows is bounded.
#[test]
fn anomalies_are_capped_for_each_outcome() {
    let dir = tempfile::tempdir().unwrap();
    let mut example = Example::failing();
    let mut row = example.anomalies[0].clone();
    row.wire = vec!["é".repeat(5000); 50];
    example.anomalies = vec![AnomalyRow { outcome: Outcome::Duplicate, ..row.clone() }; 3000];
    example.anomalies.push(row);
    let record = example.open(dir.path());
    assert_eq!(record.anomalies.len() as u64, ANOMALY_ROWS_PER_OUTCOME + 1);
    let last = record.anomalies.last().unwrap();
    assert_eq!((last.outcome, last.wire.len(), last.wire[0].chars().count()), (Outcome::Missed, 20, 601));
    // The first of many keep their stream lines, all keep the rest.
    let with_lines = record.anomalies.iter().filter(|row| !row.wire.is_empty()).count();
    assert!((50..150).contains(&with_lines), "{with_lines} of 12 KB each");
    assert!(fs::metadata(dir.path().join(file::ANOMALIES)).unwrap().len() < 4 << 20);
}

/// With one fault a minute for a hundred hours, each fault keeps the rows of its first hit and of each doubling of its
/// hits, however often other faults hit.
#[test]
fn hits_are_capped_for_each_fault_and_for_all() {
    let example = Example::clean();
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(dir.path(), &example.manifest).unwrap();
    let hit = |fault: u64, hits| FaultRow { id: fault.to_string(), hits, ..example.faults[3].clone() };
    for fault in 0..1000 {
        (1..=300).for_each(|hits| writer.fault(&hit(fault, hits)).unwrap());
    }
    drop(writer);
    let rows = Record::open(dir.path()).unwrap().faults;
    let of = |fault: u64| rows.iter().filter(|row| row.id == fault.to_string()).map(|row| row.hits).collect::<Vec<_>>();
    assert_eq!((of(0).len(), of(0)[99], of(0)[100], of(0)[101]), (102, 100, 128, 256));
    assert_eq!(of(999), [1, 2, 4, 8, 16, 32, 64, 128, 256]);
    assert!(rows.len() < 20_000, "{}", rows.len());
}

/// If a run is killed, its record contains each recorded latency exactly once, including latencies that the writer has
/// not written yet because their time slice is incomplete.
#[test]
fn a_killed_run_keeps_its_open_slices() {
    let example = Example::clean();
    let hour_ms = 3_600_000;
    let mut histogram = Histogram::new(3).unwrap();
    histogram.record_n(1500, 10).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(dir.path(), &example.manifest).unwrap();
    let (open, stale) = (dir.path().join(file::LATENCY_OPEN), dir.path().join("stale"));
    let read = || Record::open(dir.path()).unwrap().latency.whole(tag::LAG).map_or(0, |sum| sum.len());
    let row = |start_ms| Interval { start_ms, end_ms: start_ms + 5000, ..example.intervals[10].clone() };
    writer.interval(&row(30 * hour_ms - 5000)).unwrap();
    for number in 0..200 {
        let start_ms = 30 * hour_ms + number * 5000;
        writer.latency(tag::LAG, start_ms, start_ms + 5000, &histogram).unwrap();
        writer.interval(&row(start_ms)).unwrap();
        assert_eq!(read(), 10 * (number + 1), "killed after interval {number}");
        // Killed after a slice was closed and before the file of the open ones was written anew.
        if open.exists() {
            fs::copy(&open, &stale).unwrap();
        } else {
            fs::copy(&stale, &open).unwrap();
            assert_eq!(read(), 10 * (number + 1), "no slice counts twice");
            fs::remove_file(&open).unwrap();
        }
    }
    // At thirty hours a slice is seven and a half minutes.
    let lines = || fs::read_to_string(dir.path().join(file::LATENCY)).unwrap().matches("Tag=").count();
    assert_eq!(lines(), 2);
    writer.end(&End { ended_ms: 31 * hour_ms, reason: EndReason::Completed, lost: None, holes: Vec::new() }).unwrap();
    assert_eq!((read(), lines(), open.exists()), (2000, 3, false));
}

/// The samples and latencies of 100 hours stay small. The samples keep their peaks, and the latencies lose no count.
#[test]
fn long_runs_are_thinned_without_losing_peaks_or_counts() {
    let dir = tempfile::tempdir().unwrap();
    let example = Example::clean();
    let hour_ms = 3_600_000;
    let mut writer = Writer::create(dir.path(), &example.manifest).unwrap();
    let mut histogram = Histogram::new(3).unwrap();
    histogram.record_n(1500, 10).unwrap();
    // Only the third hour: before it everything is kept.
    for start_ms in (2 * hour_ms..3 * hour_ms).step_by(5000) {
        for second in 0..5 {
            let mut sample = example.samples[30].clone();
            sample.t_ms = start_ms + second * 1000;
            sample.subject.as_mut().unwrap().rss_bytes = if second == 2 { 50 << 20 } else { 40 << 20 };
            writer.sample(&sample).unwrap();
        }
        writer.latency(tag::LAG, start_ms, start_ms + 5000, &histogram).unwrap();
        let row = Interval { start_ms, end_ms: start_ms + 5000, ..example.intervals[10].clone() };
        writer.interval(&row).unwrap();
    }
    writer.end(&End { ended_ms: 3 * hour_ms, reason: EndReason::Completed, lost: None, holes: Vec::new() }).unwrap();
    let record = Record::open(dir.path()).unwrap();
    assert_eq!((record.intervals.len(), record.samples.len()), (720, 1440));
    let kept = |peak: bool| record.samples.iter().filter(move |row| row.peak == peak);
    let rss = |row: &Sample| row.subject.unwrap().rss_bytes >> 20;
    assert!(kept(true).all(|row| rss(row) == 50) && kept(true).count() == 720);
    assert!(kept(false).all(|row| rss(row) == 40 && row.t_ms % 5000 == 4000));
    assert_eq!(record.latency.whole(tag::LAG).unwrap().len(), 7200);
    let lines = fs::read_to_string(dir.path().join(file::LATENCY)).unwrap().matches("Tag=").count();
    assert!(lines <= 61, "{lines} slices");
    let bytes: u64 = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes * 100 < 200 << 20, "100 hours would be {} MiB", (bytes * 100) >> 20);
}

#[test]
fn commits_and_observations_are_kept_on_request_only() {
    let commit = Commit {
        order: Order::of_numbered(1),
        resource: "packages.longhaul.dev".into(),
        namespace: "default".into(),
        name: "a".into(),
        uid: "u".into(),
        revision: "7".into(),
        change: Change::Added,
    };
    let seen = Observation { t_ms: 6, uid: "u".into(), revision: "7".into(), change: commit.change };
    let event = CommitEvent { t_ms: 5, commit };
    let manifest = Example::clean().manifest;
    let dir = tempfile::tempdir().unwrap();
    for (name, keep) in [("without", false), ("with", true)] {
        let path = dir.path().join(name);
        let mut writer = Writer::create(&path, &manifest).unwrap();
        if keep {
            writer = writer.keep_events().unwrap();
        }
        writer.commit(&event).unwrap();
        writer.observation(&seen).unwrap();
        writer.end(&End { ended_ms: 10, reason: EndReason::Completed, lost: None, holes: Vec::new() }).unwrap();
        assert_eq!(path.join(file::COMMITS).exists(), keep);
        let (commits, observations) =
            if keep { (vec![event.clone()], vec![seen.clone()]) } else { (Vec::new(), Vec::new()) };
        assert_eq!(Events::open(&path).unwrap(), Events { commits, observations });
    }
}

/// If a killed run leaves a compressed file without its end, the reader returns the complete rows.
#[test]
fn a_torn_file_of_events_is_read_up_to_there() {
    let dir = tempfile::tempdir().unwrap();
    let seen = Observation { t_ms: 6, uid: "u".into(), revision: "7".into(), change: Change::Added };
    let mut writer = Writer::create(dir.path(), &Example::clean().manifest).unwrap().keep_events().unwrap();
    writer.observation(&seen).unwrap();
    writer.end(&End { ended_ms: 10, reason: EndReason::Completed, lost: None, holes: Vec::new() }).unwrap();
    let path = dir.path().join(file::OBSERVATIONS);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    assert!(Events::open(dir.path()).unwrap().observations.len() <= 1);
    fs::write(&path, [&whole[..], b"rubbish"].concat()).unwrap();
    assert_eq!(Events::open(dir.path()).unwrap().observations, [seen]);
}

fn request(id: u64, verb: Verb, ended_ms: Option<u64>) -> RequestRow {
    let ended_by = ended_ms.map(|_| EndedBy::Server);
    RequestRow { id, t_ms: id, verb, status: 200, ended_ms, ended_by, ..RequestRow::default() }
}

/// The later line of a watch replaces the earlier one, even if lines of other requests lie between, and another watch
/// stays open.
#[test]
fn a_watch_is_one_row_however_many_lines_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(dir.path(), &Example::clean().manifest).unwrap().tell_requests().unwrap();
    let [first, still] = [request(1, Verb::Watch, None), request(2, Verb::Watch, None)];
    let [list, over] = [request(3, Verb::List, Some(4)), request(1, Verb::Watch, Some(9))];
    for row in [&first, &still, &list, &over] {
        writer.request(row.clone()).unwrap();
    }
    drop(writer);
    let requests = Record::open(dir.path()).unwrap().requests;
    assert_eq!(requests.rows, [over, still, list]);
    assert_eq!(requests.complete_until_ms(), None);
}

#[test]
fn a_flood_of_requests_is_counted_and_open_watches_still_get_their_end() {
    let dir = tempfile::tempdir().unwrap();
    let example = Example::clean();
    let mut writer = Writer::create(dir.path(), &example.manifest).unwrap().tell_requests().unwrap();
    writer.request(request(1, Verb::Watch, None)).unwrap();
    for id in 2..=REQUEST_LINES_MAX {
        writer.request(request(id, Verb::List, Some(id))).unwrap();
    }
    writer.interval(&example.intervals[0]).unwrap();
    let refused = RequestRow { status: 429, ..request(90_000, Verb::List, Some(90_001)) };
    writer.request(refused).unwrap();
    // Too late for a line: counted when it is answered, not again when it ends.
    writer.request(request(90_002, Verb::Watch, None)).unwrap();
    writer.request(request(90_002, Verb::Watch, Some(90_003))).unwrap();
    writer.request(request(1, Verb::Watch, Some(90_004))).unwrap();
    writer.requests_lost(5);
    writer.interval(&example.intervals[1]).unwrap();
    writer.interval(&example.intervals[2]).unwrap();
    drop(writer);
    let requests = Record::open(dir.path()).unwrap().requests;
    assert_eq!(requests.rows.len() as u64, REQUEST_LINES_MAX);
    assert_eq!(requests.rows[0].ended_ms, Some(90_004));
    let (start_ms, end_ms) = (example.intervals[1].start_ms, example.intervals[1].end_ms);
    let summary = RequestSummary { start_ms, end_ms, requests: 2, lists: 1, watches: 1, refused: 1, lost: 5 };
    assert_eq!((requests.summaries.as_slice(), requests.complete_until_ms()), ([summary].as_slice(), Some(start_ms)));
}

/// A judge of hot loops uses the requests up to the first request without a line.
#[test]
fn rows_are_complete_until_the_first_request_without_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let example = Example::clean();
    let mut writer = Writer::create(dir.path(), &example.manifest).unwrap().tell_requests().unwrap();
    let (start_ms, end_ms) = (example.intervals[1].start_ms, example.intervals[1].end_ms);
    writer.interval(&example.intervals[0]).unwrap();
    let asked_ms = |id: u64| start_ms + id * (end_ms - start_ms) / (2 * REQUEST_LINES_MAX);
    for id in 1..=REQUEST_LINES_MAX + 2 {
        writer.request(RequestRow { t_ms: asked_ms(id), ..request(id, Verb::List, Some(asked_ms(id))) }).unwrap();
    }
    writer.interval(&example.intervals[1]).unwrap();
    drop(writer);
    let requests = Record::open(dir.path()).unwrap().requests;
    assert_eq!(requests.complete_until_ms(), Some(asked_ms(REQUEST_LINES_MAX + 1)));
    assert_eq!(requests.summaries[0].requests, 2);
}

/// If the control plane does not report the author of each request, the record has no note about missing requests.
#[test]
fn a_record_without_requests_has_no_note_about_them() {
    let example = Example { requests: None, ..Example::clean() };
    let record = Record::open(written(&example).path()).unwrap();
    assert!(!record.requests.told && record.requests.rows.is_empty());
    assert_eq!(record.notes, Vec::<String>::new());
}

/// Replaces the first `key` in the last line of a file with a time in the far future.
fn far(dir: &Path, name: &str, key: &str, time: &str) {
    let path = dir.join(name);
    let text = fs::read_to_string(&path).unwrap();
    let at = text.trim_end().rfind('\n').map_or(0, |end| end + 1);
    let key = format!("\"{key}\":");
    let from = at + text[at..].find(&key).unwrap() + key.len();
    let to = from + text[from..].find([',', '}']).unwrap();
    fs::write(&path, format!("{}{time}{}", &text[..from], &text[to..])).unwrap();
}

/// A row with a time in the far future is refused: an axis up to that time would fill the memory with tick marks.
#[test]
fn rows_with_times_that_no_run_reaches_are_refused_with_their_place() {
    let example = Example::failing();
    let rows = |name| match name {
        file::INTERVALS => example.intervals.len(),
        file::SAMPLES => example.samples.len(),
        file::FAULTS => example.faults.len(),
        _ => example.anomalies.len(),
    };
    for (name, key) in [
        (file::INTERVALS, "endMs"),
        (file::SAMPLES, "tMs"),
        (file::FAULTS, "tMs"),
        (file::ANOMALIES, "committedMs"),
        (file::ANOMALIES, "tMs"),
    ] {
        let dir = written(&example);
        far(dir.path(), name, key, &u64::MAX.to_string());
        let error = Record::open(dir.path()).unwrap_err().to_string();
        let place = format!("read line {} of {}", rows(name), dir.path().join(name).display());
        assert!(error.starts_with(&place) && error.ends_with("is later than any run ends"), "{error}");
        far(dir.path(), name, key, &TIME_MS_MAX.to_string());
        assert!(Record::open(dir.path()).is_ok(), "{name} {key}");
    }
    let dir = written(&Example {
        end: Some(End { ended_ms: u64::MAX, reason: EndReason::Completed, lost: None, holes: Vec::new() }),
        ..example
    });
    assert!(matches!(Record::open(dir.path()), Err(Error::Time { .. })));
}

#[test]
fn plans_and_histograms_of_a_far_time_are_refused_too() {
    let mut example = Example::clean();
    example.manifest.phases.warm_up_ms = u64::MAX;
    assert!(matches!(Record::open(written(&example).path()), Err(Error::Time { line: 1, .. })));
    let mut example = Example::clean();
    example.manifest.faults[0].for_ms = Some(u64::MAX);
    assert!(matches!(Record::open(written(&example).path()), Err(Error::Time { line: 1, .. })));
    for time in ["1e300", "99999999999999.9", "18446744073709551615.999", "NaN", "-1"] {
        let dir = written(&Example::clean());
        let path = dir.path().join(file::LATENCY);
        let text = fs::read_to_string(&path).unwrap();
        let line = text.lines().rfind(|line| line.starts_with("Tag=")).unwrap();
        let (start, rest) = line.split_once(',').unwrap().1.split_once(',').unwrap();
        fs::write(&path, text.replace(&format!(",{start},{rest}"), &format!(",{time},{rest}"))).unwrap();
        assert!(Record::open(dir.path()).is_err(), "{time}");
    }
}

/// Opening a pipe waits for a writer, and a device has no end, so the reader opens neither of them.
#[test]
fn only_regular_files_are_read() {
    let all = [file::MANIFEST, file::INTERVALS, file::SAMPLES, file::FAULTS, file::ANOMALIES, file::REQUESTS];
    for name in all.into_iter().chain([file::LATENCY, file::END]) {
        for other in ["pipe", "device", "folder"] {
            let dir = written(&Example::clean());
            let path = dir.path().join(name);
            fs::remove_file(&path).unwrap();
            match other {
                "pipe" => assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success()),
                "device" => std::os::unix::fs::symlink("/dev/zero", &path).unwrap(),
                _ => fs::create_dir(&path).unwrap(),
            }
            let error = Record::open(dir.path()).unwrap_err();
            assert!(matches!(&error, Error::NotAFile { path: at } if *at == path), "{name} {other}: {error}");
        }
    }
}

/// A link in a record may lead to a private file: its contents are not shown, and its existence is not revealed.
#[test]
fn links_are_not_followed() {
    let elsewhere = tempfile::tempdir().unwrap();
    let secret = elsewhere.path().join("secret");
    fs::write(&secret, "password\n").unwrap();
    for name in [file::STORY, file::END, file::LATENCY, file::MANIFEST, file::CRASHES, file::LATENCY_OPEN] {
        let dir = written(&Example::clean());
        let path = dir.path().join(name);
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink(&secret, &path).unwrap();
        let error = Record::open(dir.path()).unwrap_err();
        assert!(matches!(&error, Error::NotAFile { path: at } if *at == path), "{name}: {error}");
    }
    let dir = written(&Example::clean());
    std::os::unix::fs::symlink(&secret, dir.path().join(file::SUBJECT_LOG)).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), dir.path().join(file::CONTROL_PLANE)).unwrap();
    let record = Record::open(dir.path()).unwrap();
    assert!(record.files.iter().all(|file| file.name != file::SUBJECT_LOG && !file.name.contains("secret")));
    assert!(matches!(file_of(dir.path(), file::SUBJECT_LOG, 1 << 20), Err(Error::NotAFile { .. })));
    // The folder itself is named by the user.
    let link = elsewhere.path().join("record");
    std::os::unix::fs::symlink(dir.path(), &link).unwrap();
    assert!(Record::open(&link).is_ok());
}

/// More rows than any run writes are refused before they fill the memory: a row of fifty bytes takes a kilobyte of
/// memory.
#[test]
#[ignore = "slow"]
fn rows_and_plans_and_slices_without_end_are_refused() {
    let dir = written(&Example::clean());
    let path = dir.path().join(file::FAULTS);
    let row = fs::read_to_string(&path).unwrap().lines().next().unwrap().to_owned() + "\n";
    fs::write(&path, row.repeat(200_001)).unwrap();
    let error = Record::open(dir.path()).unwrap_err();
    assert!(matches!(&error, Error::TooMany { limit: 200_000, .. }), "{error}");

    let mut example = Example::clean();
    example.manifest.faults = vec![example.manifest.faults[0].clone(); PLANNED_FAULTS_MAX + 1];
    assert!(matches!(Record::open(written(&example).path()), Err(Error::TooMany { limit: PLANNED_FAULTS_MAX, .. })));

    let dir = written(&Example::clean());
    let path = dir.path().join(file::LATENCY);
    let text = fs::read_to_string(&path).unwrap();
    let line = text.lines().rfind(|line| line.starts_with("Tag=lag,")).unwrap();
    let rest = line.splitn(3, ',').nth(2).unwrap();
    // The lines alternate, so that each line is a slice of its own.
    let more = format!("Tag=lag,0.000,{rest}\nTag=lag,5.000,{rest}\n").repeat(2500);
    fs::write(&path, text + &more).unwrap();
    let error = Record::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("more slices of one tag than lines in order make"), "{error}");
}

/// The length of a compressed file does not bound its contents: the number of unpacked bytes has a limit.
#[test]
fn packed_events_unpack_to_a_bounded_length() {
    let dir = tempfile::tempdir().unwrap();
    let zeros = vec![b'0'; 64 << 20];
    let packed = zstd::encode_all(zeros.as_slice(), 3).unwrap();
    assert!(packed.len() < 64 << 10);
    fs::write(dir.path().join(file::COMMITS), &packed).unwrap();
    // A frame that requires a window of two gigabytes, from any writer.
    let wide = [&[0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3][..], &[1, 0, 0]].concat();
    fs::write(dir.path().join(file::OBSERVATIONS), wide).unwrap();
    assert_eq!(Events::open(dir.path()).unwrap(), Events::default());
}

#[test]
fn files_larger_than_any_run_writes_are_refused_unread() {
    let dir = written(&Example::clean());
    // A sparse file takes no room on the disk.
    fs::OpenOptions::new().append(true).open(dir.path().join(file::SAMPLES)).unwrap().set_len(1 << 40).unwrap();
    assert!(matches!(Record::open(dir.path()), Err(Error::TooLarge { bytes: 0x100_0000_0000, .. })));
}

/// Reports are written into the folder of the record, and a pipe with the name of a half-written report is not opened.
#[test]
fn a_pipe_in_the_place_of_a_half_written_file_does_not_hold_the_reports() {
    let dir = written(&Example::clean());
    let path = dir.path().join(file::END);
    let part = path.with_extension("part");
    assert!(std::process::Command::new("mkfifo").arg(&part).status().unwrap().success());
    let fill = |out: &mut Vec<u8>| {
        out.extend(b"{}");
        Ok(())
    };
    write_whole(&path, fill).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"{}");
    assert!(!part.exists());
}

/// If the disk takes no other file any more, `end.json` is still written, with the reason. Without `end.json`, the
/// record would look like that of a killed run.
#[test]
fn a_record_that_cannot_be_written_says_so_at_its_end() {
    let example = Example::clean();
    let dir = tempfile::tempdir().unwrap();
    // A file that accepts only numbers.
    std::os::unix::fs::symlink("/proc/self/oom_score_adj", dir.path().join(file::SAMPLES)).unwrap();
    let mut writer = Writer::create(dir.path(), &example.manifest).unwrap();
    writer.interval(&example.intervals[0]).unwrap();
    writer.sample(&example.samples[0]).unwrap();
    let error =
        writer.end(&End { ended_ms: 5000, reason: EndReason::Completed, lost: None, holes: Vec::new() }).unwrap_err();
    assert!(matches!(error, Error::Io { action: "write", .. }), "{error}");
    drop(writer);
    fs::remove_file(dir.path().join(file::SAMPLES)).unwrap();
    let end = Record::open(dir.path()).unwrap().end.unwrap();
    let EndReason::HarnessError { detail } = &end.reason else { panic!("{end:?}") };
    assert!(detail.contains("samples.jsonl: Invalid argument"), "{detail}");
}

/// A full disk ends no run. Rows wait in memory while the disk is full; when that memory is full, further rows are lost
/// and counted. Writing continues when the disk has room again. The room on the disk for `end.json` is reserved at the
/// start.
#[test]
#[ignore = "slow"]
fn a_full_disk_takes_rows_and_not_the_run() {
    const NAME: &str = "tests::a_full_disk_takes_rows_and_not_the_run";
    const DISK: &str = "LONGHAUL_TEST_DISK";
    if let Some(disk) = std::env::var_os(DISK) {
        fills_and_empties(Path::new(&disk));
        return;
    }
    let disk = tempfile::tempdir().unwrap();
    let mut own = std::process::Command::new("unshare");
    own.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    own.arg("mount -t tmpfs -o size=512k none \"$0\" || exit 77; exec \"$@\"").arg(disk.path());
    own.arg(std::env::current_exe().unwrap()).args(["--ignored", "--exact", NAME]).env(DISK, disk.path());
    match own.output() {
        Ok(done) if done.status.success() => {
            let said = String::from_utf8_lossy(&done.stdout);
            assert!(said.contains("1 passed"), "there is no test {NAME}: {said}");
        }
        Ok(done) if done.status.code() == Some(101) => panic!("{}", String::from_utf8_lossy(&done.stdout)),
        other => println!("skipped: needs `unshare` and user namespaces ({other:?})"),
    }
}

fn fills_and_empties(disk: &Path) {
    let (ballast, dir) = (disk.join("ballast"), disk.join("record"));
    let example = Example::clean();
    let reason = EndReason::Interrupted { signal: "SIGTERM".into() };
    let end = End { ended_ms: 5000, reason, lost: None, holes: Vec::new() };
    let mut rows =
        (0..).map(|n| Interval { start_ms: 5000 * n, end_ms: 5000 * (n + 1), ..example.intervals[0].clone() });
    let mut append = |writer: &mut Writer| {
        let row = rows.next().unwrap();
        writer.interval(&row).unwrap();
        row.end_ms
    };
    // Full for a while.
    fs::write(&ballast, vec![0; 256 << 10]).unwrap();
    let mut writer = Writer::create(&dir, &example.manifest).unwrap();
    while writer.rows_waiting() == 0 {
        append(&mut writer);
    }
    append(&mut writer);
    assert_eq!(writer.lost(), None);
    fs::remove_file(&ballast).unwrap();
    let whole_ms = append(&mut writer);
    assert_eq!((writer.rows_waiting(), writer.lost()), (0, None));
    // Full for long.
    while writer.lost().is_none() {
        append(&mut writer);
    }
    append(&mut writer);
    let lost = writer.lost().unwrap();
    assert!(lost.rows == 2 && lost.from_ms >= whole_ms && lost.to_ms.is_none(), "{lost:?}");
    assert!(fs::write(dir.join("more"), [0; 4096]).is_err(), "the disk has still room");
    writer.end(&end).unwrap();
    drop(writer);
    let record = Record::open(&dir).unwrap();
    let written = record.end.unwrap();
    assert_eq!(written.reason, end.reason);
    // Rows that waited until the end were lost as well.
    assert!(written.lost.unwrap().rows > 2, "{written:?}");
    assert!(record.intervals.last().unwrap().end_ms >= lost.from_ms);
}
