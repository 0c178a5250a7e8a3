//! The answer to a request: status, headers, and the source of the body.
//!
//! This module opens the served files. Files are found only by parsed digests, and links are never followed.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;

use super::head::{Head, HeadError, Method};
use super::range::{Range, range};
use super::route::{Route, route};
use crate::assemble::Store;
use crate::catalog::Repository;
use crate::digest::Digest;
use crate::unpack::{BLOBS, REFERRERS};

/// The media type of an index and of a list of referrers.
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const NO_REFERRERS: &str =
    r#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}"#;
const JSON: &str = "application/json";

#[derive(Debug)]
pub struct Answer {
    /// Status line and headers, with the final empty line. The server adds the header that says whether the connection
    /// closes.
    pub head: String,
    pub body: Body,
}

#[derive(Debug)]
pub enum Body {
    /// No body, as in the answer to HEAD.
    Nothing,
    Bytes(Vec<u8>),
    /// A body from a file: the file, the offset of the first byte and the number of bytes.
    File(File, u64, u64),
}

/// An answer whose head is not formatted yet.
struct Reply {
    status: &'static str,
    media_type: String,
    headers: String,
    /// Length of the body in bytes, even if the body is not sent.
    bytes: u64,
    body: Body,
}

impl Reply {
    fn json(status: &'static str, text: String) -> Self {
        let (bytes, headers) = (text.len() as u64, String::new());
        Self { status, media_type: JSON.to_owned(), headers, bytes, body: Body::Bytes(text.into_bytes()) }
    }

    /// An error answer in the format of the distribution specification. The error contains no text from the request.
    fn error(status: &'static str, code: &str, message: &str) -> Self {
        Self::json(status, format!(r#"{{"errors":[{{"code":"{code}","message":"{message}"}}]}}"#))
    }

    fn header(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        let _ = write!(self.headers, "{name}: {value}\r\n");
        self
    }

    fn written(self, method: Method) -> Answer {
        let Self { status, media_type, headers, bytes, body } = self;
        let head = format!(
            "HTTP/1.1 {status}\r\nDocker-Distribution-Api-Version: registry/2.0\r\nContent-Type: {media_type}\r\n\
             Content-Length: {bytes}\r\n{headers}"
        );
        Answer { head, body: if method == Method::Head { Body::Nothing } else { body } }
    }
}

/// Answers a request; an invalid request gets the reason.
pub fn answer(head: Result<&Head<'_>, HeadError>, store: &Store) -> Answer {
    match head {
        Err(error) => Reply::error("400 Bad Request", "UNSUPPORTED", &error.to_string()).written(Method::Get),
        Ok(head) if head.method == Method::Other => {
            Reply::error("405 Method Not Allowed", "UNSUPPORTED", "this registry is read-only")
                .header("Allow", "GET, HEAD")
                .written(Method::Get)
        }
        Ok(head) => reply(head, store).written(head.method),
    }
}

fn reply(head: &Head<'_>, store: &Store) -> Reply {
    let not_found = |code, message| Reply::error("404 Not Found", code, message);
    let (name, asked) = match route(head.path) {
        Route::Base => return Reply::json("200 OK", "{}".to_owned()),
        Route::BadDigest => {
            return Reply::error(
                "400 Bad Request",
                "DIGEST_INVALID",
                "a digest is sha256: and 64 lower-case hex digits",
            );
        }
        Route::BadName => return not_found("NAME_INVALID", "no repository can have this name"),
        Route::Nothing => return not_found("UNSUPPORTED", "nothing is served here"),
        Route::Tag(name, tag) => (name, Resource::Tag(tag)),
        Route::Manifest(name, digest) => (name, Resource::Manifest(digest)),
        Route::Blob(name, digest) => (name, Resource::Blob(digest)),
        Route::Tags(name) => (name, Resource::Tags),
        Route::Referrers(name, digest) => (name, Resource::Referrers(digest)),
    };
    let Some(repository) = store.catalog.repositories.get(name) else {
        return match asked {
            // The specification forbids 404 here: clients would take it for a registry without this request.
            Resource::Referrers(_) => no_referrers(),
            _ => not_found("NAME_UNKNOWN", "there is no such repository"),
        };
    };
    let unknown = || not_found("MANIFEST_UNKNOWN", "there is no such manifest");
    match asked {
        Resource::Tag(tag) => repository.tags.get(tag).map_or_else(unknown, |digest| manifest(store, digest, head)),
        Resource::Manifest(digest) if repository.manifests.contains(&digest) => manifest(store, &digest, head),
        Resource::Manifest(_) => unknown(),
        Resource::Blob(digest) => match open(store, BLOBS, &digest) {
            Ok(file) => {
                let reply = content(file, "application/octet-stream", range_of(head, &digest));
                reply.map_or_else(unreadable, |reply| identified(reply, &digest, head))
            }
            Err(error) if is_nothing(&error) => not_found("BLOB_UNKNOWN", "there is no such blob"),
            Err(_) => unreadable(),
        },
        Resource::Tags => tags(name, repository, head.query),
        Resource::Referrers(digest) => match open(store, REFERRERS, &digest) {
            Ok(file) => content(file, INDEX, None).unwrap_or_else(unreadable),
            Err(error) if is_nothing(&error) => no_referrers(),
            Err(_) => unreadable(),
        },
    }
}

enum Resource<'p> {
    Tag(&'p str),
    Manifest(Digest),
    Blob(Digest),
    Tags,
    Referrers(Digest),
}

/// The answer with a manifest and its stored media type. Other media types in `Accept` do not matter: only the stored
/// bytes have the digest.
fn manifest(store: &Store, digest: &Digest, head: &Head<'_>) -> Reply {
    let Some(known) = store.catalog.manifests.get(digest) else { return unreadable() };
    let reply =
        open(store, BLOBS, digest).ok().and_then(|file| content(file, &known.media_type, range_of(head, digest)));
    reply.map_or_else(unreadable, |reply| identified(reply, digest, head))
}

fn no_referrers() -> Reply {
    Reply { media_type: INDEX.to_owned(), ..Reply::json("200 OK", NO_REFERRERS.to_owned()) }
}

/// Whether the request says that the client already has this content.
fn has(head: &Head<'_>, digest: &Digest) -> bool {
    let is_it = |tag: &str| tag.trim() == format!("\"sha256:{digest}\"");
    head.if_none_match.is_some_and(|tags| tags == "*" || tags.split(',').any(is_it))
}

/// The range that the request asks for. If the client already has the content, status 304 takes precedence over a range
/// (RFC 9110, section 13.2.2).
fn range_of<'h>(head: &Head<'h>, digest: &Digest) -> Option<&'h str> {
    head.range.filter(|_| !has(head, digest))
}

