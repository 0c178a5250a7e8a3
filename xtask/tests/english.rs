//! Counts hard-to-read English in documents and doc lines; no count may rise.
//!
//! The test reads files and builds nothing. The limits of these counts are in `english.txt`. With
//! `LONGHAUL_ENGLISH=lower` the test lowers each limit to its count; no limit is ever raised.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Maximum number of words of a sentence in a document.
const WORDS_MAX: usize = 35;
/// Maximum number of columns of a line in a document. Lines of tables and code blocks have no limit.
const COLUMNS_MAX: usize = 140;
/// First words of a doc line that begin a clause instead of a noun.
const BEGINNINGS: [&str; 5] = ["What", "Who", "Whoever", "That", "It"];
/// Words that had private meanings in older text.
const PRIVATE: [&str; 4] = ["told", "said", "heard", "whoever"];
/// Names of folders with other people's text or with build output.
const SKIPPED: [&str; 3] = ["target", "node_modules", "vendor"];
/// Number of findings that a failed test prints.
const SHOWN: usize = 10;
const LIMITS: &str = "xtask/tests/english.txt";
const VARIABLE: &str = "LONGHAUL_ENGLISH";

/// Documents that quote recorded output and are written by a program.
const QUOTED: [&str; 1] = ["docs/measured/strangers.md"];

/// A function that finds one kind of hard-to-read English in a text.
type Counter = fn(&str) -> Vec<Finding>;

/// The kinds of counts, in the order of [`LIMITS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Count {
    LongSentences,
    LongLines,
    Beginnings,
    PrivateWords,
}

const COUNTS: [Count; 4] = [Count::LongSentences, Count::LongLines, Count::Beginnings, Count::PrivateWords];

impl Count {
    fn name(self) -> &'static str {
        match self {
            Self::LongSentences => "sentences-over-35-words",
            Self::LongLines => "lines-over-140-columns",
            Self::Beginnings => "doc-lines-that-begin-with-a-clause",
            Self::PrivateWords => "private-words",
        }
    }
}

/// One occurrence of hard-to-read English.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    count: Count,
    /// The number of the line, from 1.
    line: usize,
    /// The number of words, columns or occurrences. The larger this number, the harder the text is to read.
    size: usize,
    /// The beginning of the hard-to-read sentence or line.
    text: String,
}

fn finding(count: Count, line: usize, size: usize, text: &str) -> Finding {
    Finding { count, line, size, text: text.trim().chars().take(90).collect() }
}

/// A text without inline code and without the targets of links. Each code span counts as one word that begins with a
/// backtick.
fn prose(text: &str) -> String {
    let mut plain = String::new();
    for (number, part) in text.split('`').enumerate() {
        plain.push_str(if number % 2 == 0 { part } else { "`x" });
    }
    let mut parts = plain.split("](");
    let mut prose = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let target = part.find(')').map_or(part, |end| &part[end + 1..]);
        prose.push(']');
        prose.push_str(target);
    }
    prose
}

/// The words of each sentence, with the index of the first word's line, from 0.
fn sentences(prose: &str) -> Vec<(usize, Vec<&str>)> {
    let numbered = |(line, text): (usize, _)| str::split_whitespace(text).map(move |word| (line, word));
    let words: Vec<(usize, &str)> = prose
        .lines()
        .enumerate()
        .flat_map(numbered)
        .filter(|(_, word)| word.contains(|c: char| c.is_alphanumeric()))
        .collect();
    let (mut found, mut begin) = (Vec::new(), 0);
    for (at, (_, word)) in words.iter().enumerate() {
        let ends = word.trim_end_matches([')', '"', '*', '_']).ends_with(['.', '?', '!']);
        let next = words.get(at + 1).map(|(_, next)| next.trim_start_matches(['(', '"', '*', '_', '[']));
        if next.is_none_or(|next| ends && !next.starts_with(char::is_lowercase)) {
            found.push((words[begin].0, words[begin..=at].iter().map(|(_, word)| *word).collect()));
            begin = at + 1;
        }
    }
    found
}

/// How often a text contains words with private meanings.
fn private_words(prose: &str) -> usize {
    let words = prose.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| PRIVATE.iter().any(|private| private.eq_ignore_ascii_case(word))).count()
}

fn begins_block(line: &str) -> bool {
    let numbered = line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    numbered || line.starts_with(['#', '<']) || ["- ", "* ", "+ "].iter().any(|marker| line.starts_with(marker))
}

/// A block of consecutive lines, with the number of the first line.
#[derive(Default)]
struct Block {
    line: usize,
    text: String,
}

