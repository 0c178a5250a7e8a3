//! URLs in CEL expressions: absolute URLs and absolute paths (Kubernetes documentation, "Kubernetes URL library"; RFC
//! 3986).
//!
//! Owns splitting a URL into its components. This module must not resolve host names or relative URLs.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

/// The components of a URL as they were written, without decoding.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Url {
    source: String,
    pub scheme: String,
    pub host: String,
    path: String,
    query: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("URL parse error during conversion from string: parse {text:?}: {why}")]
pub struct Error {
    pub text: String,
    #[source]
    pub why: Why,
}

/// Why a text is not a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    #[error("empty url")]
    Empty,
    #[error("net/url: invalid control character in URL")]
    Control,
    /// The text has neither a scheme nor a leading slash.
    #[error("invalid URI for request")]
    Relative,
    /// A percent sign is not followed by two hexadecimal digits.
    #[error("invalid URL escape")]
    Escape,
    /// The text begins with a colon.
    #[error("missing protocol scheme")]
    NoScheme,
    /// The text before a colon is no valid scheme.
    #[error("first path segment in URL cannot contain colon")]
    Colon,
    #[error("missing ']' in host")]
    Bracket,
    #[error("invalid port after host")]
    Port,
    #[error("invalid character in host name")]
    Host,
}

impl Url {
    pub(crate) fn read(text: &str) -> Result<Self, Error> {
        let wrong = |why| Error { text: text.to_owned(), why };
        if text.is_empty() {
            return Err(wrong(Why::Empty));
        }
        if text.bytes().any(|byte| byte.is_ascii_control()) {
            return Err(wrong(Why::Control));
        }
        let whole = text.split_once('#').map_or(text, |(before, _)| before);
        let (scheme, rest) = scheme(whole).map_err(wrong)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url = Self {
            source: text.to_owned(),
            scheme: scheme.to_ascii_lowercase(),
            host: String::new(),
            path: String::new(),
            query: query.to_owned(),
        };
        if !rest.starts_with('/') {
            // Behind a scheme the rest is one opaque word, as in `mailto:a@b`.
            return if scheme.is_empty() { Err(wrong(Why::Relative)) } else { Ok(url) };
        }
        let mut path = rest;
        if let (false, Some(behind)) = (scheme.is_empty(), rest.strip_prefix("//")) {
            let end = behind.find('/').unwrap_or(behind.len());
            let authority = &behind[..end];
            path = &behind[end..];
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            check_host(host).map_err(wrong)?;
            host.clone_into(&mut url.host);
        }
        if !escapes_are_right(path) {
            return Err(wrong(Why::Escape));
        }
        path.clone_into(&mut url.path);
        Ok(url)
    }

    pub(crate) fn host_name(&self) -> &str {
        let host = self.host.strip_suffix(&format!(":{}", self.port())).filter(|_| !self.port().is_empty());
        let host = host.unwrap_or_else(|| self.host.strip_suffix(':').unwrap_or(&self.host));
        host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host)
    }

    pub(crate) fn port(&self) -> &str {
        match self.host.rsplit_once(':') {
            Some((_, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => port,
            _ => "",
        }
    }

    /// The path with percent escapes.
    pub(crate) fn escaped_path(&self) -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@%!'()*[]".contains(&byte);
        self.path
            .bytes()
            .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
            .collect()
    }

    pub(crate) fn query(&self) -> BTreeMap<String, Vec<String>> {
        let mut pairs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        for part in
            self.query.split('&').filter(|part| !part.is_empty() && !part.contains(';') && escapes_are_right(part))
        {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            pairs.entry(decoded(key)).or_default().push(decoded(value));
        }
        pairs
    }

    pub(crate) fn shown(&self) -> &str {
        &self.source
    }
}

/// The scheme without its colon, and the rest of the text.
fn scheme(text: &str) -> Result<(&str, &str), Why> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(text.len());
    match text[end..].strip_prefix(':') {
        Some(_) if end == 0 => Err(Why::NoScheme),
        Some(rest) if text.starts_with(|first: char| first.is_ascii_alphabetic()) => Ok((&text[..end], rest)),
        Some(_) => Err(Why::Colon),
        None => Ok(("", text)),
    }
}

fn check_host(host: &str) -> Result<(), Why> {
    let port = match host.strip_prefix('[') {
        Some(inner) => inner.split_once(']').ok_or(Why::Bracket)?.1,
        None => host.find(':').map_or("", |colon| &host[colon..]),
    };
    let port_fits =
        port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    if !port_fits {
        return Err(Why::Port);
    }
    if host.bytes().any(|byte| b" <>\"\\^`{|}".contains(&byte)) {
        return Err(Why::Host);
    }
    if escapes_are_right(host) { Ok(()) } else { Err(Why::Escape) }
}

fn escapes_are_right(text: &str) -> bool {
    let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let bytes = text.as_bytes();
    let signs = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    signs.into_iter().all(|(at, _)| digit(bytes.get(at + 1)) && digit(bytes.get(at + 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_urls() {
        for (text, scheme, host, name, port, path) in [
            ("https://example.com:8080/a b?x=1#f", "https", "example.com:8080", "example.com", "8080", "/a%20b"),
            ("HTTP://u:p@[::1]:80", "http", "[::1]:80", "::1", "80", ""),
            ("https://[::1]/", "https", "[::1]", "::1", "", "/"),
            ("https://a.b:/", "https", "a.b:", "a.b", "", "/"),
            ("/path/only%20x", "", "", "", "", "/path/only%20x"),
            ("mailto:a@b", "mailto", "", "", "", ""),
            ("file:///etc", "file", "", "", "", "/etc"),
        ] {
            let url = Url::read(text).unwrap();
            let found = (&*url.scheme, &*url.host, url.host_name(), url.port(), &*url.escaped_path());
            assert_eq!(found, (scheme, host, name, port, path), "{text}");
            assert_eq!(url.shown(), text);
        }
        let query = Url::read("https://h/?a=1&b=%41+c&a=2&bad=%zz&d").unwrap().query();
        let pair = |key: &str, values: &[&str]| (key.to_owned(), values.iter().map(|v| (*v).to_owned()).collect());
        assert_eq!(
            query.into_iter().collect::<Vec<_>>(),
            [pair("a", &["1", "2"]), pair("b", &["A c"]), pair("d", &[""])]
        );
    }

    #[test]
    fn what_is_no_url() {
        for text in "~a/b~example.com~:a~1http://a~http://a:b~http://[::1~http://a b/~/%zz~/a\n~http://%zz/".split('~')
        {
            assert!(Url::read(text).is_err(), "{text}");
        }
    }
}
