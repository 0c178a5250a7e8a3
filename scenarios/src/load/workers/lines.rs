//! JSON lines over any pair of streams, with bounds on length and time.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};

use super::protocol::{LINE_BYTES_MAX, cut};

/// A line that the other side does not take within this time will not be taken.
const WRITE_LIMIT: Duration = Duration::from_secs(20);

/// A line of somebody who has not proved to be one of us. Greetings are far shorter.
const STRANGER_LINE_BYTES_MAX: usize = 1 << 10;

/// The lines that come.
pub(crate) struct Reading<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    line_bytes_max: usize,
}

impl<R: AsyncRead + Unpin> Reading<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input: BufReader::new(input), line: Vec::new(), line_bytes_max: LINE_BYTES_MAX }
    }

    /// The lines of somebody unknown, who may say little.
    pub(crate) fn of_stranger(input: R) -> Self {
        Self { line_bytes_max: STRANGER_LINE_BYTES_MAX, ..Self::new(input) }
    }

    /// The other side has proved who it is.
    pub(crate) fn trust(&mut self) {
        self.line_bytes_max = LINE_BYTES_MAX;
    }

    /// The next line, or `None` at the end. Not cancel safe: a line that was read in part is lost with the future.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, String> {
        let most = self.line_bytes_max;
        self.line.clear();
        let read = (&mut self.input).take(most as u64 + 1).read_until(b'\n', &mut self.line).await;
        read.map_err(|error| format!("cannot be read: {error}"))?;
        if self.line.is_empty() {
            return Ok(None);
        }
        if self.line.len() > most {
            return Err(format!("wrote a line of more than {most} bytes"));
        }
        serde_json::from_slice(&self.line).map(Some).map_err(|error| {
            let text = cut(String::from_utf8_lossy(&self.line[..self.line.len().min(80)]).trim());
            format!("wrote `{text}`, which is no line of the protocol ({error})")
        })
    }
}

/// Writes a line.
pub(crate) async fn write<W: AsyncWrite + Unpin>(output: &mut W, value: &impl Serialize) -> Result<(), String> {
    let mut line = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    line.push(b'\n');
    let write = async {
        output.write_all(&line).await?;
        output.flush().await
    };
    match tokio::time::timeout(WRITE_LIMIT, write).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(format!("cannot be written to: {error}")),
        Err(_) => Err(format!("did not take a line within {} s", WRITE_LIMIT.as_secs())),
    }
}
