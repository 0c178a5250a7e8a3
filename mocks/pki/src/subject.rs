//! The subject of a certificate, read and written as DER (ITU-T X.690; the structure is in RFC 5280, section 4.1).
//!
//! Owns the DER for two tasks that the certificate library lacks: reading a client's name, and giving a subject several
//! organisations, as Kubernetes writes a user's groups. This module verifies nothing: rustls has checked the
//! certificate before.

use rustls_pki_types::CertificateDer;

use super::Error;

/// The object identifier of commonName, 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// The object identifier of organizationName, 2.5.4.10.
const ORGANISATION: &[u8] = &[0x55, 0x04, 0x0a];

const OID: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const IA5_STRING: u8 = 0x16;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// The tag of the optional version, which precedes all other fields in a tbsCertificate.
const EXPLICIT_VERSION: u8 = 0xa0;

/// The common name and the organisations of a certificate's subject.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// The common name, which is the user name in Kubernetes; empty if the subject has none.
    pub common_name: String,
    /// The organisations in the order of the certificate; in Kubernetes they are the groups.
    pub organisations: Vec<String>,
}

/// Reads the common name and the organisations of a certificate's subject.
pub fn identity(certificate: &CertificateDer<'_>) -> Result<Identity, Error> {
    let parts = Parts::of(certificate)?;
    let mut found = Identity::default();
    let mut names = Reader(Reader(parts.subject).take(SEQUENCE)?.content);
    while !names.0.is_empty() {
        let mut set = Reader(names.take(SET)?.content);
        while !set.0.is_empty() {
            let mut attribute = Reader(set.take(SEQUENCE)?.content);
            let kind = attribute.take(OID)?.content;
            let value = attribute.any()?;
            if kind == COMMON_NAME {
                found.common_name = text(&value)?;
            } else if kind == ORGANISATION {
                found.organisations.push(text(&value)?);
            }
        }
    }
    Ok(found)
}

/// The DER of a subject with one common name and any number of organisations.
pub(super) fn encode(common_name: &str, organisations: &[&str]) -> Vec<u8> {
    let attribute = |kind: &[u8], value: &str| {
        let pair = [tlv(OID, kind), tlv(UTF8_STRING, value.as_bytes())].concat();
        tlv(SET, &tlv(SEQUENCE, &pair))
    };
    let mut names = Vec::new();
    for organisation in organisations {
        names.extend(attribute(ORGANISATION, organisation));
    }
    names.extend(attribute(COMMON_NAME, common_name));
    tlv(SEQUENCE, &names)
}

/// Gives a certificate another subject, and signs the certificate again.
pub(super) fn replace(
    certificate: &CertificateDer<'_>,
    subject: &[u8],
    sign: impl FnOnce(&[u8]) -> Result<Vec<u8>, Error>,
) -> Result<Vec<u8>, Error> {
    let parts = Parts::of(certificate)?;
    let tbs = tlv(SEQUENCE, &[parts.before_subject, subject, parts.after_subject].concat());
    let mut signature = vec![0]; // a BIT STRING starts with the number of unused bits in its last byte
    signature.extend(sign(&tbs)?);
    Ok(tlv(SEQUENCE, &[&tbs, parts.algorithm, &tlv(BIT_STRING, &signature)].concat()))
}

/// Copies a certificate with the subject and the public key of a certificate request (RFC 2986), and signs the copy.
pub(super) fn for_request(
    certificate: &CertificateDer<'_>,
    request: &[u8],
    sign: impl FnOnce(&[u8]) -> Result<Vec<u8>, Error>,
) -> Result<Vec<u8>, Error> {
    let mut info = Reader(Reader(Reader(request).take(SEQUENCE)?.content).take(SEQUENCE)?.content);
    info.any()?; // the version
    let (subject, key) = (info.take(SEQUENCE)?.whole, info.take(SEQUENCE)?.whole);
    let parts = Parts::of(certificate)?;
    let mut after = Reader(parts.after_subject);
    after.take(SEQUENCE)?;
    let tbs = tlv(SEQUENCE, &[parts.before_subject, subject, key, after.0].concat());
    let mut signature = vec![0]; // a BIT STRING starts with the number of unused bits in its last byte
    signature.extend(sign(&tbs)?);
    Ok(tlv(SEQUENCE, &[&tbs, parts.algorithm, &tlv(BIT_STRING, &signature)].concat()))
}

