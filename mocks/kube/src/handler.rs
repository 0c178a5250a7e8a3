//! The handling of one request, from its headers to its answer.
//!
//! Owns authentication, routing and the audit entry of each request. The module `verbs` owns the verbs.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body as _;
use hyper::body::Incoming;
use mock_faults::{Injection, On, Side};
use mock_objects::catalogue::{Catalogue, Resource};
use mock_objects::openapi;
use mock_objects::status::Failure;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::answer::Answer;
use super::audit::{EndedBy, Following, OwnConnection, RequestRecord, UserAudit, cut};
use super::body::Body;
use super::call::{App, Call, OpenRequest};
use super::connection::Connection;
use super::inject::{self, Unanswered};
use super::path::{self, Query, Target};
use super::payload::Payload;
use super::users::Who;
use super::websocket::Wish;
use super::written::Write;
use super::{admin, authentication, discovery, health, impersonation, pretty, protobuf, rbac, verbs};

pub(crate) async fn handle(
    app: Arc<App>,
    connection: Arc<Connection>,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Unanswered> {
    let at_us = app.cluster.now_us();
    let is_head = request.method() == Method::HEAD;
    let program = request.headers().get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    let user_agent: Arc<str> = cut(program.unwrap_or_default(), 256).into();
    let who = match authentication::bearer(&app.users, &app.cluster, request.headers()) {
        Ok(Some(who)) => Ok(who),
        Ok(None) => Ok(connection.peer.clone().unwrap_or_else(|| Arc::new(Who::anonymous()))),
        Err(why) => {
            tracing::debug!(%why, "refused a token");
            let former = app.users.former_bearer(request.headers());
            if let Some(user) = &former {
                app.cluster.faults.old_token_refused(user);
            }
            Err(former)
        }
    };
    let (who, forbidden) = match who {
        Ok(who) => match impersonation::acting(&app.cluster, who.clone(), request.headers()) {
            Ok(acted) => (Ok(acted), None),
            Err(failure) => (Ok(who), Some(failure)),
        },
        Err(former) => (Err(former), None),
    };
    // Expired tokens are refused and recorded: otherwise their user would seem to be silent.
    let name = match &who {
        Ok(who) => who.name.clone(),
        Err(former) => former.clone().unwrap_or_else(|| Arc::from("system:anonymous")),
    };
    let is_pretty = pretty::is_wanted(request.uri().query().unwrap_or_default(), &user_agent)
        && !request.uri().path().starts_with("/openapi/");
    let websocket = Wish::of(&mut request);
    let in_protobuf = websocket.is_none() && protobuf::take_wish(&mut request);
    let audit = app.cluster.audit.of(&name);
    audit.request_began();
    connection.owner.get_or_init(|| OwnConnection::first_use(&audit));
    let mut record = RequestRecord {
        at_us,
        method: request.method().as_str().to_owned(),
        path: cut(request.uri().path(), 512).to_owned(),
        query: cut(request.uri().query().unwrap_or_default(), 1024).to_owned(),
        user: name,
        user_agent: user_agent.clone(),
        connection: connection.id,
        http_version: connection.http_version,
        status: 0,
        revision: None,
        annotations: None,
    };
    let following = Following::begin(&audit, &record);
    let mut open = OpenRequest { audit: audit.clone(), cluster: app.cluster.clone(), following };
    let answer = match who {
        Ok(_) if forbidden.is_some() => forbidden.map_or_else(|| Err(Failure::unauthorized()), Err),
        Ok(who) => {
            let answer = route(&app, connection.clone(), who, audit, (user_agent, in_protobuf), request).await;
            answer.inspect_err(|_| open.ends(EndedBy::Reset))?
        }
        Err(_) => Err(Failure::unauthorized()),
    };
    let mut answer = answer.unwrap_or_else(Answer::from);
    let websocket = websocket.filter(|_| answer.streams);
    if let Some(status) = websocket.as_ref().and_then(|wish| wish.refused()) {
        answer = Answer { about: answer.about, ..Answer::text(status, "") };
    }
    if is_pretty && websocket.is_none() && answer.content_type.starts_with("application/json") {
        answer.body.indent();
    }
    open.answered(answer.status.as_u16(), answer.about, answer.said.take(), matches!(answer.body, Body::Watch(_)));
    if let Body::Watch(watch) = &mut answer.body {
        watch.hold(open);
    }
    record.status = answer.status.as_u16();
    record.revision = answer.about.revision;
    record.annotations = answer.annotations.take();
    app.cluster.audit.requests.push(record);
    if let (true, Body::Watch(watch)) = (answer.holds_head, &mut answer.body) {
        watch.first().await;
    }
    // The audit records a WebSocket like other watches, with their status, because its readers ask whether the watch
    // was accepted.
    Ok(match websocket {
        Some(wish) => wish.respond(answer, &connection),
        None if in_protobuf => without_body(is_head, respond(protobuf::answer(answer))),
        None => without_body(is_head, respond(answer)),
    })
}

/// Removes the body from answers that must not have one (RFC 9110, "Content Semantics"). An answer to HEAD still has
/// the length of the body; an answer whose status allows no body does not. The HTTP library drops a forbidden body on
/// HTTP/1.1, but sends it on HTTP/2, and clients treat that connection as broken.
fn without_body(is_head: bool, mut response: Response<Body>) -> Response<Body> {
    let status = response.status();
    let never = status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if !is_head && !never {
        return response;
    }
    let length = response.body().size_hint().exact().filter(|_| is_head && !never);
    *response.body_mut() = Body::from(Bytes::new());
    if let Some(length) = length {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

fn respond(answer: Answer) -> Response<Body> {
    let mut response = Response::new(answer.body);
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    let content_type = answer.other_content_type.and_then(|media| HeaderValue::from_str(&media).ok());
    headers.insert(header::CONTENT_TYPE, content_type.unwrap_or(HeaderValue::from_static(answer.content_type)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if let Some(seconds) = answer.retry_after_s {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    for warning in answer.warnings {
        // RFC 9111 removed the header, but Kubernetes still sends it: code, agent, quoted text.
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            headers.append(header::WARNING, value);
        }
    }
    response
}

/// The answer to a request; an error if a fault suppresses the answer.
async fn route(
    app: &Arc<App>,
    connection: Arc<Connection>,
    who: Arc<Who>,
    audit: Arc<UserAudit>,
    (user_agent, in_protobuf): (Arc<str>, bool),
    request: Request<Incoming>,
) -> Result<Result<Answer, Failure>, Unanswered> {
    let path = request.uri().path().to_owned();
    if let Some(answer) = operations(&path, request.uri().query().unwrap_or_default()) {
        return Ok(Ok(answer));
    }
    if &*who.name == "system:anonymous" && !app.cluster.alone {
        return Ok(Err(Failure::unauthorized()));
    }
    if !who.is_known()
        && Target::parse(&path).is_none()
        && let Err(why) = rbac::allows_path(&app.cluster, &who, &path, "get")
    {
        return Ok(Err(Failure::forbidden_path(&why.to_string())));
    }
    if admin::is_admin(&path) {
        return Ok(administer(app, &who, request).await);
    }
    let text = |name: header::HeaderName| -> String {
        request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let accept = text(header::ACCEPT);
    let catalogue = app.cluster.catalogue();
    if request.method() == Method::GET {
        if let Err(failure) = path::check_deadline(request.uri().query().unwrap_or_default()) {
            return Ok(Err(failure));
        }
        let host = request.uri().authority().map_or_else(|| text(header::HOST), ToString::to_string);
        if let Some(answer) = authentication::issuer(&app.users, &app.cluster, &who, &path, &host) {
            return Ok(answer);
        }
        if discovery::is_unfit(&path, &accept) {
            let accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
            return Ok(Err(Failure { details: None, ..Failure::not_acceptable(accepted) }));
        }
        let answer = discovery::answer(&path, &accept, &catalogue)
            .or_else(|| openapi::document(&path, &accept, &catalogue, app.cluster.revision()).map(Answer::from));
        if let Some(answer) = answer {
            return Ok(Ok(answer));
        }
    }
    let raw_query = request.uri().query().unwrap_or_default().to_owned();
    let (target, query, resource) = match resolve(&path, &raw_query, &catalogue) {
        Ok(resolved) => resolved,
        Err(failure) => return Ok(Err(failure)),
    };
    // Boxed, because each of the futures that pass it on would reserve the room.
    let call = Box::new(Call {
        app: app.clone(),
        connection,
        who,
        audit,
        method: request.method().clone(),
        target,
        query,
        accept,
        content_type: text(header::CONTENT_TYPE),
        user_agent,
        in_protobuf,
        resource,
        raw_query: raw_query.into(),
        injection: Injection::default(),
        annotations: Mutex::default(),
    });
    let deprecated = call.served().deprecation.clone();
    let watches = call.facts().on == On::Watch;
    // Faults concern clients: the server's own programs meet none, even if every user is a target.
    let is_plain = app.cluster.faults.never_any() && !app.cluster.audit.writes.follows();
    let body = Payload::from(request.into_body());
    let answer = if call.connection.inside || is_plain {
        verbs::dispatch(call, body).await
    } else {
        // Boxed, because every request reserves the room.
        Box::pin(disturbed(call, body)).await?
    };
    let answer = answer.map(|answer| Answer { streams: watches && answer.status == StatusCode::OK, ..answer });
    Ok(match deprecated {
        Some(warning) => Ok(warned(answer, &warning)),
        None => answer,
    })
}

/// The answer to a request that faults may affect, or whose write is recorded.
async fn disturbed(mut call: Box<Call>, mut body: Payload) -> Result<Result<Answer, Failure>, Unanswered> {
    let cluster = call.cluster().clone();
    let write = Write::of(&call, &mut body).await;
    if let Some(write) = &write {
        write.reaches(&cluster, Side::Before).await;
    }
    call.injection = cluster.faults.injection(&call.facts());
    inject::answer(call, body, write).await
}

/// Adds the deprecation warning of a version to the answer, even if the request fails.
fn warned(answer: Result<Answer, Failure>, warning: &str) -> Answer {
    let mut answer = answer.unwrap_or_else(Answer::from);
    answer.warnings.insert(0, warning.to_owned());
    answer
}

async fn administer(app: &Arc<App>, who: &Who, request: Request<Incoming>) -> Result<Answer, Failure> {
    let path = request.uri().path().to_owned();
    // Handled like GET; the body is removed at the end.
    let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
    let (method, query) = (method.clone(), request.uri().query().unwrap_or_default().to_owned());
    let bytes = verbs::read_body(&app.limits, request.into_body()).await?;
    admin::answer(&app.cluster, who, &method, (&path, &query), &bytes)
}

/// Returns the resource that a path names, with the parsed path and query.
fn resolve(path: &str, query: &str, catalogue: &Catalogue) -> Result<(Target, Query, Arc<Resource>), Failure> {
    let mut target = Target::parse(path).ok_or_else(|| no_such(path, catalogue))?;
    let query = Query::parse(query)?;
    let resource = catalogue.by_path(&target.group, &target.version, &target.plural).cloned();
    let resource = resource.ok_or_else(|| no_such(path, catalogue))?;
    if resource.namespaced != target.namespace.is_some() && (target.name.is_some() || target.namespace.is_some()) {
        return Err(Failure::no_such_path());
    }
    if resource.custom
        && let Some(subresource) = &mut target.subresource
    {
        // The handler of custom resources ignores the rest of the path.
        let first = subresource.find('/').unwrap_or(subresource.len());
        subresource.truncate(first);
    }
    let resource = resource.in_version(&target.version);
    Ok((target, query, resource))
}

/// The error for a path that is not a resource: a `Status` for built-in groups, plain text for others.
fn no_such(path: &str, catalogue: &Catalogue) -> Failure {
    let mut parts = path.trim_matches('/').split('/');
    let group = match parts.next() {
        Some("api") => "",
        Some("apis") => parts.next().unwrap_or_default(),
        _ => return Failure::no_such_group(),
    };
    let version = parts.next().unwrap_or_default();
    let serves =
        |resource: &Arc<Resource>| !resource.custom && *resource.group == *group && resource.version(version).is_some();
    if catalogue.iter().any(serves) { Failure::no_such_path() } else { Failure::no_such_group() }
}

/// The answer for a path that every client may read, such as a health check; `None` for other paths.
fn operations(path: &str, query: &str) -> Option<Answer> {
    if let Some(answer) = health::answer(path, query) {
        return Some(answer);
    }
    if path == "/version" || path == "/version/" {
        return Some(Answer::value(StatusCode::OK, &version()));
    }
    None
}

fn version() -> Value {
    let release = mock_objects::builtin::release();
    let mut parts = release.trim_start_matches('v').split('.');
    let (major, minor) = (parts.next(), parts.next());
    json!({
        "major": major, "minor": minor, "gitVersion": format!("{release}+longhaul-mock"), "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc", "platform": "linux/amd64",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_body_says_at_most_how_long_it_would_be() {
        let sent = |is_head: bool, status: StatusCode| {
            let response = without_body(is_head, respond(Answer::text(status, "text")));
            let length =
                response.headers().get(header::CONTENT_LENGTH).map(|length| length.to_str().unwrap().to_owned());
            (response.body().is_end_stream(), length)
        };
        assert_eq!(sent(false, StatusCode::OK), (false, None));
        assert_eq!(sent(true, StatusCode::OK), (true, Some("4".to_owned())));
        assert_eq!(sent(true, StatusCode::NOT_FOUND), (true, Some("4".to_owned())));
        for status in [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED, StatusCode::EARLY_HINTS] {
            assert_eq!([sent(false, status), sent(true, status)], [(true, None), (true, None)], "{status}");
        }
    }

    fn future_bytes<A, B, C, F: Future>(_: impl Fn(A, B, C) -> F) -> usize {
        size_of::<F>()
    }

    /// The future of a request is small: it is made on the stack and kept on the heap until the answer.
    #[test]
    fn a_request_in_progress_is_small() {
        let bytes = future_bytes(handle);
        assert!(bytes <= 4 * 1024, "{bytes} bytes");
    }
}
