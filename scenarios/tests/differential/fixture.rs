//! Reads and writes the file with the recorded answers of a real server.
//!
//! The first line of this file has the origin of the answers. Each further line of the file is one sequence of requests
//! with its normalised answers.

use std::path::PathBuf;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::sequence::Sequence;

/// The origin of the recorded answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The version of the real server, such as `v1.34.1`.
    pub server: String,
    pub sequences: usize,
}

/// One sequence with the real server's answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    pub sequence: Sequence,
    pub answers: Vec<Value>,
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/differential/fixtures/answers.jsonl.zst")
}

pub fn write(origin: &Origin, recorded: &[Recorded]) -> anyhow::Result<()> {
    let mut text = serde_json::to_string(origin)? + "\n";
    for one in recorded {
        text += &serde_json::to_string(one)?;
        text.push('\n');
    }
    let path = path();
    println!("writing {} bytes of text to {}", text.len(), path.display());
    let packed = zstd::encode_all(text.as_bytes(), 19)?;
    std::fs::write(&path, packed).with_context(|| format!("failed to write {}", path.display()))
}

pub fn read() -> anyhow::Result<(Origin, Vec<Recorded>)> {
    let packed = std::fs::read(path()).with_context(|| format!("failed to read {}", path().display()))?;
    let text = String::from_utf8(zstd::decode_all(&packed[..])?)?;
    let mut lines = text.lines();
    let origin: Origin = serde_json::from_str(lines.next().context("the fixture is empty")?)?;
    let recorded: Vec<Recorded> = lines.map(serde_json::from_str).collect::<Result<_, _>>()?;
    anyhow::ensure!(recorded.len() == origin.sequences, "the fixture lost lines");
    Ok((origin, recorded))
}
