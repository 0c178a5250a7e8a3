//! A table of forgeries; each changes one property of a recipe.

use cms::content_info::CmsVersion;
use cms::signed_data::{SignerIdentifier, SignerInfo};
use mock_sigstore::{Identity, Sigstore, new_key};
use rcgen::{CustomExtension, ExtendedKeyUsagePurpose, SanType};
use serde_json::json;
use service_verify::{Class, Digest, Requirement, Timestamps};
use x509_cert::der::Any;
use x509_cert::der::asn1::{ObjectIdentifier, SetOfVec};
use x509_cert::serial_number::SerialNumber;

use super::{assert_refused, judge, requirement, root_of};
use crate::forge::{CertificateRecipe, Forge, Form, LogRecipe, NOW, Promise, Proof, Recipe, ScTs, StampRecipe, b64};

use Class::{Invalid, Mismatch};

/// The kinds of signatures to which a forgery applies.
#[derive(Clone, Copy)]
enum For {
    All,
    Keyless,
    Key,
    Bundles,
    KeyBundles,
    Envelopes,
    Signatures,
    Attestations,
    Legacy,
    /// Signatures for which a timestamp is demanded.
    Stamped,
    /// Keyless signatures with a timestamp and without a log entry.
    StampedAlone,
    /// Keyless signatures with a log entry, for which a timestamp is demanded too.
    TwiceDated,
}

/// A forgery: its name, the kinds of signatures to which it applies, the one change, the expected class, and a text in
/// the expected cause.
type Forgery = (&'static str, For, fn(&mut Recipe), Class, &'static str);

/// The object identifier of an unknown attribute, which sorts after the identifiers of timestamp attributes.
const OTHER: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.1.4.1");

fn log(recipe: &mut Recipe) -> &mut LogRecipe {
    recipe.log.as_mut().unwrap()
}

fn stamp(recipe: &mut Recipe) -> &mut StampRecipe {
    recipe.stamp.as_mut().unwrap()
}

fn mail(text: &str) -> SanType {
    SanType::Rfc822Name(text.try_into().unwrap())
}

/// A certificate of an unknown signer, in DER.
fn stranger() -> Vec<u8> {
    let identity = Identity { issuer: "https://evil.org", subject: "mallory@example.com" };
    let recipe = CertificateRecipe::new(identity, NOW).unwrap();
    Sigstore::new(NOW).unwrap().certify(&new_key().unwrap(), &recipe).unwrap().swap_remove(0)
}

