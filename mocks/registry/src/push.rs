//! The endpoints that write: uploads (in chunks, in two requests or in one), mounts, manifests, deletions.
//!
//! Owns the protocol of an upload (OCI distribution specification, "Push"). If a connection breaks in the middle of a
//! chunk, the received bytes are kept. The client can ask for the offset and continue from there.

use bytes::Bytes;
use http::header::{CONTENT_RANGE, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, RANGE, RETRY_AFTER};
use http::{Response, StatusCode};
use hyper::body::Incoming;

use super::auth::Scope;
use super::body::Body;
use super::digest::Digest;
use super::manifest::{self, Manifest};
use super::refusal::{Code, Refusal};
use super::route::{Reference, is_name};
use super::shared::{RequestHead, Shared, collect, full, next_piece};
use super::uploads::{Range, Trouble};

const UPLOAD_ID: HeaderName = HeaderName::from_static("docker-upload-uuid");
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// Closes a chunk when the request that writes the chunk ends.
struct Writing<'a> {
    shared: &'a Shared,
    name: &'a str,
    id: &'a str,
    open: bool,
}

/// `POST /blobs/uploads/`: mounts a blob, stores a whole blob, or starts an upload.
pub(super) async fn start(
    shared: &Shared,
    asked: &RequestHead,
    name: &str,
    body: Incoming,
) -> Result<Response<Body>, Refusal> {
    if let Some(response) = mount(shared, asked, name)? {
        return Ok(response);
    }
    let digest = asked.value("digest").map(parse_digest).transpose()?;
    let id = new_id();
    shared.state.lock().uploads.start(id.clone(), name, shared.now()).map_err(|trouble| refuse(&trouble, name, &id))?;
    match digest {
        None => Ok(progress(StatusCode::ACCEPTED, name, &id, 0)),
        Some(digest) => {
            let stored = write(shared, name, &id, None, body).await.and_then(|_| complete(shared, name, &id, &digest));
            if stored.is_err() {
                // The client did not get this upload's address, so it cannot go on with it.
                let _ = shared.state.lock().uploads.cancel(&id, name);
            }
            stored
        }
    }
}

pub(super) async fn chunk(
    shared: &Shared,
    asked: &RequestHead,
    name: &str,
    id: &str,
    body: Incoming,
) -> Result<Response<Body>, Refusal> {
    let range = range_of(shared, asked, name, id)?;
    let offset = write(shared, name, id, range, body).await?;
    Ok(progress(StatusCode::ACCEPTED, name, id, offset))
}

/// `PUT` of an upload: the last chunk, which may be empty, and the digest.
pub(super) async fn finish(
    shared: &Shared,
    asked: &RequestHead,
    name: &str,
    id: &str,
    body: Incoming,
) -> Result<Response<Body>, Refusal> {
    shared.state.lock().uploads.offset(id, name).map_err(|trouble| refuse(&trouble, name, id))?;
    let digest = parse_digest(asked.value("digest").unwrap_or_default())?;
    let range = range_of(shared, asked, name, id)?;
    write(shared, name, id, range, body).await?;
    complete(shared, name, id, &digest)
}

/// `GET` of an upload: returns the number of received bytes.
pub(super) fn status(shared: &Shared, name: &str, id: &str) -> Result<Response<Body>, Refusal> {
    let offset = shared.state.lock().uploads.offset(id, name).map_err(|trouble| refuse(&trouble, name, id))?;
    Ok(progress(StatusCode::NO_CONTENT, name, id, offset))
}

/// `DELETE` of an upload: removes the upload.
pub(super) fn cancel(shared: &Shared, name: &str, id: &str) -> Result<Response<Body>, Refusal> {
    shared.state.lock().uploads.cancel(id, name).map_err(|trouble| refuse(&trouble, name, id))?;
    let mut response = answer(StatusCode::NO_CONTENT);
    set(&mut response, UPLOAD_ID, id);
    Ok(response)
}

