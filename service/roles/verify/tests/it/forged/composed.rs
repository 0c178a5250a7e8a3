//! Tests of forgeries that combine several valid signatures, and of counting signers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use service_verify::{
    Bundle, Class, Digest, Evidence, Outcome, ReferenceCheck, Requirement, Roots, Signature, Subject, Timestamps,
    Trust, UnixTime, verify,
};

use super::{assert_refused, judge, requirement, root_of};
use crate::forge::{Forge, Form, LogRecipe, NOW, Promise, Recipe, StampRecipe, stamp, subject};

/// A change that moves content between two signatures: its name, the change, and the class of the refusal.
type Swap = (&'static str, fn(&mut Signature, &Signature), Class);

/// A signature of the image and a signature of another image, both valid.
fn pair(forge: &Forge, is_keyless: bool) -> (Signature, Signature) {
    let make = |image: &[u8]| {
        let mut recipe = Recipe::new(Form::Signature, is_keyless);
        recipe.signed_image = Digest::of(image);
        recipe.stamp = Some(stamp());
        let Evidence::Signature(signature) = forge.make(&recipe) else { panic!("no signature") };
        signature
    };
    (make(b"image"), make(b"another"))
}

/// A bundle of the image, and a bundle of another image that claims to refer to this image.
fn bundles(forge: &Forge, is_keyless: bool) -> (Bundle, Bundle) {
    let make = |image: &[u8]| {
        let mut recipe = Recipe::new(Form::Bundle, is_keyless);
        recipe.signed_image = Digest::of(image);
        let Evidence::Bundle(bundle) = forge.make(&recipe) else { panic!("no bundle") };
        bundle
    };
    (make(b"image"), make(b"another"))
}

#[test]
fn parts_of_two_signatures_do_not_make_one() {
    let forge = Forge::new();
    let swaps: [Swap; 5] = [
        ("all of the other", |ours, other| *ours = other.clone(), Class::Mismatch),
        ("the other's payload", |ours, other| ours.payload.clone_from(&other.payload), Class::Invalid),
        ("the other's signature", |ours, other| ours.signature.clone_from(&other.signature), Class::Invalid),
        (
            "the other's log entry",
            |ours, other| ours.companions.log_entry.clone_from(&other.companions.log_entry),
            Class::Invalid,
        ),
        (
            "the other's signature and payload",
            |ours, other| {
                ours.payload.clone_from(&other.payload);
                ours.signature.clone_from(&other.signature);
            },
            Class::Invalid,
        ),
    ];
    for is_keyless in [false, true] {
        let (ours, other) = pair(&forge, is_keyless);
        let root = if is_keyless { "keyless" } else { "key" };
        let mut requirement = requirement(Form::Signature, root);
        assert!(judge(&forge, &[Evidence::Signature(ours.clone())], &requirement).is_verified());
        for (name, swap, class) in swaps {
            let mut forged = ours.clone();
            swap(&mut forged, &other);
            assert_refused(&judge(&forge, &[Evidence::Signature(forged)], &requirement), class, "", name);
        }
        requirement.timestamps = Timestamps::Required;
        let mut forged = ours.clone();
        forged.companions.timestamp.clone_from(&other.companions.timestamp);
        let verdict = judge(&forge, &[Evidence::Signature(forged)], &requirement);
        assert_refused(&verdict, Class::Invalid, "of another signature", "the other's timestamp");
    }
}

#[test]
fn parts_of_two_bundles_do_not_make_one() {
    let forge = Forge::new();
    for is_keyless in [false, true] {
        let (ours, other) = bundles(&forge, is_keyless);
        let root = if is_keyless { "keyless" } else { "key" };
        let requirement = requirement(Form::Bundle, root);
        assert!(judge(&forge, &[Evidence::Bundle(ours.clone())], &requirement).is_verified());
        let verdict = judge(&forge, &[Evidence::Bundle(other.clone())], &requirement);
        assert_refused(&verdict, Class::Mismatch, "statement is about", "all of the other");
        let parsed = |bundle: &Bundle| serde_json::from_slice::<Value>(&bundle.json).unwrap();
        for part in [
            "/dsseEnvelope",
            "/dsseEnvelope/payload",
            "/dsseEnvelope/signatures",
            "/verificationMaterial/tlogEntries",
            "/verificationMaterial/tlogEntries/0/inclusionProof",
            "/verificationMaterial/tlogEntries/0/inclusionPromise",
            "/verificationMaterial/tlogEntries/0/canonicalizedBody",
        ] {
            let mut forged = parsed(&ours);
            *forged.pointer_mut(part).unwrap() = parsed(&other).pointer(part).unwrap().clone();
            let forged = Bundle { json: forged.to_string().into_bytes(), ..ours.clone() };
            let verdict = judge(&forge, &[Evidence::Bundle(forged)], &requirement);
            assert_refused(&verdict, Class::Invalid, "", part);
        }
    }
}

/// Cuts the bytes of `piece` to `length`; also returns the original length.
fn cut(piece: &Evidence, length: usize) -> (Evidence, usize) {
    let mut piece = piece.clone();
    let bytes = match &mut piece {
        Evidence::Signature(piece) => &mut piece.payload,
        Evidence::Attestation(piece) => &mut piece.envelope,
        Evidence::Bundle(piece) => &mut piece.json,
        Evidence::Unusable(_) => panic!("unusable"),
    };
    let full = bytes.len();
    bytes.truncate(length);
    (piece, full)
}

/// A signature that is truncated at any length is refused without a panic.
#[test]
fn a_truncated_piece_is_refused_wherever_it_ends() {
    let forge = Forge::new();
    for (form, is_keyless) in [(Form::Signature, true), (Form::Attestation, false), (Form::Bundle, true)] {
        let recipe = Recipe::new(form, is_keyless);
        let requirement = requirement(form, root_of(&recipe));
        let piece = forge.make(&recipe);
        let (_, full) = cut(&piece, usize::MAX);
        for length in (0..full).step_by(7).chain([full - 1]) {
            let verdict = judge(&forge, &[cut(&piece, length).0], &requirement);
            assert_refused(&verdict, Class::Invalid, "", &format!("{form:?} of {length} bytes"));
        }
        let Evidence::Signature(whole) = &piece else { continue };
        for part in ["signature", "certificate", "log entry"] {
            let mut forged = whole.clone();
            let text = match part {
                "signature" => &mut forged.signature,
                "certificate" => forged.companions.certificate.as_mut().unwrap(),
                _ => forged.companions.log_entry.as_mut().unwrap(),
            };
            text.truncate(text.len() / 2);
            assert_refused(&judge(&forge, &[Evidence::Signature(forged)], &requirement), Class::Invalid, "", part);
        }
    }
}

/// A signature that names another repository counts only if the requirement ignores repositories.
#[test]
fn a_signature_is_not_replayed_from_another_repository() {
    let forge = Forge::new();
    for form in [Form::Signature, Form::Bundle] {
        let mut recipe = Recipe::new(form, false);
        recipe.signed_repository = "registry.example.com/other".to_owned();
        let mut requirement = requirement(form, "key");
        assert!(judge(&forge, &[forge.make(&recipe)], &requirement).is_verified());
        requirement.reference = ReferenceCheck::Repository;
        assert_refused(&judge(&forge, &[forge.make(&recipe)], &requirement), Class::Mismatch, "signed", "replayed");
    }
    let requirement = Requirement { reference: ReferenceCheck::Repository, ..requirement(Form::Signature, "key") };
    let recipe = Recipe::new(Form::Signature, false);
    assert!(judge(&forge, &[forge.make(&recipe)], &requirement).is_verified());
}

/// Without a log's promise, only a proof gives an entry's index; the verdict does not report the index that a bundle
/// states.
#[test]
fn an_index_that_nobody_proves_is_not_reported() {
    let forge = Forge::new();
    let mut recipe = Recipe::new(Form::Bundle, false);
    recipe.log = recipe.log.map(|log| LogRecipe { promise: Promise::Missing, ..log });
    recipe.bundle_edit = |bundle| bundle["verificationMaterial"]["tlogEntries"][0]["logIndex"] = "77".into();
    let verdict = judge(&forge, &[forge.make(&recipe)], &requirement(Form::Bundle, "key"));
    let [signer] = verdict.signers.as_slice() else { panic!("{verdict:?}") };
    assert_eq!((signer.log_index, signer.time), (Some(1), None));
}

/// A signature of an image does not count as an attestation about the image, nor an attestation as a signature.
#[test]
fn a_signature_is_no_attestation_nor_the_other_way() {
    let forge = Forge::new();
    let pairs = [(Form::Signature, Form::Attestation), (Form::Bundle, Form::BundleAttestation)];
    for (signature, attestation) in pairs {
        for (made, wanted) in [(signature, attestation), (attestation, signature)] {
            let piece = forge.make(&Recipe::new(made, false));
            let verdict = judge(&forge, &[piece], &requirement(wanted, "key"));
            assert_refused(&verdict, Class::Unsigned, "that counts", &format!("{made:?} for {wanted:?}"));
        }
    }
}

/// The periods in a `trusted_root.json` apply to keys and certificates of all four kinds.
#[test]
fn an_authority_is_believed_while_its_file_says_so() {
    let forge = Forge::new();
    let mut recipe = Recipe::new(Form::Bundle, true);
    recipe.stamp = Some(stamp());
    let mut requirement = requirement(Form::Bundle, "keyless");
    requirement.timestamps = Timestamps::Required;
    let piece = [forge.make(&recipe)];
    let judge = |trust: &Trust| verify(&subject(), &piece, &requirement, trust, UnixTime(NOW));
    assert!(judge(&forge.trust_of_file(|_| {})).is_verified());
    for (place, cause) in [
        ("/tlogs/0/publicKey/validFor", "its log is not to be believed"),
        ("/ctlogs/0/publicKey/validFor", "its certificate log is not to be believed"),
        ("/certificateAuthorities/0/validFor", "its authority is not to be believed"),
        ("/timestampAuthorities/0/validFor", "its timestamp's authority: its authority is not to be believed"),
    ] {
        for (end, time) in [("end", "2026-01-01T00:00:00Z"), ("start", "2027-01-01T00:00:00Z")] {
            let trust = forge.trust_of_file(|file| file.pointer_mut(place).unwrap()[end] = time.into());
            assert_refused(&judge(&trust), Class::Invalid, cause, place);
        }
    }
}

/// If a signature has a timestamp, its time must lie in the certificate's validity, even if the log's promise alone
/// would be enough.
#[test]
fn a_timestamp_beside_a_promise_is_checked() {
    let forge = Forge::new();
    let requirement = requirement(Form::Bundle, "keyless");
    assert_eq!(requirement.timestamps, Timestamps::IfPresent);
    let mut recipe = Recipe::new(Form::Bundle, true);
    recipe.stamp = Some(stamp());
    assert!(judge(&forge, &[forge.make(&recipe)], &requirement).is_verified());
    for (edit, cause) in [
        (&(|stamp: &mut StampRecipe| stamp.time = NOW - 61) as &dyn Fn(&mut StampRecipe), "does not lead to a root"),
        (&|stamp: &mut StampRecipe| stamp.by_stranger = true, "does not lead to a root"),
        (&|stamp: &mut StampRecipe| stamp.of_other = true, "of another signature"),
    ] {
        let mut recipe = recipe.clone();
        edit(recipe.stamp.as_mut().unwrap());
        assert_refused(&judge(&forge, &[forge.make(&recipe)], &requirement), Class::Invalid, cause, cause);
    }
}

/// Rekor 2 states no time, so its key must be trusted at the time of the timestamp, or now if there is no timestamp.
#[test]
fn a_log_without_a_promise_is_believed_while_its_file_says_so() {
    let forge = Forge::new();
    for (is_keyless, is_stamped) in [(true, true), (false, true), (false, false)] {
        let mut recipe = Recipe::new(Form::Bundle, is_keyless);
        recipe.log.as_mut().unwrap().promise = Promise::Missing;
        recipe.stamp = is_stamped.then(stamp);
        let (piece, requirement) = ([forge.make(&recipe)], requirement(Form::Bundle, root_of(&recipe)));
        let judge = |trust: &Trust| verify(&subject(), &piece, &requirement, trust, UnixTime(NOW));
        assert!(judge(&forge.trust_of_file(|_| {})).is_verified(), "{is_keyless} {is_stamped}");
        for (start, end) in
            [("2000-01-01T00:00:00Z", "2001-01-01T00:00:00Z"), ("2040-01-01T00:00:00Z", "2041-01-01T00:00:00Z")]
        {
            let trust = forge.trust_of_file(|file| {
                file["tlogs"][0]["publicKey"]["validFor"] = json!({"start": start, "end": end});
            });
            assert_refused(&judge(&trust), Class::Invalid, "its log is not to be believed", start);
        }
    }
}

/// From version 0.3 on, a bundle has one certificate and no chain. In bundle versions that allow a chain, a chain with
/// one certificate is accepted.
#[test]
fn a_chain_is_read_where_its_form_allows_one() {
    let forge = Forge::new();
    let requirement = requirement(Form::Bundle, "keyless");
    let chained = |bundle_edit: fn(&mut Value)| {
        let mut recipe = Recipe::new(Form::Bundle, true);
        recipe.bundle_edit = bundle_edit;
        judge(&forge, &[forge.make(&recipe)], &requirement)
    };
    let verdict = chained(|bundle| {
        chain(bundle);
        bundle["mediaType"] = "application/vnd.dev.sigstore.bundle+json;version=0.2".into();
    });
    assert!(verdict.is_verified(), "{verdict:?}");
    assert_refused(&chained(chain), Class::Invalid, "a certificate chain, which this form of a bundle has not", "0.3");
}

/// Replaces a bundle's certificate by a chain with one certificate.
fn chain(bundle: &mut Value) {
    let material = bundle["verificationMaterial"].as_object_mut().unwrap();
    let certificate = material.remove("certificate").unwrap();
    material.insert("x509CertificateChain".to_owned(), json!({"certificates": [certificate]}));
}

/// If a checkpoint's signature has the hint of another key, the signature is refused, whatever key verifies it (C2SP
/// signed-note).
#[test]
fn a_checkpoint_hints_at_its_key() {
    let forge = Forge::new();
    let mut recipe = Recipe::new(Form::Bundle, true);
    recipe.bundle_edit = |bundle| {
        let place = "/verificationMaterial/tlogEntries/0/inclusionProof/checkpoint/envelope";
        let note = bundle.pointer_mut(place).unwrap();
        let (rest, signature) =
            note.as_str().unwrap().trim_end().rsplit_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        let mut bytes = STANDARD.decode(signature).unwrap();
        bytes[0] ^= 1;
        *note = format!("{rest} {}\n", STANDARD.encode(bytes)).into();
    };
    let verdict = judge(&forge, &[forge.make(&recipe)], &requirement(Form::Bundle, "keyless"));
    assert_refused(&verdict, Class::Invalid, "checkpoint is not signed by the log", "hint");
}

/// Witnesses may sign a checkpoint in addition to the log. A line that is no signature makes the whole checkpoint
/// invalid (C2SP signed-note).
#[test]
fn a_checkpoint_is_read_as_a_whole() {
    let forge = Forge::new();
    let noted = |bundle_edit: fn(&mut Value)| {
        let mut recipe = Recipe::new(Form::Bundle, true);
        recipe.bundle_edit = bundle_edit;
        judge(&forge, &[forge.make(&recipe)], &requirement(Form::Bundle, "keyless"))
    };
    let verdict = noted(|bundle| note(bundle, "\u{2014} witness.example.com AAAAAAAA\n"));
    assert!(verdict.is_verified(), "{verdict:?}");
    for (edit, what) in [
        ((|bundle| note(bundle, "\u{2014} witness.example.com AAAA AAAA\n")) as fn(&mut Value), "two texts"),
        (|bundle| note(bundle, "\u{2014} witness.example.com AAAA\n"), "a hint alone"),
        (|bundle| note(bundle, "\u{2014} witness.example.com A!AAAAAA\n"), "no base64"),
        (|bundle| note(bundle, "- witness.example.com AAAAAAAA\n"), "another dash"),
    ] {
        assert_refused(&noted(edit), Class::Invalid, "not a signed note", what);
    }
}

/// Appends `line` to a bundle's checkpoint.
fn note(bundle: &mut Value, line: &str) {
    let place = "/verificationMaterial/tlogEntries/0/inclusionProof/checkpoint/envelope";
    let note = bundle.pointer_mut(place).unwrap();
    *note = (note.as_str().unwrap().to_owned() + line).into();
}

/// Unknown content of a `trusted_root.json` is ignored with a note; contradictions are refused.
#[test]
fn a_root_is_read_as_far_as_it_is_known_and_no_further() {
    let forge = Forge::new();
    let strange = json!({
        "publicKey": {"rawBytes": "MAA=", "keyDetails": "PKCS1_RSA_PKCS1V5", "validFor": {"start": "2021-01-01T00:00:00Z"}},
        "logId": {"keyId": "AAAA"},
    });
    let trust = forge.trust_of_file(|file| file["ctlogs"].as_array_mut().unwrap().insert(0, strange.clone()));
    let said: Vec<_> = trust.left_out().collect();
    assert!(said.len() == 1 && said[0].contains("ctlogs[0].publicKey"), "{said:?}");
    let piece = [forge.make(&Recipe::new(Form::Bundle, true))];
    assert!(verify(&subject(), &piece, &requirement(Form::Bundle, "keyless"), &trust, UnixTime(NOW)).is_verified());
    let refused = |edit: &dyn Fn(&mut Value)| forge.try_trust_of_file(edit).unwrap_err().to_string();
    for (said, edit) in [
        (
            "two logs of this id",
            &(|file: &mut Value| {
                let logs = file["tlogs"].as_array_mut().unwrap();
                logs.push(logs[0].clone());
            }) as &dyn Fn(&mut Value),
        ),
        ("it has no start", &|file| file["tlogs"][0]["publicKey"]["validFor"] = json!({})),
        ("it has no start", &|file| {
            file["certificateAuthorities"][0].as_object_mut().unwrap().remove("validFor");
        }),
        ("it ends before it starts", &|file| {
            file["ctlogs"][0]["publicKey"]["validFor"] =
                json!({"start": "2040-01-01T00:00:00Z", "end": "2020-01-01T00:00:00Z"});
        }),
        ("publicKey", &|file| file["ctlogs"] = json!([strange])),
    ] {
        assert!(refused(edit).contains(said), "{said}: {}", refused(edit));
    }
}

/// A signature of an index does not count for an image in the index, nor the reverse.
#[test]
fn a_signature_is_of_one_image() {
    let forge = Forge::new();
    let member = Subject { digest: Digest::of(b"member"), repository: None };
    for form in [Form::Signature, Form::Bundle] {
        let recipe = Recipe::new(form, false);
        let requirement = requirement(form, "key");
        let verdict = verify(&member, &[forge.make(&recipe)], &requirement, &forge.trust(), UnixTime(NOW));
        assert_refused(&verdict, Class::Mismatch, "", "a member of the index");
    }
}

fn assert_is(outcome: &Outcome, class: Class, text: &str) {
    let Outcome::Refused { class: found, cause } = outcome else { panic!("accepted for want of: {text}") };
    assert!(*found == class && cause.contains(text), "{found} {cause}");
}

#[test]
fn one_signer_counts_once_and_who_is_required_must_be_there() {
    let forge = Forge::new();
    let signed_by = |signer: usize, form: Form| {
        let mut recipe = Recipe::new(form, false);
        recipe.signer = signer;
        forge.make(&recipe)
    };
    let (first, again) = (signed_by(0, Form::Signature), signed_by(0, Form::Bundle));
    let second = signed_by(1, Form::Bundle);
    let outcome = |evidence: &[&Evidence], requirement: &Requirement| {
        let evidence: Vec<_> = evidence.iter().map(|piece| (*piece).clone()).collect();
        judge(&forge, &evidence, requirement).outcome
    };
    let two = Requirement { threshold: 2, ..Requirement::default() };
    assert_is(&outcome(&[&first, &first, &again, &first], &two), Class::Invalid, "1 of 2 signers");
    assert_eq!(outcome(&[&first, &second], &two), Outcome::Verified);
    let required = Requirement { required: vec!["second".to_owned()], ..Requirement::default() };
    assert_is(&outcome(&[&first, &again], &required), Class::Invalid, "by `second`");
    assert_eq!(outcome(&[&second], &required), Outcome::Verified);
    let named = Requirement { roots: Roots::Named(vec!["second".to_owned()]), ..Requirement::default() };
    assert_is(&outcome(&[&first], &named), Class::Invalid, "for `second`");
    assert_is(&outcome(&[], &named), Class::Unsigned, "no signature");
    let impossible = Requirement { threshold: 4, ..Requirement::default() };
    assert_is(&outcome(&[&first, &second], &impossible), Class::Misconfigured, "threshold of 4");
    let nobody = Requirement { threshold: 0, ..Requirement::default() };
    assert_is(&outcome(&[&first], &nobody), Class::Misconfigured, "threshold of 0");
}

/// An image with a valid signature and invalid objects is verified, if the number of objects stays within the limit.
#[test]
fn bad_pieces_beside_a_good_one_are_reported_and_do_no_harm() {
    let forge = Forge::new();
    let good = forge.make(&Recipe::new(Form::Bundle, false));
    let mut recipe = Recipe::new(Form::Signature, false);
    recipe.signer = 2;
    let bad = forge.make(&recipe);
    let requirement = requirement(Form::Bundle, "key");
    let verdict = judge(&forge, &[bad.clone(), good.clone(), bad.clone()], &requirement);
    assert!(verdict.is_verified());
    assert_eq!((verdict.signers.len(), verdict.rejected.len()), (1, 2));
    let mut many = vec![bad; service_verify::EVIDENCE_MAX];
    many.push(good);
    let verdict = judge(&forge, &many, &requirement);
    assert_refused(&verdict, Class::Invalid, "not made by the key", "too many pieces");
    assert!(verdict.rejected.last().unwrap().cause.contains("more evidence than the 100 pieces"));
}
