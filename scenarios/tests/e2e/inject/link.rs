//! Tests a payload that contains a symbolic link. The injector never writes a link into a payload, but an attacker
//! could. The test runs the injected program alone, without a cluster.

use std::path::Path;
use std::process::{Command, Stdio};

use sha2::{Digest as _, Sha256};

use super::world::Programs;

fn hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The header of an entry in a tar archive.
fn header(name: &str, bytes: usize, kind: u8, target: &str) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[124..135].copy_from_slice(format!("{bytes:011o}").as_bytes());
    block[156] = kind;
    block[157..157 + target.len()].copy_from_slice(target.as_bytes());
    block[257..263].copy_from_slice(b"ustar\0");
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    block
}

/// Writes a payload whose only blob is a link to `target`. Returns the arguments for the injected program.
fn payload(folder: &Path, target: &Path) -> Vec<String> {
    let catalog = "longhaul-catalog 1\nrepository a\n";
    let mut archive = header("catalog", catalog.len(), b'0', "");
    archive.extend_from_slice(catalog.as_bytes());
    archive.resize(archive.len().next_multiple_of(512), 0);
    archive.extend(header(&format!("blobs/sha256/{}", "a".repeat(64)), 0, b'2', target.to_str().unwrap()));
    archive.resize(archive.len() + 1_024, 0);
    // Its size is known, so its window is no larger.
    let chunk = zstd::bulk::compress(&archive, 3).unwrap();
    let (bytes, digest) = (chunk.len(), hex(&chunk));
    let index = format!(
        "longhaul-seed-index 1\nrun {}\npayload {bytes} {digest}\nunpacked 1000 5\nwindow 1048576\ngroup 1\nchunks 1\n00000 {bytes} {digest}\n",
        "0".repeat(16)
    );
    std::fs::create_dir_all(folder.join("chunks/00000")).unwrap();
    std::fs::create_dir_all(folder.join("out")).unwrap();
    std::fs::write(folder.join("chunks/00000/00000"), &chunk).unwrap();
    std::fs::write(folder.join("index"), &index).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    [
        "--index",
        &path("index"),
        "--index-sha256",
        &hex(index.as_bytes()),
        "--chunks",
        &path("chunks"),
        "--out",
        &path("out"),
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Whether any unpacked file leads outside the folder.
fn leads_out(folder: &Path) -> bool {
    let blob = folder.join("out/verified/blobs/sha256").join("a".repeat(64));
    std::fs::read(blob).is_ok_and(|bytes| bytes == b"secret")
}

#[test]
#[ignore = "slow"]
fn a_link_is_refused_and_one_that_were_made_would_be_seen() {
    let Some(programs) = Programs::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    let arguments = payload(folder.path(), &secret);
    let run = |seed: &Path, bug: &str| {
        let mut command = Command::new(seed);
        command.args(&arguments).env("LONGHAUL_PLANTED_BUG", bug).stdin(Stdio::null());
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run(&programs.seed, "");
    let name = format!("blobs/sha256/{}", "a".repeat(64));
    assert_eq!((code, said.trim()), (Some(65), &*format!("longhaul-seed: payload: `{name}` is a link")));
    assert!(!leads_out(folder.path()));
    let (code, said) = run(&programs.seed, "skips-a-checksum");
    assert_eq!(code, Some(64), "the clean seed has no bugs: {said}");
    let blobs = folder.path().join("out/verified/blobs/sha256");
    std::fs::create_dir_all(&blobs).unwrap();
    std::os::unix::fs::symlink(&secret, blobs.join("a".repeat(64))).unwrap();
    assert!(leads_out(folder.path()), "a link that was made would be seen");
}
