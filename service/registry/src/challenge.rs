//! Parses the `WWW-Authenticate` header (RFC 9110, section 11.6.1) of registries, and answers of token services.

use std::time::Duration;

use serde::Deserialize;

/// Lifetime of a token without `expires_in`: 60 s (Docker token authentication specification).
const TOKEN_LIFE_DEFAULT_S: u64 = 60;
/// Longest accepted token, in bytes. Real tokens have less than 8 KiB; most servers refuse requests with a longer
/// token.
const TOKEN_BYTES_MAX: usize = 16 << 10;
/// Longest parameter of a challenge, in bytes.
const PARAMETER_BYTES_MAX: usize = 4 << 10;
/// Longest accepted lifetime of a token, in seconds. The limit bounds the memory for tokens; a token that is dropped
/// early costs only one request.
const TOKEN_LIFE_MAX_S: u64 = 3600;

/// The kind of authentication that a registry demands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Challenge {
    /// The registry demands a token from the service at `realm`. The scope in the challenge is ignored: this client
    /// chooses the scope.
    Bearer {
        realm: String,
        service: Option<String>,
    },
    Basic,
}

impl Challenge {
    /// The first challenge in `header` that this client supports. A challenge with an overlong parameter is skipped.
    pub fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service) = (None, None);
        let mut rest = rest;
        while let Some((name, value, after)) = parameter(rest) {
            if value.len() > PARAMETER_BYTES_MAX {
                return None;
            }
            match name.to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value),
                "service" => service = Some(value),
                _ => {}
            }
            rest = after;
        }
        realm.map(|realm| Self::Bearer { realm, service })
    }
}

/// Parses one `name=value` or `name="value"` at the start of `text`; also returns the remaining text.
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

/// The answer of a token service; older services write `access_token`.
#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
    #[serde(default)]
    expires_in: serde_json::Value,
}

/// The token in a token service's answer, and its lifetime; `None` if there is no valid token. The characters of the
/// token are checked, because a token service may answer with anything and the token is sent to the registry.
pub fn token(body: &[u8]) -> Option<(String, Duration)> {
    let answer: TokenAnswer = serde_json::from_slice(body).ok()?;
    let token = answer.token.filter(|token| !token.is_empty()).or(answer.access_token)?;
    if !is_token(&token) {
        return None;
    }
    let life_s = match &answer.expires_in {
        // Fractions are cut, negative numbers mean now, and larger numbers saturate to `u64`.
        serde_json::Value::Number(number) => {
            number.as_u64().or_else(|| number.as_f64().map(saturate)).unwrap_or(TOKEN_LIFE_DEFAULT_S)
        }
        _ => TOKEN_LIFE_DEFAULT_S,
    };
    let life_s = life_s.min(TOKEN_LIFE_MAX_S);
    // A tenth is left out, so that a token does not expire on its way.
    Some((token, Duration::from_secs(life_s - life_s / 10)))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float saturates, as it should"
)]
fn saturate(number: f64) -> u64 {
    number as u64
}

/// Whether a text can be sent as a token (RFC 6750, section 2.1, allows `token68`). Tokens of some registries contain
/// characters outside `token68`. So all visible characters are accepted, except characters that could end the header or
/// start another header.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= TOKEN_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges() {
        let header = r#"Bearer realm="https://auth.io/token",service="reg \"x\"",scope="repository:a/b:pull,push""#;
        assert_eq!(
            Challenge::parse(header),
            Some(Challenge::Bearer { realm: "https://auth.io/token".into(), service: Some("reg \"x\"".into()) })
        );
        assert_eq!(Challenge::parse("Basic realm=\"x\""), Some(Challenge::Basic));
        assert_eq!(
            Challenge::parse("bearer realm=http://a/t, service=s").map(|c| matches!(c, Challenge::Bearer { .. })),
            Some(true)
        );
        assert_eq!(Challenge::parse("Digest realm=\"x\""), None);
        assert_eq!(Challenge::parse("Bearer realm=\"open"), None);
    }

    #[test]
    fn tokens() {
        let life = |text: &str| token(text.as_bytes()).map(|(token, life)| (token, life.as_secs()));
        assert_eq!(life(r#"{"token":"a.b-c_~+/=","expires_in":100}"#), Some(("a.b-c_~+/=".into(), 90)));
        assert_eq!(life(r#"{"token":"","access_token":"x"}"#), Some(("x".into(), 54)));
        for (expires, expected) in
            [("-1", 0), ("1e300", 3240), ("18446744073709551615", 3240), ("10.9", 9), ("null", 54), ("\"9\"", 54)]
        {
            let answer = format!(r#"{{"token":"x","expires_in":{expires}}}"#);
            assert_eq!(life(&answer), Some(("x".into(), expected)), "{expires}");
        }
        for none in
            ["", "x", "{}", r#"{"token":7}"#, r#"{"token":"a b"}"#, r#"{"token":"a\nb"}"#, r#"{"token":"\u007f"}"#]
        {
            assert_eq!(life(none), None, "{none}");
        }
        assert_eq!(life(&format!(r#"{{"token":"{}"}}"#, "a".repeat(TOKEN_BYTES_MAX + 1))), None);
    }
}
