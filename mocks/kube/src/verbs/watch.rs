//! The verb `watch`: the revision at which a watch starts, the refusal of a watch, and the initial snapshot.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use mock_faults::{Form, Newer, Stream, Streaming};
use mock_objects::selector::Selector;
use mock_objects::status::{Cause, Failure};
use mock_store::{Cursor, Store};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::answer::Answer;
use crate::audit::{About, ShownBy};
use crate::body::Body;
use crate::call::Call;
use crate::represent::Renderer;
use crate::watch::{Initial, Opening, WatchBody};

use super::read::{newest_first, note_stale, number, scope, too_new};

/// Maximum number of events that a fault repeats on a watch.
const REPEATED_MAX: usize = 4096;
/// Maximum number of events that a starting watch reads from the store at a time.
const PULL_MAX: usize = 256;
/// kube-apiserver's `--min-request-timeout`: a watch lasts at least this many seconds and at most twice as many.
const LASTS_MIN_S: u64 = 1800;
/// Largest number of seconds in `timeoutSeconds` that has an effect. Clients may send any number, but timers cannot
/// handle much more than a year.
const LASTS_S_MAX: u64 = 366 * 24 * 3600;

pub(super) async fn open(call: &Call) -> Result<Answer, Failure> {
    let query = &call.query;
    let renderer = Renderer::negotiate(call)?.streaming();
    let selector = Selector::parse(query.label_selector.as_deref(), query.field_selector.as_deref(), &call.resource)?;
    check_initial_events(call)?;
    let wanted = number(query.resource_version.as_deref())?.unwrap_or(0);
    let initial_events = query.send_initial_events.unwrap_or(wanted == 0);
    let ahead = if initial_events { None } else { ahead(call, wanted) };
    if ahead.is_none_or(|(newer, _)| newer == Newer::TooLarge) && !waits(call, wanted) {
        too_new(call, wanted).inspect_err(|_| note_ahead(call, wanted, ahead.is_some()))?;
    }
    let id = call.cluster().next_watch();
    let stream = Arc::new(stream(call, id));
    if let Some((newer, _)) = ahead {
        call.cluster().faults.ahead(&stream, wanted);
        if newer == Newer::Gone {
            return Ok(gone(call, &stream, wanted, &Failure::too_old(wanted, call.cluster().revision())));
        }
    }
    let start = if initial_events { Ok(snapshot(call, &selector)) } else { resume(call, wanted) };
    let (cursor, initial, revision) = match start {
        Ok(start) => start,
        Err(failure) => {
            if let Some(active) = &call.injection.empty_when_gone
                && active.hit(|| format!("{} from {wanted}, which is gone: answered with nothing", call.describe()))
            {
                return Ok(Answer::nothing());
            }
            return Ok(gone(call, &stream, wanted, &failure));
        }
    };
    let initial = shown(call, initial).await?;
    let is_snapshot = initial.is_some();
    // After a restore, a client from before has seen only the versions that survived it.
    let revision = ahead.map_or(revision, |(_, common)| common);
    let delivered = call.audit.watch_opened(
        &scope(call),
        &call.resource.full_name,
        revision,
        is_snapshot,
        call.connection.flushes.clone(),
        call.cluster().now_us(),
    );
    if !is_snapshot {
        let (namespace, now_us) = (call.target.namespace.as_deref(), call.cluster().now_us());
        call.cluster().audit.shown.note(&stream, namespace, ShownBy::Begun, revision, now_us);
    }
    call.cluster().faults.opened(&stream, &call.injection);
    let body = WatchBody::new(Opening {
        cluster: call.cluster().clone(),
        audit: call.audit.clone(),
        connection: call.connection.clone(),
        stream,
        delivered,
        resource: call.resource.clone(),
        namespace: call.target.namespace.clone(),
        selector,
        renderer,
        cursor,
        initial,
        bookmarks: query.allow_watch_bookmarks,
        lasts: Duration::from_secs(query.timeout_s.unwrap_or_else(|| lasts_s(id)).min(LASTS_S_MAX))
            / call.cluster().compress,
        ending: call.app.ending.clone(),
        replaced: replaced(call),
        view: call.app.view.clone(),
        stale: call.injection.stale.clone(),
    });
    let mut answer = Answer::json(StatusCode::OK, Bytes::new());
    answer.about.watch = Some(id);
    answer.body = Body::Watch(Box::new(body));
    Ok(answer)
}

/// The token that ends a watch on a custom resource when the definition changes; `None` for built-in resources.
fn replaced(call: &Call) -> Option<CancellationToken> {
    if !call.resource.custom {
        return None;
    }
    let mut replaced = call.cluster().serving.ends(call.resource.id);
    let catalogue = call.cluster().catalogue();
    // The definition has changed since the request came, so the token would not be cancelled any more.
    if catalogue.by_id(call.resource.id).is_none_or(|now| now.edition != call.resource.edition) {
        replaced = CancellationToken::new();
        replaced.cancel();
    }
    Some(replaced)
}

/// How the server treats a client that knows revision `wanted` from before a restore; `None` if the client does not.
fn ahead(call: &Call, wanted: u64) -> Option<(Newer, u64)> {
    if wanted <= call.cluster().revision() {
        return None;
    }
    call.cluster().known_before(wanted)
}

/// Counts a hit of the fault that restored the store: a watch from a revision before the restore was refused.
fn note_ahead(call: &Call, wanted: u64, from_before: bool) {
    if from_before {
        call.cluster().faults.ahead(&stream(call, 0), wanted);
    }
}

