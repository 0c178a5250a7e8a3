//! The token that processes share over a network, and proof that one knows it without saying it. Pure but for reading it.
//!
//! A proof is an HMAC-SHA256 under the token over both sides' nonces and the side that proves, so that none can be used again
//! or sent back. Nothing is encrypted: who can change what goes over the wire can take a proved connection over.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use aws_lc_rs::{hmac, rand};

use super::protocol::PROTOCOL;

/// Where the token is when there is no file, as a Secret of Kubernetes is usually passed on.
pub(crate) const VARIABLE: &str = "LONGHAUL_WORKER_TOKEN";
/// Shorter ones can be guessed.
const BYTES_MIN: usize = 16;
const BYTES_MAX: u64 = 4 << 10;
const NONCE_BYTES: usize = 32;

/// A secret that all processes of one run know. Never printed and never sent.
pub(crate) struct Token(hmac::Key);

/// Who proves.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    Coordinator,
    Worker,
}

/// What both sides have said at random.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nonces<'a> {
    pub(crate) worker: &'a str,
    pub(crate) coordinator: &'a str,
}

impl Token {
    /// Reads it from the file, or from the environment.
    pub(crate) fn read(file: Option<&Path>) -> Result<Self> {
        let text = match file {
            Some(path) => {
                let mut text = String::new();
                let read =
                    std::fs::File::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_string(&mut text));
                read.with_context(|| format!("--token-file: failed to read {}", path.display()))?;
                text
            }
            None => std::env::var(VARIABLE).ok().with_context(|| {
                format!(
                    "workers on a network prove that they know a token: write one to a file on every machine (for example with \
                     `openssl rand -hex 32`) and give --token-file, or set {VARIABLE}"
                )
            })?,
        };
        Self::new(&text)
    }

    fn new(text: &str) -> Result<Self> {
        let text = text.trim();
        ensure!(
            text.len() >= BYTES_MIN && text.len() as u64 <= BYTES_MAX,
            "the token has {} bytes: use {BYTES_MIN} to {BYTES_MAX}, for example those of `openssl rand -hex 32`",
            text.len()
        );
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes())))
    }

    /// The proof of this side, in hex.
    pub(crate) fn prove(&self, side: Side, nonces: Nonces<'_>) -> String {
        hex::encode(hmac::sign(&self.0, &claim(side, nonces)))
    }

    /// Whether a proof is that side's. Takes the same time wherever it is wrong.
    pub(crate) fn proves(&self, side: Side, nonces: Nonces<'_>, proof: &str) -> bool {
        hex::decode(proof).is_ok_and(|proof| hmac::verify(&self.0, &claim(side, nonces), &proof).is_ok())
    }
}

/// Nonces are of one length, so no two claims are the same text.
fn claim(side: Side, Nonces { worker, coordinator }: Nonces<'_>) -> Vec<u8> {
    let side = match side {
        Side::Coordinator => "coordinator",
        Side::Worker => "worker",
    };
    format!("{PROTOCOL} {side} {worker} {coordinator}").into_bytes()
}

/// Nobody could make a nonce.
#[derive(Debug, thiserror::Error)]
#[error("the system has no random numbers")]
pub(crate) struct NoRandomness;

/// A new nonce, in hex.
pub(crate) fn nonce() -> Result<String, NoRandomness> {
    let mut bytes = [0; NONCE_BYTES];
    rand::fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(hex::encode(bytes))
}

/// Whether a text of the other side can be a nonce.
pub(crate) fn is_nonce(text: &str) -> bool {
    text.len() == 2 * NONCE_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A proof holds for its token, its side and its nonces, and for nothing else.
    #[test]
    fn a_proof_proves_one_thing() {
        let token = Token::new(" a token of some length\n").unwrap();
        let (one, two) = (nonce().unwrap(), nonce().unwrap());
        assert!(is_nonce(&one) && is_nonce(&two) && one != two);
        let nonces = Nonces { worker: &one, coordinator: &two };
        let proof = token.prove(Side::Worker, nonces);
        assert!(token.proves(Side::Worker, nonces, &proof));
        assert!(
            Token::new("a token of some length").unwrap().proves(Side::Worker, nonces, &proof),
            "space is no token"
        );
        assert!(!token.proves(Side::Coordinator, nonces, &proof), "sent back");
        assert!(!token.proves(Side::Worker, Nonces { worker: &two, coordinator: &one }, &proof), "used again");
        assert!(!Token::new("a token of same length").unwrap().proves(Side::Worker, nonces, &proof));
        for bad in ["", "zz", &proof[2..], &proof.replace('a', "b").replace('c', "d")] {
            assert!(!token.proves(Side::Worker, nonces, bad), "{bad}");
        }
        for text in ["short", "fifteen bytes.."] {
            assert!(Token::new(text).err().unwrap().to_string().contains("use 16 to 4096"), "{text}");
        }
        assert!(Token::new(&"x".repeat(5000)).is_err());
    }
}
