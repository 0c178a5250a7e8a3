//! Entry points for the fuzz targets in `reports/fuzz` and for a test of this file. Each entry point passes bytes to
//! the readers of untrusted records.
//!
//! Owns the conversion of bytes into records, and two properties that hold for all bytes. A record is either refused
//! with a reason, or judged and shown in every report. No report contains characters that change how a terminal
//! displays other text. The module is compiled only with the feature `fuzz` and for tests. The functions panic if, and
//! only if, a property is broken.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::record::{Events, Record, file};
use crate::{gate, history, judge, outside, render};

/// The files of a record that the fuzzed bytes can contain. In the fuzzed bytes, a byte selects a file by its number in
/// this list, from 1.
pub const FILES: [&str; 13] = [
    file::MANIFEST,
    file::INTERVALS,
    file::SAMPLES,
    file::FAULTS,
    file::ANOMALIES,
    file::REQUESTS,
    file::METRICS,
    file::CRASHES,
    file::END_STATE,
    file::END,
    file::LATENCY,
    file::LATENCY_OPEN,
    file::STORY,
];
/// The byte between two files of a fuzzed record, which no text file contains.
pub const BETWEEN: u8 = 0;

/// The folder for the fuzzed records: one for each process and thread.
fn folder() -> PathBuf {
    static BASE: LazyLock<PathBuf> =
        LazyLock::new(|| std::env::temp_dir().join(format!("longhaul-reports-fuzz-{}", std::process::id())));
    BASE.join(format!("{:?}", std::thread::current().id()))
}

/// Reads and renders a record of several files. In the fuzzed bytes, a byte with the number of a file precedes the
/// file's contents.
pub fn record(bytes: &[u8]) {
    with(files(bytes), |dir| {
        // A refusal has a reason of one line.
        match Record::open(dir) {
            Ok(record) => shown(&record),
            Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
        }
    });
}

fn files(bytes: &[u8]) -> impl Iterator<Item = (&'static str, &[u8])> {
    bytes.split(|byte| *byte == BETWEEN).filter_map(|part| {
        let (name, text) = part.split_first()?;
        Some((*FILES.get(usize::from(*name).checked_sub(1)?)?, text))
    })
}

/// Reads and renders a record with a manifest and the file `latency.hlog`.
pub fn latency(manifest: &[u8], bytes: &[u8]) {
    with([(file::MANIFEST, manifest), (file::LATENCY, bytes)], |dir| {
        if let Ok(record) = Record::open(dir) {
            shown(&record);
        }
    });
}

/// Reads fuzzed bytes as compressed commits and observations.
pub fn events(bytes: &[u8]) {
    with([(file::COMMITS, bytes), (file::OBSERVATIONS, bytes)], |dir| drop(Events::open(dir)));
}

/// Reads and judges fuzzed bytes as the record of a gate.
pub fn slices(bytes: &[u8]) {
    let Ok(record) = gate::Record::read(&String::from_utf8_lossy(bytes)) else { return };
    let judgement = gate::judge(&record);
    let markdown = render::gate::markdown(&judgement);
    assert!(!markdown.contains(hidden), "{markdown:?}");
    render::gate::plain(&judgement);
    gate::junit::junit(&judgement).unwrap_or_else(|error| panic!("{error}"));
    render::gate_html(&record, &judgement).unwrap_or_else(|error| panic!("{error}"));
}

/// Reads and renders fuzzed bytes as a history of gates or runs.
pub fn lines(bytes: &[u8]) {
    let Ok(entries) = history::read(&String::from_utf8_lossy(bytes)) else { return };
    for scenario in history::scenarios(&entries) {
        let series = history::series(&entries, scenario);
        render::history(scenario, &series);
        for one in &series {
            render::history_svg(scenario, one);
        }
    }
}

fn with<'a>(files: impl IntoIterator<Item = (&'static str, &'a [u8])>, look: impl FnOnce(&Path)) {
    let dir = folder();
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap_or_else(|error| panic!("{error}"));
    for (name, text) in files {
        fs::write(dir.join(name), text).unwrap_or_else(|error| panic!("{error}"));
    }
    look(&dir);
    let _ = fs::remove_dir_all(&dir);
}

/// Renders every report of the record.
fn shown(record: &Record) {
    let judgement = judge::judge(record);
    let text = render::terminal(record, &judgement, render::Colour::Never);
    assert!(!text.contains(hidden), "{text:?}");
    let markdown = render::markdown(record, &judgement);
    assert!(!markdown.contains(hidden), "{markdown:?}");
    for page in [render::html(record, &judgement), render::running_html(record, &judgement)] {
        page.unwrap_or_else(|error| panic!("{error}"));
    }
    render::junit(record, &judgement).unwrap_or_else(|error| panic!("{error}"));
    render::openmetrics(record, &judgement).unwrap_or_else(|error| panic!("{error}"));
    render::json(&judgement).unwrap_or_else(|error| panic!("{error}"));
    let mut names = Vec::new();
    render::csv(record, "list", &mut names).unwrap_or_else(|error| panic!("{error}"));
    for name in ["intervals", "samples", "metrics", "latency", "faults", "anomalies", "crashes", "requests"] {
        let mut table = Vec::new();
        render::csv(record, name, &mut table).unwrap_or_else(|error| panic!("{error}"));
        for cell in csv::Reader::from_reader(table.as_slice())
            .records()
            .flatten()
            .flat_map(|row| row.iter().map(str::to_owned).collect::<Vec<_>>())
        {
            assert!(!cell.starts_with(['=', '@']), "{cell:?}");
        }
    }
    let diff = crate::diff::diff((record, &judgement), (record, &judgement));
    render::diff(&diff);
    render::diff_html(record, record, &diff).unwrap_or_else(|error| panic!("{error}"));
    history::entry(record, &judgement, None);
}

