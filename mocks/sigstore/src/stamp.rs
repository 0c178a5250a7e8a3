//! A timestamp authority in memory (RFC 3161).

use aws_lc_rs::digest::{SHA256, digest};
use cms::cert::{CertificateChoices, IssuerAndSerialNumber};
use cms::content_info::{CmsVersion, ContentInfo};
use cms::signed_data::{CertificateSet, EncapsulatedContentInfo, SignedData, SignerIdentifier, SignerInfo};
use rcgen::{CertifiedIssuer, CustomExtension, KeyPair, SigningKey as _};
use x509_cert::attr::Attribute;
use x509_cert::der::asn1::{GeneralizedTime, Int, ObjectIdentifier, OctetString, SetOfVec};
use x509_cert::der::{Any, Decode as _, Encode as _};
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_tsp::{MessageImprint, TspVersion, TstInfo};

use super::authority::{authority, leaf};
use super::{Error, Sigstore, new_key};

const SHA256_ID: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const ECDSA_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
const TST_INFO: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.1.4");
const SIGNED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
const CONTENT_TYPE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.3");
const MESSAGE_DIGEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.4");
const EXTENDED_KEY_USAGE: &[u64] = &[2, 5, 29, 37];
/// DER of extended key usages: a sequence of only `id-kp-timeStamping`, and a sequence of only `id-kp-codeSigning`.
const TIME_STAMPING: &[u8] = &[0x30, 0x0a, 6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 8];
const CODE_SIGNING: &[u8] = &[0x30, 0x0a, 6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 3];

/// How long before and after now the authority's certificate is valid, in seconds.
const LIFE: i64 = 1000;

/// The content of a timestamp that a test wants.
#[expect(clippy::struct_excessive_bools, reason = "each is a lie of its own, and they go together in any way")]
#[derive(Debug, Clone)]
pub struct StampRecipe {
    /// The time in seconds since 1970.
    pub time: i64,
    /// Whether an untrusted authority signs the timestamp.
    pub by_stranger: bool,
    /// Whether the timestamp is for bytes other than the signature.
    pub of_other: bool,
    pub other_content: bool,
    /// Whether an untrusted key signs the token.
    pub impostor: bool,
    /// Whether the authority's certificate is for signing code.
    pub other_purpose: bool,
    /// Whether the purpose in the authority's certificate lacks the mark `critical`.
    pub uncritical: bool,
    /// The status of the response (`PKIStatus`); 0 grants the request.
    pub status: u8,
    /// A function that changes the signed attributes before they are signed.
    pub attributes_edit: fn(&mut Vec<Attribute>),
    /// A function that changes the token's `SignedData`.
    pub data_edit: fn(&mut SignedData),
    /// A function that changes the token, which contains the `SignedData`.
    pub token_edit: fn(&mut ContentInfo),
}

impl StampRecipe {
    /// The recipe for a valid timestamp at `now`.
    pub fn new(now: i64) -> Self {
        Self {
            time: now,
            by_stranger: false,
            of_other: false,
            other_content: false,
            impostor: false,
            other_purpose: false,
            uncritical: false,
            status: 0,
            attributes_edit: |_| {},
            data_edit: |_| {},
            token_edit: |_| {},
        }
    }
}

/// A root certificate, and the key that signs timestamps.
pub(crate) struct Stamper {
    now: i64,
    root: CertifiedIssuer<'static, KeyPair>,
    key: KeyPair,
}

impl Stamper {
    pub(crate) fn new(now: i64) -> Result<Self, Error> {
        Ok(Self { now, root: CertifiedIssuer::self_signed(authority("tsa", now), new_key()?)?, key: new_key()? })
    }

    pub(crate) fn root_pem(&self) -> String {
        self.root.pem()
    }

    pub(crate) fn root(&self) -> &[u8] {
        self.root.der()
    }

    /// The certificate that signs valid timestamps, as DER.
    pub(crate) fn leaf(&self) -> Result<Vec<u8>, Error> {
        Ok(self.certificate(&StampRecipe::new(self.now))?.to_der()?)
    }

