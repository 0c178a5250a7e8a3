//! A certificate authority in memory, with its certificate log.

use aws_lc_rs::digest::{SHA256, digest};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, PublicKeyData as _, SanType, SerialNumber, SigningKey as _,
};
use x509_cert::der::{Decode as _, Encode as _};

use super::{Forge, ISSUER, NOW, SUBJECT, b64, new_key};

const ISSUER_V1: &[u64] = &[1, 3, 6, 1, 4, 1, 57264, 1, 1];
const ISSUER_V2: &[u64] = &[1, 3, 6, 1, 4, 1, 57264, 1, 8];
const TIMESTAMPS: &[u64] = &[1, 3, 6, 1, 4, 1, 11129, 2, 4, 2];

/// What a certificate log says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScTs {
    Good,
    Missing,
    /// Signed by a log that nobody trusts, under its own name.
    Strange,
    /// Signed by a log that nobody trusts, under the name of the trusted one.
    Impostor,
    /// Signed for another certificate.
    OtherCertificate,
    /// Signed for another issuer.
    OtherIssuer,
}

/// What can be said of a certificate.
#[expect(clippy::struct_excessive_bools, reason = "each is a lie of its own, and they go together in any way")]
#[derive(Clone)]
pub struct CertificateRecipe {
    pub names: Vec<SanType>,
    pub issuer_v1: Option<String>,
    pub issuer_v2: Option<String>,
    pub not_before: i64,
    pub not_after: i64,
    pub purposes: Vec<ExtendedKeyUsagePurpose>,
    pub is_authority: bool,
    /// Certified by an authority of the same name that nobody trusts.
    pub by_stranger: bool,
    /// Certified by a leaf instead of the authority.
    pub by_leaf: bool,
    pub timestamps: ScTs,
    /// The certificate of another key, so that the signature is not its holder's.
    pub of_other_key: bool,
}

impl Default for CertificateRecipe {
    fn default() -> Self {
        Self {
            names: vec![SanType::Rfc822Name(SUBJECT.try_into().unwrap())],
            issuer_v1: Some(ISSUER.to_owned()),
            issuer_v2: Some(ISSUER.to_owned()),
            not_before: NOW - 60,
            not_after: NOW + 540,
            purposes: vec![ExtendedKeyUsagePurpose::CodeSigning],
            is_authority: false,
            by_stranger: false,
            by_leaf: false,
            timestamps: ScTs::Good,
            of_other_key: false,
        }
    }
}

/// A root and an intermediate below it.
pub struct Ca {
    root: CertifiedIssuer<'static, KeyPair>,
    intermediate: CertifiedIssuer<'static, KeyPair>,
    pub ct_key: KeyPair,
}

pub fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", b64(der))
}

fn period(params: &mut CertificateParams, from: i64, until: i64) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let at = |seconds: i64| epoch + std::time::Duration::from_secs(seconds.unsigned_abs());
    (params.not_before, params.not_after) = (at(from), at(until));
}

pub fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    period(&mut params, NOW - 100_000, NOW + 100_000_000);
    params
}

pub fn leaf(name: Option<&str>, from: i64, until: i64) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    if let Some(name) = name {
        params.distinguished_name.push(DnType::CommonName, name);
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    period(&mut params, from, until);
    params
}

impl Ca {
    pub fn new(name: &str) -> Self {
        let root = CertifiedIssuer::self_signed(authority(name), new_key()).unwrap();
        let mut params = authority(&format!("{name}-intermediate"));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
        let intermediate = CertifiedIssuer::signed_by(params, new_key(), &root).unwrap();
        Self { root, intermediate, ct_key: new_key() }
    }

    /// Root and intermediate.
    pub fn pem(&self) -> String {
        self.intermediate.pem() + &self.root.pem()
    }
}

impl Forge {
    /// The chain of a certificate for `key`, leaf first.
    pub(super) fn certify(&self, key: &KeyPair, recipe: &CertificateRecipe) -> Vec<Vec<u8>> {
        let ca = if recipe.by_stranger { &self.strange_ca } else { &self.ca };
        let other = new_key();
        let key = if recipe.of_other_key { &other } else { key };
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
            let der = [&[12, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
            params.custom_extensions.push(CustomExtension::from_oid_content(ISSUER_V2, der));
        }
        let between = CertifiedIssuer::signed_by(leaf(Some("leaf"), NOW - 60, NOW + 540), new_key(), &ca.intermediate);
        let between = between.unwrap();
        let issuer = if recipe.by_leaf { &between } else { &ca.intermediate };
        let unlogged = params.signed_by(key, issuer).unwrap();
        if recipe.timestamps != ScTs::Missing {
            let list = self.timestamps(recipe.timestamps, unlogged.der(), issuer.key());
            let der = x509_cert::der::asn1::OctetString::new(list).unwrap().to_der().unwrap();
            params.custom_extensions.push(CustomExtension::from_oid_content(TIMESTAMPS, der));
        }
        let logged = params.signed_by(key, issuer).unwrap();
        let mut chain = vec![logged.der().to_vec()];
        if recipe.by_leaf {
            chain.push(between.der().to_vec());
        }
        chain.extend([ca.intermediate.der().to_vec(), ca.root.der().to_vec()]);
        chain
    }

    fn timestamps(&self, kind: ScTs, certificate: &[u8], issuer: &KeyPair) -> Vec<u8> {
        let parsed = x509_cert::Certificate::from_der(certificate).unwrap();
        let mut tbs = parsed.tbs_certificate.to_der().unwrap();
        if kind == ScTs::OtherCertificate {
            *tbs.last_mut().unwrap() ^= 1;
        }
        let hash = |key: &KeyPair| digest(&SHA256, &key.subject_public_key_info());
        let issuer_key = if kind == ScTs::OtherIssuer { hash(&self.ca.ct_key) } else { hash(issuer) };
        let milliseconds = (u64::try_from(NOW).unwrap() * 1000).to_be_bytes();
        let mut signed = vec![0, 0];
        signed.extend(milliseconds);
        signed.extend([0, 1]);
        signed.extend(issuer_key.as_ref());
        signed.extend(&u32::try_from(tbs.len()).unwrap().to_be_bytes()[1..]);
        signed.extend(&tbs);
        signed.extend([0, 0]);
        let (signer, named) = match kind {
            ScTs::Strange => (&self.strange_ca.ct_key, &self.strange_ca.ct_key),
            ScTs::Impostor => (&self.strange_ca.ct_key, &self.ca.ct_key),
            _ => (&self.ca.ct_key, &self.ca.ct_key),
        };
        let signature = signer.sign(&signed).unwrap();
        let mut one = vec![0];
        one.extend(hash(named).as_ref());
        one.extend(milliseconds);
        one.extend([0, 0, 4, 3]);
        one.extend(u16::try_from(signature.len()).unwrap().to_be_bytes());
        one.extend(signature);
        let length = u16::try_from(one.len()).unwrap();
        [&(length + 2).to_be_bytes()[..], &length.to_be_bytes(), &one].concat()
    }
}
