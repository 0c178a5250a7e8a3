//! RFC 3161 timestamps: checks that a timestamp covers the right bytes, and reads its time.

use aws_lc_rs::digest::{Algorithm, SHA256, SHA384, SHA512, digest};
use cms::cert::CertificateChoices;
use cms::content_info::ContentInfo;
use cms::signed_data::{SignedData, SignerIdentifier, SignerInfo};
use rustls_pki_types::CertificateDer;
use x509_cert::der::asn1::{ObjectIdentifier, OctetStringRef};
use x509_cert::der::{Decode as _, Encode as _};
use x509_tsp::{TimeStampResp, TstInfo};

use crate::authority::{Certifier, Purpose};
use crate::certificate::Certificate;
use crate::time::UnixTime;

const SIGNED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
const TST_INFO: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.1.4");
const CONTENT_TYPE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.3");
const MESSAGE_DIGEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.4");
const SHA256_ID: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const SHA384_ID: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.2");
const SHA512_ID: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.3");

/// Longest timestamp response, in bytes: a usual response with a chain of four RSA certificates has 7,000 bytes.
const RESPONSE_BYTES_MAX: usize = 64 << 10;
/// The status of a response that has a token (RFC 3161, section 2.4.2: `PKIStatus`).
const GRANTED: u8 = 0;
const GRANTED_WITH_CHANGES: u8 = 1;
/// Maximum number of certificates of one token that are read.
const CERTIFICATES_MAX: usize = 8;

/// The time at which one of `authorities` saw `message`, as stated by `response` (a `TimeStampResp` in DER).
pub(crate) fn check<'a>(
    response: &[u8],
    message: &[u8],
    authorities: impl Iterator<Item = &'a Certifier>,
) -> Result<UnixTime, String> {
    let token = Token::read(response)?;
    if hash(&token.info.message_imprint.hash_algorithm.oid, message)?
        != token.info.message_imprint.hashed_message.as_bytes()
    {
        return Err("its timestamp is of another signature".to_owned());
    }
    let seconds = token.info.gen_time.to_unix_duration().as_secs();
    let time = UnixTime(i64::try_from(seconds).map_err(|_| "its timestamp is of no time".to_owned())?);
    let mut failure = "its timestamp is of an authority that is not trusted".to_owned();
    for authority in authorities {
        for signer in token.signers(authority) {
            if !signer.key.verifies(&token.signed, token.signature()) {
                "the authority's certificate did not sign its timestamp".clone_into(&mut failure);
                continue;
            }
            match authority.certifies(&signer, &token.certificates, time, Purpose::TimeStamping) {
                Ok(_) => return Ok(time),
                Err(cause) => failure = format!("its timestamp's authority: {cause}"),
            }
        }
    }
    Err(failure)
}

struct Token {
    info: TstInfo,
    signer: SignerInfo,
    /// The signed attributes of the token in DER, which contain the hash of `info`.
    signed: Vec<u8>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Token {
    fn read(response: &[u8]) -> Result<Self, String> {
        const MALFORMED: &str = "its timestamp is not a response of RFC 3161";
        let malformed = |error: x509_cert::der::Error| format!("{MALFORMED}: {error}");
        if response.len() > RESPONSE_BYTES_MAX {
            return Err(format!("a timestamp of {} bytes, at most {RESPONSE_BYTES_MAX} are read", response.len()));
        }
        let response = TimeStampResp::from_der(response).map_err(malformed)?;
        // A response with any other status has no token (RFC 3161, 2.4.2): one that has it contradicts itself.
        let is_granted = matches!(response.status.status as u8, GRANTED | GRANTED_WITH_CHANGES);
        let token = response.time_stamp_token.filter(|_| is_granted);
        let token: ContentInfo = token.ok_or("its timestamp was refused by its authority")?;
        if token.content_type != SIGNED_DATA {
            return Err(MALFORMED.to_owned());
        }
        let data: SignedData = token.content.decode_as().map_err(malformed)?;
        let content = data.encap_content_info.econtent.ok_or(MALFORMED)?;
        let content = content.decode_as::<OctetStringRef<'_>>().map_err(malformed)?;
        if data.encap_content_info.econtent_type != TST_INFO {
            return Err(MALFORMED.to_owned());
        }
        let [signer] = data.signer_infos.0.as_slice() else {
            return Err("its timestamp has not exactly one signer".to_owned());
        };
        let signed = attested(signer, content.as_bytes())?;
        let choices = data.certificates.map(|all| all.0.into_vec()).unwrap_or_default();
        let certificates = choices.into_iter().take(CERTIFICATES_MAX).filter_map(|choice| match choice {
            CertificateChoices::Certificate(certificate) => certificate.to_der().ok().map(CertificateDer::from),
            CertificateChoices::Other(_) => None,
        });
        Ok(Self {
            info: TstInfo::from_der(content.as_bytes()).map_err(malformed)?,
            signer: signer.clone(),
            signed,
            certificates: certificates.collect(),
        })
    }

    fn signature(&self) -> &[u8] {
        self.signer.signature.as_bytes()
    }

    /// Certificates that may have signed the token: the certificates in the token, and configured certificates.
    fn signers(&self, authority: &Certifier) -> Vec<Certificate> {
        let own = self.certificates.iter().filter_map(|der| Certificate::from_der(der).ok());
        own.chain(authority.leaves.iter().cloned()).filter(|certificate| self.is_named(certificate)).collect()
    }

    fn is_named(&self, certificate: &Certificate) -> bool {
        let tbs = &certificate.parsed.tbs_certificate;
        match &self.signer.sid {
            SignerIdentifier::IssuerAndSerialNumber(id) => {
                id.issuer == tbs.issuer && id.serial_number == tbs.serial_number
            }
            // Only a hint for the search; the signature and the chain decide.
            SignerIdentifier::SubjectKeyIdentifier(_) => true,
        }
    }
}

/// The token's signed attributes in DER, if they are about `content` (RFC 5652, section 5.4).
fn attested(signer: &SignerInfo, content: &[u8]) -> Result<Vec<u8>, String> {
    let missing = || "its timestamp's signature is not about its content".to_owned();
    let attributes = signer.signed_attrs.as_ref().ok_or_else(missing)?;
    let value = |id: ObjectIdentifier| {
        let mut found = attributes.iter().filter(|attribute| attribute.oid == id);
        let (Some(one), None) = (found.next(), found.next()) else { return Err(missing()) };
        if one.values.len() == 1 { one.values.get(0).ok_or_else(missing) } else { Err(missing()) }
    };
    let kind: ObjectIdentifier = value(CONTENT_TYPE)?.decode_as().map_err(|_| missing())?;
    let stated = value(MESSAGE_DIGEST)?.decode_as::<OctetStringRef<'_>>().map_err(|_| missing())?;
    if kind != TST_INFO || hash(&signer.digest_alg.oid, content)? != stated.as_bytes() {
        return Err(missing());
    }
    attributes.to_der().map_err(|_| missing())
}

fn hash(id: &ObjectIdentifier, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let algorithm: &'static Algorithm = match *id {
        SHA256_ID => &SHA256,
        SHA384_ID => &SHA384,
        SHA512_ID => &SHA512,
        other => return Err(format!("its timestamp is made with the hash {other}, which is not accepted")),
    };
    Ok(digest(algorithm, bytes).as_ref().to_vec())
}
