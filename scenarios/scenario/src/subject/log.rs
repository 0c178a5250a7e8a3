//! Writes the subject's output to `subject.log`, passes it to the witness, and keeps the last lines for error messages.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use super::tail::Tail;
use super::{Error, Pods};
use crate::witness::{Lines, Reporter};

/// Maximum size of `subject.log` and of `subject.log.1`, in bytes: enough to see how a run ended, even after 100 hours
/// of output.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// Maximum length of a line that is passed to the witness, in bytes. A longer line of output is cut, because such a
/// line is not an observation.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// The destination of the output of all processes of the subject. Clones of a log write to the same file.
#[derive(Clone)]
pub struct Log {
    file: Arc<Mutex<File>>,
    witness: Option<(Arc<dyn Lines>, Reporter)>,
    awaited: Option<Arc<Line>>,
    /// Prefix of each line in the log, if the subject has several processes.
    prefix: Option<Arc<str>>,
}

/// A line of output that the harness waits for.
#[derive(Debug)]
pub struct Line {
    text: String,
    seen: AtomicBool,
}

impl Line {
    /// A line that contains this text.
    pub fn with(text: &str) -> Self {
        Self { text: text.to_owned(), seen: AtomicBool::new(false) }
    }

    /// The text that the line must contain.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_seen(&self) -> bool {
        self.seen.load(Ordering::Relaxed)
    }

    fn look(&self, line: &str) {
        if !self.is_seen() && line.contains(&self.text) {
            self.seen.store(true, Ordering::Relaxed);
        }
    }
}

struct File {
    path: PathBuf,
    out: std::fs::File,
    bytes: u64,
}

impl Log {
    /// Opens `subject.log` in `directory`.
    pub fn create(directory: &Path, witness: Option<(Arc<dyn Lines>, Reporter)>) -> Result<Self, Error> {
        let path = directory.join("subject.log");
        let out = std::fs::File::create(&path).map_err(|source| Error::Log { path: path.clone(), source })?;
        Ok(Self { file: Arc::new(Mutex::new(File { path, out, bytes: 0 })), witness, awaited: None, prefix: None })
    }

    /// A clone of the log for one process, with the process's name as prefix and with an awaited line.
    pub(super) fn of(self, name: Option<&str>, awaited: Option<Arc<Line>>) -> Self {
        Self { awaited, prefix: name.map(|name| format!("[{name}] ").into()), ..self }
    }

    /// Reads a container's output to its end.
    pub async fn reads(&self, output: impl AsyncRead + Unpin + Send, name: &str, pods: &Pods) {
        read(output, self.clone().of(Some(name), None), pods.tail()).await;
    }

    /// Writes a line from the harness itself into the log.
    pub fn note(&self, line: &str) {
        self.write(format!("[longhaul] {line}").as_bytes());
    }

    fn write(&self, line: &[u8]) {
        let mut log = self.file.lock();
        // A full disk must not end the run: the record itself reports it, and this file is only for users.
        let _ = log.write(line);
    }
}

impl File {
    fn write(&mut self, line: &[u8]) -> std::io::Result<()> {
        if self.bytes >= FILE_BYTES_MAX {
            std::fs::rename(&self.path, self.path.with_extension("log.1"))?;
            self.out = std::fs::File::create(&self.path)?;
            self.bytes = 0;
        }
        self.bytes += line.len() as u64 + 1;
        self.out.write_all(line)?;
        self.out.write_all(b"\n")
    }
}

/// Reads one of the subject's pipes to its end. Lines are cut at [`LINE_BYTES_MAX`].
pub(super) async fn read(pipe: impl AsyncRead + Unpin + Send, log: Log, tail: Arc<Mutex<Tail>>) {
    let mut reader = BufReader::new(pipe);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        match read_line(&mut reader, &mut line).await {
            Ok(true) => {}
            // A pipe with an error counts as ended.
            Ok(false) | Err(_) => return,
        }
        match &log.prefix {
            Some(prefix) => log.write(&[prefix.as_bytes(), &line].concat()),
            None => log.write(&line),
        }
        let text = String::from_utf8_lossy(&line);
        if let Some(awaited) = &log.awaited {
            awaited.look(&text);
        }
        tail.lock().push(&text);
        if let Some((lines, reporter)) = &log.witness {
            reporter.line(&**lines, number, &text).await;
        }
    }
}

/// Reads one line without its end, keeping at most [`LINE_BYTES_MAX`] bytes. Returns `false` at the end of the pipe.
async fn read_line(reader: &mut (impl AsyncBufReadExt + Unpin), line: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut any = false;
    loop {
        let buffer = reader.fill_buf().await?;
        if buffer.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        let room = LINE_BYTES_MAX.saturating_sub(line.len());
        line.extend_from_slice(&part[..part.len().min(room)]);
        let used = end.map_or(buffer.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_cut_and_the_last_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let log = Log::create(directory.path(), None).unwrap();
        let mut input = b"first\n".to_vec();
        input.extend(std::iter::repeat_n(b'x', LINE_BYTES_MAX + 100));
        input.extend(b"\nlast without end");
        let tail: Arc<Mutex<Tail>> = Arc::default();
        read(&input[..], log, Arc::clone(&tail)).await;
        let words = tail.lock().words();
        let words: Vec<&str> = words.lines().collect();
        assert_eq!((words[1].len(), words[2]), (300, "last without end"));
        let written = std::fs::read_to_string(directory.path().join("subject.log")).unwrap();
        assert_eq!(written.lines().map(str::len).collect::<Vec<_>>(), [5, LINE_BYTES_MAX, 16]);
    }

    #[tokio::test]
    async fn an_awaited_line_is_seen_once_it_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let line = Arc::new(Line::with("ready to serve"));
        let log = Log::create(directory.path(), None).unwrap().of(Some("a"), Some(Arc::clone(&line)));
        read(&b"starting\n"[..], log.clone(), Arc::default()).await;
        assert!(!line.is_seen());
        read(&b"INFO ready to serve on 8443\nlater\n"[..], log, Arc::default()).await;
        assert!(line.is_seen());
        let written = std::fs::read_to_string(directory.path().join("subject.log")).unwrap();
        assert_eq!(written, "[a] starting\n[a] INFO ready to serve on 8443\n[a] later\n");
    }
}
