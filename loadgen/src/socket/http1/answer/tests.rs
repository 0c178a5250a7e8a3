use super::*;
use crate::failure::Class;

fn read(pieces: &[&[u8]]) -> Result<Reader, Failure> {
    let mut reader = Reader::new();
    reader.expect();
    for piece in pieces {
        reader.feed(piece)?;
    }
    Ok(reader)
}

/// However the bytes of an answer are cut, the result is the same.
#[test]
fn cuts_do_not_matter() {
    for (wire, keep, body) in [
        ("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\nhello", true, "hello"),
        ("HTTP/1.1 200 OK\nContent-Type: application/json\nContent-Length: 5\n\nhello", true, "hello"),
        (
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-type:application/json \r\n\
             Transfer-Encoding: Chunked\r\nConnection: x, Close\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            false,
            "hello",
        ),
        ("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", false, "{}"),
        (
            "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
            true,
            "",
        ),
    ] {
        let wire = wire.as_bytes();
        let bytes: Vec<&[u8]> = wire.chunks(1).collect();
        let cuts = (0..wire.len()).map(|cut| vec![&wire[..cut], &wire[cut..]]).chain([bytes]);
        for pieces in cuts {
            let reader = read(&pieces).unwrap();
            assert!(reader.done(), "{}", String::from_utf8_lossy(wire));
            let seen = reader.seen();
            assert_eq!((seen.status, seen.body), (200, body.as_bytes()));
            assert_eq!(seen.content_type, Some(&b"application/json"[..]));
            assert_eq!(reader.keep(), keep);
        }
    }
}

#[test]
fn a_body_without_length_ends_with_the_connection() {
    let mut reader = read(&[b"HTTP/1.1 200 OK\r\n\r\n", b"all", b" of it"]).unwrap();
    assert!(!reader.done() && reader.in_body());
    reader.end().unwrap();
    assert!(reader.done() && !reader.keep());
    assert_eq!(reader.seen().body, b"all of it");
    assert_eq!(reader.seen().content_type, None);
}

#[test]
fn more_than_the_answer_ends_the_connection_and_not_the_call() {
    let reader = read(&[b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"]).unwrap();
    assert!(reader.done() && !reader.keep());
    assert_eq!(reader.seen().status, 204);
}

/// The reader recognises only the requested compression, and never applies it to a later answer.
#[test]
fn the_encoding_is_that_of_each_answer() {
    use Coding::{Gzip, Identity};
    let mut reader = Reader::new();
    for (header, coding) in
        [("Content-Encoding: GZip\r\n", Gzip), ("", Identity), ("content-encoding: br\r\n", Identity)]
    {
        reader.expect();
        reader.feed(format!("HTTP/1.1 200 OK\r\n{header}Content-Length: 1\r\n\r\nx").as_bytes()).unwrap();
        assert_eq!((reader.done(), reader.seen().coding), (true, coding), "{header}");
    }
}

/// Data that is no answer is refused at once, or when it reaches its limit.
#[test]
fn nonsense_is_refused() {
    let long_line = [b"HTTP/1.1 200 ", &b"a".repeat(HEAD_MAX_BYTES)[..]].concat();
    let many = ["HTTP/1.1 200 OK\r\n", &"A: b\r\n".repeat(HEADERS_MAX + 1), "\r\n"].concat();
    for (wire, expected) in [
        (&b"\0\x01\x02 what?"[..], "what came is no HTTP/1 answer"),
        (b"HTTP/2 200\r\n\r\n", "the head is no HTTP/1.1"),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "switched to another protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", "`+5` is no Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "two different Content-Length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "its Transfer-Encoding is not `chunked`"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "the body broke off"),
        (many.as_bytes(), "too many headers"),
        (&long_line, "the head of the answer is larger than 512 KiB"),
    ] {
        let failure = read(&[wire]).unwrap_err();
        assert_eq!(failure.class, Class::HttpError);
        assert!(failure.text.contains(expected), "{}\nshould contain\n{expected}", failure.text);
    }
}

#[test]
fn bodies_have_a_bound() {
    let piece = vec![b' '; MOST_BODY_BYTES / 4];
    let endless = |head: &'static [u8]| read(&[head, &piece, &piece, &piece, &piece, b" "]).unwrap_err();
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40000000\r\n";
    for head in [&b"HTTP/1.1 200 OK\r\n\r\n"[..], chunked] {
        let failure = endless(head);
        assert_eq!((failure.class, &*failure.text), (Class::InvalidResponse, "the body is larger than 4 MiB"));
    }
    let failure = read(&[b"HTTP/1.1 200 OK\r\nContent-Length: 4194305\r\n\r\n"]).unwrap_err();
    assert!(failure.text.ends_with("(Content-Length: 4194305)"), "{}", failure.text);
}

#[test]
fn early_ends_are_failures() {
    for (wire, expected) in [
        ("", "the connection broke before an answer: the server closed it"),
        ("HTTP/1.1 200 OK\r\nContent-Le", "the connection broke before an answer: it was closed in the middle"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "the body broke off: the connection was closed"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
            "the body broke off: the connection was closed",
        ),
    ] {
        let failure = read(&[wire.as_bytes()]).unwrap().end().unwrap_err();
        assert!(failure.text.starts_with(expected), "{}", failure.text);
    }
}

/// A few interim answers are skipped, as long as they are together no longer than one head. After more interim answers
/// the connection fails.
#[test]
fn interim_answers_have_a_bound() {
    let interim = format!("HTTP/1.1 103 Early Hints\r\nX: {}\r\n\r\n", "x".repeat(1000));
    let mut reader = read(&[interim.repeat(400).as_bytes()]).unwrap();
    let failure = reader.feed(interim.repeat(200).as_bytes()).unwrap_err();
    assert_eq!(failure.text, "the connection broke before an answer: interim answers come without end");
    reader.expect();
    reader.feed(interim.repeat(400).as_bytes()).unwrap();
    reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    assert!(reader.done(), "each answer has its own");
}
