//! Checks an answer as kube-apiserver does before it believes it. Pure.
//!
//! The rules are those of `VerifyAdmissionResponse` and the mutating dispatcher of k8s.io/apiserver, for
//! admission.k8s.io/v1: the uid is echoed, group, version and kind are right, `patch` and `patchType` come both or not at
//! all, the patch is base64 of a JSON Patch. One rule is narrower: only JSON is read, not YAML or protobuf.

mod gzip;

use std::borrow::Cow;

use base64::Engine as _;
use json_patch::Patch;
use serde::Deserialize;

use crate::socket::{Coding, Seen};
use crate::wire::{Class, Failure, MOST_BODY_BYTES};

/// What a well-formed answer says.
#[derive(Debug)]
pub(super) struct Verdict {
    pub allowed: bool,
    /// `None` when there is nothing to patch.
    pub patch: Option<Patch>,
    /// The status message of a denial.
    pub message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    #[serde(default, borrow)]
    api_version: Cow<'a, str>,
    #[serde(default, borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    response: Option<Response<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    #[serde(default, borrow)]
    uid: Cow<'a, str>,
    #[serde(default)]
    allowed: bool,
    #[serde(borrow)]
    patch: Option<Text<'a>>,
    #[serde(borrow)]
    patch_type: Option<Text<'a>>,
    status: Option<Status>,
}

/// Text that is not copied unless it has escapes; serde borrows through an `Option` only from a type of its own.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Text<'_> {
    fn of<'b>(text: Option<&'b Text<'_>>) -> Option<&'b str> {
        text.map(|text| &*text.0)
    }
}

#[derive(Deserialize)]
struct Status {
    message: Option<String>,
}

/// Reads an answer to the call with this uid.
pub(super) fn check(answer: Seen<'_>, uid: &[u8]) -> Result<Verdict, Failure> {
    if answer.coding == Coding::Gzip {
        let plain = match gzip::unpack(answer.body, MOST_BODY_BYTES) {
            Ok(plain) => plain,
            // The status says enough.
            Err(_) if answer.status != 200 => Vec::new(),
            Err(gzip::Problem::TooLarge) => return Err(Failure::unpacked_too_large(answer.body.len())),
            Err(gzip::Problem::Broken(why)) => {
                return Err(Failure::invalid(format!("the body is no gzip, as its head says: {why}")));
            }
        };
        return check(Seen { coding: Coding::Identity, body: &plain, ..answer }, uid);
    }
    if answer.status != 200 {
        let text = format!("HTTP {}: {}", answer.status, excerpt(answer.body));
        return Err(Failure { class: Class::HttpError, text });
    }
    if let Some(content_type) = answer.content_type {
        let essence = content_type.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
        if !essence.eq_ignore_ascii_case(b"application/json") {
            let content_type = String::from_utf8_lossy(content_type);
            return Err(Failure::invalid(format!("the Content-Type is `{content_type}`, not application/json")));
        }
    }
    let review: Review = serde_json::from_slice(answer.body).map_err(|error| {
        Failure::invalid(format!("the body is no AdmissionReview ({error}): {}", excerpt(answer.body)))
    })?;
    let Some(response) = review.response else {
        return Err(Failure::invalid("the AdmissionReview has no `response`".to_owned()));
    };
    if response.uid.as_bytes() != uid {
        let asked = String::from_utf8_lossy(uid);
        return Err(Failure::invalid(format!("response.uid is `{}`, the call's is `{asked}`", response.uid)));
    }
    if review.api_version != "admission.k8s.io/v1" || review.kind != "AdmissionReview" {
        let text =
            format!("it is a `{}` `{}`, not an admission.k8s.io/v1 AdmissionReview", review.api_version, review.kind);
        return Err(Failure::invalid(text));
    }
    let patch = patch(Text::of(response.patch.as_ref()), Text::of(response.patch_type.as_ref()), response.allowed)?;
    let message = response.status.and_then(|status| status.message).unwrap_or_default();
    Ok(Verdict { allowed: response.allowed, patch, message })
}

fn patch(patch: Option<&str>, patch_type: Option<&str>, allowed: bool) -> Result<Option<Patch>, Failure> {
    let invalid = |text: String| Err(Failure::invalid(text));
    let (patch, patch_type) = match (patch.filter(|text| !text.is_empty()), patch_type) {
        (None, None) => return Ok(None),
        (Some(_), None) => return invalid("response.patch without response.patchType".to_owned()),
        (None, Some(_)) => return invalid("response.patchType without response.patch".to_owned()),
        (Some(patch), Some(patch_type)) => (patch, patch_type),
    };
    let raw = match base64::engine::general_purpose::STANDARD.decode(patch) {
        Ok(raw) => raw,
        Err(error) => return invalid(format!("response.patch is not base64: {error}")),
    };
    // The patch of a denial is not looked at.
    if !allowed {
        return Ok(None);
    }
    if patch_type != "JSONPatch" {
        return invalid(format!("response.patchType is `{patch_type}`, only `JSONPatch` exists"));
    }
    match serde_json::from_slice(&raw) {
        Ok(patch) => Ok(Some(patch)),
        Err(error) => invalid(format!("response.patch is no JSON Patch: {error}")),
    }
}