/// A certificate, cut at its subject. The three fields, joined, are the content of its tbsCertificate.
struct Parts<'a> {
    before_subject: &'a [u8],
    subject: &'a [u8],
    after_subject: &'a [u8],
    algorithm: &'a [u8],
}

struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    whole: &'a [u8],
}

/// The bytes of a constructed element that have not been read.
struct Reader<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn of(certificate: &'a CertificateDer<'_>) -> Result<Self, Error> {
        let mut outer = Reader(Reader(certificate.as_ref()).take(SEQUENCE)?.content);
        let tbs = outer.take(SEQUENCE)?.content;
        let algorithm = outer.take(SEQUENCE)?.whole;
        let mut fields = Reader(tbs);
        if tbs.first() == Some(&EXPLICIT_VERSION) {
            fields.any()?;
        }
        for _field in ["serialNumber", "signature", "issuer", "validity"] {
            fields.any()?;
        }
        let before_subject = &tbs[..tbs.len() - fields.0.len()];
        let subject = fields.take(SEQUENCE)?.whole;
        Ok(Self { before_subject, subject, after_subject: fields.0, algorithm })
    }
}

impl<'a> Reader<'a> {
    fn take(&mut self, tag: u8) -> Result<Element<'a>, Error> {
        let element = self.any()?;
        if element.tag == tag { Ok(element) } else { Err(broken("an element has another type than RFC 5280 gives it")) }
    }

    fn any(&mut self) -> Result<Element<'a>, Error> {
        let short = || broken("it ends in the middle of an element");
        let input = self.0;
        let (&tag, rest) = input.split_first().ok_or_else(short)?;
        let (&first, rest) = rest.split_first().ok_or_else(short)?;
        let (length, rest) = if first < 0x80 {
            (usize::from(first), rest)
        } else {
            let count = usize::from(first & 0x7f);
            if count == 0 || count > 4 {
                return Err(broken("a length is not DER"));
            }
            let (digits, rest) = rest.split_at_checked(count).ok_or_else(short)?;
            (digits.iter().fold(0, |length, &digit| length << 8 | usize::from(digit)), rest)
        };
        let (content, rest) = rest.split_at_checked(length).ok_or_else(short)?;
        self.0 = rest;
        Ok(Element { tag, content, whole: &input[..input.len() - rest.len()] })
    }
}

fn text(value: &Element<'_>) -> Result<String, Error> {
    if !matches!(value.tag, UTF8_STRING | PRINTABLE_STRING | IA5_STRING) {
        return Err(broken("a name is in an encoding other than UTF-8 and ASCII"));
    }
    String::from_utf8(value.content.to_vec()).map_err(|_| broken("a name is not UTF-8"))
}

fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut out = vec![tag];
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => out.push(short),
        _ => {
            let bytes = length.to_be_bytes();
            let digits = &bytes[(length.leading_zeros() / 8) as usize..];
            out.push(0x80 | u8::try_from(digits.len()).expect("a usize has at most eight bytes"));
            out.extend(digits);
        }
    }
    out.extend(content);
    out
}

const fn broken(reason: &'static str) -> Error {
    Error::Subject { reason }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Reading the subject of any bytes gives a value or an error, and never a panic.
        #[test]
        fn reading_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = identity(&CertificateDer::from(bytes));
        }

        /// A DER element that was written is read unchanged, whatever the length of its length field.
        #[test]
        fn elements_survive_a_round_trip(
            length in prop::sample::select(vec![0_usize, 1, 127, 128, 255, 256, 65_535, 65_536]),
            byte in any::<u8>(),
        ) {
            let content = vec![byte; length];
            let whole = tlv(SEQUENCE, &content);
            let mut reader = Reader(&whole);
            let element = reader.take(SEQUENCE).unwrap();
            prop_assert_eq!(element.content, &content[..]);
            prop_assert!(reader.0.is_empty());
        }
    }
}