/// `PUT` of a manifest, by tag or by digest.
pub(super) async fn manifest(
    shared: &Shared,
    asked: &RequestHead,
    name: &str,
    reference: &Reference,
    body: Incoming,
) -> Result<Response<Body>, Refusal> {
    let collected = collect(shared, body, manifest::BYTES_MAX).await?;
    let bytes = collected.bytes.clone();
    let tag = match reference {
        Reference::Tag(tag) => Some(tag.as_str()),
        Reference::Digest(digest) if digest.matches(&bytes) => None,
        Reference::Digest(_) => return Err(Code::DigestInvalid.into()),
    };
    let mut manifest = Manifest::read(asked.header(CONTENT_TYPE), bytes)?;
    if let Reference::Digest(digest) = reference {
        manifest.digest = digest.clone();
    }
    let (digest, subject) = (manifest.digest.clone(), manifest.subject.clone());
    let mut state = shared.state.lock();
    if let Some(missing) = state.store.missing_reference(name, &manifest) {
        return Err(Refusal::new(Code::ManifestBlobUnknown).detail(missing.as_str()));
    }
    state.store.put_manifest(name, manifest, tag).map_err(full)?;
    drop(state);
    let mut response = answer(StatusCode::CREATED);
    set(&mut response, LOCATION, &format!("/v2/{name}/manifests/{digest}"));
    set(&mut response, CONTENT_DIGEST, digest.as_str());
    if let Some(subject) = subject {
        // Shows the client that it need not keep the fallback tag itself.
        set(&mut response, HeaderName::from_static("oci-subject"), subject.as_str());
    }
    Ok(response)
}

pub(super) fn delete_manifest(shared: &Shared, name: &str, reference: &Reference) -> Result<Response<Body>, Refusal> {
    deletable(shared)?;
    let mut state = shared.state.lock();
    if !state.store.knows(name) {
        return Err(Refusal::new(Code::NameUnknown).detail(serde_json::json!({ "name": name })));
    }
    if state.store.delete_manifest(name, reference) {
        Ok(answer(StatusCode::ACCEPTED))
    } else {
        Err(Code::ManifestUnknown.into())
    }
}

pub(super) fn delete_blob(shared: &Shared, name: &str, digest: &Digest) -> Result<Response<Body>, Refusal> {
    deletable(shared)?;
    if shared.state.lock().store.delete_blob(name, digest) {
        Ok(answer(StatusCode::ACCEPTED))
    } else {
        Err(Refusal::new(Code::BlobUnknown).detail(digest.as_str()))
    }
}

/// Makes a blob of another repository visible in the repository `name`, if the blob exists and the client may read it;
/// otherwise starts an upload.
fn mount(shared: &Shared, asked: &RequestHead, name: &str) -> Result<Option<Response<Body>>, Refusal> {
    let (Some(digest), Some(from)) = (asked.value("mount"), asked.value("from").filter(|from| is_name(from))) else {
        return Ok(None);
    };
    let digest = parse_digest(digest)?;
    let needed = Scope::on_repository(from, &["pull"]);
    if shared.authenticator.check(&asked.parts.headers, shared.secure, Some(&needed), shared.now()).is_err() {
        return Ok(None);
    }
    let mounted = shared.state.lock().store.mount(from, name, &digest).map_err(full)?;
    Ok(mounted.then(|| created(name, &digest)))
}

/// Appends a body to an upload; returns the new offset.
async fn write(
    shared: &Shared,
    name: &str,
    id: &str,
    range: Option<Range>,
    mut body: Incoming,
) -> Result<u64, Refusal> {
    let refused = |trouble: Trouble| refuse(&trouble, name, id);
    shared.state.lock().uploads.open(id, name, range, shared.now()).map_err(refused)?;
    let mut writing = Writing { shared, name, id, open: true };
    while let Some(piece) = next_piece(shared, &mut body).await? {
        let mut state = shared.state.lock();
        let grows = state.uploads.growth(id, name, piece.len()).map_err(refused)?;
        state.fits(grows)?;
        state.uploads.append(id, name, &piece, shared.now()).map_err(refused)?;
    }
    writing.open = false;
    shared.state.lock().uploads.close(id, name).map_err(refused)
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if self.open {
            // A chunk shorter than promised is removed here; an upload that is gone needs no closing.
            let _ = self.shared.state.lock().uploads.close(self.id, self.name);
        }
    }
}