#[rustfmt::skip]
const FORGERIES: &[Forgery] = &[
    // the signed content
    ("another image", For::All, |r| r.signed_image = Digest::of(b"another"), Mismatch, "not sha256:"),
    ("another type of claim", For::All, |r| "atomic container signature".clone_into(&mut r.claim_type), Invalid, "atomic"),
    ("another annotation", For::All, |r| r.annotations = json!({"env": "test"}), Invalid, "annotation `env` is `test`"),
    ("no annotation", For::All, |r| r.annotations = json!({"other": "prod"}), Invalid, "no annotation `env`"),
    ("an annotation that is no text", For::All, |r| r.annotations = json!({"env": ["prod"]}), Invalid, "no text"),
    ("another payload type", For::Envelopes, |r| "text/plain".clone_into(&mut r.payload_type), Invalid, "payload is not"),
    ("another predicate type", For::Attestations, |r| "https://example.com/other".clone_into(&mut r.predicate_type), Class::Unsigned, "no attestation of type"),
    ("a field of another value", For::Attestations, |r| r.predicate = json!({"builder": {"id": "theirs"}, "level": 3}), Invalid, "`theirs`"),
    ("a field that is missing", For::Attestations, |r| r.predicate = json!({"level": 3}), Invalid, "no field /builder/id"),
    ("a field that is an object", For::Attestations, |r| r.predicate = json!({"builder": {"id": {}}, "level": 3}), Invalid, "neither text nor number"),
    ("a number out of the pattern", For::Attestations, |r| r.predicate = json!({"builder": {"id": "ours"}, "level": 33}), Invalid, "`33`"),

    // the signature
    ("signed by another key", For::Key, |r| r.signer = 2, Invalid, "not made by the key"),
    ("signed by another trusted key", For::Key, |r| r.signer = 1, Invalid, "not made by the key"),
    ("signature over other bytes", For::All, |r| r.signed_instead = Some(b"other".to_vec()), Invalid, "not made by the key"),
    ("signature over nothing", For::All, |r| r.signed_instead = Some(Vec::new()), Invalid, "not made by the key"),
    ("a bit of the signature", For::All, |r| r.signature_edit = |s| { let at = s.len() - 5; s[at] ^= 1; }, Invalid, "not made by the key"),
    ("a shorter signature", For::All, |r| r.signature_edit = |s| { s.pop(); }, Invalid, "not made by the key"),
    ("a longer signature", For::All, |r| r.signature_edit = |s| s.push(0), Invalid, "not made by the key"),
    ("a signature of zeros", For::All, |r| r.signature_edit = |s| *s = vec![0x30, 6, 2, 1, 0, 2, 1, 0], Invalid, "not made by the key"),
    ("no signature in the envelope", For::Envelopes, |r| r.envelope_signatures = 0, Invalid, "0 signatures"),
    ("two signatures in the envelope", For::Envelopes, |r| r.envelope_signatures = 2, Invalid, "2 signatures"),
    ("an empty signature", For::Signatures, |r| r.signature_edit = Vec::clear, Invalid, "carries no signature"),

    // the certificate
    ("certificate of another key", For::Keyless, |r| r.certificate.of_other_key = true, Invalid, "not made by the key of its certificate"),
    ("certified by a stranger of the same name", For::Keyless, |r| r.certificate.by_stranger = true, Invalid, "does not lead to a root"),
    ("certified by a leaf", For::Keyless, |r| r.certificate.by_leaf = true, Invalid, "does not lead to a root"),
    ("certificate of an authority", For::Keyless, |r| r.certificate.is_authority = true, Invalid, "does not lead to a root"),
    ("certificate for another purpose", For::Keyless, |r| r.certificate.purposes = vec![ExtendedKeyUsagePurpose::ServerAuth], Invalid, "not one to sign code"),
    ("certificate for no purpose", For::Keyless, |r| r.certificate.purposes.clear(), Invalid, "not one to sign code"),
    ("certificate of another holder", For::Keyless, |r| r.certificate.names = vec![mail("mallory@example.com")], Invalid, "is of `mallory@example.com`"),
    ("certificate of a holder that begins alike", For::Keyless, |r| r.certificate.names = vec![mail("release@example.com.evil.org")], Invalid, "evil.org"),
    ("certificate of two holders", For::Keyless, |r| r.certificate.names.push(mail("mallory@example.com")), Invalid, "2 identities"),
    ("certificate of nobody", For::Keyless, |r| r.certificate.names.clear(), Invalid, "no identity"),
    ("certificate of another issuer", For::Keyless, |r| { r.certificate.issuer_v1 = Some("https://evil.org".to_owned()); r.certificate.issuer_v2 = r.certificate.issuer_v1.clone(); }, Invalid, "issuer is `https://evil.org`"),
    ("certificate of two issuers", For::Keyless, |r| r.certificate.issuer_v1 = Some("https://evil.org".to_owned()), Invalid, "two different issuers"),
    ("certificate of no issuer", For::Keyless, |r| { r.certificate.issuer_v1 = None; r.certificate.issuer_v2 = None; }, Invalid, "does not say who issued"),
    ("certificate that was over", For::Keyless, |r| r.certificate.not_after = NOW - 1, Invalid, "does not lead to a root"),
    ("certificate that was still to come", For::Keyless, |r| r.certificate.not_before = NOW + 1, Invalid, "does not lead to a root"),

    ("certified by one for servers", For::Keyless, |r| r.certificate.by_other_purpose = true, Invalid, "does not lead to a root"),
    ("certificate from before its root", For::Keyless, |r| {
        (r.certificate.not_before, log(r).time) = (NOW - 90_000, NOW - 80_000);
    }, Invalid, "none of the authority's roots was valid then"),
    ("certificate with an extension twice", For::Keyless, |r| r.certificate.edit = |params| {
        let all = &mut params.custom_extensions;
        all.extend(all.last().cloned());
    }, Invalid, "not an X.509 certificate"),
    ("an enormous certificate", For::Keyless, |r| r.certificate.edit = |params| {
        params.custom_extensions.push(CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![0; 17 << 10]));
    }, Invalid, "not an X.509 certificate"),

    // the certificate log
    ("certificate that is not public", For::Keyless, |r| r.certificate.timestamps = ScTs::Missing, Invalid, "carries no signed certificate timestamp"),
    ("certificate with two lists of timestamps", For::Keyless, |r| r.certificate.timestamps = ScTs::Twice, Invalid, "carries no signed certificate timestamp"),
    ("certificate timestamp of a form to come", For::Keyless, |r| r.certificate.timestamps = ScTs::OtherVersion, Invalid, "signed certificate timestamp"),
    ("certificate in a stranger's log", For::Keyless, |r| r.certificate.timestamps = ScTs::Strange, Invalid, "in no certificate log that is trusted"),
    ("certificate timestamp of an impostor", For::Keyless, |r| r.certificate.timestamps = ScTs::Impostor, Invalid, "did not sign for its certificate"),
    ("certificate timestamp of another certificate", For::Keyless, |r| r.certificate.timestamps = ScTs::OtherCertificate, Invalid, "did not sign for its certificate"),
    ("certificate timestamp of another issuer", For::Keyless, |r| r.certificate.timestamps = ScTs::OtherIssuer, Invalid, "did not sign for its certificate"),

    // the transparency log
    ("no log entry", For::All, |r| r.log = None, Invalid, "no entry came with it"),
    ("in a stranger's log", For::All, |r| log(r).by_stranger = true, Invalid, "a log that is not trusted"),
    ("promise of an impostor", For::All, |r| log(r).promise = Promise::Impostor, Invalid, "not signed by the log"),
    ("promise for another time", For::All, |r| log(r).promise = Promise::OtherTime, Invalid, "not signed by the log"),
    ("promise for another index", For::All, |r| log(r).promise = Promise::OtherIndex, Invalid, "not signed by the log"),
    ("promise for another entry", For::All, |r| log(r).promise = Promise::OtherBody, Invalid, "not signed by the log"),
    ("no promise", For::Legacy, |r| log(r).promise = Promise::Missing, Invalid, "not signed by the log"),
    ("entry of another content", For::All, |r| log(r).hash_of = Some(b"other".to_vec()), Invalid, "other content"),
    ("entry of another signature", For::All, |r| log(r).signature = Some(b"other".to_vec()), Invalid, "another signature"),
    ("entry of another key or certificate", For::All, |r| log(r).verifier = Some("-----BEGIN PUBLIC KEY-----\nMAA=\n-----END PUBLIC KEY-----\n".to_owned()), Invalid, "another key or certificate"),
    ("entry of no key", For::All, |r| log(r).verifier = Some("nobody".to_owned()), Invalid, "no key or certificate"),
    ("entry with two keys", For::Key, |r| log(r).body_edit = |body| {
        let pem = "-----BEGIN PUBLIC KEY-----\nMAA=\n-----END PUBLIC KEY-----\n".repeat(2);
        for at in ["/spec/signature/publicKey/content", "/spec/signatures/0/verifier"] {
            if let Some(text) = body.pointer_mut(at) { *text = b64(&pem).into(); }
        }
    }, Invalid, "no key or certificate"),
    ("entry of an unknown kind", For::All, |r| log(r).body_edit = |body| body["kind"] = "rpm".into(), Invalid, "kind"),
    ("entry of an unknown version", For::All, |r| log(r).body_edit = |body| body["apiVersion"] = "9.9.9".into(), Invalid, "kind"),
    ("entry by a weak hash", For::All, |r| log(r).body_edit = |body| {
        for at in ["/spec/data/hash/algorithm", "/spec/payloadHash/algorithm"] {
            if let Some(text) = body.pointer_mut(at) { *text = "sha1".into(); }
        }
    }, Invalid, "sha1"),
    ("entry with two signatures", For::Envelopes, |r| log(r).body_edit = |body| {
        let one = body["spec"]["signatures"][0].clone();
        body["spec"]["signatures"] = json!([one, one]);
    }, Invalid, "2 signatures"),
    ("entry that is stated to be of another kind", For::Bundles, |r| log(r).stated_kind = Some("hashedrekord"), Invalid, "another kind than the bundle says"),
    ("dated into the future", For::All, |r| log(r).time = NOW + 301, Invalid, "still to come"),
    ("an enormous entry", For::All, |r| log(r).body_edit = |body| body["spec"]["more"] = "x".repeat(200_000).into(), Invalid, "at most 131072 are read"),
    ("neither promise nor proof", For::Bundles, |r| {
        (log(r).promise, log(r).proof) = (Promise::Missing, Proof::Missing);
        r.bundle_edit = |b| b["mediaType"] = "application/vnd.dev.sigstore.bundle+json;version=0.1".into();
    }, Invalid, "no promise, which this form of a bundle needs"),
    ("a proof in the first form, which wants a promise", For::Bundles, |r| {
        log(r).promise = Promise::Missing;
        r.bundle_edit = |b| b["mediaType"] = "application/vnd.dev.sigstore.bundle+json;version=0.1".into();
    }, Invalid, "no promise, which this form of a bundle needs"),
    ("logged before the certificate's life and stamped in it", For::TwiceDated, |r| log(r).time = NOW - 61, Invalid, "does not lead to a root"),
    ("stamped before the certificate's life and logged in it", For::TwiceDated, |r| stamp(r).time = NOW - 61, Invalid, "does not lead to a root"),
    ("logged before the certificate's life", For::Keyless, |r| { log(r).time = NOW - 61; }, Invalid, "does not lead to a root"),

    // inclusion
    ("no inclusion proof", For::Bundles, |r| log(r).proof = Proof::Missing, Invalid, "no inclusion proof"),
    ("proof of another entry", For::Bundles, |r| log(r).proof = Proof::OtherPath, Invalid, "does not lead to the root"),
    ("proof that is too short", For::Bundles, |r| log(r).proof = Proof::ShortPath, Invalid, "does not fit"),
    ("proof for another index", For::Bundles, |r| log(r).proof = Proof::OtherIndex, Invalid, "inclusion proof"),
    ("checkpoint of another root", For::Bundles, |r| log(r).proof = Proof::OtherRoot, Invalid, "another root"),
    ("checkpoint of an impostor", For::Bundles, |r| log(r).proof = Proof::Impostor, Invalid, "not signed by the log"),
    ("checkpoint of nobody", For::Bundles, |r| log(r).proof = Proof::Unsigned, Invalid, "not signed by the log"),

    // timestamps
    ("no timestamp", For::Stamped, |r| r.stamp = None, Invalid, "no timestamp came with it"),
    ("timestamp of a stranger", For::Stamped, |r| stamp(r).by_stranger = true, Invalid, "does not lead to a root"),
    ("timestamp of other bytes", For::Stamped, |r| stamp(r).of_other = true, Invalid, "of another signature"),
    ("timestamp whose signature is about another content", For::Stamped, |r| stamp(r).other_content = true, Invalid, "not about its content"),
    ("timestamp token of another kind", For::Stamped, |r| stamp(r).token_edit = |token| token.content_type = OTHER, Invalid, "not a response of RFC 3161"),
    ("timestamp token about another kind of content", For::Stamped, |r| stamp(r).data_edit = |data| {
        data.encap_content_info.econtent_type = OTHER;
    }, Invalid, "not a response of RFC 3161"),
    ("timestamp with two signers", For::Stamped, |r| stamp(r).data_edit = |data| {
        let one = data.signer_infos.0.as_slice()[0].clone();
        let other = SignerInfo { version: CmsVersion::V3, ..one.clone() };
        data.signer_infos = vec![one, other].try_into().unwrap();
    }, Invalid, "not exactly one signer"),
    ("timestamp whose attributes are about another kind of content", For::Stamped, |r| stamp(r).attributes_edit = |all| {
        all[0].values = SetOfVec::try_from(vec![Any::encode_from(&OTHER).unwrap()]).unwrap();
    }, Invalid, "not about its content"),
    ("timestamp with an attribute twice", For::Stamped, |r| stamp(r).attributes_edit = |all| {
        let mut other = all[0].clone();
        other.values = SetOfVec::try_from(vec![Any::encode_from(&OTHER).unwrap()]).unwrap();
        all.push(other);
    }, Invalid, "not about its content"),
    ("timestamp that names another signer", For::Stamped, |r| stamp(r).data_edit = |data| {
        let mut one = data.signer_infos.0.as_slice()[0].clone();
        let SignerIdentifier::IssuerAndSerialNumber(id) = &mut one.sid else { panic!("it is named by its number") };
        id.serial_number = SerialNumber::new(&[9]).unwrap();
        data.signer_infos = vec![one].try_into().unwrap();
    }, Invalid, "an authority that is not trusted"),
    ("timestamp that its authority did not grant", For::Stamped, |r| stamp(r).status = 2, Invalid, "refused by its authority"),
    ("an enormous timestamp", For::Stamped, |r| {
        r.companions_edit = |c| c.timestamp = Some(json!({"SignedRFC3161Timestamp": b64(vec![0x30; 70_000])}).to_string());
        r.bundle_edit = |b| {
            let data = &mut b["verificationMaterial"]["timestampVerificationData"];
            data["rfc3161Timestamps"][0]["signedTimestamp"] = b64(vec![0x30; 70_000]).into();
        };
    }, Invalid, "at most 65536 are read"),
    ("timestamp of an impostor", For::Stamped, |r| stamp(r).impostor = true, Invalid, "did not sign its timestamp"),
    ("timestamp by a certificate for code", For::Stamped, |r| stamp(r).other_purpose = true, Invalid, "state times alone"),
    ("timestamp by a certificate that is not for times alone", For::Stamped, |r| stamp(r).uncritical = true, Invalid, "state times alone"),
    ("timestamp of the future", For::Stamped, |r| stamp(r).time = NOW + 301, Invalid, "still to come"),
    ("timestamp before its authority's life", For::Stamped, |r| stamp(r).time = NOW - 1001, Invalid, "does not lead to a root"),
    ("stamped before the certificate's life", For::StampedAlone, |r| stamp(r).time = NOW - 61, Invalid, "does not lead to a root"),
    ("neither log nor timestamp", For::StampedAlone, |r| r.stamp = None, Invalid, "no timestamp came with it"),

    // the path through the registry
    ("refers to another image", For::Bundles, |r| r.refers_to = Some(Digest::of(b"another")), Mismatch, "refers to sha256:"),
    ("refers to nothing", For::Bundles, |r| r.refers_to = None, Invalid, "refers to no image"),
    ("layer of another type", For::All, |r| "application/octet-stream".clone_into(&mut r.media_type), Invalid, "application/octet-stream"),
    ("artifact of another type", For::Bundles, |r| "application/spdx+json".clone_into(&mut r.artifact_type), Invalid, "application/spdx+json"),
    ("a bundle of a form to come", For::Bundles, |r| r.bundle_edit = |b| b["mediaType"] = "application/vnd.dev.sigstore.bundle.v9+json".into(), Invalid, "form that is not read"),
    ("a bundle with key and certificate", For::Bundles, |r| r.bundle_edit = |b| {
        let material = &mut b["verificationMaterial"];
        material["x509CertificateChain"] = json!({"certificates": []});
        material["publicKey"] = json!({});
    }, Invalid, "one of key, certificate"),
    ("a bundle with two log entries", For::Bundles, |r| r.bundle_edit = |b| {
        let entries = b["verificationMaterial"]["tlogEntries"].as_array_mut().unwrap();
        entries.push(entries[0].clone());
    }, Invalid, "2 log entries"),
    ("a bundle with five timestamps", For::Bundles, |r| r.bundle_edit = |b| {
        b["verificationMaterial"]["timestampVerificationData"] = json!({"rfc3161Timestamps": vec![json!({"signedTimestamp": ""}); 5]});
    }, Invalid, "5 timestamps"),
    ("a bundle of a file", For::Bundles, |r| r.bundle_edit = |b| {
        b.as_object_mut().unwrap().remove("dsseEnvelope");
        b["messageSignature"] = json!({"signature": ""});
    }, Invalid, "without an envelope"),
    ("a bundle of a key that brings a certificate", For::KeyBundles, |r| r.bundle_edit = |b| {
        let material = b["verificationMaterial"].as_object_mut().unwrap();
        material.remove("publicKey");
        material.insert("certificate".to_owned(), json!({"rawBytes": b64(stranger())}));
    }, Invalid, "the holder of a certificate made it, not a key"),
    ("a bundle whose hint is no text", For::KeyBundles, |r| r.bundle_edit = |b| {
        b["verificationMaterial"]["publicKey"]["hint"] = 1.into();
    }, Invalid, "no sigstore bundle"),
    ("no certificate", For::Keyless, |r| {
        r.bundle_edit = |b| {
            let material = b["verificationMaterial"].as_object_mut().unwrap();
            material.remove("certificate");
            material.insert("publicKey".to_owned(), json!({}));
        };
        r.companions_edit = |c| c.certificate = None;
    }, Invalid, "no certificate came with it"),

    // too much, too little
    ("an enormous piece", For::All, |r| r.bytes_edit = |bytes| bytes.resize(9 << 20, b' '), Invalid, "at most"),
    ("an enormous note", For::Bundles, |r| r.bundle_edit = |b| {
        let note = &mut b["verificationMaterial"]["tlogEntries"][0]["inclusionProof"]["checkpoint"]["envelope"];
        *note = (note.as_str().unwrap().to_owned() + &"\u{2014} x AAAAAAAA\n".repeat(5000)).into();
    }, Invalid, "not a signed note"),
    ("a path of a thousand hashes", For::Bundles, |r| r.bundle_edit = |b| {
        let proof = &mut b["verificationMaterial"]["tlogEntries"][0]["inclusionProof"];
        proof["hashes"] = vec![b64([0; 32]); 1000].into();
    }, Invalid, "a list of more than 64"),
    ("an enormous certificate, a chain of a hundred", For::Keyless, |r| {
        r.companions_edit = |c| c.chain = c.chain.take().map(|chain| chain.repeat(50));
        r.bundle_edit = |b| b["verificationMaterial"]["certificate"]["rawBytes"] = b64(vec![0x30; 20_000]).into();
    }, Invalid, "certificate"),
    ("what nobody reads is no text", For::Envelopes, |r| r.bytes_edit = |bytes| {
        bytes.pop();
        bytes.extend(b",\"unread\":\"\xff\"}");
    }, Invalid, "not UTF-8"),
    ("a thousand brackets", For::All, |r| r.bytes_edit = |bytes| *bytes = vec![b'['; 1000], Invalid, ""),
    ("nothing", For::All, |r| r.bytes_edit = Vec::clear, Invalid, ""),
];

