//! Access control for the HTTP pages of a run that is in progress.
//!
//! Any web page in a browser can send requests to listeners on this machine. If the host name of a web page resolves to
//! this machine, the page can also read the answer. This module defines the accepted host names, which no attacker can
//! choose, and the token in the page's URL.

use std::net::{IpAddr, SocketAddr};

use anyhow::Result;
use hyper::Request;
use hyper::header::HOST;
use hyper::http::uri::Authority;

const TOKEN_BYTES: usize = 16;

/// The rules by which requests are accepted.
pub(super) struct Visitors {
    token: String,
}

impl Visitors {
    /// Rules with a new random token.
    pub(super) fn new() -> Result<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        aws_lc_rs::rand::fill(&mut bytes).map_err(|_| anyhow::anyhow!("the system gives no random numbers"))?;
        Ok(Self { token: hex::encode(bytes) })
    }

    /// The token in the URL of the page.
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// The path without its token; `None` if the token is wrong.
    pub(super) fn below<'a>(&self, path: &'a str) -> Option<&'a str> {
        let (token, rest) = path.strip_prefix('/')?.split_at_checked(self.token.len())?;
        let same = aws_lc_rs::constant_time::verify_slices_are_equal(token.as_bytes(), self.token.as_bytes());
        same.ok().map(|()| rest).filter(|rest| rest.starts_with('/'))
    }
}

/// Whether the request's host name is an accepted name of the server at this address.
pub(super) fn is_asked_by_its_name<B>(request: &Request<B>, bound: SocketAddr) -> bool {
    let told = request.headers().get_all(HOST).iter().map(|host| host.to_str().ok().and_then(|host| host.parse().ok()));
    let told: Vec<Option<Authority>> = told.chain(request.uri().authority().cloned().map(Some)).collect();
    let ours = |host: &Option<Authority>| host.as_ref().is_some_and(|host| is_ours(host.host(), bound.ip()));
    !told.is_empty() && told.iter().all(ours)
}

/// Whether a host name is safe. IP addresses are safe, because a browser that uses an IP address really connects to
/// this machine. A name is safe only if it never resolves to another machine.
fn is_ours(host: &str, bound: IpAddr) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() || host.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let machine = rustix::system::uname();
    !bound.is_loopback() && machine.nodename().to_str().is_ok_and(|name| name.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_no_stranger_can_give_are_answered() {
        let loopback: SocketAddr = "127.0.0.1:9090".parse().unwrap();
        let everywhere: SocketAddr = "0.0.0.0:9090".parse().unwrap();
        let asked = |hosts: &[&str], uri: &str, bound| {
            let request = hosts.iter().fold(Request::get(uri), |request, host| request.header(HOST, *host));
            is_asked_by_its_name(&request.body(()).unwrap(), bound)
        };
        for host in ["127.0.0.1:9090", "localhost:8080", "LOCALHOST", "localhost.", "[::1]:9090", "10.1.2.3"] {
            assert!(asked(&[host], "/", loopback), "{host}");
        }
        let evil =
            ["evil.example", "evil.example:9090", "localhost.evil.example", "127.0.0.1.evil.example", "", "a b", "@"];
        for host in evil {
            assert!(!asked(&[host], "/", loopback) && !asked(&[host], "/", everywhere), "{host}");
        }
        assert!(!asked(&[], "/", loopback), "without a name");
        assert!(!asked(&["localhost", "evil.example"], "/", loopback), "two names");
        assert!(!asked(&["localhost"], "http://evil.example/", loopback), "another name in the request");
        let uname = rustix::system::uname();
        let own = uname.nodename().to_str().unwrap();
        assert!(asked(&[own], "/", everywhere), "who listens for others is asked by the machine's name");
        assert_eq!(asked(&[own], "/", loopback), own.eq_ignore_ascii_case("localhost"));
    }

    #[test]
    fn a_path_has_the_token_or_is_none() {
        let (visitors, other) = (Visitors::new().unwrap(), Visitors::new().unwrap());
        let token = visitors.token();
        assert_eq!(token.len(), 2 * TOKEN_BYTES);
        assert_eq!(visitors.below(&format!("/{token}/")), Some("/"));
        assert_eq!(visitors.below(&format!("/{token}/ended")), Some("/ended"));
        for path in [
            format!("/{}/", other.token()),
            format!("/{token}"),
            format!("/{token}x"),
            "/".into(),
            String::new(),
            "/ä".repeat(20),
        ] {
            assert_eq!(visitors.below(&path), None, "{path}");
        }
    }
}
