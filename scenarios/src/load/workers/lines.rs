//! JSON lines over a pair of streams, with limits of length and time.

use std::io;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};

use super::protocol::{LINE_BYTES_MAX, cut};

/// Timeout of a write, if the peer does not read.
const WRITE_LIMIT: Duration = Duration::from_secs(20);

/// A problem with a line, as a text after the name of the peer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot be read: {0}")]
    Read(#[source] io::Error),
    #[error("wrote a line of more than {LINE_BYTES_MAX} bytes")]
    TooLong,
    #[error("wrote `{beginning}`, which is no line of the protocol ({source})")]
    Meaningless { beginning: String, source: serde_json::Error },
    #[error(transparent)]
    Unwritable(serde_json::Error),
    #[error("cannot be written to: {0}")]
    Write(#[source] io::Error),
    #[error("did not take a line within {} s", WRITE_LIMIT.as_secs())]
    NotTaken,
}

pub(crate) struct Reading<R> {
    input: BufReader<R>,
    line: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Reading<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input: BufReader::new(input), line: Vec::new() }
    }

    /// The next line, or `None` at the end of the stream. Not cancel safe: a partly read line is lost with the future.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        self.line.clear();
        let read = (&mut self.input).take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut self.line).await;
        read.map_err(Error::Read)?;
        if self.line.is_empty() {
            return Ok(None);
        }
        if self.line.len() > LINE_BYTES_MAX {
            return Err(Error::TooLong);
        }
        serde_json::from_slice(&self.line).map(Some).map_err(|source| {
            let beginning = cut(String::from_utf8_lossy(&self.line[..self.line.len().min(80)]).trim());
            Error::Meaningless { beginning, source }
        })
    }
}

pub(crate) async fn write<W: AsyncWrite + Unpin>(output: &mut W, value: &impl Serialize) -> Result<(), Error> {
    let mut line = serde_json::to_vec(value).map_err(Error::Unwritable)?;
    line.push(b'\n');
    let write = async {
        output.write_all(&line).await?;
        output.flush().await
    };
    match tokio::time::timeout(WRITE_LIMIT, write).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Error::Write(error)),
        Err(_) => Err(Error::NotTaken),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(input: &[u8]) -> Result<Vec<String>, Error> {
        let (mut reading, mut lines) = (Reading::new(input), Vec::new());
        while let Some(line) = reading.next().await? {
            lines.push(line);
        }
        Ok(lines)
    }

    #[tokio::test]
    async fn lines_are_read_one_by_one_up_to_their_bound() {
        assert_eq!(all(b"").await.unwrap(), Vec::<String>::new());
        assert_eq!(all(b"\"a\"\n\"b\"").await.unwrap(), ["a", "b"], "the last one needs no end");
        let longest = format!("\"{}\"\n", "x".repeat(LINE_BYTES_MAX - 3));
        assert_eq!(all(longest.as_bytes()).await.unwrap()[0].len(), LINE_BYTES_MAX - 3);
        let error = all(format!("\"x{}", &longest[1..]).as_bytes()).await.unwrap_err().to_string();
        assert_eq!(error, format!("wrote a line of more than {LINE_BYTES_MAX} bytes"));
        let error = all(b"\"a\"\nnonsense\x1b\n").await.unwrap_err().to_string();
        assert!(error.starts_with("wrote `nonsense `, which is no line of the protocol"), "{error}");
    }

    #[tokio::test]
    async fn what_is_written_is_one_line() {
        let mut output = Vec::new();
        write(&mut output, &"a\nb").await.unwrap();
        write(&mut output, &"c").await.unwrap();
        assert_eq!(output, b"\"a\\nb\"\n\"c\"\n");
    }
}
