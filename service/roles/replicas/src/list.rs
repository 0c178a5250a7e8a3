//! The list of Deployments in pages, by namespace and name.
//!
//! The cursor of a page names the page's last Deployment, so the cursor stays valid whatever changes. If a Deployment
//! exists during the whole listing, exactly one page contains it.

use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

use super::answer::{self, CONTINUE};
use super::cursor::Cursor;
use super::deployment::Deployment;
use super::route::{BASE, PageQuery};
use service_core::edge::Answer;
use service_watch::{Key, Object, Store};

/// One Deployment with the JSON keys of an answer.
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

pub fn page(store: &Store<Deployment>, page: &PageQuery) -> Answer {
    let after = page.after.as_ref().map(Cursor::key);
    // One more than shown, to find out whether there are more.
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
