//! The `WWW-Authenticate` header (RFC 9110, section 11.6.1) as registries write it, and the answer of a token service.
//!
//! Pure.

use std::time::Duration;

use serde::Deserialize;

/// A token without `expires_in` lives for 60 s (Docker token authentication specification).
const TOKEN_LIFE_DEFAULT_S: u64 = 60;
/// A longer life is not believed: a token that is refused earlier costs a request, one kept for ever costs memory.
const TOKEN_LIFE_MAX_S: u64 = 3600;

/// What a registry asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Challenge {
    /// A token from `realm`.
    Bearer {
        /// URL of the token service.
        realm: String,
        /// Value of the `service` parameter.
        service: Option<String>,
        /// Value of the `scope` parameter.
        scope: Option<String>,
    },
    /// User name and password.
    Basic,
}

impl Challenge {
    /// The first challenge in `header` that we can answer.
    pub fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service, mut scope) = (None, None, None);
        let mut rest = rest;
        while let Some((name, value, after)) = parameter(rest) {
            match name.to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value),
                "service" => service = Some(value),
                "scope" => scope = Some(value),
                _ => {}
            }
            rest = after;
        }
        realm.map(|realm| Self::Bearer { realm, service, scope })
    }
}

/// One `name=value` or `name="value"` at the front, and what follows it.
fn parameter(text: &str) -> Option<(&str, String, &str)> {
    let (name, rest) = text.trim_start_matches([' ', ',']).split_once('=')?;
    let Some(quoted) = rest.strip_prefix('"') else {
        let end = rest.find(',').unwrap_or(rest.len());
        return Some((name.trim(), rest[..end].trim().to_owned(), &rest[end..]));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((name.trim(), value, &quoted[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            char => value.push(char),
        }
    }
    None
}

/// The answer of a token service; older ones write `access_token`.
#[derive(Deserialize)]
pub struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

impl TokenAnswer {
    /// The token and how long it may be used.
    pub fn token(self) -> Option<(String, Duration)> {
        let token = self.token.or(self.access_token).filter(|token| !token.is_empty())?;
        let life_s = self.expires_in.unwrap_or(TOKEN_LIFE_DEFAULT_S).min(TOKEN_LIFE_MAX_S);
        // A tenth is left out, so that a token does not expire on its way.
        Some((token, Duration::from_secs(life_s - life_s / 10)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges() {
        let header = r#"Bearer realm="https://auth.io/token",service="reg \"x\"",scope="repository:a/b:pull,push""#;
        assert_eq!(
            Challenge::parse(header),
            Some(Challenge::Bearer {
                realm: "https://auth.io/token".into(),
                service: Some("reg \"x\"".into()),
                scope: Some("repository:a/b:pull,push".into()),
            })
        );
        assert_eq!(Challenge::parse("Basic realm=\"x\""), Some(Challenge::Basic));
        assert_eq!(
            Challenge::parse("bearer realm=http://a/t, service=s").map(|c| matches!(c, Challenge::Bearer { .. })),
            Some(true)
        );
        assert_eq!(Challenge::parse("Digest realm=\"x\""), None);
        assert_eq!(Challenge::parse("Bearer realm=\"open"), None);
    }
}
