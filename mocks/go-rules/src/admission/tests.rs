//! Tests of reading answers. More cases are in the table of `scenarios/tests/admission_answers.rs`, which compares the
//! results with real API servers.

use super::*;

const UID: &str = "11111111-2222-4333-8444-555555555555";

fn request(mutating: bool, version: Version) -> ReviewRequest<'static> {
    ReviewRequest { uid: UID.as_bytes(), mutating, version }
}

fn read(body: &str, asked: ReviewRequest<'_>) -> Result<Verdict, String> {
    let body = body.replace("UID", UID);
    let answer = Answer { status: 200, content_type: Some(b"text/plain; charset=utf-8"), body: body.as_bytes() };
    verdict(answer, asked).map_err(|refusal| refusal.to_string())
}

fn review(response: &str) -> String {
    format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{response}}}"#)
}

fn check(response: &str) -> Result<Verdict, String> {
    read(&review(response), request(true, Version::V1))
}

#[test]
fn right_answers_are_read() {
    let plain = check(r#"{"uid":"UID","allowed":true}"#).unwrap();
    assert!(plain.allowed && plain.patch.is_none());
    let denied = check(
        r#"{"uid":"UID","allowed":false,"status":{"metadata":{},"message":"no","reason":"Forbidden","code":403}}"#,
    );
    let denied = denied.unwrap();
    assert_eq!((&*denied.message, &*denied.reason, denied.code), ("no", "Forbidden", 403));
    assert!(!check(r#"{"uid":"UID"}"#).unwrap().allowed, "nothing said is a no");
    // `[{"op":"remove","path":"/a"}]`, in two lines and with trailing bits that do not count.
    let patched = check(
        r#"{"uid":"UID","allowed":true,"patchType":"JSONPatch","patch":"W3sib3AiOiJyZW1vdmUi\nLCJwYXRoIjoiL2EifV1=","warnings":["\ud800 a"]}"#,
    );
    let patched = patched.unwrap();
    assert_eq!((patched.patch.unwrap().0.len(), &*patched.warnings), (1, &["\u{fffd} a".to_owned()][..]));
    // A patch without operations counts as absent, whatever its type; that of a denial is ignored.
    for (allowed, patch) in [(true, "W10="), (true, "bnVsbA=="), (false, "e30=")] {
        let answer =
            check(&format!(r#"{{"uid":"UID","allowed":{allowed},"patchType":"MergePatch","patch":"{patch}"}}"#));
        assert!(answer.unwrap().patch.is_none(), "{patch}");
    }
    assert!(check(r#"{"uid":"UID","patch":"","allowed":true,"patchType":null}"#).unwrap().patch.is_none());
}

/// If a key is present twice, its values are merged. Unknown keys are skipped, as are known keys in upper case, except
/// `kind` and `apiVersion`.
#[test]
fn keys_are_those_of_go() {
    let twice = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"UID"},"more":[1],"response":{"allowed":true,"Allowed":false}}"#;
    assert!(read(twice, request(true, Version::V1)).unwrap().allowed);
    let other = twice.replace("\"more\":[1]", "\"KIND\":\"Status\"");
    assert!(read(&other, request(true, Version::V1)).unwrap_err().contains("got admission.k8s.io/v1, Kind=Status"));
    let yaml = "apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\nresponse: {uid: UID, allowed: true}\n";
    assert!(read(yaml, request(false, Version::V1)).unwrap().allowed);
}

#[test]
fn wrong_answers_are_named() {
    for (response, expected) in [
        (r#"{"uid":"other","allowed":true}"#, "expected response.uid=\"1111"),
        (r#"{"allowed":true}"#, "expected response.uid="),
        (
            r#"{"uid":"UID","allowed":"yes"}"#,
            "the body is no AdmissionReview (invalid type: string \"yes\", expected a boolean",
        ),
        (r#"{"uid":"UID","status":{"code":403.0}}"#, "the body is no AdmissionReview (invalid type: floating point"),
        (r#"{"uid":"UID","warnings":"a"}"#, "the body is no AdmissionReview (invalid type: string"),
        (
            r#"{"uid":"UID","allowed":true,"patch":"W10="}"#,
            "webhook returned response.patch but not response.patchType",
        ),
        (r#"{"uid":"UID","allowed":true,"patchType":"JSONPatch"}"#, "webhook returned response.patchType but not"),
        (
            r#"{"uid":"UID","allowed":true,"patch":"W10=","patchType":""}"#,
            "webhook returned invalid response.patchType",
        ),
        (r#"{"uid":"UID","allowed":true,"patch":"W3t9XQ==","patchType":"JSONPatch"}"#, "received undecodable patch"),
        (
            r#"{"uid":"UID","allowed":false,"patch":"!","patchType":"JSONPatch"}"#,
            "received undecodable patch in webhook response: response.patch is not base64",
        ),
        ("null", "webhook response was absent"),
    ] {
        let error = check(response).unwrap_err();
        assert!(error.starts_with(expected), "{error}\nshould begin with\n{expected}");
    }
    let validating = request(false, Version::V1);
    let error = read(&review(r#"{"uid":"UID","allowed":true,"patchType":"JSONPatch"}"#), validating).unwrap_err();
    assert_eq!(error, "validating webhook may not return response.patchType");
    let at = |status, content_type: Option<&'static str>, body: &'static str| {
        let content_type = content_type.map(str::as_bytes);
        verdict(Answer { status, content_type, body: body.as_bytes() }, validating).unwrap_err().to_string()
    };
    assert_eq!(at(500, None, "oops"), "HTTP 500: `oops`");
    assert!(at(204, None, "").starts_with("0-length response with status code: 204"));
    assert!(at(200, Some("text/"), "{}").starts_with("the Content-Type is `text/`, which cannot be read"));
    assert!(at(200, Some("text/html"), "<p>").starts_with("the body is no AdmissionReview"));
}

#[test]
fn the_older_form_asks_for_less() {
    let older = |mutating, review: &str| read(review, request(mutating, Version::V1Beta1));
    let patched = r#"{"response":{"allowed":true,"patch":"W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2EifV0="}}"#;
    assert!(older(true, patched).unwrap().patch.is_some());
    assert!(older(false, patched).unwrap().patch.is_none(), "a patch of a validating webhook is passed over");
    for wrong in [
        "{}",
        r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":true}}"#,
        r#"{"kind":"Status","response":{"allowed":true}}"#,
    ] {
        assert!(older(true, wrong).is_err(), "{wrong}");
    }
}
