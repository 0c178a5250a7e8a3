//! The verbs `get` and `list`.
//!
//! Owns the rules of `resourceVersion` and `resourceVersionMatch` for lists (Kubernetes API concepts, "Resource
//! versions"; KEP-2523), and continue tokens.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use bytes::Bytes;
use http::StatusCode;
use mock_faults::Form;
use mock_objects::selector::Selector;
use mock_objects::status::{Cause, Failure};
use mock_store::{After, Page, Version};
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::audit::{About, Scope};
use crate::call::Call;
use crate::represent::{ListMeta, Renderer};

/// The maximum number of objects in a list without `limit`.
const UNLIMITED: usize = usize::MAX;

/// The position at which a paged list continues, in a token that is opaque to clients.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Token {
    /// The revision of the snapshot; 0 continues at the present state.
    revision: u64,
    namespace: String,
    name: String,
    served: usize,
}

pub(super) async fn one(call: &Call) -> Result<Answer, Failure> {
    let name = call.target.name.as_deref().unwrap_or_default();
    let renderer = Renderer::negotiate(call)?;
    let asked = call.query.resource_version.as_deref();
    // For a kind that is not cached, etcd's client refuses a bad number.
    let wanted = if call.resource.rules.uncached { good_number(asked) } else { number(asked) }?;
    if let Some(wanted) = wanted {
        too_new(call, wanted)?;
    }
    let current = call.cluster().get(&call.resource, call.namespace(), name);
    let version = if wanted.is_some() || call.injection.stale.is_some() { seen(call, name, current) } else { current };
    note_stale(call, call.sees(call.cluster().revision()));
    let version = version.ok_or_else(|| Failure::not_found(call.resource.about(name)))?;
    let version = call.shown(version).await?;
    Ok(Answer::json(StatusCode::OK, renderer.object(&version)).of(version.revision))
}

/// The version of an object that the request's endpoint shows: `current`, unless the endpoint lags.
fn seen(call: &Call, name: &str, current: Option<Arc<Version>>) -> Option<Arc<Version>> {
    let (id, namespace) = (call.resource.id, call.namespace());
    call.cluster().read(|store| {
        let at = call.sees(store.revision()).max(store.floor());
        if at == store.revision() {
            return current;
        }
        let page = store.list(id, Some(namespace), at, None, 1, |version| &*version.identity.name == name);
        page.ok().and_then(|page| page.items.into_iter().next())
    })
}

pub(super) async fn list(call: &Call) -> Result<Answer, Failure> {
    let query = &call.query;
    let renderer = Renderer::negotiate(call)?;
    let selector = Selector::parse(query.label_selector.as_deref(), query.field_selector.as_deref(), &call.resource)?;
    let token = query.continue_token.as_deref().map(parse_token).transpose()?;
    // "Any version" is answered from the watch cache as a whole (Kubernetes API concepts, the `limit` of such a list).
    let cached = query.resource_version.as_deref() == Some("0") && token.is_none() && !call.resource.rules.uncached;
    let limit = if cached { None } else { query.limit };
    let forced = call.injection.page_items.as_ref().map(|(items, _)| *items);
    let limit = limit.into_iter().chain(forced).min();
    let limit = limit.map_or(UNLIMITED, |limit| usize::try_from(limit).unwrap_or(UNLIMITED));
    let snapshot = snapshot(call, token.as_ref())?;
    let after: Option<After> = token.as_ref().map(|token| (Arc::from(&*token.namespace), Arc::from(&*token.name)));
    let already = token.as_ref().map_or(0, |token| token.served);

    let namespace = call.target.namespace.as_deref();
    let id = call.resource.id;
    let page = call.cluster().read(|store| {
        let at = match snapshot {
            Snapshot::Present if call.injection.stale.is_none() => store.revision(),
            Snapshot::Present | Snapshot::Seen => call.sees(store.revision()).max(store.floor()),
            Snapshot::Exact(revision) => revision,
        };
        store.list(id, namespace, at, after.as_ref(), limit, |version| selector.matches(version))
    });
    let page = page.map_err(|expired| {
        if let Some(token) = &token {
            return Failure::continue_expired(encode_token(&Token { revision: 0, ..copy(token) }));
        }
        let (requested, floor) = (expired.requested, expired.floor);
        let message = format!("The resourceVersion for the provided list is too old: {requested} ({floor})");
        Failure::new(StatusCode::GONE, "Expired", message)
    })?;
    let mut page = page;
    page.items = call.shown_all(page.items).await?;
    newest_first(call, &mut page.items);
    note_stale(call, page.revision);
    if let (Some((_, active)), Some(_)) = (&call.injection.page_items, &page.next) {
        active.hit(|| format!("{} cut into pages of {limit}", call.describe()));
    }
    call.audit.listed(scope(call), page.revision);
    let meta = meta(&page, already, &selector);
    let about = About { objects: page.items.len() as u64, revision: Some(page.revision), ..Default::default() };
    Ok(Answer { about, body: renderer.list(page.items, &meta).into(), ..Answer::json(StatusCode::OK, Bytes::new()) })
}

/// The list metadata of one page of a list, if the earlier pages had `already` objects.
pub(super) fn meta(page: &Page, already: usize, selector: &Selector) -> ListMeta {
    // The token comes from the client, so the sum must not overflow.
    let served = already.saturating_add(page.items.len());
    ListMeta {
        revision: page.revision,
        continue_token: next(page, served),
        // With a selector the number of remaining objects is unknown.
        remaining: (page.next.is_some() && selector.is_empty()).then(|| page.total.saturating_sub(served)),
    }
}