/// The beginning of a body for a message.
fn excerpt(body: &[u8]) -> String {
    const BYTES: usize = 160;
    if body.is_empty() {
        return "empty body".to_owned();
    }
    let text = String::from_utf8_lossy(&body[..body.len().min(BYTES)]);
    format!("`{}`", text.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "11111111-2222-4333-8444-555555555555";

    fn checked(status: u16, content_type: Option<&str>, body: &str) -> Result<Verdict, String> {
        let body = body.replace("UID", UID);
        let answer = Seen {
            status,
            content_type: content_type.map(str::as_bytes),
            coding: Coding::Identity,
            body: body.as_bytes(),
        };
        check(answer, UID.as_bytes()).map_err(|failure| format!("{}: {}", failure.class.text(), failure.text))
    }

    fn review(response: &str) -> String {
        format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{response}}}"#)
    }

    #[test]
    fn right_answers_are_read() {
        let json = Some("application/json; charset=utf-8");
        let plain = checked(200, json, &review(r#"{"uid":"UID","allowed":true}"#)).unwrap();
        assert!(plain.allowed && plain.patch.is_none());
        let denied = review(r#"{"uid":"UID","allowed":false,"status":{"message":"no such image","code":403}}"#);
        let denied = checked(200, None, &denied).unwrap();
        assert!(!denied.allowed);
        assert_eq!(denied.message, "no such image");
        for patch in ["W10=", "e30="] {
            let response = format!(r#"{{"uid":"UID","allowed":false,"patchType":"MergePatch","patch":"{patch}"}}"#);
            let denied = checked(200, None, &review(&response)).unwrap();
            assert!(!denied.allowed && denied.patch.is_none(), "the patch of a denial is not looked at");
        }
        let patch = base64::engine::general_purpose::STANDARD.encode(r#"[{"op":"remove","path":"/a"}]"#);
        let patched = review(&format!(r#"{{"uid":"UID","allowed":true,"patchType":"JSONPatch","patch":"{patch}"}}"#));
        assert_eq!(checked(200, json, &patched).unwrap().patch.unwrap().0.len(), 1);
        let empty = review(r#"{"uid":"UID","patch":"","allowed":true,"patchType":null}"#);
        assert!(checked(200, json, &empty).unwrap().patch.is_none(), "an empty patch is none, as in Go");
    }

    /// A compressed answer counts as its text does; a bomb, half an answer and plain text under that name are invalid.
    #[test]
    fn compressed_answers_are_read_within_bounds() {
        fn zipped(body: &[u8]) -> Seen<'_> {
            Seen { status: 200, content_type: None, coding: Coding::Gzip, body }
        }
        let read = |body: &[u8]| {
            check(zipped(body), UID.as_bytes()).map_err(|failure| format!("{}: {}", failure.class.text(), failure.text))
        };
        let plain = review(r#"{"uid":"UID","allowed":false}"#).replace("UID", UID);
        let packed = gzip::tests::packed(plain.as_bytes());
        assert!(!read(&packed).unwrap().allowed);
        let error = read(&packed[..packed.len() - 9]).unwrap_err();
        assert!(error.starts_with("invalid response: the body is no gzip, as its head says: "), "{error}");
        assert!(read(plain.as_bytes()).unwrap_err().contains("the body is no gzip"));
        let failed = check(Seen { status: 500, ..zipped(&gzip::tests::packed(b"oops")) }, UID.as_bytes()).unwrap_err();
        assert_eq!(failed.text, "HTTP 500: `oops`");
        let failed = check(Seen { status: 502, ..zipped(b"oops") }, UID.as_bytes()).unwrap_err();
        assert_eq!((failed.class, &*failed.text), (Class::HttpError, "HTTP 502: empty body"));
        let bomb = gzip::tests::packed(&vec![b' '; MOST_BODY_BYTES + 1]);
        let error = read(&bomb).unwrap_err();
        assert!(
            error.contains(&format!("the body is larger than 4 MiB when it is unpacked (from {} bytes)", bomb.len())),
            "{error}"
        );
    }

    #[test]
    fn wrong_answers_are_named() {
        let ok = |response: &str| (200, None, review(response));
        for ((status, content_type, body), expected) in [
            ((500, None, "oops".to_owned()), "http error: HTTP 500: `oops`"),
            ((204, None, String::new()), "http error: HTTP 204: empty body"),
            ((200, Some("text/html"), "<p>".to_owned()), "invalid response: the Content-Type is `text/html`"),
            ((200, None, "<p>".to_owned()), "invalid response: the body is no AdmissionReview (expected value"),
            ((200, None, "{}".to_owned()), "invalid response: the AdmissionReview has no `response`"),
            (ok(r#"{"uid":"other","allowed":true}"#), "invalid response: response.uid is `other`, the call's is `1111"),
            (ok(r#"{"allowed":true}"#), "invalid response: response.uid is ``"),
            (ok(r#"{"uid":"UID","allowed":"yes"}"#), "invalid response: the body is no AdmissionReview"),
            (ok(r#"{"uid":"UID","allowed":true,"patch":"W10="}"#), "invalid response: response.patch without"),
            (
                ok(r#"{"uid":"UID","allowed":true,"patchType":"JSONPatch"}"#),
                "invalid response: response.patchType without",
            ),
            (
                ok(r#"{"uid":"UID","allowed":true,"patch":"W10=","patchType":"MergePatch"}"#),
                "invalid response: response.patchType is `MergePatch`",
            ),
            (
                ok(r#"{"uid":"UID","allowed":true,"patch":"!","patchType":"JSONPatch"}"#),
                "invalid response: response.patch is not base64",
            ),
            (
                ok(r#"{"uid":"UID","allowed":true,"patch":"e30=","patchType":"JSONPatch"}"#),
                "invalid response: response.patch is no JSON Patch",
            ),
            (
                (200, None, review(r#"{"uid":"UID"}"#).replace("k8s.io/v1", "k8s.io/v1beta1")),
                "invalid response: it is a `admission.k8s.io/v1beta1` `AdmissionReview`, not",
            ),
        ] {
            let error = checked(status, content_type, &body).unwrap_err();
            assert!(error.starts_with(expected), "{error}\nshould begin with\n{expected}");
        }
    }
}
