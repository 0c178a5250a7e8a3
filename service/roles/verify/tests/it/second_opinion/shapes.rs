//! Bundle variants of sigstore's conformance suite, and other variants that programs read differently, each with the
//! expected results of verifier and client.

use serde_json::{Value, json};
use service_verify::{Bundle, Evidence, TrustSpec};

use super::{Question, Said, assert_clock};
use crate::fixtures::{self, Fixtures};
use crate::forge::{self, Forge, Form, Promise, Recipe, StampRecipe, b64, stamp};
use crate::forged::{requirement, root_of};

#[derive(Debug, PartialEq)]
enum Accept {
    Both,
    Neither,
    /// Only the verifier accepts the variant, for this reason.
    Ours(&'static str),
    /// Only the client accepts the variant, for this reason.
    Theirs(&'static str),
}
use Accept::{Both, Neither, Ours, Theirs};

/// A variant: its name, whether it is keyless, the changes of the bundle and of the trusted root, and the programs that
/// accept it.
type Shape = (&'static str, bool, fn(&mut Recipe), fn(&mut Value), Accept);

#[rustfmt::skip]
const SHAPES: &[Shape] = &[
    ("as it should be", true, same, all, Both),
    ("as it should be, by a key", false, same, all, Both),

    // the time
    ("a timestamp beside a promise", true, |r| r.stamp = Some(stamp()), all, Both),
    ("a timestamp outside the certificate's life beside a promise", true, |r| r.stamp = Some(StampRecipe { time: forge::NOW - 61, ..stamp() }), all, Neither),
    ("a timestamp of a stranger beside a promise", true, |r| r.stamp = Some(StampRecipe { by_stranger: true, ..stamp() }), all, Neither),
    ("two good timestamps", true, |r| { r.stamp = Some(stamp()); r.bundle_edit = |b| stamps(b, |all| all.push(all[0].clone())); }, all, Both),
    ("a bad timestamp beside a good one", true, |r| { r.stamp = Some(stamp()); r.bundle_edit = |b| stamps(b, |all| all.push(json!({"signedTimestamp": "MAA="}))); }, all,
        Ours("one that is good is enough, as for sigstore-go; they refuse for each that is bad")),
    ("a proof and a timestamp, no promise", true, |r| { promise(r, Promise::Missing); r.stamp = Some(stamp()); }, all, Both),
    ("a proof alone", true, |r| promise(r, Promise::Missing), all, Neither),
    ("a proof alone, by a key", false, |r| promise(r, Promise::Missing), all, Both),

    // the validity of a log's key
    ("a promise of a log whose time was over", true, same, |f| period(f, json!({"start": "2000-01-01T00:00:00Z", "end": "2001-01-01T00:00:00Z"})), Neither),
    ("a promise of a log whose time is to come", true, same, |f| period(f, json!({"start": "2040-01-01T00:00:00Z"})), Neither),
    ("a proof of a log whose time was over", true, unpromised, |f| period(f, json!({"start": "2000-01-01T00:00:00Z", "end": "2001-01-01T00:00:00Z"})),
        Theirs("without a promise they look at the beginning of a period alone; we hold it against the timestamp")),
    ("a proof of a log whose time is to come", true, unpromised, |f| period(f, json!({"start": "2040-01-01T00:00:00Z"})), Neither),
    ("a proof of a log whose time ends before it begins", true, unpromised, |f| period(f, json!({"start": "2040-01-01T00:00:00Z", "end": "2020-01-01T00:00:00Z"})), Neither),
    ("a proof of a log whose time has no beginning", true, unpromised, |f| period(f, json!({"end": "2040-01-01T00:00:00Z"})), Neither),
    ("a proof of a log of which nobody says since when", true, unpromised, |f| { f["tlogs"][0]["publicKey"].as_object_mut().unwrap().remove("validFor"); },
        Theirs("a key without a period is good for ever to them; who writes a root for us says since when")),
    ("two logs of one id", true, same, |f| { let one = f["tlogs"][0].clone(); f["tlogs"].as_array_mut().unwrap().push(one); }, Neither),

    // other content of a root
    ("a PKCS#1 key of a certificate log beside the right one", true, same, |f| f["ctlogs"].as_array_mut().unwrap().insert(0, pkcs1()), Both),
    ("a PKCS#1 key of a certificate log and no other", true, same, |f| f["ctlogs"] = json!([pkcs1()]), Neither),
    ("a PKCS#1 key of a certificate log and no other, by a key", false, same, |f| f["ctlogs"] = json!([pkcs1()]),
        Theirs("they read such keys; we leave them out, and refuse a root of which nothing would be left")),

    // checkpoints
    ("a checkpoint with a wrong hint", true, |r| r.bundle_edit = |b| note(b, |text| *text = wrong_hint(text)), all, Neither),
    ("a checkpoint that a witness signed as well", true, |r| r.bundle_edit = |b| note(b, |text| text.push_str("\u{2014} witness.example.com AAAAAAAA\n")), all, Both),
    ("a checkpoint with a line that is no signature", true, |r| r.bundle_edit = |b| note(b, |text| text.push_str("\u{2014} witness.example.com A!\n")), all, Neither),

    // forms of a bundle
    ("0.3 with a chain", true, |r| r.bundle_edit = chained, all, Neither),
    ("0.2 with a chain", true, |r| r.bundle_edit = |b| { chained(b); form(b, "+json;version=0.2"); }, all, Both),
    ("0.1 with a chain", true, |r| r.bundle_edit = |b| { chained(b); form(b, "+json;version=0.1"); }, all, Both),
    ("0.1 without a promise", false, |r| { promise(r, Promise::Missing); r.bundle_edit = |b| form(b, "+json;version=0.1"); }, all, Neither),
    ("0.3, as it was called first", true, |r| r.bundle_edit = |b| form(b, "+json;version=0.3"), all, Both),
    ("0.3.1", true, |r| r.bundle_edit = |b| form(b, ".v0.3.1+json"), all,
        Ours("sigstore-go takes every version below 0.4; they know three names")),
    ("a hint that is null", false, |r| r.bundle_edit = |b| b["verificationMaterial"]["publicKey"]["hint"] = Value::Null, all,
        Ours("the JSON of protobuf has null where a field is left out")),

    // kinds of entries
    ("an entry of kind hashedrekord 0.0.1", true, |r| r.is_logged_by_hash = true, all,
        Ours("it binds hash, signature and certificate as the kind of Rekor 2 does; they take it for a signature without envelope")),
    ("an entry of kind intoto 0.0.2", true, |r| { r.bundle_edit = two; log(r, Some("intoto"), intoto); }, all, Both),
    ("an entry of kind dsse 0.0.2", true, |r| { r.bundle_edit = two; log(r, None, dsse_two); }, all,
        Ours("a kind that the source of Rekor 2 has had; they do not know it")),
];

fn same(_: &mut Recipe) {}

fn all(_: &mut Value) {}

fn promise(recipe: &mut Recipe, promise: Promise) {
    recipe.log.as_mut().unwrap().promise = promise;
}

/// Gives the bundle a timestamp and no log's promise.
fn unpromised(recipe: &mut Recipe) {
    promise(recipe, Promise::Missing);
    recipe.stamp = Some(stamp());
}

fn log(recipe: &mut Recipe, kind: Option<&'static str>, edit: fn(&mut Value)) {
    let log = recipe.log.as_mut().unwrap();
    (log.stated_kind, log.body_edit) = (kind, edit);
}

fn stamps(bundle: &mut Value, edit: fn(&mut Vec<Value>)) {
    let data = &mut bundle["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"];
    edit(data.as_array_mut().unwrap());
}

fn period(file: &mut Value, period: Value) {
    file["tlogs"][0]["publicKey"]["validFor"] = period;
}

/// A certificate log whose key is in PKCS#1: one of the fixtures' RSA keys without the 24 bytes of its type.
fn pkcs1() -> Value {
    let pem = fixtures::key("rsa2048");
    let der = forge::from_b64(&pem.lines().filter(|line| !line.starts_with('-')).collect::<String>());
    json!({
        "baseUrl": "https://old.example.com", "hashAlgorithm": "SHA2_256",
        "publicKey": {
            "rawBytes": b64(&der[24..]), "keyDetails": "PKCS1_RSA_PKCS1V5", "validFor": {"start": "2021-01-01T00:00:00Z"},
        },
        "logId": {"keyId": b64([7; 32])},
    })
}

fn note(bundle: &mut Value, edit: fn(&mut String)) {
    let place = "/verificationMaterial/tlogEntries/0/inclusionProof/checkpoint/envelope";
    let note = bundle.pointer_mut(place).unwrap();
    let mut text = note.as_str().unwrap().to_owned();
    edit(&mut text);
    *note = text.into();
}

fn wrong_hint(note: &str) -> String {
    let (rest, signature) = note.trim_end().rsplit_once(' ').unwrap();
    let mut bytes = forge::from_b64(signature);
    bytes[0] ^= 1;
    format!("{rest} {}\n", b64(bytes))
}

fn form(bundle: &mut Value, rest: &str) {
    bundle["mediaType"] = format!("application/vnd.dev.sigstore.bundle{rest}").into();
}

/// Replaces a bundle's certificate by a chain with one certificate.
fn chained(bundle: &mut Value) {
    let material = bundle["verificationMaterial"].as_object_mut().unwrap();
    let certificate = material.remove("certificate").unwrap();
    material.insert("x509CertificateChain".to_owned(), json!({"certificates": [certificate]}));
}

/// Sets the version of an entry's kind to 0.0.2.
fn two(bundle: &mut Value) {
    bundle["verificationMaterial"]["tlogEntries"][0]["kindVersion"]["version"] = "0.0.2".into();
}

/// Turns an entry of kind dsse into kind intoto, in which a signature has base64 twice.
fn intoto(body: &mut Value) {
    let (spec, signature) = (&body["spec"], &body["spec"]["signatures"][0]);
    let signature = json!({"sig": b64(signature["signature"].as_str().unwrap()), "publicKey": signature["verifier"]});
    let envelope = json!({"payloadType": "application/vnd.in-toto+json", "signatures": [signature]});
    let content = json!({"envelope": envelope, "hash": spec["envelopeHash"], "payloadHash": spec["payloadHash"]});
    *body = json!({"apiVersion": "0.0.2", "kind": "intoto", "spec": {"content": content}});
}

/// Turns an entry of kind dsse into version 0.0.2.
fn dsse_two(body: &mut Value) {
    let (spec, signature) = (&body["spec"], &body["spec"]["signatures"][0]);
    let digest = hex::decode(spec["payloadHash"]["value"].as_str().unwrap()).unwrap();
    let pem = String::from_utf8(forge::from_b64(signature["verifier"].as_str().unwrap())).unwrap();
    let certificate: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let dsse = json!({
        "payloadHash": {"algorithm": "SHA2_256", "digest": b64(digest)},
        "signatures": [{"content": signature["signature"], "verifier": {
            "keyDetails": "PKIX_ECDSA_P256_SHA_256", "x509Certificate": {"rawBytes": certificate},
        }}],
    });
    *body = json!({"apiVersion": "0.0.2", "kind": "dsse", "spec": {"dsseV002": dsse}});
}

fn assert_said(name: &str, said: &Said, accept: &Accept) {
    let expected = match accept {
        Both => (true, true),
        Neither => (false, false),
        Ours(_) => (true, false),
        Theirs(_) => (false, true),
    };
    assert_eq!((said.we_accept(), said.theirs.is_ok()), expected, "{} ({accept:?})", said.shown(name));
}

/// For each variant, verifier and client give the results in the table.
#[test]
fn both_say_of_each_shape_what_is_written() {
    let forge = Forge::new();
    assert_clock(forge::now());
    for (name, is_keyless, change, edit, accept) in SHAPES {
        let mut recipe = Recipe::new(Form::Bundle, *is_keyless);
        change(&mut recipe);
        let trust: TrustSpec = forge.trust_spec_of_file(edit);
        let requirement = &requirement(Form::Bundle, root_of(&recipe));
        let subject = &forge::subject();
        let (root, now) = (root_of(&recipe), forge::now());
        let question = Question { subject, requirement, trust: &trust, root, now };
        assert_said(name, &Said::of(&question, &forge.make(&recipe)).unwrap(), accept);
    }
}

/// Verifier and client use the index that an entry of Rekor 2 states beside the proof; they must ignore the index
/// inside the proof (rekor-tiles, `CLIENTS.md`).
#[test]
fn both_read_the_index_of_rekor_2_beside_the_proof() {
    let fixtures = Fixtures::read();
    assert_clock(fixtures.now());
    let case = fixtures.cases.iter().find(|case| case.name == "keyless, Rekor 2").unwrap();
    let (subject, requirement) = (case.subject(), case.requirement());
    let trust = case.trust_spec(fixtures::Form::TrustedRoot);
    let question =
        Question { subject: &subject, requirement: &requirement, trust: &trust, root: "root", now: fixtures.now() };
    let pieces = case.evidence();
    let [Evidence::Bundle(bundle)] = pieces.as_slice() else { panic!("one bundle") };
    for (place, accept) in [("/inclusionProof/logIndex", Both), ("/logIndex", Neither)] {
        let mut json: Value = serde_json::from_slice(&bundle.json).unwrap();
        *json["verificationMaterial"]["tlogEntries"][0].pointer_mut(place).unwrap() = "3".into();
        let piece = Evidence::Bundle(Bundle { json: json.to_string().into_bytes(), ..bundle.clone() });
        assert_said(place, &Said::of(&question, &piece).unwrap(), &accept);
    }
}
