//! The end of a subject's output: the last lines, and the last line with an error.
//!
//! The number and length of the kept lines are bounded. A crash in Go, Java or Node.js prints its error first and then
//! a long stack trace. The last lines alone would therefore show where the error happened, but not the error.

use std::collections::VecDeque;

/// Maximum number of lines of the subject's output in an error message.
const LAST_LINES: usize = 12;
/// Maximum number of characters that are shown of one line.
const LINE_CHARS: usize = 300;
/// Beginnings of lines by which the runtimes of common languages report an error.
const BEGINS: [&str; 6] = ["panic:", "fatal error:", "Exception in thread", "Caused by:", "Traceback", "FATAL"];
/// Texts inside lines that report an error.
const HOLDS: [&str; 5] = ["panicked at", "Error:", "error:", "Exception:", "fatal:"];

#[derive(Debug, Default)]
pub struct Tail {
    lines: VecDeque<String>,
    /// The last line that reports an error, and the number of lines after it.
    error: Option<(String, usize)>,
}

impl Tail {
    pub(super) fn push(&mut self, line: &str) {
        let line: String = line.chars().take(LINE_CHARS).collect();
        match &mut self.error {
            _ if names_error(&line) => self.error = Some((line.clone(), 0)),
            Some((_, after)) => *after += 1,
            None => {}
        }
        if self.lines.len() == LAST_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// The last lines of the output, and the line with the error, as text for an error message.
    pub(super) fn words(&self) -> String {
        if self.lines.is_empty() {
            return "(it wrote nothing)".to_owned();
        }
        let last = self.lines.iter().map(String::as_str);
        let error = self.error.iter().filter(|(_, after)| *after >= LAST_LINES);
        error.flat_map(|(line, _)| [line.as_str(), "…"]).chain(last).collect::<Vec<_>>().join("\n")
    }
}

fn names_error(line: &str) -> bool {
    let line = line.trim_start();
    BEGINS.iter().any(|begin| line.starts_with(begin)) || HOLDS.iter().any(|word| line.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(lines: &[&str], stack: usize) -> String {
        let mut tail = Tail::default();
        for line in lines {
            tail.push(line);
        }
        (0..stack).for_each(|frame| tail.push(&format!("\tmain.handle({frame:#x})")));
        tail.words()
    }

    /// The kept lines show the reason of a crash, however long the stack trace is.
    #[test]
    fn the_line_of_the_error_is_among_the_last_words() {
        for error in [
            "panic: runtime error: invalid memory address",
            "thread 'main' panicked at src/main.rs:7:5:",
            "TypeError: cannot read properties of undefined",
            "Exception in thread \"main\" java.lang.IllegalStateException: no cache",
        ] {
            let long = words(&["started", error], 200);
            assert!(long.starts_with(&format!("{error}\n…\n\tmain.handle(")), "{long}");
            assert_eq!(long.lines().count(), 2 + LAST_LINES);
            let short = words(&["started", error], 3);
            assert_eq!(short.matches(error).count(), 1, "{short}");
            assert!(!short.contains('…'));
        }
        assert_eq!(words(&["panic: first", "panic: second"], 50).lines().next(), Some("panic: second"));
        assert_eq!(words(&["no news"], 20).lines().count(), LAST_LINES);
        assert_eq!(words(&[], 0), "(it wrote nothing)");
    }
}
