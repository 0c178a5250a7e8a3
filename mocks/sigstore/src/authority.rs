//! A certificate authority in memory, with its certificate log.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, PublicKeyData as _, SanType, SerialNumber, SigningKey as _,
};
use x509_cert::der::{Decode as _, Encode as _};

use super::{Error, Sigstore, id_of, new_key, sha256};

const ISSUER_V1: &[u64] = &[1, 3, 6, 1, 4, 1, 57264, 1, 1];
const ISSUER_V2: &[u64] = &[1, 3, 6, 1, 4, 1, 57264, 1, 8];
const TIMESTAMPS: &[u64] = &[1, 3, 6, 1, 4, 1, 11129, 2, 4, 2];

/// How long before now a certificate begins, and how long after now it ends, in seconds. Fulcio's certificates are
/// valid for ten minutes.
const LIFE: (i64, i64) = (60, 540);
/// How long before now an authority's certificate begins, and how long after now it ends, in seconds; longer than the
/// longest run.
const LIFE_OF_AUTHORITY: (i64, i64) = (100_000, 100_000_000);
/// How long before now the root certificate begins, in seconds. The root's validity begins later than the
/// intermediate's, so that a test can choose a time at which only the root is invalid.
const ROOT_BEGINS: i64 = 50_000;

/// The identity of the signer, which a certificate contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity<'a> {
    /// URL of the issuer of the signer's identity.
    pub issuer: &'a str,
    /// Mail address of the signer.
    pub subject: &'a str,
}

/// The signed certificate timestamps (SCTs) that a certificate log adds to a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScTs {
    /// A valid timestamp for the certificate.
    Good,
    Missing,
    /// A valid timestamp, contained in two lists.
    Twice,
    /// A timestamp in a future version of the format.
    OtherVersion,
    /// A timestamp by an untrusted log, with that log's own id.
    Strange,
    /// A timestamp by an untrusted log, with the id of the trusted log.
    Impostor,
    /// A timestamp for another certificate.
    OtherCertificate,
    /// A timestamp for a certificate of another issuer.
    OtherIssuer,
}

/// The content of a certificate that a test wants.
#[expect(clippy::struct_excessive_bools, reason = "each is a lie of its own, and they go together in any way")]
#[derive(Debug, Clone)]
pub struct CertificateRecipe {
    pub names: Vec<SanType>,
    /// The identity's issuer as plain text, as in Fulcio's first extension for issuers.
    pub issuer_v1: Option<String>,
    /// The identity's issuer as a DER `UTF8String`, as in Fulcio's second extension for issuers.
    pub issuer_v2: Option<String>,
    /// The first second of the validity, since 1970.
    pub not_before: i64,
    /// The last second of the validity, since 1970.
    pub not_after: i64,
    pub purposes: Vec<ExtendedKeyUsagePurpose>,
    /// Whether the certificate may certify others.
    pub is_authority: bool,
    /// Whether an untrusted authority, which has the trusted authority's name, signs the certificate.
    pub by_stranger: bool,
    /// Whether a leaf certificate signs the certificate, instead of the authority.
    pub by_leaf: bool,
    /// Whether an intermediate whose purpose is server certificates signs the certificate.
    pub by_other_purpose: bool,
    pub timestamps: ScTs,
    /// Whether the certificate contains another key than the signer's.
    pub of_other_key: bool,
    /// A function that changes the certificate before it is signed.
    pub edit: fn(&mut CertificateParams),
}

impl CertificateRecipe {
    /// The recipe for a certificate of `identity` that is valid for some minutes around `now`.
    pub fn new(identity: Identity<'_>, now: i64) -> Result<Self, Error> {
        Ok(Self {
            names: vec![SanType::Rfc822Name(identity.subject.try_into()?)],
            issuer_v1: Some(identity.issuer.to_owned()),
            issuer_v2: Some(identity.issuer.to_owned()),
            not_before: now - LIFE.0,
            not_after: now + LIFE.1,
            purposes: vec![ExtendedKeyUsagePurpose::CodeSigning],
            is_authority: false,
            by_stranger: false,
            by_leaf: false,
            by_other_purpose: false,
            timestamps: ScTs::Good,
            of_other_key: false,
            edit: |_| {},
        })
    }
}

/// A root certificate and an intermediate below it, with their keys.
pub(crate) struct Authority {
    root: CertifiedIssuer<'static, KeyPair>,
    intermediate: CertifiedIssuer<'static, KeyPair>,
    pub(crate) ct_key: KeyPair,
}

fn period(params: &mut CertificateParams, from: i64, until: i64) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let at = |seconds: i64| epoch + std::time::Duration::from_secs(seconds.unsigned_abs());
    (params.not_before, params.not_after) = (at(from), at(until));
}

pub(crate) fn authority(name: &str, now: i64) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    period(&mut params, now - LIFE_OF_AUTHORITY.0, now + LIFE_OF_AUTHORITY.1);
    params
}

pub(crate) fn leaf(name: Option<&str>, from: i64, until: i64) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    if let Some(name) = name {
        params.distinguished_name.push(DnType::CommonName, name);
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    period(&mut params, from, until);
    params
}

