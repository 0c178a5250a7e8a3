//! Random changes of signatures: changes of bytes and of JSON, also inside base64 that is inside JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value};
use service_verify::{Companions, Digest, Evidence};

/// Maximum number of levels of nested base64 and JSON that are decoded.
const DEPTH_MAX: usize = 4;

/// Makes one random change in `piece`; some changes take a value from `other`.
pub fn change(piece: &mut Evidence, other: &Evidence, random: &mut ChaCha8Rng) {
    match piece {
        Evidence::Signature(piece) => {
            let donor = if let Evidence::Signature(other) = other { Some(other) } else { None };
            match random.random_range(0..8) {
                0 => blob(&mut piece.payload, donor.map(|other| other.payload.as_slice()), random),
                1 | 2 => text(&mut piece.signature, donor.map(|other| other.signature.as_str()), random),
                3 => bytes_of(&mut piece.media_type, random),
                _ => companions(&mut piece.companions, donor.map(|other| &other.companions), random),
            }
        }
        Evidence::Attestation(piece) => {
            let donor = if let Evidence::Attestation(other) = other { Some(other) } else { None };
            match random.random_range(0..8) {
                0..=3 => blob(&mut piece.envelope, donor.map(|other| other.envelope.as_slice()), random),
                4 => bytes_of(&mut piece.media_type, random),
                _ => companions(&mut piece.companions, donor.map(|other| &other.companions), random),
            }
        }
        Evidence::Bundle(piece) => {
            let donor = if let Evidence::Bundle(other) = other { Some(other) } else { None };
            match random.random_range(0..20) {
                0 => bytes_of(&mut piece.media_type, random),
                1 => bytes_of(&mut piece.artifact_type, random),
                2 => piece.subject = [None, Some(Digest::of(b"other"))][random.random_range(0..2)],
                _ => blob(&mut piece.json, donor.map(|other| other.json.as_slice()), random),
            }
        }
        Evidence::Unusable(_) => {}
    }
}

fn companions(all: &mut Companions, donor: Option<&Companions>, random: &mut ChaCha8Rng) {
    let part = random.random_range(0..8);
    let of = |companions: &mut Companions| -> Option<String> {
        match part {
            0 | 1 => companions.certificate.take(),
            2 => companions.chain.take(),
            3..=6 => companions.log_entry.take(),
            _ => companions.timestamp.take(),
        }
    };
    let given = donor.cloned().and_then(|mut donor| of(&mut donor));
    let Some(mut one) = of(all) else { return };
    // Sometimes the value is removed.
    if random.random_range(0..12) == 0 {
        return;
    }
    text(&mut one, given.as_deref(), random);
    match part {
        0 | 1 => all.certificate = Some(one),
        2 => all.chain = Some(one),
        3..=6 => all.log_entry = Some(one),
        _ => all.timestamp = Some(one),
    }
}

fn text(one: &mut String, donor: Option<&str>, random: &mut ChaCha8Rng) {
    let mut bytes = std::mem::take(one).into_bytes();
    blob(&mut bytes, donor.map(str::as_bytes), random);
    *one = String::from_utf8_lossy(&bytes).into_owned();
}

fn bytes_of(one: &mut String, random: &mut ChaCha8Rng) {
    let mut bytes = std::mem::take(one).into_bytes();
    raw(&mut bytes, random);
    *one = String::from_utf8_lossy(&bytes).into_owned();
}

/// Changes bytes that may be JSON or PEM, either within that format or byte by byte.
fn blob(bytes: &mut Vec<u8>, donor: Option<&[u8]>, random: &mut ChaCha8Rng) {
    if let Some(donor) = donor
        && random.random_range(0..30) == 0
    {
        *bytes = donor.to_vec();
        return;
    }
    inside(bytes, donor, random, 0);
}