/// The variants of a kind of signatures: format, and whether keyless, with a timestamp, and with a log entry.
fn pieces(kind: For) -> Vec<(Form, bool, bool, bool)> {
    let mut found = Vec::new();
    for form in [Form::Signature, Form::Attestation, Form::Bundle, Form::BundleAttestation] {
        for is_keyless in [false, true] {
            let is_bundle = matches!(form, Form::Bundle | Form::BundleAttestation);
            let is_attestation = matches!(form, Form::Attestation | Form::BundleAttestation);
            let (is_chosen, is_stamped, is_logged) = match kind {
                For::All => (true, false, true),
                For::Keyless => (is_keyless, false, true),
                For::Key => (!is_keyless, false, true),
                For::Bundles => (is_bundle, false, true),
                For::KeyBundles => (is_bundle && !is_keyless, false, true),
                For::Envelopes => (form != Form::Signature, false, true),
                For::Signatures => (form == Form::Signature, false, true),
                For::Attestations => (is_attestation, false, true),
                For::Legacy => (!is_bundle, false, true),
                For::Stamped => (true, true, true),
                For::StampedAlone => (is_keyless, true, false),
                For::TwiceDated => (is_keyless, true, true),
            };
            if is_chosen {
                found.push((form, is_keyless, is_stamped, is_logged));
            }
        }
    }
    found
}

