//! Measures the time from the start of the injected program until it serves, its peak memory, and the rate of SHA-256
//! alone on one core.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use procfs::process::Process;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::payload::{Payload, noise};
use crate::kit::process::beside;

/// Time limit of assembling a payload: enough for a gigabyte on a slow disk.
const DEADLINE: Duration = Duration::from_mins(5);
/// Size of the data that is hashed: larger than any processor cache.
const HASHED_BYTES: usize = 128_000_000;

pub(crate) struct Assembled {
    pub(crate) mb_per_second: f64,
    pub(crate) peak_mb: f64,
}

/// The rate of SHA-256 on one core in MB/s, with the code that the injected program uses.
pub(crate) fn sha_mb_per_second() -> f64 {
    let bytes = noise(HASHED_BYTES, 7);
    let begun = Instant::now();
    std::hint::black_box(Sha256::digest(&bytes));
    HASHED_BYTES as f64 / 1e6 / begun.elapsed().as_secs_f64()
}

/// Starts the injected program on `payload` and waits until it serves.
pub(crate) async fn assemble(payload: &Payload) -> Result<Assembled> {
    let out = payload.path("out");
    std::fs::create_dir(&out)?;
    let mut command = Command::new(seed()?);
    command.arg("--index").arg(payload.path("index")).args(["--index-sha256", &payload.index_sha256]);
    command.arg("--chunks").arg(payload.path("chunks")).arg("--out").arg(&out).args(["--listen", "127.0.0.1:0"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let begun = Instant::now();
    let mut child = command.spawn()?;
    let mut lines = BufReader::new(child.stderr.take().context("it has an output")?).lines();
    let serving = async {
        let mut said = String::new();
        while let Some(line) = lines.next_line().await? {
            if line.contains("serving on") {
                return Ok(begun.elapsed());
            }
            said += &line;
        }
        bail!("the seed ended: {said}")
    };
    let elapsed = tokio::time::timeout(DEADLINE, serving).await.context("the seed does not serve")??;
    let process = Process::new(i32::try_from(child.id().context("the seed has ended")?)?)?;
    let peak_kib = process.status()?.vmhwm.context("the kernel tells no peak")?;
    child.kill().await?;
    std::fs::remove_dir_all(out)?;
    let mb_per_second = payload.bytes as f64 / 1e6 / elapsed.as_secs_f64();
    Ok(Assembled { mb_per_second, peak_mb: peak_kib as f64 * 1024.0 / 1e6 })
}

/// The path of the released injected program.
pub(crate) fn seed() -> Result<PathBuf> {
    let release = beside("longhaul-service");
    let target = release.ancestors().nth(2).context("no target folder")?;
    let seed = target.join(format!("{}-unknown-linux-musl/seed/longhaul-seed", std::env::consts::ARCH));
    if seed.is_file() { Ok(seed) } else { bail!("{} is not built", seed.display()) }
}