/// Adds the digest to `reply` as `ETag`. A client that already has the content gets no body, but the length of the
/// whole content.
fn identified(mut reply: Reply, digest: &Digest, head: &Head<'_>) -> Reply {
    if has(head, digest) {
        reply = Reply { status: "304 Not Modified", body: Body::Nothing, ..reply };
    }
    reply
        .header("Docker-Content-Digest", format_args!("sha256:{digest}"))
        .header("Etag", format_args!("\"sha256:{digest}\""))
}

/// The answer with a file, or with its requested range.
fn content(file: File, media_type: &str, asked: Option<&str>) -> Option<Reply> {
    let length = file.metadata().ok()?.len();
    let (status, from, to) = match range(asked, length) {
        Range::Whole => ("200 OK", 0, length),
        Range::Part(from, to) => ("206 Partial Content", from, to),
        Range::Unsatisfiable => {
            let reply =
                Reply::error("416 Range Not Satisfiable", "RANGE_INVALID", "the range is not within the content");
            return Some(reply.header("Content-Range", format_args!("bytes */{length}")));
        }
    };
    let bytes = to - from;
    let (media_type, headers) = (media_type.to_owned(), String::new());
    let reply = Reply { status, media_type, headers, bytes, body: Body::File(file, from, bytes) };
    let reply = reply.header("Accept-Ranges", "bytes");
    Some(if status.starts_with("206") {
        reply.header("Content-Range", format_args!("bytes {from}-{}/{length}", to - 1))
    } else {
        reply
    })
}

fn unreadable() -> Reply {
    Reply::error("500 Internal Server Error", "UNKNOWN", "the file cannot be read")
}

/// The answer with the tags of a repository in order: at most `n` tags after `last` (query of end-8b in the
/// distribution specification).
fn tags(name: &str, repository: &Repository, query: &str) -> Reply {
    let (mut most, mut last) = (usize::MAX, "");
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("n", value)) => most = value.parse().unwrap_or(most),
            Some(("last", value)) => last = value,
            _ => {}
        }
    }
    let mut left = repository.tags.keys().filter(|tag| tag.as_str() > last).peekable();
    let mut text = format!(r#"{{"name":"{name}","tags":["#);
    let mut sent: Option<&String> = None;
    for tag in left.by_ref().take(most) {
        let comma = if sent.is_some() { "," } else { "" };
        let _ = write!(text, r#"{comma}"{tag}""#);
        sent = Some(tag);
    }
    text.push_str("]}");
    let reply = Reply::json("200 OK", text);
    match (left.peek(), sent) {
        (Some(_), Some(sent)) => {
            reply.header("Link", format_args!("</v2/{name}/tags/list?n={most}&last={sent}>; rel=\"next\""))
        }
        _ => reply,
    }
}

fn open(store: &Store, folder: &str, digest: &Digest) -> io::Result<File> {
    let path = store.folder.join(folder).join(digest.to_string());
    let mut options = OpenOptions::new();
    options.read(true);
    options.custom_flags(libc::O_NOFOLLOW).open(path)
}

fn is_nothing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}
