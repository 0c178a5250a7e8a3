//! A transparency log in memory.

use aws_lc_rs::digest::{Context, SHA256, digest};
use rcgen::{KeyPair, PublicKeyData as _, SigningKey as _};
use serde_json::{Value, json};
use service_verify::Digest;

use super::{Forge, NOW, b64, new_key};

/// What the log promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    Good,
    Missing,
    /// Signed by a log that nobody trusts.
    Impostor,
    /// Signed for another time, index or body than the entry states.
    OtherTime,
    OtherIndex,
    OtherBody,
}

/// What the log proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    Good,
    Missing,
    /// A path of another entry.
    OtherPath,
    /// A path that is too short.
    ShortPath,
    OtherIndex,
    /// A path and a root that fit together, and a checkpoint of the log for another root.
    OtherRoot,
    /// A checkpoint that is signed by a log that nobody trusts.
    Impostor,
    /// A checkpoint without signature.
    Unsigned,
}

/// What can be said of a log entry.
#[derive(Clone)]
pub struct LogRecipe {
    pub promise: Promise,
    pub proof: Proof,
    /// In a log that nobody trusts, everything about it right.
    pub by_stranger: bool,
    pub time: i64,
    /// What the entry is about instead of what was signed.
    pub hash_of: Option<Vec<u8>>,
    pub signature: Option<Vec<u8>>,
    pub verifier: Option<String>,
    /// What is done to the body before the log signs it.
    pub body_edit: fn(&mut Value),
    /// What the bundle says of the entry's kind.
    pub stated_kind: Option<&'static str>,
}

/// What was signed.
pub struct Made<'a> {
    pub is_envelope: bool,
    pub message: &'a [u8],
    pub claim: &'a [u8],
    pub signature: &'a [u8],
    pub verifier: &'a str,
}

/// An entry, for both forms.
pub struct Entry {
    log_id: Vec<u8>,
    time: i64,
    kind: String,
    body: Vec<u8>,
    promise: Option<Vec<u8>>,
    proof: Option<Value>,
}

/// A log whose tree has the entry and one other leaf on each side.
pub struct Log {
    pub key: KeyPair,
}

const INDEX: u64 = 1;

impl LogRecipe {
    pub fn new(is_legacy: bool) -> Self {
        Self {
            promise: Promise::Good,
            proof: if is_legacy { Proof::Missing } else { Proof::Good },
            by_stranger: false,
            time: NOW,
            hash_of: None,
            signature: None,
            verifier: None,
            body_edit: |_| {},
            stated_kind: None,
        }
    }
}

impl Log {
    pub fn new() -> Self {
        Self { key: new_key() }
    }

    fn id(&self) -> Vec<u8> {
        digest(&SHA256, &self.key.subject_public_key_info()).as_ref().to_vec()
    }
}

impl Entry {
    pub fn annotation(&self) -> String {
        let payload = json!({
            "body": b64(&self.body),
            "integratedTime": self.time,
            "logIndex": INDEX,
            "logID": hex::encode(&self.log_id),
        });
        json!({"SignedEntryTimestamp": b64(self.promise.as_deref().unwrap_or_default()), "Payload": payload})
            .to_string()
    }

    pub fn json(&self) -> Value {
        let mut entry = json!({
            "logIndex": INDEX.to_string(),
            "logId": {"keyId": b64(&self.log_id)},
            "kindVersion": {"kind": self.kind, "version": "0.0.1"},
            "integratedTime": self.time.to_string(),
            "canonicalizedBody": b64(&self.body),
        });
        if let Some(promise) = &self.promise {
            entry["inclusionPromise"] = json!({"signedEntryTimestamp": b64(promise)});
        }
        if let Some(proof) = &self.proof {
            entry["inclusionProof"] = proof.clone();
        }
        entry
    }
}