/// The resource, namespace and selectors of a request, which are those of the client's informer.
pub(super) fn scope(call: &Call) -> Scope {
    Scope {
        resource: call.resource.id,
        namespace: call.target.namespace.clone(),
        labels: call.query.label_selector.clone(),
        fields: call.query.field_selector.clone(),
    }
}

/// `resourceVersion` as a number; `None` if it is not set.
pub(super) fn number(text: Option<&str>) -> Result<Option<u64>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let wrong = || {
        let why = format!("strconv.ParseUint: parsing \"{text}\": invalid syntax");
        Failure::plain(format!("resourceVersion: Invalid value: \"{text}\": {why}"))
    };
    text.parse().map(Some).map_err(|_| wrong())
}

/// Like [`number`], but the error for an invalid number is `BadRequest`.
fn good_number(text: Option<&str>) -> Result<Option<u64>, Failure> {
    number(text).map_err(|failure| Failure::bad_request(format!("invalid resource version: {}", failure.message)))
}

/// Refuses a revision that this server has not reached.
pub(super) fn too_new(call: &Call, wanted: u64) -> Result<(), Failure> {
    let current = call.sees(call.cluster().revision());
    if let Some(rule) = &call.injection.too_large
        && (wanted > current || (rule.always && wanted > 0))
        && rule.active.hit(|| format!("{} from {wanted} refused as too large, at {current}", call.describe()))
    {
        return Err(match rule.form {
            Form::Old => Failure::from_the_future_in_words(wanted, current),
            _ => Failure::from_the_future(wanted, current),
        });
    }
    if wanted > current { Err(Failure::from_the_future(wanted, current)) } else { Ok(()) }
}

/// Moves the newest version to the front of a list if a fault demands that.
pub(super) fn newest_first(call: &Call, items: &mut [Arc<Version>]) {
    if let Some(active) = call.injection.newest_first.as_ref().filter(|_| items.len() > 1)
        && active.hit(|| format!("{} answered newest first", call.describe()))
    {
        items.sort_by_key(|version| std::cmp::Reverse(version.revision));
    }
}

/// Counts a hit of the fault that shows the old state at `revision`, if a newer state exists.
pub(super) fn note_stale(call: &Call, revision: u64) {
    let current = call.cluster().revision();
    if let Some(stale) = call.injection.stale.as_ref().filter(|_| revision < current) {
        stale.active.hit(|| format!("{} answered at revision {revision} of {current}", call.describe()));
    }
}

/// The state of the store that a list shows.
#[derive(Debug, Clone, Copy)]
enum Snapshot {
    /// The newest state of the store, as in a quorum read.
    Present,
    /// The state that this endpoint shows, which is the newest unless the endpoint lags.
    Seen,
    Exact(u64),
}

/// The state of the store that a list request asks for.
fn snapshot(call: &Call, token: Option<&Token>) -> Result<Snapshot, Failure> {
    let query = &call.query;
    let wanted = good_number(query.resource_version.as_deref())?;
    let rule = query.resource_version_match.as_deref();
    let invalid = |field: &str, why: &str| Err(Failure::invalid_options("ListOptions", Cause::forbidden(field, why)));
    if let Some(token) = token {
        if rule.is_some() {
            return invalid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided");
        }
        if wanted.is_some_and(|wanted| wanted != 0) {
            return Err(Failure::bad_request("specifying resource version is not allowed when using continue"));
        }
        return Ok(if token.revision == 0 { Snapshot::Present } else { Snapshot::Exact(token.revision) });
    }
    match (wanted, rule) {
        (None, Some(_)) => {
            invalid("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided")
        }
        (Some(0), Some("Exact")) => {
            invalid("resourceVersionMatch", "resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"")
        }
        (None, _) => Ok(Snapshot::Present),
        (Some(0), _) => Ok(Snapshot::Seen),
        (Some(wanted), Some("NotOlderThan")) => too_new(call, wanted).map(|()| Snapshot::Seen),
        (Some(wanted), Some("Exact")) => too_new(call, wanted).map(|()| Snapshot::Exact(wanted)),
        (Some(_), Some(other)) => {
            let message =
                format!("Unsupported value: \"{other}\": supported values: \"Exact\", \"NotOlderThan\", \"\"");
            let field = "resourceVersionMatch".to_owned();
            let cause = Cause { reason: "FieldValueNotSupported", field, message };
            Err(Failure::invalid_options("ListOptions", cause))
        }
        // Without a match rule a limit makes it exact, for old clients that page.
        (Some(wanted), None) => {
            too_new(call, wanted).map(|()| query.limit.map_or(Snapshot::Seen, |_| Snapshot::Exact(wanted)))
        }
    }
}

fn next(page: &Page, served: usize) -> Option<String> {
    let (namespace, name) = page.next.as_ref()?;
    Some(encode_token(&Token {
        revision: page.revision,
        namespace: namespace.to_string(),
        name: name.to_string(),
        served,
    }))
}

fn copy(token: &Token) -> Token {
    Token {
        revision: token.revision,
        namespace: token.namespace.clone(),
        name: token.name.clone(),
        served: token.served,
    }
}

fn encode_token(token: &Token) -> String {
    BASE64.encode(serde_json::to_vec(token).expect("numbers and texts always serialise"))
}

fn parse_token(text: &str) -> Result<Token, Failure> {
    let wrong = || Failure::bad_request("continue key is not valid: unexpected format");
    let bytes = BASE64.decode(text).map_err(|_| wrong())?;
    serde_json::from_slice(&bytes).map_err(|_| wrong())
}