impl Authority {
    pub(crate) fn new(name: &str, now: i64) -> Result<Self, Error> {
        let mut params = authority(name, now);
        period(&mut params, now - ROOT_BEGINS, now + LIFE_OF_AUTHORITY.1);
        let root = CertifiedIssuer::self_signed(params, new_key()?)?;
        let mut params = authority(&format!("{name}-intermediate"), now);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
        let intermediate = CertifiedIssuer::signed_by(params, new_key()?, &root)?;
        Ok(Self { root, intermediate, ct_key: new_key()? })
    }

    /// The certificates of intermediate and root, as PEM.
    pub(crate) fn pem(&self) -> String {
        self.intermediate.pem() + &self.root.pem()
    }

    /// The certificates of intermediate and root, as DER.
    pub(crate) fn chain(&self) -> [&[u8]; 2] {
        [self.intermediate.der(), self.root.der()]
    }
}

impl Sigstore {
    /// The certificate chain for `key` as DER, the leaf first.
    pub fn certify(&self, key: &KeyPair, recipe: &CertificateRecipe) -> Result<Vec<Vec<u8>>, Error> {
        let ca = if recipe.by_stranger { &self.strange_authority } else { &self.authority };
        let other = new_key()?;
        let key = if recipe.of_other_key { &other } else { key };
        let mut params = params(recipe)?;
        let between = if recipe.by_leaf {
            let params = leaf(Some("leaf"), self.now - LIFE.0, self.now + LIFE.1);
            Some(CertifiedIssuer::signed_by(params, new_key()?, &ca.intermediate)?)
        } else if recipe.by_other_purpose {
            let mut params = authority("servers", self.now);
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            Some(CertifiedIssuer::signed_by(params, new_key()?, &ca.root)?)
        } else {
            None
        };
        let issuer = between.as_ref().unwrap_or(&ca.intermediate);
        if recipe.timestamps != ScTs::Missing {
            let unlogged = params.signed_by(key, issuer)?;
            let list = self.timestamps(recipe.timestamps, unlogged.der(), issuer.key())?;
            let der = x509_cert::der::asn1::OctetString::new(list)?.to_der()?;
            let lists = if recipe.timestamps == ScTs::Twice { 2 } else { 1 };
            let extension = CustomExtension::from_oid_content(TIMESTAMPS, der);
            params.custom_extensions.extend(std::iter::repeat_n(extension, lists));
        }
        let mut chain = vec![params.signed_by(key, issuer)?.der().to_vec()];
        chain.extend(between.map(|between| between.der().to_vec()));
        chain.extend(ca.chain().map(<[u8]>::to_vec));
        Ok(chain)
    }

    fn timestamps(&self, kind: ScTs, certificate: &[u8], issuer: &KeyPair) -> Result<Vec<u8>, Error> {
        let parsed = x509_cert::Certificate::from_der(certificate)?;
        let mut tbs = parsed.tbs_certificate.to_der()?;
        if let Some(last) = tbs.last_mut().filter(|_| kind == ScTs::OtherCertificate) {
            *last ^= 1;
        }
        let ours = &self.authority.ct_key;
        let issuer_key =
            if kind == ScTs::OtherIssuer { id_of(ours) } else { sha256(&issuer.subject_public_key_info()) };
        let milliseconds = (self.now.unsigned_abs() * 1000).to_be_bytes();
        let mut signed = vec![0, 0];
        signed.extend(milliseconds);
        signed.extend([0, 1]);
        signed.extend(issuer_key);
        signed.extend(&u32::try_from(tbs.len())?.to_be_bytes()[1..]);
        signed.extend(&tbs);
        signed.extend([0, 0]);
        let strange = &self.strange_authority.ct_key;
        let (signer, named) = match kind {
            ScTs::Strange => (strange, strange),
            ScTs::Impostor => (strange, ours),
            _ => (ours, ours),
        };
        let signature = signer.sign(&signed)?;
        let mut one = vec![u8::from(kind == ScTs::OtherVersion)];
        one.extend(id_of(named));
        one.extend(milliseconds);
        one.extend([0, 0, 4, 3]);
        one.extend(u16::try_from(signature.len())?.to_be_bytes());
        one.extend(signature);
        let length = u16::try_from(one.len())?;
        Ok([&(length + 2).to_be_bytes()[..], &length.to_be_bytes(), &one].concat())
    }
}

/// The certificate before the log adds its timestamps.
fn params(recipe: &CertificateRecipe) -> Result<CertificateParams, Error> {
    let mut params = leaf(None, recipe.not_before, recipe.not_after);
    params.serial_number = Some(SerialNumber::from_slice(&[7, 7, 7]));
    params.subject_alt_names.clone_from(&recipe.names);
    params.extended_key_usages.clone_from(&recipe.purposes);
    if recipe.is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    if let Some(text) = &recipe.issuer_v1 {
        params.custom_extensions.push(CustomExtension::from_oid_content(ISSUER_V1, text.clone().into_bytes()));
    }
    if let Some(text) = &recipe.issuer_v2 {
        let der = x509_cert::der::asn1::Utf8StringRef::new(text)?.to_der()?;
        params.custom_extensions.push(CustomExtension::from_oid_content(ISSUER_V2, der));
    }
    (recipe.edit)(&mut params);
    Ok(params)
}
