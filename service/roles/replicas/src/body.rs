//! Reads bodies of calls, within a size limit and a deadline, and checks all their fields.

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body::Body;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use super::answer::Refusal;

/// Longest image reference that a cluster accepts: host, path, tag and digest.
const IMAGE_BYTES_MAX: usize = 1024;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Scale<'a> {
    #[serde(borrow)]
    replica_count: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Image {
    image: String,
}

/// Reads a JSON body of at most `max` bytes, by `deadline`.
pub async fn read<B>(headers: &HeaderMap, body: B, max: usize, deadline: Instant) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = media_type.and_then(|value| value.split(';').next()).map(str::trim);
    if !media_type.is_some_and(|media_type| media_type.eq_ignore_ascii_case("application/json")) {
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a body is application/json"));
    }
    if headers.contains_key(header::CONTENT_ENCODING) {
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a body is not compressed"));
    }
    let too_large = || {
        let refusal = Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a body has at most {max} bytes"));
        // The rest of the body would be read as the next call.
        Refusal { closes: true, ..refusal }
    };
    if body.size_hint().lower() > max as u64 {
        return Err(too_large());
    }
    match timeout_at(deadline, Limited::new(body, max).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Refusal { closes: true, ..Refusal::bad("the body broke off") }),
        Err(_) => {
            let refusal = Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
            Err(Refusal { closes: true, ..refusal })
        }
    }
}

/// The count in `{"replicaCount": n}`.
pub fn replica_count(body: &[u8]) -> Result<i32, Refusal> {
    let Scale { replica_count } = serde_json::from_slice(body).map_err(|error| malformed(&error))?;
    let text = replica_count.get();
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refusal::bad("replicaCount: a whole number"));
    }
    // A number outside `int32`, or below zero, has the right type and a wrong value, so the error is another one.
    text.parse().ok().filter(|count: &i32| *count >= 0).ok_or_else(|| {
        Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, format!("replicaCount: a number from 0 to {}", i32::MAX))
    })
}

/// The image in `{"image": text}`; the review decides whether it is valid.
pub fn image(body: &[u8]) -> Result<String, Refusal> {
    let Image { image } = serde_json::from_slice(body).map_err(|error| malformed(&error))?;
    let visible = image.bytes().all(|byte| byte.is_ascii_graphic());
    if image.is_empty() || image.len() > IMAGE_BYTES_MAX || !visible {
        let text = format!("image: 1 to {IMAGE_BYTES_MAX} visible ASCII characters");
        return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, text));
    }
    Ok(image)
}

fn malformed(error: &serde_json::Error) -> Refusal {
    // Only line and column are shown, because the library's message may contain the sent text.
    let at = format!("line {}, column {}", error.line(), error.column());
    let what = if error.is_data() { "not the fields that this path has" } else { "not JSON" };
    Refusal::bad(format!("the body is {what} ({at})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(body: &str) -> Result<i32, u16> {
        replica_count(body.as_bytes()).map_err(|refusal| refusal.status.as_u16())
    }

    #[test]
    fn a_count_is_a_whole_number_of_int32_and_nothing_is_beside_it() {
        assert_eq!(status(r#"{"replicaCount": 0}"#), Ok(0));
        assert_eq!(status(r#" {"replicaCount":2147483647} "#), Ok(i32::MAX));
        for body in [
            "",
            "{}",
            "[]",
            "null",
            "3",
            r#"{"replicaCount": "3"}"#,
            r#"{"replicaCount": null}"#,
            r#"{"replicaCount": 1.5}"#,
            r#"{"replicaCount": 1e3}"#,
            r#"{"replicaCount": 3, "x": 1}"#,
            r#"{"replicaCount": 3}}"#,
            r#"{"replicacount": 3}"#,
            r#"{"replicaCount": 3, "replicaCount": 4}"#,
            r#"{"replicaCount": 03}"#,
            r#"{"replicaCount": +3}"#,
            r#"{"replicaCount": -}"#,
            r#"{"replicaCount": {}}"#,
            "\u{feff}{\"replicaCount\": 3}",
        ] {
            assert_eq!(status(body), Err(400), "{body}");
        }
        for body in [
            r#"{"replicaCount": -1}"#,
            r#"{"replicaCount": 2147483648}"#,
            r#"{"replicaCount": 99999999999999999999999999}"#,
        ] {
            assert_eq!(status(body), Err(422), "{body}");
        }
        assert_eq!(status(r#"{"replicaCount": -0}"#), Ok(0));
    }

    #[test]
    fn an_image_is_visible_text_of_some_length() {
        let status = |body: &str| image(body.as_bytes()).map_err(|refusal| refusal.status.as_u16());
        assert_eq!(status(r#"{"image": "nginx:1"}"#), Ok("nginx:1".into()));
        assert_eq!(status(r#"{"image": 3}"#), Err(400));
        assert_eq!(status(r#"{"image": "a", "b": 1}"#), Err(400));
        for text in ["", "a b", "a\\u0000", "ä", &"a".repeat(1025)] {
            assert_eq!(status(&format!(r#"{{"image": "{text}"}}"#)), Err(422), "{text}");
        }
    }
}