fn complete(shared: &Shared, name: &str, id: &str, digest: &Digest) -> Result<Response<Body>, Refusal> {
    let mut state = shared.state.lock();
    let bytes: Bytes = state.uploads.finish(id, name, digest).map_err(|trouble| refuse(&trouble, name, id))?;
    state.store.put_blob(name, digest, bytes).map_err(full)?;
    Ok(created(name, digest))
}

fn range_of(shared: &Shared, asked: &RequestHead, name: &str, id: &str) -> Result<Option<Range>, Refusal> {
    let Some(text) = asked.header(CONTENT_RANGE) else { return Ok(None) };
    if let Some(range) = Range::parse(text) {
        return Ok(Some(range));
    }
    let offset = shared.state.lock().uploads.offset(id, name);
    Err(refuse(&offset.map_or_else(|trouble| trouble, Trouble::OutOfOrder), name, id))
}

fn refuse(trouble: &Trouble, name: &str, id: &str) -> Refusal {
    match *trouble {
        Trouble::Unknown => Refusal::new(Code::BlobUploadUnknown),
        Trouble::TooMany => {
            Refusal::new(Code::TooManyRequests).message("too many uploads are open").header(RETRY_AFTER, "1")
        }
        Trouble::TooLarge(most) => Refusal::new(Code::SizeInvalid)
            .status(StatusCode::PAYLOAD_TOO_LARGE)
            .message(format!("a blob is larger than {most} bytes")),
        Trouble::OutOfOrder(offset) => Refusal::new(Code::RangeInvalid)
            .header(RANGE, &arrived(offset))
            .header(LOCATION, &upload_path(name, id))
            .header(UPLOAD_ID, id),
        Trouble::WrongLength { promised, got } => {
            Refusal::new(Code::SizeInvalid).detail(format!("Content-Range promised {promised} bytes and {got} came"))
        }
        Trouble::WrongDigest => Code::DigestInvalid.into(),
    }
}

fn deletable(shared: &Shared) -> Result<(), Refusal> {
    if shared.deletes { Ok(()) } else { Err(Code::Unsupported.into()) }
}

fn parse_digest(text: &str) -> Result<Digest, Refusal> {
    Digest::parse(text).map_err(|error| Refusal::new(Code::DigestInvalid).detail(error.to_string()))
}

fn created(name: &str, digest: &Digest) -> Response<Body> {
    let mut response = answer(StatusCode::CREATED);
    set(&mut response, LOCATION, &format!("/v2/{name}/blobs/{digest}"));
    set(&mut response, CONTENT_DIGEST, digest.as_str());
    response
}

fn progress(status: StatusCode, name: &str, id: &str, offset: u64) -> Response<Body> {
    let mut response = answer(status);
    set(&mut response, LOCATION, &upload_path(name, id));
    set(&mut response, RANGE, &arrived(offset));
    set(&mut response, UPLOAD_ID, id);
    response
}

/// The value of the header `Range` after `offset` received bytes. After 0 bytes the value is also `0-0`, as in
/// `distribution`, because the header cannot express an empty range.
fn arrived(offset: u64) -> String {
    format!("0-{}", offset.saturating_sub(1))
}

fn upload_path(name: &str, id: &str) -> String {
    format!("/v2/{name}/blobs/uploads/{id}")
}

fn answer(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Sets a header of an answer. Names, digests and ids are ASCII by their grammar; any other value is left out.
fn set(response: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// A new upload id, formatted as a UUID because clients print the id. The id only has to be hard to guess.
fn new_id() -> String {
    let n: u128 = rand::random();
    let hex = format!("{n:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}
