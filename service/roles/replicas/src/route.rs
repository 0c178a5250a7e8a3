//! The routes of the API: finds the operation from method, path and query. All requests without a route are refused.
//!
//! An invalid name never reaches the API server, so nothing can be injected into its paths.

use http::{Method, StatusCode};

use super::answer::Refusal;
use super::cursor::Cursor;
use super::names::{is_label, is_subdomain};

/// Prefix of every path but that of the OpenAPI description.
pub const BASE: &str = "/api/v1";
/// Maximum number of Deployments in one answer, which then has about 1 MB. If more Deployments follow, the answer has a
/// cursor for the next page.
pub const LIMIT_MAX: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Route<'a> {
    /// Read the replica count of one Deployment.
    Read(Target<'a>),
    /// Set the replica count of one Deployment.
    Scale(Target<'a>, How),
    /// Set the image of a container in one Deployment.
    Image(Target<'a>, &'a str, How),
    List(PageQuery),
    /// Report whether the API server of the cluster answers.
    Health,
    Description,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct How {
    pub dry_run: bool,
    /// Whether the answer waits until the cache shows the change.
    pub wait: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub struct PageQuery {
    /// Maximum number of Deployments in the page.
    pub limit: usize,
    /// The page starts after the Deployment of this cursor.
    pub after: Option<Cursor>,
}

/// Rights of a caller; the names of rights are label values and configuration keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Read,
    Scale,
    Image,
}

impl Verb {
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Scale => "scale",
            Self::Image => "image",
        }
    }
}

impl Route<'_> {
    pub fn verb(&self) -> Verb {
        match self {
            Self::Scale(..) => Verb::Scale,
            Self::Image(..) => Verb::Image,
            Self::Read(_) | Self::List(_) | Self::Health | Self::Description => Verb::Read,
        }
    }
}

pub fn route<'a>(method: &Method, path: &'a str, query: Option<&str>) -> Result<Route<'a>, Refusal> {
    let segments = |rest: &'a str| rest.split('/').collect::<Vec<_>>();
    let below = path.strip_prefix(BASE).and_then(|rest| rest.strip_prefix('/'));
    let segments = below.map(segments).unwrap_or_default();
    match segments[..] {
        ["namespaces", namespace, "deployments", name, "replicas"] => {
            let put = allowed(method, &[Method::GET, Method::PUT], "GET, PUT")? == Method::PUT;
            let target = target(namespace, name)?;
            if put { how(query).map(|how| Route::Scale(target, how)) } else { none(query, Route::Read(target)) }
        }
        ["namespaces", namespace, "deployments", name, "containers", container, "image"] => {
            allowed(method, &[Method::PUT], "PUT")?;
            let target = target(namespace, name)?;
            is_label(container).then_some(()).ok_or_else(|| bad_name("container", "label"))?;
            how(query).map(|how| Route::Image(target, container, how))
        }
        ["deployments"] => {
            allowed(method, &[Method::GET], "GET")?;
            page(query).map(Route::List)
        }
        ["health"] => {
            allowed(method, &[Method::GET], "GET")?;
            none(query, Route::Health)
        }
        _ if path == "/openapi.json" => {
            allowed(method, &[Method::GET], "GET")?;
            none(query, Route::Description)
        }
        _ => Err(Refusal::new(StatusCode::NOT_FOUND, "there is no such path: see /openapi.json")),
    }
}

fn allowed<'a>(method: &'a Method, those: &[Method], text: &'static str) -> Result<&'a Method, Refusal> {
    if those.contains(method) {
        return Ok(method);
    }
    let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, format!("this path has {text}"));
    Err(Refusal { allow: Some(text), ..refusal })
}

fn target<'a>(namespace: &'a str, name: &'a str) -> Result<Target<'a>, Refusal> {
    if !is_label(namespace) {
        return Err(bad_name("namespace", "label"));
    }
    if !is_subdomain(name) {
        return Err(bad_name("deployment", "subdomain"));
    }
    Ok(Target { namespace, name })
}

/// An error about an invalid name. The message does not show the name, because an attacker may have chosen it.
fn bad_name(whose: &str, what: &str) -> Refusal {
    Refusal::bad(format!("the name of the {whose} is no DNS-1123 {what}"))
}

/// The pairs of key and value in a query. Each key in the query must be one of `known` and occur once.
fn pairs<'q>(query: Option<&'q str>, known: &[&str]) -> Result<Vec<(&'q str, &'q str)>, Refusal> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for part in query.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        if !known.contains(&key) {
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Refusal::bad(format!("unknown parameter; those of this path: {known}")));
        }
        if found.iter().any(|(other, _)| *other == key) {
            return Err(Refusal::bad(format!("{key} is there twice")));
        }
        found.push((key, value));
    }
    Ok(found)
}

fn none<'a>(query: Option<&str>, route: Route<'a>) -> Result<Route<'a>, Refusal> {
    pairs(query, &[]).map(|_| route)
}

fn how(query: Option<&str>) -> Result<How, Refusal> {
    let mut how = How::default();
    for pair in pairs(query, &["dryRun", "wait"])? {
        match pair {
            ("dryRun", "All") => how.dry_run = true,
            ("wait", "observed") => how.wait = true,
            ("dryRun", _) => return Err(Refusal::bad("dryRun: the only value is All")),
            _ => return Err(Refusal::bad("wait: the only value is observed")),
        }
    }
    if how.dry_run && how.wait {
        return Err(Refusal::bad("wait: what is not stored is never observed"));
    }
    Ok(how)
}

