//! Requests on one stream to Redis: first the login, then commands in order; each command gets the next answer.
//!
//! This module matches answers to commands by their order. If a caller stops waiting, its late answer is dropped and no
//! other caller gets it. An unexpected answer, or an answer larger than its command allows, ends the stream.

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio::sync::{mpsc, oneshot};

use crate::resp::{self, Reply, Wrong};

/// Maximum number of commands that wait to be written to Redis.
const QUEUE_MAX: usize = 50;
/// Maximum number of commands that are written and wait for answers.
const UNDER_WAY_MAX: usize = 256;
/// Maximum number of bytes of one read; a read gets fewer bytes if the buffer has less free space.
const READ_BYTES: usize = 8 << 10;
/// The text of the error after a login with user name and password at a Redis without users (before version 6).
const KNOWS_NO_USERS: &str = "wrong number of arguments for 'auth' command";

pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

pub struct Login {
    /// The user in Redis' access control list; `None` means the default user, which has only a password.
    pub user: Option<String>,
    /// The password; `None` means that there is no login.
    pub password: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum Ended {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// An answer was invalid.
    #[error(transparent)]
    Wrong(#[from] Wrong),
    #[error("it closed the connection")]
    Closed,
    /// An answer came although no command was waiting.
    #[error("it answered what nobody asked")]
    Unasked,
    #[error("it does not take the password: check `user` and `passwordFile` of `sharedCache`")]
    Stranger,
    /// No caller can send commands any more.
    #[error("nobody asks any more")]
    Unused,
}

/// The handle through which callers send commands.
#[derive(Clone)]
pub struct Asker {
    questions: mpsc::Sender<Question>,
}

struct Question {
    command: Vec<u8>,
    place: PendingReply,
}

/// A caller that waits for an answer, and the largest size of the value.
struct PendingReply {
    most: usize,
    answer: oneshot::Sender<Reply>,
}

impl Asker {
    /// The answer to a command, with a value of at most `most` bytes; `None` if the stream has ended.
    pub async fn ask(&self, command: Vec<u8>, most: usize) -> Option<Reply> {
        let (answer, answered) = oneshot::channel();
        self.questions.send(Question { command, place: PendingReply { most, answer } }).await.ok()?;
        answered.await.ok()
    }
}

/// The stream and the callers that wait for its answers. On drop, the callers stop waiting.
pub struct Exchange {
    stream: Box<dyn Stream>,
    questions: mpsc::Receiver<Question>,
    under_way: mpsc::Sender<PendingReply>,
    places: mpsc::Receiver<PendingReply>,
    next: Option<PendingReply>,
}

impl Exchange {
    /// Logs in; then the stream is ready for commands.
    pub async fn greet(mut stream: Box<dyn Stream>, login: &Login) -> Result<(Asker, Self), Ended> {
        if let Some(password) = &login.password {
            let with_user = login.user.as_ref().map(|user| [b"AUTH", user.as_bytes(), password.as_bytes()]);
            let alone = [b"AUTH".as_slice(), password.as_bytes()];
            let mut said = answer_now(&mut stream, with_user.as_ref().map_or(&alone[..], |words| &words[..])).await?;
            if with_user.is_some() && matches!(&said, Reply::Error(why) if why.contains(KNOWS_NO_USERS)) {
                said = answer_now(&mut stream, &alone).await?;
            }
            if said != Reply::Line(b"OK".to_vec()) {
                return Err(Ended::Stranger);
            }
        }
        let (asked, questions) = mpsc::channel(QUEUE_MAX);
        let (under_way, places) = mpsc::channel(UNDER_WAY_MAX);
        Ok((Asker { questions: asked }, Self { stream, questions, under_way, places, next: None }))
    }

    /// Writes commands and delivers answers until the stream ends.
    pub async fn run(&mut self) -> Ended {
        let (reader, writer) = split(&mut self.stream);
        // Reading and writing do not wait for each other, so that a Redis that writes before it reads on does not block
        // both.
        let ended = tokio::select! {
            ended = write(writer, &mut self.questions, &self.under_way) => ended,
            ended = read(reader, &mut self.places, &mut self.next) => ended,
        };
        ended.unwrap_or_else(|ended| ended)
    }
}

/// Sends a command and reads its answer; no other command may be open.
async fn answer_now(stream: &mut Box<dyn Stream>, words: &[&[u8]]) -> Result<Reply, Ended> {
    stream.write_all(&resp::command(words)).await?;
    stream.flush().await?;
    let mut input = BytesMut::new();
    loop {
        if let Some(reply) = resp::reply(&mut input, 0)? {
            return if input.is_empty() { Ok(reply) } else { Err(Ended::Unasked) };
        }
        more(stream, &mut input).await?;
    }
}

async fn write(
    mut writer: impl AsyncWrite + Unpin,
    questions: &mut mpsc::Receiver<Question>,
    under_way: &mpsc::Sender<PendingReply>,
) -> Result<Ended, Ended> {
    while let Some(Question { command, place }) = questions.recv().await {
        // Its caller has stopped waiting.
        if place.answer.is_closed() {
            continue;
        }
        // The place exists before its answer can arrive.
        if under_way.send(place).await.is_err() {
            break;
        }
        writer.write_all(&command).await?;
        writer.flush().await?;
    }
    Ok(Ended::Unused)
}

async fn read(
    mut reader: impl AsyncRead + Unpin,
    places: &mut mpsc::Receiver<PendingReply>,
    next: &mut Option<PendingReply>,
) -> Result<Ended, Ended> {
    let mut input = BytesMut::new();
    loop {
        more(&mut reader, &mut input).await?;
        while !input.is_empty() {
            let place = next.take().or_else(|| places.try_recv().ok()).ok_or(Ended::Unasked)?;
            match resp::reply(&mut input, place.most) {
                // A caller that left does not get it, and no other caller does.
                Ok(Some(reply)) => drop(place.answer.send(reply)),
                Ok(None) => {
                    *next = Some(place);
                    break;
                }
                Err(wrong) => {
                    *next = Some(place);
                    return Err(wrong.into());
                }
            }
        }
    }
}

/// Reads more bytes of an answer. The unread bytes belong to one answer of limited size, so `input` cannot grow without
/// limit.
async fn more(reader: &mut (impl AsyncRead + Unpin), input: &mut BytesMut) -> Result<(), Ended> {
    input.reserve(READ_BYTES);
    if reader.read_buf(input).await? == 0 { Err(Ended::Closed) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::io::{DuplexStream, duplex};
    use tokio_util::task::AbortOnDropHandle;

    use super::*;

    fn nobody() -> Login {
        Login { user: None, password: None }
    }

    fn login(user: Option<&str>) -> Login {
        Login { user: user.map(str::to_owned), password: Some("secret".to_owned()) }
    }

    /// An exchange that a task runs, and the other end of its stream.
    async fn running() -> (Asker, DuplexStream, AbortOnDropHandle<Ended>) {
        let (ours, theirs) = duplex(64);
        let (asker, mut exchange) = Exchange::greet(Box::new(ours), &nobody()).await.unwrap();
        (asker, theirs, AbortOnDropHandle::new(tokio::spawn(async move { exchange.run().await })))
    }

    /// Asserts that exactly the command `words` arrives on the stream.
    async fn hears(stream: &mut DuplexStream, words: &[&str]) {
        let expected = resp::command(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
        let mut bytes = vec![0; expected.len()];
        stream.read_exact(&mut bytes).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&expected));
    }

    async fn says(stream: &mut DuplexStream, text: &str) {
        stream.write_all(text.as_bytes()).await.unwrap();
    }

    fn value(text: &str) -> Reply {
        Reply::Value(text.into())
    }

    #[tokio::test]
    async fn who_leaves_takes_its_answer_along_and_those_behind_get_their_own() {
        let (asker, mut redis, _task) = running().await;
        // Nothing runs until the first wait: this one is in the queue, and is never written.
        assert!(asker.ask(resp::command(&[b"NEVER"]), 9).now_or_never().is_none());
        let left = tokio::spawn({
            let asker = asker.clone();
            async move { asker.ask(resp::command(&[b"A"]), 9).await }
        });
        hears(&mut redis, &["A"]).await;
        left.abort();
        assert!(left.await.unwrap_err().is_cancelled());
        let (second, third) = (asker.ask(resp::command(&[b"B"]), 9), asker.ask(resp::command(&[b"C"]), 9));
        let (second, third, ()) = tokio::join!(second, third, async {
            hears(&mut redis, &["B"]).await;
            hears(&mut redis, &["C"]).await;
            says(&mut redis, "$1\r\na\r\n$1\r\nb\r").await;
            says(&mut redis, "\n-NOPERM no\r\n").await;
        });
        assert_eq!((second, third), (Some(value("b")), Some(Reply::Error("NOPERM no".to_owned()))));
        let (fourth, ()) = tokio::join!(asker.ask(resp::command(&[b"D"]), 9), async {
            hears(&mut redis, &["D"]).await;
            says(&mut redis, "$-1\r\n").await;
        });
        assert_eq!(fourth, Some(Reply::Nil), "an error ends nothing");
    }

    /// If more commands are sent than fit into the stream and the queues, all commands are answered in order, even if
    /// the answers start only after the last command arrived.
    #[tokio::test]
    async fn as_many_as_ask_at_once_are_answered_in_order() {
        let (asker, mut redis, _task) = running().await;
        let count = 3 * (QUEUE_MAX + UNDER_WAY_MAX);
        let asked = futures_util::future::join_all((0..count).map(|number| {
            let asker = &asker;
            async move { asker.ask(resp::command(&[number.to_string().as_bytes()]), 9).await }
        }));
        let (answers, ()) = tokio::join!(asked, async {
            for number in 0..count {
                hears(&mut redis, &[&number.to_string()]).await;
                let text = number.to_string();
                says(&mut redis, &format!("${}\r\n{text}\r\n", text.len())).await;
            }
        });
        for (number, answer) in answers.into_iter().enumerate() {
            assert_eq!(answer, Some(value(&number.to_string())));
        }
    }

    #[tokio::test]
    async fn what_nobody_asked_for_ends_it() {
        let (_asker, mut redis, task) = running().await;
        says(&mut redis, "$").await;
        assert!(matches!(task.await.unwrap(), Ended::Unasked));

        let (_asker, redis, task) = running().await;
        drop(redis);
        assert!(matches!(task.await.unwrap(), Ended::Closed));

        for (said, why) in [("$10\r\n0123456789\r\n", Wrong::Long), ("*1\r\n", Wrong::Form)] {
            let (asker, mut redis, task) = running().await;
            let (answer, ()) = tokio::join!(asker.ask(resp::command(&[b"A"]), 9), async {
                hears(&mut redis, &["A"]).await;
                says(&mut redis, said).await;
            });
            assert_eq!(answer, None);
            assert!(matches!(task.await.unwrap(), Ended::Wrong(wrong) if wrong == why), "{said}");
            assert_eq!(asker.ask(resp::command(&[b"A"]), 9).await, None, "and who comes later does not wait");
        }
        let (asker, _redis, task) = running().await;
        drop(asker);
        assert!(matches!(task.await.unwrap(), Ended::Unused));
    }

    #[tokio::test]
    async fn says_who_we_are_as_old_and_new_ones_understand_it() {
        let wrong = "-ERR wrong number of arguments for 'auth' command\r\n";
        let pair = ["AUTH", "cache", "secret"].as_slice();
        let alone = ["AUTH", "secret"].as_slice();
        for (user, steps, well) in [
            (Some("cache"), [(pair, "+OK\r\n")].as_slice(), true),
            (None, &[(alone, "+OK\r\n")], true),
            (Some("cache"), &[(pair, wrong), (alone, "+OK\r\n")], true),
            (Some("cache"), &[(pair, wrong), (alone, "-ERR invalid password\r\n")], false),
            (Some("cache"), &[(pair, "-WRONGPASS no\r\n")], false),
            (None, &[(alone, wrong)], false),
            (None, &[(alone, "$-1\r\n")], false),
            (None, &[(alone, "+OK\r\n+OK\r\n")], false),
            (None, &[(alone, "$2\r\nOK\r\n")], false),
        ] {
            let (ours, mut redis) = duplex(1024);
            let login = login(user);
            let (greeted, ()) = tokio::join!(Exchange::greet(Box::new(ours), &login), async {
                for (words, said) in steps {
                    hears(&mut redis, words).await;
                    says(&mut redis, said).await;
                }
            });
            assert_eq!(greeted.is_ok(), well, "{steps:?}");
        }
    }

    #[tokio::test]
    async fn a_greeting_has_an_end() {
        let (ours, mut redis) = duplex(1024);
        let login = login(None);
        let (greeted, taken) = tokio::join!(Exchange::greet(Box::new(ours), &login), async {
            let mut taken = 0;
            while redis.write_all(b"+xxxxxxx").await.is_ok() {
                taken += 8;
            }
            taken
        });
        assert!(matches!(greeted, Err(Ended::Wrong(Wrong::Long))));
        assert!(taken < 2 * resp::LINE_BYTES_MAX, "{taken} bytes were taken");
    }
}
