//! Checks an answer as kube-apiserver does before it accepts the answer. Pure, without I/O; the rules are in
//! `go_rules::admission`.

use go_rules::admission::{Answer, Refusal, ReviewRequest, Unpacked, Verdict, Version, unpack};

use crate::failure::{Class, Failure, MOST_BODY_BYTES};
use crate::socket::{Coding, WholeAnswer};

/// Reads the answer to the call with this uid. Only a mutating webhook may send a patch.
pub(super) fn check(answer: WholeAnswer<'_>, uid: &[u8], mutating: bool) -> Result<Verdict, Failure> {
    if answer.coding == Coding::Gzip {
        let plain = match unpack(answer.body, MOST_BODY_BYTES) {
            Ok(plain) => plain,
            // The status is enough.
            Err(_) if !(200..300).contains(&answer.status) => Vec::new(),
            Err(Unpacked::TooLarge) => return Err(Failure::unpacked_too_large(answer.body.len())),
            Err(Unpacked::Broken(why)) => {
                return Err(Failure::invalid(format!("the body is no gzip, as its head says: {why}")));
            }
        };
        return check(WholeAnswer { coding: Coding::Identity, body: &plain, ..answer }, uid, mutating);
    }
    let WholeAnswer { status, content_type, body, .. } = answer;
    let asked = ReviewRequest { uid, mutating, version: Version::V1 };
    go_rules::admission::verdict(Answer { status, content_type, body }, asked).map_err(|refusal| {
        let class = match refusal {
            Refusal::Status { .. } | Refusal::Empty { .. } => Class::HttpError,
            _ => Class::InvalidResponse,
        };
        Failure { class, text: refusal.to_string() }
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const UID: &str = "11111111-2222-4333-8444-555555555555";

    fn packed(plain: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    /// A compressed answer counts like the same answer without compression. A decompression bomb, a truncated answer,
    /// and plain text that claims to be compressed are invalid.
    #[test]
    fn compressed_answers_are_read_within_bounds() {
        fn zipped(body: &[u8]) -> WholeAnswer<'_> {
            WholeAnswer { status: 200, content_type: None, coding: Coding::Gzip, body }
        }
        let read = |body: &[u8]| {
            check(zipped(body), UID.as_bytes(), true)
                .map_err(|failure| format!("{}: {}", failure.class.text(), failure.text))
        };
        let plain = format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{{"uid":"{UID}","allowed":false}}}}"#
        );
        let whole = packed(plain.as_bytes());
        assert!(!read(&whole).unwrap().allowed);
        let error = read(&whole[..whole.len() - 9]).unwrap_err();
        assert!(error.starts_with("invalid response: the body is no gzip, as its head says: "), "{error}");
        assert!(read(plain.as_bytes()).unwrap_err().contains("the body is no gzip"));
        let failed = check(WholeAnswer { status: 500, ..zipped(&packed(b"oops")) }, UID.as_bytes(), true).unwrap_err();
        assert_eq!(failed.text, "HTTP 500: `oops`");
        let failed = check(WholeAnswer { status: 502, ..zipped(b"oops") }, UID.as_bytes(), true).unwrap_err();
        assert_eq!((failed.class, &*failed.text), (Class::HttpError, "HTTP 502: empty body"));
        let bomb = packed(&vec![b' '; MOST_BODY_BYTES + 1]);
        let error = read(&bomb).unwrap_err();
        assert!(
            error.contains(&format!("the body is larger than 4 MiB when it is unpacked (from {} bytes)", bomb.len())),
            "{error}"
        );
    }

    /// An invalid answer is reported with the class of its error.
    #[test]
    fn wrong_answers_have_classes() {
        let read = |status, content_type: Option<&str>, body: &str| {
            let content_type = content_type.map(str::as_bytes);
            let seen = WholeAnswer { status, content_type, coding: Coding::Identity, body: body.as_bytes() };
            let failure = check(seen, UID.as_bytes(), true).unwrap_err();
            format!("{}: {}", failure.class.text(), failure.text)
        };
        assert_eq!(read(500, None, "oops"), "http error: HTTP 500: `oops`");
        assert!(read(204, None, "").starts_with("http error: 0-length response with status code: 204"));
        assert!(
            read(200, Some("text/html; x"), "{}").starts_with("invalid response: the Content-Type is `text/html; x`")
        );
        assert!(read(200, Some("text/html"), "<p>").starts_with("invalid response: the body is no AdmissionReview"));
    }
}