impl Block {
    fn add(&mut self, number: usize, line: &str) {
        if self.text.is_empty() {
            self.line = number;
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Counts the sentences of the block, and clears the block.
    fn end(&mut self, found: &mut Vec<Finding>) {
        let block = std::mem::take(self);
        let prose = prose(&block.text);
        let long = sentences(&prose).into_iter().filter(|(_, words)| words.len() > WORDS_MAX);
        found.extend(
            long.map(|(line, words)| finding(Count::LongSentences, block.line + line, words.len(), &words.join(" "))),
        );
    }
}

/// The hard-to-read English in a Markdown document.
fn page(text: &str) -> Vec<Finding> {
    let (mut found, mut block, mut code) = (Vec::new(), Block::default(), false);
    for (number, line) in (1..).zip(text.lines()) {
        let content = line.trim_start_matches([' ', '>']);
        if content.starts_with("```") || content.starts_with("~~~") {
            code = !code;
            block.end(&mut found);
            continue;
        }
        if code {
            continue;
        }
        let private = private_words(&prose(content));
        if private > 0 {
            found.push(finding(Count::PrivateWords, number, private, content));
        }
        if content.starts_with('|') {
            block.end(&mut found);
            for cell in content.split('|') {
                block.add(number, cell);
                block.end(&mut found);
            }
            continue;
        }
        let columns = line.chars().count();
        if columns > COLUMNS_MAX {
            found.push(finding(Count::LongLines, number, columns, content));
        }
        if content.is_empty() || begins_block(content) {
            block.end(&mut found);
        }
        if !content.is_empty() {
            block.add(number, content);
        }
        if content.starts_with('#') {
            block.end(&mut found);
        }
    }
    block.end(&mut found);
    found
}

/// The text of a doc line; `None` for other lines.
fn doc(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("//!").or_else(|| line.strip_prefix("///").filter(|rest| !rest.starts_with('/')))
}

/// The hard-to-read English in the doc lines of a source file.
fn source(text: &str) -> Vec<Finding> {
    let (mut found, mut code) = (Vec::new(), false);
    for (number, line) in (1..).zip(text.lines()) {
        let Some(doc) = doc(line) else {
            code = false;
            continue;
        };
        if doc.trim_start().starts_with("```") {
            code = !code;
        }
        if code {
            continue;
        }
        let prose = prose(doc);
        let private = private_words(&prose);
        if private > 0 {
            found.push(finding(Count::PrivateWords, number, private, doc));
        }
        let first = prose.split_whitespace().next().unwrap_or_default();
        if BEGINNINGS.contains(&first.trim_end_matches([',', ':', ';'])) {
            found.push(finding(Count::Beginnings, number, 1, doc));
        }
    }
    found
}

/// The files below `folder` whose names end in `ending`, sorted.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
            files(&entry.path(), ending, found);
        } else if kind.is_file() && name.ends_with(ending) {
            found.push(entry.path());
        }
    }
}

/// All hard-to-read English in the repository, each with its file.
fn tree(root: &Path) -> Vec<(String, Finding)> {
    let mut all = Vec::new();
    let kinds: [(&str, Counter); 2] = [(".md", page), (".rs", source)];
    for (ending, read) in kinds {
        let mut paths = Vec::new();
        files(root, ending, &mut paths);
        for path in paths {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if QUOTED.contains(&name.as_str()) {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            all.extend(read(&text).into_iter().map(|finding| (name.clone(), finding)));
        }
    }
    all
}

/// The number of findings of each kind. A line with two private words counts twice.
fn counts(findings: &[(String, Finding)]) -> BTreeMap<Count, usize> {
    let mut counts: BTreeMap<Count, usize> = COUNTS.map(|count| (count, 0)).into();
    for (_, finding) in findings {
        *counts.entry(finding.count).or_default() +=
            if finding.count == Count::PrivateWords { finding.size } else { 1 };
    }
    counts
}

/// Parses the limits from lines `name number`.
fn limits(text: &str) -> BTreeMap<Count, usize> {
    let limit = |count: Count| {
        let number = text.lines().find_map(|line| line.strip_prefix(count.name())?.trim().parse().ok());
        (count, number.unwrap_or_else(|| panic!("{LIMITS} has no line `{} NUMBER`", count.name())))
    };
    COUNTS.map(limit).into()
}

/// The limits, after each limit above its count was lowered to the count.
fn lowered(limits: &BTreeMap<Count, usize>, counts: &BTreeMap<Count, usize>) -> String {
    let lines = limits.iter().map(|(count, limit)| format!("{} {}\n", count.name(), limit.min(&counts[count])));
    lines.collect()
}

/// The worst findings of one kind, one per line.
fn worst(findings: &[(String, Finding)], count: Count) -> String {
    let mut of: Vec<_> = findings.iter().filter(|(_, finding)| finding.count == count).collect();
    of.sort_by_key(|(_, finding)| std::cmp::Reverse(finding.size));
    let mut text = String::new();
    for (file, finding) in of.iter().take(SHOWN) {
        let _ = writeln!(text, "  {file}:{}: {}: {}", finding.line, finding.size, finding.text);
    }
    text
}

#[test]
fn no_count_rises() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let findings = tree(root);
    let counts = counts(&findings);
    let path = root.join(LIMITS);
    let limits = limits(&std::fs::read_to_string(&path).unwrap());
    if std::env::var_os(VARIABLE).is_some_and(|value| value == "lower") {
        std::fs::write(&path, lowered(&limits, &counts)).unwrap();
    }
    let mut risen = String::new();
    for (count, limit) in limits {
        println!("{}: {} of at most {limit}", count.name(), counts[&count]);
        if counts[&count] > limit {
            let _ = writeln!(risen, "{}: {}, the limit is {limit}. The worst:", count.name(), counts[&count]);
            risen.push_str(&worst(&findings, count));
        }
    }
    assert!(counts.values().any(|count| *count > 0), "nothing was read below {}", root.display());
    assert!(risen.is_empty(), "counts of {LIMITS} rose; `git diff` shows the new lines\n{risen}");
}