fn stream(call: &Call, id: u64) -> Stream {
    Stream::new(Streaming {
        id,
        user: call.who.name.clone(),
        resource: call.resource.full_name.clone(),
        user_agent: call.user_agent.clone(),
        query: call.raw_query.clone(),
        connection: call.connection.handle.clone(),
    })
}

/// Whether a fault shows an old state and accepts a watch from a newer revision, which then waits for that revision.
fn waits(call: &Call, wanted: u64) -> bool {
    let injection = &call.injection;
    injection.stale.is_some() && injection.too_large.is_none() && wanted <= call.cluster().revision()
}

/// The initial snapshot, converted into the requested version.
async fn shown(call: &Call, initial: Option<Initial>) -> Result<Option<Initial>, Failure> {
    let Some(initial) = initial else { return Ok(None) };
    let versions = call.shown_all(initial.versions.into()).await?.into();
    Ok(Some(Initial { versions, ..initial }))
}

type Start = (Cursor, Option<Initial>, u64);

/// Starts a watch with the current objects. The objects and the cursor are taken under one lock, so that no event is
/// missed.
fn snapshot(call: &Call, selector: &Selector) -> Start {
    let id = call.resource.id;
    let namespace = call.target.namespace.as_deref();
    let (page, cursor) = call.cluster().read(|store| {
        let revision = call.sees(store.revision()).max(store.floor());
        let page = store.list(id, namespace, revision, None, usize::MAX, |version| selector.matches(version));
        (page, store.cursor(id, revision))
    });
    let page = page.expect("nothing from the floor on is compacted");
    let cursor = cursor.expect("nothing from the floor on is compacted");
    let announce_end = call.query.send_initial_events == Some(true) && call.query.allow_watch_bookmarks;
    let mut page = page;
    newest_first(call, &mut page.items);
    note_stale(call, page.revision);
    let initial = Initial { versions: VecDeque::from(page.items), revision: page.revision, announce_end };
    (cursor, Some(initial), page.revision)
}

/// Starts a watch after revision `wanted`, or now if the client wants neither a snapshot nor past events.
fn resume(call: &Call, wanted: u64) -> Result<Start, Failure> {
    let id = call.resource.id;
    let since = if call.resource.custom { call.cluster().serving.since(id) } else { 0 };
    if wanted != 0 && wanted < since {
        return Err(Failure::too_old(wanted, since));
    }
    let (cursor, revision) = call.cluster().read(|store| {
        let from = if wanted == 0 { call.sees(store.revision()) } else { wanted };
        (store.cursor(id, earlier(call, store, from)), from)
    });
    let cursor = cursor.map_err(|expired| Failure::too_old(expired.requested, expired.floor))?;
    Ok((cursor, None, revision))
}

/// The revision from which a watch reads: `from`, or some events earlier if a fault repeats them.
fn earlier(call: &Call, store: &Store, from: u64) -> u64 {
    let Some((events, active)) = &call.injection.repeat else { return from };
    let Ok(mut cursor) = store.cursor(call.resource.id, store.floor()) else { return from };
    let count = usize::try_from(*events).unwrap_or(usize::MAX).min(REPEATED_MAX);
    // The revisions after which the last events begin: one more than the number of repeated events.
    let mut starts = VecDeque::from([store.floor()]);
    let mut pulled = Vec::new();
    loop {
        pulled.clear();
        if store.pull(call.resource.id, &mut cursor, PULL_MAX, from, &mut pulled).is_err() {
            return from;
        }
        for event in &pulled {
            if starts.len() > count {
                starts.pop_front();
            }
            starts.push_back(event.version.revision);
        }
        if pulled.len() < PULL_MAX {
            break;
        }
    }
    let start = starts.front().copied().unwrap_or(from);
    let repeated = starts.len() - 1;
    if repeated == 0 || !active.hit(|| format!("{} from {from} gets {repeated} events again", call.describe())) {
        return from;
    }
    start
}

/// Checks that a watch with initial events has `resourceVersionMatch=NotOlderThan` (KEP-3157).
fn check_initial_events(call: &Call) -> Result<(), Failure> {
    let (send, rule) = (call.query.send_initial_events, call.query.resource_version_match.as_deref());
    let why = match (send, rule) {
        (Some(_), Some("NotOlderThan")) | (None, None) => return Ok(()),
        (Some(_), None) => "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        (Some(_), Some(_)) => "sendInitialEvents requires resourceVersionMatch NotOlderThan, not another rule",
        (None, Some(_)) => "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
    };
    Err(Failure::invalid_options("ListOptions", Cause::forbidden("resourceVersionMatch", why)))
}

/// The answer 410 to a watch from a compacted revision: as HTTP status or as `ERROR` event.
fn gone(call: &Call, stream: &Stream, wanted: u64, failure: &Failure) -> Answer {
    // kube-apiserver with its watch cache answers in the stream; aggregated and older servers by HTTP status.
    let form = call.cluster().faults.gone(stream, wanted).unwrap_or(Form::Stream);
    let http = form == Form::Http;
    call.audit.gone(call.resource.id, wanted, http);
    if http {
        return failure.clone().into();
    }
    let line = json!({"type": "ERROR", "object": failure.to_value()});
    let about = About { error_code: Some(StatusCode::GONE.as_u16()), ..About::default() };
    Answer { about, ..Answer::json(StatusCode::OK, Bytes::from(format!("{line}\n"))) }
}

/// Seconds that a watch lasts, spread evenly without a random number: multiples of the golden ratio are evenly spread.
fn lasts_s(id: u64) -> u64 {
    LASTS_MIN_S + id.wrapping_mul(0x9E37_79B9) % LASTS_MIN_S
}
