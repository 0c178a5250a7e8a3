//! A transparency log of signatures, in memory.

use aws_lc_rs::digest::{Context, SHA256};
use rcgen::{KeyPair, SigningKey as _};
use serde_json::{Value, json};

use super::{Error, Sigstore, b64, id_of, new_key, sha256};

/// The signed entry timestamp: the log's promise to include the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// A valid promise.
    Good,
    Missing,
    /// A promise by an untrusted log.
    Impostor,
    /// A promise for another time than the entry states.
    OtherTime,
    /// A promise for another index than the entry states.
    OtherIndex,
    /// A promise for another body than the entry contains.
    OtherBody,
}

/// The log's proof that its tree includes the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// A valid proof.
    Good,
    Missing,
    /// The inclusion path of another entry.
    OtherPath,
    /// An inclusion path that is too short.
    ShortPath,
    /// The inclusion path of this entry, with the index of another entry.
    OtherIndex,
    /// An inclusion path that matches the root, with a checkpoint for another root.
    OtherRoot,
    /// A proof whose checkpoint is signed by an untrusted log.
    Impostor,
    /// A proof whose checkpoint has no signature.
    Unsigned,
}

/// The content of a log entry that a test wants.
#[derive(Debug, Clone)]
pub struct LogRecipe {
    pub promise: Promise,
    pub proof: Proof,
    /// Whether an untrusted log contains the entry, without any other error.
    pub by_stranger: bool,
    /// The time of the entry in seconds since 1970.
    pub time: i64,
    /// The hash in the entry, instead of the signed content's.
    pub hash_of: Option<Vec<u8>>,
    /// The signature in the entry, instead of the right signature.
    pub signature: Option<Vec<u8>>,
    /// The key or certificate in the entry as PEM, instead of the signer's.
    pub verifier: Option<String>,
    /// A function that changes the entry's body before the log signs the entry.
    pub body_edit: fn(&mut Value),
    /// The kind of the entry that the bundle states, instead of the real kind.
    pub stated_kind: Option<&'static str>,
}

/// A signature and the data from which it was made.
#[derive(Debug, Clone, Copy)]
pub struct Made<'a> {
    pub is_envelope: bool,
    pub message: &'a [u8],
    /// The payload or statement before its encoding in an envelope.
    pub claim: &'a [u8],
    pub signature: &'a [u8],
    /// The signer's key or certificate, as PEM.
    pub verifier: &'a str,
}

/// A log entry, which can be stored as the annotation of a legacy signature or in a bundle.
#[derive(Debug, Clone)]
pub struct Entry {
    log_id: Vec<u8>,
    time: i64,
    kind: String,
    body: Vec<u8>,
    promise: Option<Vec<u8>>,
    proof: Option<Value>,
}

/// A log whose tree contains the requested entry between two other entries.
pub(crate) struct Log {
    pub(crate) key: KeyPair,
}

const INDEX: u64 = 1;

impl LogRecipe {
    /// The recipe for a valid entry at `now`. A legacy entry has a promise; an entry in a bundle has a proof too.
    pub fn new(now: i64, is_legacy: bool) -> Self {
        Self {
            promise: Promise::Good,
            proof: if is_legacy { Proof::Missing } else { Proof::Good },
            by_stranger: false,
            time: now,
            hash_of: None,
            signature: None,
            verifier: None,
            body_edit: |_| {},
            stated_kind: None,
        }
    }
}

impl Log {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self { key: new_key()? })
    }
}

impl Entry {
    /// The entry as the annotation `dev.sigstore.cosign/bundle`.
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

    /// The entry as JSON in a bundle.
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

impl Sigstore {
    /// Makes the log's entry for the signature `made`.
    pub fn log_entry(&self, recipe: &LogRecipe, made: &Made<'_>) -> Result<Entry, Error> {
        let log = if recipe.by_stranger { &self.strange_log } else { &self.log };
        let hash = |bytes: &[u8]| hex::encode(sha256(recipe.hash_of.as_deref().unwrap_or(bytes)));
        let signature = b64(recipe.signature.as_deref().unwrap_or(made.signature));
        let verifier = b64(recipe.verifier.as_deref().unwrap_or(made.verifier));
        let (kind, spec) = if made.is_envelope {
            let spec = json!({
                "envelopeHash": {"algorithm": "sha256", "value": hex::encode(sha256(b"unknown"))},
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
        Ok(Entry {
            log_id: id_of(&log.key),
            time: recipe.time,
            kind: recipe.stated_kind.unwrap_or(kind).to_owned(),
            promise: self.promise(recipe, log, &body)?,
            proof: self.proof(recipe.proof, log, &body)?,
            body,
        })
    }

    fn promise(&self, recipe: &LogRecipe, log: &Log, body: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let (mut body, mut time, mut index) = (b64(body), recipe.time, INDEX);
        match recipe.promise {
            Promise::Missing => return Ok(None),
            Promise::OtherTime => time -= 1,
            Promise::OtherIndex => index += 1,
            Promise::OtherBody => body = b64("other"),
            Promise::Good | Promise::Impostor => {}
        }
        let id = hex::encode(id_of(&log.key));
        let text = format!(r#"{{"body":"{body}","integratedTime":{time},"logID":"{id}","logIndex":{index}}}"#);
        let key = if recipe.promise == Promise::Impostor { &self.strange_log.key } else { &log.key };
        Ok(Some(key.sign(text.as_bytes())?))
    }

    fn proof(&self, kind: Proof, log: &Log, body: &[u8]) -> Result<Option<Value>, Error> {
        let leaves = [hash(&[&[0], b"before"]), hash(&[&[0], body]), hash(&[&[0], b"after"])];
        let mut root = hash(&[&[1], &hash(&[&[1], &leaves[0], &leaves[1]]), &leaves[2]]);
        let mut path = vec![leaves[0], leaves[2]];
        let mut index = INDEX;
        let mut noted = root;
        match kind {
            Proof::Missing => return Ok(None),
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
        let signature = [&id_of(&log.key)[..4], &key.sign(text.as_bytes())?].concat();
        let signature = format!("\u{2014} log.example.com {}\n", b64(signature));
        let signature = if kind == Proof::Unsigned { String::new() } else { signature };
        Ok(Some(json!({
            "logIndex": index.to_string(),
            "rootHash": b64(root),
            "treeSize": "3",
            "hashes": path.iter().map(b64).collect::<Vec<_>>(),
            "checkpoint": {"envelope": format!("{text}\n{signature}")},
        })))
    }
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    let mut hash = [0; 32];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}