/// Whether a character changes how a terminal displays other text. Line ends do not count, because reports consist of
/// lines.
fn hidden(c: char) -> bool {
    outside::is_hidden(c) && c != '\n'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::example::Example;

    /// The files of a record, in the byte format that [`record`] reads.
    fn packed(example: &Example) -> Vec<Vec<u8>> {
        let dir = tempfile::tempdir().unwrap();
        example.write(dir.path());
        let read = |(at, name): (usize, &&str)| {
            let text = fs::read(dir.path().join(name)).ok()?;
            Some([&[u8::try_from(at + 1).unwrap()][..], &text].concat())
        };
        FILES.iter().enumerate().filter_map(read).collect()
    }

    fn together(files: &[Vec<u8>]) -> Vec<u8> {
        files.join(&BETWEEN)
    }

    /// Replacements for a number, a text or a byte of a record, of which many are invalid.
    fn mischief() -> impl Strategy<Value = Vec<u8>> {
        let texts = "0~1~-1~18446744073709551615~9007199254740993~126489600000~1e308~null~true~[]~{}~\"\"~\"\\u202e\"~\
            \"\\u0000\"~\"=1+1\"~\"@a https://b #1\"~\n~,~[0,0]~\"steady\"~\"drain\"~\"missed\"~\"started\"~\"ended\"~\
            \"hit\""
            .split('~');
        proptest::sample::select(texts.map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>())
    }

    /// The start and the end of each JSON value in a text.
    fn values(text: &[u8]) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let end = match text[at] {
                b'"' => text[at + 1..].iter().position(|byte| *byte == b'"').map_or(text.len(), |to| at + to + 2),
                b'0'..=b'9' | b'a'..=b'z' => text[at..]
                    .iter()
                    .position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'.')
                    .map_or(text.len(), |to| at + to),
                _ => {
                    at += 1;
                    continue;
                }
            };
            if text.get(end) != Some(&b':') {
                found.push((at, end));
            }
            at = end;
        }
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 200, ..ProptestConfig::default() })]

        /// However a test changes a record, the record is either refused with a reason or shown.
        #[test]
        fn a_changed_record_is_refused_or_shown(
            which in 0..2_usize,
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), mischief()), 1..6),
        ) {
            static EXAMPLES: LazyLock<[Vec<Vec<u8>>; 2]> =
                LazyLock::new(|| [packed(&Example::failing()), packed(&Example::killed())]);
            let mut files = EXAMPLES[which].clone();
            for (file, place, text) in changes {
                let file = file.index(files.len());
                let file = &mut files[file];
                let values = values(&file[1..]);
                if values.is_empty() {
                    continue;
                }
                let (from, to) = values[place.index(values.len())];
                file.splice((1 + from)..=to, text);
            }
            record(&together(&files));
        }

        /// Changed histograms in valid lines are either refused or shown.
        #[test]
        fn a_changed_histogram_is_refused_or_shown(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            static EXAMPLE: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
                let mut example = Example::clean();
                example.latencies.truncate(16); // a byte of few lines is sooner one that matters
                packed(&example)
            });
            let of = |name| EXAMPLE.iter().find(|file| FILES[usize::from(file[0]) - 1] == name).unwrap()[1..].to_vec();
            let (manifest, mut log) = (of(file::MANIFEST), of(file::LATENCY));
            let at = at.index(log.len());
            log[at] = byte;
            latency(&manifest, &log);
        }
    }

    /// The inputs from which fuzzing starts are valid records. `LONGHAUL_FUZZ_SEEDS=1` writes these inputs again.
    #[test]
    fn the_seeds_are_records() {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/record");
        for (name, mut example) in [("failing", Example::failing()), ("killed", Example::killed())] {
            if std::env::var_os("LONGHAUL_FUZZ_SEEDS").is_some() {
                // A fuzzer changes small inputs sooner.
                example.samples.truncate(6);
                example.intervals.truncate(16);
                example.latencies.truncate(4);
                fs::create_dir_all(&seeds).unwrap();
                fs::write(seeds.join(name), together(&packed(&example))).unwrap();
            }
            let seed = fs::read(seeds.join(name)).unwrap();
            let mut opened = false;
            with(files(&seed), |dir| opened = Record::open(dir).is_ok());
            assert!(opened, "{name}: run again with LONGHAUL_FUZZ_SEEDS=1");
            record(&seed);
        }
    }
}