/// A forged signature and its valid original.
pub struct Forged {
    pub name: &'static str,
    pub what: String,
    /// The signature before its one change.
    pub good: Recipe,
    pub recipe: Recipe,
    pub requirement: Requirement,
    pub root: &'static str,
    class: Class,
    cause: &'static str,
}

/// Every forgery for every kind of signature.
pub fn forgeries() -> impl Iterator<Item = Forged> {
    let each = |(name, kind, change, class, cause): &'static Forgery| {
        pieces(*kind).into_iter().map(move |(form, is_keyless, is_stamped, is_logged)| {
            let mut good = Recipe::new(form, is_keyless);
            good.log = good.log.filter(|_| is_logged);
            good.stamp = is_stamped.then(|| StampRecipe::new(NOW));
            let root = root_of(&good);
            let mut requirement = requirement(form, root);
            requirement.transparency_log = is_logged;
            requirement.timestamps = if is_stamped { Timestamps::Required } else { Timestamps::IfPresent };
            let what = format!("{name}, {form:?}, keyless {is_keyless}");
            let mut recipe = good.clone();
            change(&mut recipe);
            Forged { name, what, good, recipe, requirement, root, class: *class, cause }
        })
    };
    FORGERIES.iter().flat_map(each)
}

#[test]
fn each_forgery_is_refused_in_its_class_for_its_cause() {
    let forge = Forge::new();
    let mut count = 0;
    for Forged { what, good, recipe, requirement, class, cause, .. } in forgeries() {
        let good = judge(&forge, &[forge.make(&good)], &requirement);
        assert!(good.is_verified(), "{what}: the piece is not good before: {good:?}");
        let verdict = judge(&forge, &[forge.make(&recipe)], &requirement);
        assert_refused(&verdict, class, cause, &what);
        count += 1;
    }
    assert!(count > 300, "{count} forgeries");
}
