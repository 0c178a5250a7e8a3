//! Requests a whole list, page by page, from one snapshot of the server.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use crate::mistakes::{Mistake, Mistakes};
use crate::object::{Object, Page};
use crate::revision::Revision;
use crate::wire::{Ask, Trouble, Wire};

/// Number of objects on a page of a list, as in client-go and kube-rs.
const PAGE_ITEMS: usize = 500;
/// Largest answer in bytes. A server that ignores the parameter `limit` sends the whole list in one answer.
const PAGE_BYTES_MAX: usize = 256 << 20;
/// Maximum number of objects in a list. No cluster has more objects of one kind.
const ITEMS_MAX: usize = 1_000_000;
/// Longest pause between two chunks of a page's body.
const PATIENCE: Duration = Duration::from_secs(4);
/// Maximum number of times that a list is started again. An expired page token means that the list took too long.
const RESTARTS: usize = 3;
/// With the mistake `page-ceiling`: maximum number of pages that are read, as in a client library with this bug.
const CEILING: usize = 10;
/// With the mistake `keeps-old-continue`: number of requests for the same page before the client gives up.
const SAME_PAGE: usize = 3;
const SAME_PAGE_PAUSE: Duration = Duration::from_millis(100);
/// With the mistake `list-held-twice`: number of copies of a list. The client keeps more than two copies, so that a few
/// thousand objects show an effect that real clients show at a hundred thousand.
const COPIES: usize = 8;

/// All objects of a list at one revision.
#[derive(Debug)]
pub struct Listing {
    /// The revision of the snapshot.
    pub revision: Revision,
    /// The objects, in the server's order.
    pub items: Vec<Object>,
    /// Whether the list is complete. Only a client with a mistake uses an incomplete list.
    pub complete: bool,
    /// Further copies of the list for `list-held-twice`.
    _held: Vec<Value>,
}

/// Lists everything. With `not_older`, the list must have at least that revision; without it, the list is a consistent
/// read.
pub async fn list(
    wire: &Wire,
    path: &str,
    not_older: Option<&Revision>,
    mistakes: &Mistakes,
) -> Result<Listing, Trouble> {
    let mut restarts = 0;
    loop {
        match attempt(wire, path, not_older, mistakes).await {
            Err((Trouble::Refused(refusal), true)) if refusal.is_gone() && restarts < RESTARTS => restarts += 1,
            Err((trouble, _)) => return Err(trouble),
            Ok(listing) => return Ok(listing),
        }
    }
}

/// Requests all pages of a list once. The error says whether a page after the first one failed.
async fn attempt(
    wire: &Wire,
    path: &str,
    not_older: Option<&Revision>,
    mistakes: &Mistakes,
) -> Result<Listing, (Trouble, bool)> {
    let (mut items, mut held) = (Vec::new(), Vec::new());
    let (mut revision, mut token, mut pages, mut same) = (None, None::<String>, 0, 0);
    let complete = loop {
        let later = token.is_some();
        let place = match (&token, not_older) {
            (Some(token), _) => format!("&continue={}", escaped(token)),
            (None, Some(not_older)) => format!("&resourceVersion={not_older}&resourceVersionMatch=NotOlderThan"),
            (None, None) => String::new(),
        };
        let ask = Ask::get(format!("{path}?limit={PAGE_ITEMS}{place}"));
        let body = match fetch(wire, &ask, mistakes).await {
            // The client with this bug took a refused old token for the end of the list.
            Err(_) if same > 0 => break false,
            other => other.map_err(|trouble| (trouble, later))?,
        };
        let page = Page::parse(&body).map_err(|why| (Trouble::Malformed(why), later))?;
        if mistakes.made(Mistake::ListHeldTwice) {
            let whole: Value = serde_json::from_slice(&body).unwrap_or_default();
            held.extend(std::iter::repeat_n(whole, COPIES));
        }
        revision = revision.or(page.revision);
        items.extend(page.items);
        if items.len() > ITEMS_MAX {
            return Err((Trouble::Malformed(format!("more than {ITEMS_MAX} objects")), later));
        }
        pages += 1;
        let last = page.next.is_none();
        if last && mistakes.made(Mistake::KeepsOldContinue) && token.is_some() {
            same += 1;
            if same == SAME_PAGE {
                break false;
            }
            sleep(SAME_PAGE_PAUSE).await;
            continue;
        }
        token = page.next;
        let ceiling = mistakes.made(Mistake::PageCeiling) && pages > CEILING;
        if last || ceiling || mistakes.made(Mistake::FirstPageOnly) {
            break true;
        }
    };
    let revision = revision.ok_or((Trouble::Malformed("a list without resourceVersion".to_owned()), false))?;
    Ok(Listing { revision, items, complete, _held: held })
}

async fn fetch(wire: &Wire, ask: &Ask, mistakes: &Mistakes) -> Result<bytes::Bytes, Trouble> {
    let patience = (!mistakes.made(Mistake::NoHeaderTimeout)).then_some(PATIENCE);
    let mut answer = wire.send(ask).await?;
    if answer.status != 200 {
        return Err(answer.refusal().await);
    }
    answer.collect(PAGE_BYTES_MAX, patience).await
}

/// Escapes a page token for a URL query. The page token is opaque, so every special character is escaped.
fn escaped(token: &str) -> String {
    let mut escaped = String::with_capacity(token.len());
    for byte in token.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(escaped, "%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_escaped() {
        assert_eq!(escaped("aZ9-._~"), "aZ9-._~");
        assert_eq!(escaped("a+/=&é"), "a%2B%2F%3D%26%C3%A9");
    }
}
