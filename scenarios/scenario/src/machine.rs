//! Describes the machine and the build of the harness, for the record of a run.

use std::path::Path;

use record::Machine;
use sha2::{Digest, Sha256};

mod git;

/// The properties of this machine. Properties that cannot be read are empty and never stop a run.
pub fn machine() -> Machine {
    let uname = rustix::system::uname();
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total_kib = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
    Machine {
        cores: std::thread::available_parallelism().map_or(0, |cores| u32::try_from(cores.get()).unwrap_or(0)),
        memory_bytes: total_kib.and_then(|kib| kib.trim().parse::<u64>().ok()).unwrap_or(0) * 1024,
        kernel: uname.release().to_string_lossy().into_owned(),
        cpu: model.map(|(_, name)| name.trim().to_owned()).unwrap_or_default(),
    }
}

/// SHA-256 of a file, as `sha256:<hex>`.
pub fn digest(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut hasher = Sha256::new();
    std::io::copy(&mut file, &mut hasher)?;
    Ok(format!("sha256:{}", hex::encode(hasher.finalize())))
}

/// The git revision of the current folder, if it is in a git checkout.
pub fn git_revision() -> Option<String> {
    git::revision(Path::new("."))
}