#[test]
fn a_clean_page_has_no_finding() {
    let row = format!("| {} |", "Cell. ".repeat(60));
    let code = format!("```\n{}\n```", "told ".repeat(60));
    let wrapped = "Ten words are on this line of the clean page.\n".repeat(8);
    let text = format!(
        "# Title\n\n{wrapped}\n- one item `he said {}`\n- [link]({})\n\n{row}\n{code}\n",
        "x ".repeat(20),
        "told/".repeat(10)
    );
    assert_eq!(page(&text), []);
}

#[test]
fn a_bad_page_has_each_finding_once() {
    let sentence = "Word ".repeat(20);
    let text = format!("# Title\n\nOne.\n{sentence}\n{sentence}.\n\nWe said it.\n\n{}\n", "x".repeat(141));
    let found: Vec<_> = page(&text).iter().map(|finding| (finding.count, finding.line, finding.size)).collect();
    assert_eq!(found, [(Count::LongSentences, 4, 40), (Count::PrivateWords, 7, 1), (Count::LongLines, 9, 141)]);
}

#[test]
fn a_long_sentence_in_a_cell_or_an_item_is_found() {
    let sentence = "word ".repeat(36);
    let lines = |text: &str| page(text).iter().map(|finding| (finding.count, finding.line)).collect::<Vec<_>>();
    assert_eq!(lines(&format!("| a | {sentence} |\n")), [(Count::LongSentences, 1)]);
    assert_eq!(
        lines(&format!("1. one\n2. {}\n   {}\n", &sentence[..100], &sentence[..80])),
        [(Count::LongSentences, 2)]
    );
}

#[test]
fn sentences_of_a_text() {
    let lengths = |text: &str| sentences(text).into_iter().map(|(line, words)| (line, words.len())).collect::<Vec<_>>();
    assert_eq!(lengths("One two. Three\nfour five? Six."), [(0, 2), (0, 3), (1, 1)]);
    assert_eq!(lengths("Some, e.g. this one, go on (as here). `x ends"), [(0, 8), (0, 2)]);
    assert_eq!(lengths(" – "), []);
}

#[test]
fn prose_of_a_text() {
    assert_eq!(prose("a `b c` [d](e f) g"), "a `x [d] g");
}

#[test]
fn clean_doc_lines_have_no_finding() {
    let text = "//! Owns the limits.\n\n/// Items of `told.rs`, which says so.\n/// ```\n/// It(told);\n/// ```\nfn told() {}\n// It said \
        so.\n//// What?\n";
    assert_eq!(source(text), []);
}

#[test]
fn bad_doc_lines_are_found() {
    let text = "//! What it does.\n    /// It is said and Told.\n/// Whatever.\n/// That, then.\n";
    let found: Vec<_> = source(text).iter().map(|finding| (finding.count, finding.line, finding.size)).collect();
    assert_eq!(
        found,
        [(Count::Beginnings, 1, 1), (Count::PrivateWords, 2, 2), (Count::Beginnings, 2, 1), (Count::Beginnings, 4, 1)]
    );
}

#[test]
fn a_limit_is_lowered_and_never_raised() {
    let committed = COUNTS.map(|count| format!("{} 5\n", count.name())).concat();
    let limits = limits(&committed);
    let counts = BTreeMap::from([
        (Count::LongSentences, 4),
        (Count::LongLines, 5),
        (Count::Beginnings, 6),
        (Count::PrivateWords, 0),
    ]);
    let lowered: Vec<_> =
        lowered(&limits, &counts).lines().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect();
    assert_eq!(lowered, ["4", "5", "5", "0"]);
}

#[test]
fn the_worst_come_first_with_their_places() {
    let of = |line, size| ("a.md".to_owned(), finding(Count::LongLines, line, size, "text"));
    assert_eq!(worst(&[of(1, 141), of(2, 200)], Count::LongLines), "  a.md:2: 200: text\n  a.md:1: 141: text\n");
    assert_eq!(worst(&[of(1, 141)], Count::Beginnings), "");
}