impl Forge {
    pub(super) fn log_entry(&self, recipe: &LogRecipe, made: &Made<'_>) -> Entry {
        let log = if recipe.by_stranger { &self.strange_log } else { &self.log };
        let hash = |bytes: &[u8]| Digest::of(recipe.hash_of.as_deref().unwrap_or(bytes)).hex();
        let signature = b64(recipe.signature.as_deref().unwrap_or(made.signature));
        let verifier = b64(recipe.verifier.as_deref().unwrap_or(made.verifier));
        let (kind, spec) = if made.is_envelope {
            let spec = json!({
                "envelopeHash": {"algorithm": "sha256", "value": Digest::of(b"unknown").hex()},
                "payloadHash": {"algorithm": "sha256", "value": hash(made.claim)},
                "signatures": [{"signature": signature, "verifier": verifier}],
            });
            ("dsse", spec)
        } else {
            let spec = json!({
                "data": {"hash": {"algorithm": "sha256", "value": hash(made.message)}},
                "signature": {"content": signature, "publicKey": {"content": verifier}},
            });
            ("hashedrekord", spec)
        };
        let mut body = json!({"apiVersion": "0.0.1", "kind": kind, "spec": spec});
        (recipe.body_edit)(&mut body);
        let body = body.to_string().into_bytes();
        Entry {
            log_id: log.id(),
            time: recipe.time,
            kind: recipe.stated_kind.unwrap_or(kind).to_owned(),
            promise: self.promise(recipe, log, &body),
            proof: self.proof(recipe.proof, log, &body),
            body,
        }
    }

    fn promise(&self, recipe: &LogRecipe, log: &Log, body: &[u8]) -> Option<Vec<u8>> {
        let (mut body, mut time, mut index) = (b64(body), recipe.time, INDEX);
        match recipe.promise {
            Promise::Missing => return None,
            Promise::OtherTime => time -= 1,
            Promise::OtherIndex => index += 1,
            Promise::OtherBody => body = b64("other"),
            Promise::Good | Promise::Impostor => {}
        }
        let id = hex::encode(log.id());
        let text = format!(r#"{{"body":"{body}","integratedTime":{time},"logID":"{id}","logIndex":{index}}}"#);
        let key = if recipe.promise == Promise::Impostor { &self.strange_log.key } else { &log.key };
        Some(key.sign(text.as_bytes()).unwrap())
    }

    fn proof(&self, kind: Proof, log: &Log, body: &[u8]) -> Option<Value> {
        let leaves = [hash(&[&[0], b"before"]), hash(&[&[0], body]), hash(&[&[0], b"after"])];
        let mut root = hash(&[&[1], &hash(&[&[1], &leaves[0], &leaves[1]]), &leaves[2]]);
        let mut path = vec![leaves[0], leaves[2]];
        let mut index = INDEX;
        let mut noted = root;
        match kind {
            Proof::Missing => return None,
            Proof::OtherPath => path[0] = leaves[2],
            Proof::ShortPath => path.truncate(1),
            Proof::OtherIndex => index = 0,
            Proof::OtherRoot => {
                path[1] = leaves[0];
                root = hash(&[&[1], &hash(&[&[1], &leaves[0], &leaves[1]]), &leaves[0]]);
                noted = hash(&[b"elsewhere"]);
            }
            Proof::Good | Proof::Impostor | Proof::Unsigned => {}
        }
        let text = format!("log.example.com - 1\n3\n{}\n", b64(noted));
        let key = if kind == Proof::Impostor { &self.strange_log.key } else { &log.key };
        let signature = [&log.id()[..4], &key.sign(text.as_bytes()).unwrap()].concat();
        let signature = format!("\u{2014} log.example.com {}\n", b64(signature));
        let signature = if kind == Proof::Unsigned { String::new() } else { signature };
        Some(json!({
            "logIndex": index.to_string(),
            "rootHash": b64(root),
            "treeSize": "3",
            "hashes": path.iter().map(b64).collect::<Vec<_>>(),
            "checkpoint": {"envelope": format!("{text}\n{signature}")},
        }))
    }
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    context.finish().as_ref().try_into().unwrap()
}
