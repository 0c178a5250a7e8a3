//! Commands and answers in Redis' protocol (RESP2, <https://redis.io/docs/latest/develop/reference/protocol-spec/>).
//!
//! Only commands (arrays of strings) and answers (a line or one value) that a cache needs are implemented. Arrays in
//! answers are refused, so nothing recurses. An answer that announces too many bytes is refused before it is read into
//! memory.

use bytes::{Buf as _, BytesMut};

/// Longest line of an answer with its end, in bytes; an error that names a user and a command has some hundred bytes.
pub const LINE_BYTES_MAX: usize = 4 << 10;
const END: &[u8] = b"\r\n";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A line of text, most often `OK`.
    Line(Vec<u8>),
    Error(String),
    Number(i64),
    Value(Vec<u8>),
    Nil,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// The bytes of the answer have a wrong start or end.
    #[error("it answered what is no answer")]
    Form,
    /// A line of the answer has no end, or a value is larger than allowed.
    #[error("it answered more than was asked for")]
    Long,
}

pub fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(END);
    }
    bytes
}

/// Takes the first answer from `input`, with a value of at most `most` bytes. While the answer is incomplete, no bytes
/// are taken and the result is `None`.
pub fn reply(input: &mut BytesMut, most: usize) -> Result<Option<Reply>, Wrong> {
    let Some(&mark) = input.first() else { return Ok(None) };
    if !b"+-:$".contains(&mark) {
        return Err(Wrong::Form);
    }
    let Some(at) = input.iter().take(LINE_BYTES_MAX).position(|byte| *byte == b'\n') else {
        return if input.len() < LINE_BYTES_MAX { Ok(None) } else { Err(Wrong::Long) };
    };
    let line = input.get(1..=at).and_then(|line| line.strip_suffix(END)).ok_or(Wrong::Form)?;
    let reply = match mark {
        b'+' => Reply::Line(line.to_vec()),
        b'-' => Reply::Error(String::from_utf8_lossy(line).into_owned()),
        b':' => Reply::Number(number(line)?),
        _ if line == b"-1" => Reply::Nil,
        _ => {
            let length = usize::try_from(number(line)?).map_err(|_| Wrong::Form)?;
            if length > most {
                return Err(Wrong::Long);
            }
            let begin = at + 1;
            let Some(value) = input.get(begin..begin + length + END.len()) else { return Ok(None) };
            let value = value.strip_suffix(END).ok_or(Wrong::Form)?.to_vec();
            input.advance(begin + length + END.len());
            return Ok(Some(Reply::Value(value)));
        }
    };
    input.advance(at + 1);
    Ok(Some(reply))
}

fn number(line: &[u8]) -> Result<i64, Wrong> {
    std::str::from_utf8(line).ok().and_then(|text| text.parse().ok()).ok_or(Wrong::Form)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const MOST: usize = 64;

    /// All answers in the bytes of `pieces`, which arrive one after the other, and the error that ends them.
    fn replies<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Reply>, Option<Wrong>) {
        let (mut input, mut all) = (BytesMut::new(), Vec::new());
        for piece in pieces {
            input.extend_from_slice(piece);
            loop {
                match reply(&mut input, MOST) {
                    Ok(Some(reply)) => all.push(reply),
                    Ok(None) => break,
                    Err(wrong) => return (all, Some(wrong)),
                }
            }
            assert!(input.len() < LINE_BYTES_MAX + MOST + 2 * END.len(), "{} bytes are held", input.len());
        }
        (all, None)
    }

    fn written(reply: &Reply) -> Vec<u8> {
        let line = |mark: &str, text: &[u8]| [mark.as_bytes(), text, END].concat();
        match reply {
            Reply::Line(text) => line("+", text),
            Reply::Error(text) => line("-", text.as_bytes()),
            Reply::Number(number) => line(":", number.to_string().as_bytes()),
            Reply::Value(value) => {
                [line("$", value.len().to_string().as_bytes()), value.clone(), END.to_vec()].concat()
            }
            Reply::Nil => line("$", b"-1"),
        }
    }

    fn any_reply() -> impl Strategy<Value = Reply> {
        let line = || vec(any::<char>(), 0..40).prop_map(|text| String::from_iter(text).replace(['\r', '\n'], ""));
        prop_oneof![
            line().prop_map(|line| Reply::Line(line.into_bytes())),
            line().prop_map(Reply::Error),
            any::<i64>().prop_map(Reply::Number),
            vec(any::<u8>(), 0..=MOST).prop_map(Reply::Value),
            Just(Reply::Nil),
        ]
    }

    proptest! {
        #[test]
        fn answers_are_the_same_in_whichever_pieces_they_come(
            sent in vec(any_reply(), 0..8),
            cuts in vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let bytes = sent.iter().flat_map(written).collect::<Vec<_>>();
            let mut cuts = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect::<Vec<_>>();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            prop_assert_eq!(replies(cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]])), (sent.clone(), None));
            prop_assert_eq!(replies(bytes.chunks(1)), (sent, None));
        }

        #[test]
        fn any_bytes_are_answers_or_none_and_little_of_them_is_held(
            bytes in prop_oneof![vec(any::<u8>(), 0..512), vec(prop::sample::select(b"+-:$*\r\n019x".as_slice()), 0..512)],
            size in 1usize..64,
        ) {
            prop_assert_eq!(replies(bytes.chunks(size)), replies([&*bytes]));
        }

        #[test]
        fn more_than_was_asked_for_is_refused_before_it_comes(length in MOST + 1..) {
            prop_assert_eq!(replies([format!("${length}\r\n").as_bytes()]).1.is_some(), true);
        }
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for (bytes, wrong) in [
            ("*", Wrong::Form),
            ("x", Wrong::Form),
            ("\r\n", Wrong::Form),
            ("+OK\n", Wrong::Form),
            (":\r\n", Wrong::Form),
            (":1x\r\n", Wrong::Form),
            ("$\r\n", Wrong::Form),
            ("$-2\r\n", Wrong::Form),
            ("$2\r\nabc\r\n", Wrong::Form),
            ("$18446744073709551616\r\n", Wrong::Form),
            ("$65\r\n", Wrong::Long),
            ("$9223372036854775807\r\n", Wrong::Long),
            (&format!("+{}", "x".repeat(LINE_BYTES_MAX)), Wrong::Long),
        ] {
            assert_eq!(replies([bytes.as_bytes()]), (Vec::new(), Some(wrong)), "{bytes}");
        }
    }

    #[test]
    fn a_command_is_an_array_of_words() {
        assert_eq!(command(&[b"GET", b"", b"\r\n"]), b"*3\r\n$3\r\nGET\r\n$0\r\n\r\n$2\r\n\r\n\r\n");
    }
}