fn inside(bytes: &mut Vec<u8>, donor: Option<&[u8]>, random: &mut ChaCha8Rng, depth: usize) {
    let is_opened = depth < DEPTH_MAX && random.random_range(0..4) != 0;
    if is_opened && let Ok(mut value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_slice::<Value>(bytes) {
        let donor = donor.and_then(|donor| serde_json::from_slice::<Value>(donor).ok());
        node(&mut value, donor.as_ref(), random, depth);
        *bytes = if random.random_range(0..10) == 0 {
            serde_json::to_vec_pretty(&value)
        } else {
            serde_json::to_vec(&value)
        }
        .unwrap_or_default();
        return;
    }
    if is_opened && let Some(mut der) = pem(bytes) {
        raw(&mut der, random);
        *bytes =
            format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(der)).into_bytes();
        return;
    }
    if is_opened
        && bytes.len() > 8
        && let Ok(mut decoded) = STANDARD.decode(&bytes)
    {
        inside(&mut decoded, None, random, depth + 1);
        *bytes = STANDARD.encode(decoded).into_bytes();
        return;
    }
    raw(bytes, random);
}

fn pem(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (block, _) = text.strip_prefix("-----BEGIN CERTIFICATE-----")?.split_once("-----END")?;
    STANDARD.decode(block.replace('\n', "")).ok()
}

/// Chooses a node of the JSON at random and changes it.
fn node(value: &mut Value, donor: Option<&Value>, random: &mut ChaCha8Rng, depth: usize) {
    let stays = random.random_range(0..6) == 0;
    match value {
        Value::Object(map) if !map.is_empty() => {
            let key = map.keys().nth(random.random_range(0..map.len())).cloned().unwrap_or_default();
            if stays {
                object(map, &key, donor, random);
            } else if let Some(below) = map.get_mut(&key) {
                node(below, donor.and_then(|donor| donor.get(&key)), random, depth);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let at = random.random_range(0..items.len());
            match (stays, random.random_range(0..3)) {
                (true, 0) => drop(items.remove(at)),
                (true, 1) => items.push(items[at].clone()),
                (true, _) => items.reverse(),
                (false, _) => node(&mut items[at], donor.and_then(|donor| donor.get(at)), random, depth),
            }
        }
        Value::String(text) => {
            let given = donor.and_then(Value::as_str);
            match random.random_range(0..8) {
                0 if given.is_some() => given.unwrap_or_default().clone_into(text),
                1 => *value = Value::Null,
                _ => {
                    let mut bytes = std::mem::take(text).into_bytes();
                    inside(&mut bytes, given.map(str::as_bytes), random, depth + 1);
                    *text = String::from_utf8_lossy(&bytes).into_owned();
                }
            }
        }
        Value::Number(number) => {
            let old = number.as_i64().unwrap_or_default();
            let new = [old + 1, old - 1, -old, 0, i64::MAX, old << 1];
            *value = Value::from(new[random.random_range(0..new.len())]);
        }
        other => {
            *other =
                [Value::Null, Value::Bool(true), Value::from(1), Value::from("")][random.random_range(0..4)].clone();
        }
    }
}

fn object(map: &mut Map<String, Value>, key: &str, donor: Option<&Value>, random: &mut ChaCha8Rng) {
    match random.random_range(0..4) {
        0 => drop(map.remove(key)),
        1 => drop(map.insert(format!("{key}x"), Value::Null)),
        2 => {
            let moved = map.remove(key).unwrap_or_default();
            map.insert(key.to_uppercase(), moved);
        }
        _ => {
            if let Some(given) = donor.and_then(|donor| donor.get(key)) {
                map.insert(key.to_owned(), given.clone());
            }
        }
    }
}

fn raw(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    if bytes.is_empty() {
        bytes.push(random.random());
        return;
    }
    let at = random.random_range(0..bytes.len());
    match random.random_range(0..9) {
        0..=2 => bytes[at] ^= 1 << random.random_range(0..8),
        3 => bytes[at] = random.random(),
        4 => bytes.insert(at, [b' ', b'\n', 0, b'"', random.random()][random.random_range(0..5)]),
        5 => drop(bytes.remove(at)),
        6 => bytes.truncate(at),
        7 => {
            let end = (at + random.random_range(1..40)).min(bytes.len());
            let part = bytes[at..end].to_vec();
            bytes.splice(at..at, part);
        }
        _ => {
            let end = (at + random.random_range(1..40)).min(bytes.len());
            bytes.drain(at..end);
        }
    }
}