    fn certificate(&self, recipe: &StampRecipe) -> Result<x509_cert::Certificate, Error> {
        let mut params = leaf(Some("stamper"), self.now - LIFE, self.now + LIFE);
        let usage = if recipe.other_purpose { CODE_SIGNING } else { TIME_STAMPING };
        let mut usage = CustomExtension::from_oid_content(EXTENDED_KEY_USAGE, usage.to_vec());
        usage.set_criticality(!recipe.uncritical);
        params.custom_extensions.push(usage);
        let certificate = params.signed_by(&self.key, &self.root)?;
        Ok(x509_cert::Certificate::from_der(certificate.der())?)
    }
}

impl Sigstore {
    pub fn stamp(&self, recipe: &StampRecipe, message: &[u8]) -> Result<Vec<u8>, Error> {
        let stamper = if recipe.by_stranger { &self.strange_stamper } else { &self.stamper };
        let certificate = stamper.certificate(recipe)?;
        let message = if recipe.of_other { b"other" } else { message };
        let sha256 = AlgorithmIdentifierOwned { oid: SHA256_ID, parameters: None };
        let time = std::time::Duration::from_secs(recipe.time.unsigned_abs());
        let info = TstInfo {
            version: TspVersion::V1,
            policy: ObjectIdentifier::new_unwrap("1.2.3.4.1"),
            message_imprint: MessageImprint {
                hash_algorithm: sha256.clone(),
                hashed_message: OctetString::new(digest(&SHA256, message).as_ref())?,
            },
            serial_number: Int::new(&[1])?,
            gen_time: GeneralizedTime::from_unix_duration(time)?,
            accuracy: None,
            ordering: false,
            nonce: None,
            tsa: None,
            extensions: None,
        };
        let info = info.to_der()?;
        let hashed = if recipe.other_content { digest(&SHA256, b"other") } else { digest(&SHA256, &info) };
        let one = |oid, value: Any| Ok::<_, Error>(Attribute { oid, values: SetOfVec::try_from(vec![value])? });
        let mut attributes = vec![
            one(CONTENT_TYPE, Any::encode_from(&TST_INFO)?)?,
            one(MESSAGE_DIGEST, Any::encode_from(&OctetString::new(hashed.as_ref())?)?)?,
        ];
        (recipe.attributes_edit)(&mut attributes);
        let attributes = SetOfVec::try_from(attributes)?;
        let key = if recipe.impostor { &self.strange_stamper.key } else { &stamper.key };
        let signature = key.sign(&attributes.to_der()?)?;
        let signer = SignerInfo {
            version: CmsVersion::V1,
            sid: SignerIdentifier::IssuerAndSerialNumber(IssuerAndSerialNumber {
                issuer: certificate.tbs_certificate.issuer.clone(),
                serial_number: certificate.tbs_certificate.serial_number.clone(),
            }),
            digest_alg: sha256.clone(),
            signed_attrs: Some(attributes),
            signature_algorithm: AlgorithmIdentifierOwned { oid: ECDSA_SHA256, parameters: None },
            signature: OctetString::new(signature)?,
            unsigned_attrs: None,
        };
        let certificates = vec![CertificateChoices::Certificate(certificate)];
        let mut data = SignedData {
            version: CmsVersion::V3,
            digest_algorithms: SetOfVec::try_from(vec![sha256])?,
            encap_content_info: EncapsulatedContentInfo {
                econtent_type: TST_INFO,
                econtent: Some(Any::encode_from(&OctetString::new(info)?)?),
            },
            certificates: Some(CertificateSet::try_from(certificates)?),
            crls: None,
            signer_infos: vec![signer].try_into()?,
        };
        (recipe.data_edit)(&mut data);
        let mut token = ContentInfo { content_type: SIGNED_DATA, content: Any::encode_from(&data)? };
        (recipe.token_edit)(&mut token);
        // A response is a sequence of a status, here the sequence of one number, and the token.
        let body = [&[0x30, 3, 2, 1, recipe.status][..], &token.to_der()?].concat();
        let length = u16::try_from(body.len())?.to_be_bytes();
        Ok([&[0x30, 0x82][..], &length, &body].concat())
    }
}