fn page(query: Option<&str>) -> Result<PageQuery, Refusal> {
    let mut page = PageQuery { limit: LIMIT_MAX, after: None };
    for (key, value) in pairs(query, &["limit", "continue"])? {
        if key == "limit" {
            let limit = value.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
            let digits = value.bytes().all(|byte| byte.is_ascii_digit());
            let limit = limit.filter(|_| digits);
            page.limit = limit.ok_or_else(|| Refusal::bad(format!("limit: a number from 1 to {LIMIT_MAX}")))?;
        } else {
            let cursor = Cursor::read(value);
            page.after = Some(cursor.ok_or_else(|| Refusal::bad("continue: not what an answer of this API said"))?);
        }
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(method: &Method, path: &str, query: Option<&str>) -> u16 {
        route(method, path, query).map_or_else(|refusal| refusal.status.as_u16(), |_| 200)
    }

    #[test]
    fn paths_are_below_api_v1() {
        assert_eq!(
            route(&Method::GET, "/api/v1/namespaces/n/deployments/d.e-f/replicas", None),
            Ok(Route::Read(Target { namespace: "n", name: "d.e-f" }))
        );
        let how = How { dry_run: false, wait: true };
        assert_eq!(
            route(&Method::PUT, "/api/v1/namespaces/n/deployments/d/replicas", Some("wait=observed")),
            Ok(Route::Scale(Target { namespace: "n", name: "d" }, how))
        );
        for path in [
            "/",
            "",
            "/api/v1",
            "/api/v1/",
            "/deployments",
            "/api/v2/deployments",
            "/api/v1/deployments/",
            "/api/v1//deployments",
            "/API/V1/deployments",
            "/api/v1deployments",
            "/api/v1/openapi.json",
            "/api/v1/namespaces/n/deployments/d",
            "/api/v1/namespaces/n/deployments/d/replicas/",
        ] {
            assert_eq!(status(&Method::GET, path, None), 404, "{path}");
        }
    }

    #[test]
    fn another_method_is_refused_with_those_that_there_are() {
        for (path, allow) in [
            ("/api/v1/namespaces/n/deployments/d/replicas", "GET, PUT"),
            ("/api/v1/namespaces/n/deployments/d/containers/c/image", "PUT"),
            ("/api/v1/deployments", "GET"),
            ("/api/v1/health", "GET"),
            ("/openapi.json", "GET"),
        ] {
            let refusal = route(&Method::DELETE, path, None).unwrap_err();
            assert_eq!((refusal.status.as_u16(), refusal.allow), (405, Some(allow)), "{path}");
        }
    }

    #[test]
    fn an_invalid_name_is_refused() {
        let long = "a".repeat(254);
        let bad = ["..", ".", "", "A", "a_b", "-a", "a-", "a.", ".a", "a..b", "%2e%2e", "a%2fb", "é", "a b", &long];
        for name in bad {
            let path = format!("/api/v1/namespaces/n/deployments/{name}/replicas");
            assert_eq!(status(&Method::GET, &path, None), 400, "{name}");
            assert_eq!(status(&Method::PUT, &path, None), 400, "{name}");
            let path = format!("/api/v1/namespaces/{name}/deployments/d/replicas");
            assert_eq!(status(&Method::GET, &path, None), 400, "{name}");
            let path = format!("/api/v1/namespaces/n/deployments/d/containers/{name}/image");
            assert_eq!(status(&Method::PUT, &path, None), 400, "{name}");
        }
        let fits = format!("/api/v1/namespaces/{}/deployments/{}/replicas", "a".repeat(63), "a".repeat(253));
        assert_eq!(status(&Method::GET, &fits, None), 200);
        assert_eq!(status(&Method::GET, "/api/v1/namespaces/a.b/deployments/d/replicas", None), 400, "no label");
    }

    #[test]
    fn unknown_and_repeated_parameters_are_refused() {
        let replicas = "/api/v1/namespaces/n/deployments/d/replicas";
        for (method, path, query) in [
            (Method::GET, replicas, "wait=observed"),
            (Method::PUT, replicas, "wait=seen"),
            (Method::PUT, replicas, "dryrun=All"),
            (Method::PUT, replicas, "dryRun=All&dryRun=All"),
            (Method::PUT, replicas, "dryRun=All&wait=observed"),
            (Method::GET, "/api/v1/deployments", "limit=0"),
            (Method::GET, "/api/v1/deployments", "limit=-1"),
            (Method::GET, "/api/v1/deployments", "limit=%2B1"),
            (Method::GET, "/api/v1/deployments", "limit=+1"),
            (Method::GET, "/api/v1/deployments", "limit=10001"),
            (Method::GET, "/api/v1/deployments", "continue=x"),
            (Method::GET, "/api/v1/deployments", "continue="),
            (Method::GET, "/api/v1/health", "x"),
        ] {
            assert_eq!(status(&method, path, Some(query)), 400, "{path}?{query}");
        }
        assert_eq!(status(&Method::GET, "/api/v1/deployments", Some("limit=10000")), 200);
        assert_eq!(status(&Method::GET, "/api/v1/health", Some("")), 200);
    }
}
