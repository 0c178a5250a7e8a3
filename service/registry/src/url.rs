//! URLs that a registry names: token services and targets of redirects.
//!
//! An attacker may have chosen such a URL, so messages show only its host.

use service_core::authority::Authority;

/// Longest path with query, in bytes; usual paths have a few hundred bytes.
const PATH_BYTES_MAX: usize = 4 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Whether the scheme is `http`.
    pub plain: bool,
    pub authority: Authority,
    /// Path with query, starting with `/`.
    pub path: String,
}

impl Url {
    /// Parses an absolute URL with the scheme `http` or `https`. Relative URLs, other schemes, user names, ports out of
    /// range and overlong paths are refused.
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let plain = match scheme {
            _ if scheme.eq_ignore_ascii_case("https") => false,
            _ if scheme.eq_ignore_ascii_case("http") => true,
            _ => return None,
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let authority = Authority::parse(&rest[..end]).ok()?;
        let path = rest[end..].split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        is_path(&path).then_some(Self { plain, authority, path })
    }

    /// The port in the URL, or the default port of the scheme.
    pub fn port(&self) -> u16 {
        self.authority.port.unwrap_or(if self.plain { 80 } else { 443 })
    }
}

/// Whether `text` is valid in a request line.
pub fn is_path(text: &str) -> bool {
    text.starts_with('/')
        && text.len() <= PATH_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && text.parse::<http::uri::PathAndQuery>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let url = Url::parse("https://Auth.io:8443/token?a=b#c").unwrap();
        assert_eq!((url.plain, url.authority.host.as_str(), url.port()), (false, "auth.io", 8443));
        assert_eq!(url.path, "/token?a=b");
        assert_eq!(Url::parse("HTTP://a?x").map(|url| (url.path.clone(), url.port())), Some(("/?x".into(), 80)));
        for wrong in [
            "",
            "/x",
            "//a/x",
            "a/x",
            "ftp://a/",
            "file:///etc",
            "http://",
            "http://u:p@a/",
            "http://a:0/",
            "http://a:99999/",
            "https://a/ b",
            "https://a/\n",
            "https://a/\u{e9}",
            "https://[::1/",
        ] {
            assert_eq!(Url::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Url::parse(&format!("https://a/{}", "x".repeat(PATH_BYTES_MAX))), None);
    }
}
