//! HTTP proxies from the environment: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, also in lower case.
//!
//! This module chooses the proxy for a server. As in Go, a server on this machine is always reached without a proxy.

use std::net::IpAddr;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;

use super::Origin;
use crate::authority::Authority;

const VARIABLES: [&str; 6] = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// The error about a proxy variable with an invalid value. The message does not show the variable's value, which may
/// contain a password.
#[derive(Debug, thiserror::Error)]
#[error(
    "${variable} is not the URL of an HTTP proxy: write http://host:port (TLS to a proxy and SOCKS are not supported)"
)]
pub struct ProxyError {
    variable: &'static str,
}

#[derive(Debug)]
pub struct Proxies(Option<Matcher>);

#[derive(Debug, Clone)]
pub struct Proxy {
    /// The proxy's host name or IP address, without brackets.
    pub host: String,
    pub port: u16,
    /// The header `Proxy-Authorization`, marked as sensitive.
    pub authorization: Option<HeaderValue>,
}

impl Proxies {
    /// Uses no proxy for any server.
    pub fn none() -> Self {
        Self(None)
    }

    pub fn from_env() -> Result<Self, ProxyError> {
        for variable in VARIABLES {
            let value = std::env::var(variable).unwrap_or_default();
            if !value.is_empty() && !is_http_proxy(&value) {
                return Err(ProxyError { variable });
            }
        }
        Ok(Self(Some(Matcher::from_env())))
    }

    /// Uses `proxy` for all servers except the hosts in `except`, which has the syntax of `NO_PROXY`.
    pub fn through(proxy: &str, except: &str) -> Self {
        Self(Some(Matcher::builder().all(proxy).no(except).build()))
    }

    pub fn proxy(&self, origin: &Origin) -> Option<Proxy> {
        let here = origin.host == "localhost" || origin.host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        let matcher = self.0.as_ref().filter(|_| !here)?;
        let scheme = if origin.tls.is_some() { "https" } else { "http" };
        let uri = Uri::builder().scheme(scheme).authority(origin.authority()).path_and_query("/").build().ok()?;
        let proxy = matcher.intercept(&uri)?;
        let authority = Authority::parse(proxy.uri().authority()?.as_str()).ok()?;
        // 80 is the default of the scheme; curl's 1080 is for SOCKS.
        let port = authority.port.unwrap_or(80);
        Some(Proxy { host: authority.host, port, authorization: proxy.basic_auth().cloned() })
    }
}

fn is_http_proxy(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let Some(authority) = uri.authority() else { return false };
    let place = authority.as_str().rsplit('@').next().unwrap_or_default();
    uri.scheme_str().is_none_or(|scheme| scheme == "http") && Authority::parse(place).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_origin_goes_where() {
        let proxies = Proxies::through("http://user:p%40ss@proxy.corp:3128", "inside.io, 10.0.0.0/8");
        let asked = |host: &str| proxies.proxy(&Origin { host: host.into(), port: 443, tls: None, server_name: None });
        let proxy = asked("registry.io").unwrap();
        assert_eq!((proxy.host.as_str(), proxy.port), ("proxy.corp", 3128));
        assert_eq!(proxy.authorization.unwrap(), "Basic dXNlcjpwQHNz");
        for direct in ["inside.io", "a.inside.io", "10.2.3.4", "localhost", "127.0.0.1", "::1"] {
            assert!(asked(direct).is_none(), "{direct}");
        }
        assert!(asked("11.2.3.4").is_some() && asked("notinside.io").is_some());
        assert!(is_http_proxy("proxy:3128") && is_http_proxy("http://u:p@proxy"));
        for wrong in ["socks5://proxy", "https://proxy", "http://proxy:99999", "http://", "ht tp"] {
            assert!(!is_http_proxy(wrong), "{wrong}");
        }
    }
}
