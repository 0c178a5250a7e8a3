//! The list, by namespace and name, in pages.
//!
//! A page ends with a cursor that names the last Deployment of it, so it stays good whatever comes and goes meanwhile: what exists
//! all the time is in exactly one page.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

use super::answer::{self, CONTINUE};
use super::deployment::Deployment;
use super::route::{self, BASE, Page};
use service_core::edge::Answer;
use service_watch::{Key, Object, Store};

/// Most Deployments in one answer: about 1 MB. Whoever has more follows the cursor.
pub const LIMIT_MAX: usize = 10_000;

/// Where a page begins: after this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(Key);

/// One Deployment, with exactly the keys that an answer has.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry<'a> {
    namespace: &'a str,
    name: &'a str,
    replica_count: i32,
}

impl<'a> From<&'a Object<Deployment>> for Entry<'a> {
    fn from(object: &'a Object<Deployment>) -> Self {
        let Key { namespace, name } = &object.key;
        Self { namespace, name, replica_count: object.body.replicas }
    }
}

impl Cursor {
    /// What [`Self::written`] wrote, and nothing else.
    pub fn read(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (namespace, name) = std::str::from_utf8(&bytes).ok()?.split_once('/')?;
        route::are_names(namespace, name).then(|| Self(Key { namespace: namespace.into(), name: name.into() }))
    }

    fn written(key: &Key) -> String {
        URL_SAFE_NO_PAD.encode(format!("{}/{}", key.namespace, key.name))
    }
}

/// A page of what `store` has.
pub fn page(store: &Store<Deployment>, page: &Page) -> Answer {
    let after = page.after.as_ref().map(|cursor| &cursor.0);
    // One more than is shown says whether there are more.
    let mut found = store.after(after, page.limit + 1);
    let more = found.len() > page.limit;
    found.truncate(page.limit);
    let entries: Vec<Entry<'_>> = found.iter().map(|object| Entry::from(&**object)).collect();
    let mut answer = answer::json(StatusCode::OK, &entries);
    if let Some(last) = found.last().filter(|_| more) {
        let cursor = Cursor::written(&last.key);
        let next = format!("<{BASE}/deployments?limit={}&continue={cursor}>; rel=\"next\"", page.limit);
        answer::put(&mut answer, CONTINUE, &cursor);
        if let Ok(next) = HeaderValue::from_str(&next) {
            answer.headers_mut().insert(header::LINK, next);
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_nothing_else_is() {
        let key = Key { namespace: "team-a".into(), name: "web.v2".into() };
        assert_eq!(Cursor::read(&Cursor::written(&key)), Some(Cursor(key)));
        for text in ["", "x", "####", &URL_SAFE_NO_PAD.encode("a"), &URL_SAFE_NO_PAD.encode("../x/y")] {
            assert_eq!(Cursor::read(text), None, "{text}");
        }
    }
}
