//! Commands and answers of Redis (RESP2, <https://redis.io/docs/latest/develop/reference/protocol-spec/>) that the
//! service's cache needs.
//!
//! The expiry in a command is ignored: long expiries exceed the run, and values with short expiries contain their own
//! expiry.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Maximum number of arguments of a Redis command.
const WORDS_MAX: usize = 16;
const WORD_BYTES_MAX: usize = 64 << 10;
/// Maximum number of bytes of a line: a type character and a number.
const LINE_BYTES_MAX: u64 = 32;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// `GETRANGE name …`.
    Get(Vec<u8>),
    /// `SET name value …`.
    Set(Vec<u8>, Vec<u8>),
    Other(String),
}

pub(super) enum Reply {
    Value(Vec<u8>),
    Done,
    Refused(String),
}

/// Reads the next command; `None` at the end of the stream.
pub(super) async fn read(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Command>> {
    let Some(count) = number(stream, b'*', WORDS_MAX).await? else { return Ok(None) };
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let length = number(stream, b'$', WORD_BYTES_MAX).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut word = vec![0; length + 2];
        stream.read_exact(&mut word).await?;
        word.truncate(length);
        words.push(word);
    }
    let mut words = words.into_iter();
    let verb = words.next().unwrap_or_default().to_ascii_uppercase();
    Ok(Some(match (&*verb, words.next(), words.next()) {
        (b"GETRANGE", Some(name), Some(_)) => Command::Get(name),
        (b"SET", Some(name), Some(value)) => Command::Set(name, value),
        (other, ..) => Command::Other(String::from_utf8_lossy(other).into_owned()),
    }))
}

/// Reads a line that begins with `mark` and contains a number up to `most`; `None` at the end of the stream.
async fn number(stream: &mut (impl AsyncBufRead + Unpin), mark: u8, most: usize) -> io::Result<Option<usize>> {
    let mut line = Vec::new();
    (&mut *stream).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await?;
    if line.is_empty() {
        return Ok(None);
    }
    let text = line.strip_suffix(b"\r\n").and_then(|line| line.strip_prefix(&[mark]));
    let number = text.and_then(|text| std::str::from_utf8(text).ok()).and_then(|text| text.parse::<usize>().ok());
    number.filter(|number| *number <= most).map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

pub(super) async fn write(stream: &mut (impl AsyncWrite + Unpin), reply: &Reply) -> io::Result<()> {
    match reply {
        Reply::Done => stream.write_all(b"+OK\r\n").await?,
        Reply::Refused(what) => {
            let what = what.escape_default();
            stream.write_all(format!("-ERR unknown command '{what}'\r\n").as_bytes()).await?;
        }
        Reply::Value(value) => {
            stream.write_all(format!("${}\r\n", value.len()).as_bytes()).await?;
            stream.write_all(value).await?;
            stream.write_all(b"\r\n").await?;
        }
    }
    stream.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_of(text: &str) -> io::Result<Option<Command>> {
        read(&mut text.as_bytes()).await
    }

    #[tokio::test]
    async fn commands_are_read_and_nonsense_is_an_error() {
        let get = read_of("*4\r\n$8\r\ngetrange\r\n$1\r\na\r\n$1\r\n0\r\n$1\r\n9\r\n").await.unwrap();
        assert_eq!(get, Some(Command::Get(b"a".to_vec())));
        let set = read_of("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\n\r\n\r\n").await.unwrap();
        assert_eq!(set, Some(Command::Set(b"a".to_vec(), b"\r\n".to_vec())));
        assert_eq!(read_of("*1\r\n$4\r\nPING\r\n").await.unwrap(), Some(Command::Other("PING".to_owned())));
        assert_eq!(read_of("").await.unwrap(), None);
        for wrong in ["*99\r\n", "*1\r\n$999999\r\n", "*1\r\n$4\r\nPI", "GET a\r\n", "*-1\r\n", "*1\r\n"] {
            assert!(read_of(wrong).await.is_err(), "{wrong}");
        }
    }
}
