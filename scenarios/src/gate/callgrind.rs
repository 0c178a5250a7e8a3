//! Instructions a request by callgrind, where the processor's own counters cannot be reached: each build once more, alone and some
//! fifty times slower, in a world of its own.
//!
//! The count is that between two dumps, one after the first reviews and one after so many more, so that neither the start nor the end of the
//! program is in it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use loadgen::admission::{Config, Load};
use tokio::process::Command;
use units::Rate;

use crate::run::{Options, Stand};
use crate::scenario::SubjectKind;

/// Reviews before the count: caches are filled and code is read.
const WARM: u64 = 200;
/// Reviews of the count: what happens once in a while is spread evenly.
const COUNTED: u64 = 500;
/// How long they may take. Callgrind is fifty times slower than the processor.
const PATIENCE: Duration = Duration::from_mins(2);
/// How often it is looked whether all have come.
const POLL: Duration = Duration::from_millis(50);

/// Whether it is here.
pub(super) async fn works() -> Result<()> {
    for program in ["valgrind", "callgrind_control"] {
        let asked = Command::new(program).arg("--version").output().await;
        ensure!(asked.is_ok_and(|output| output.status.success()), "needs valgrind");
    }
    Ok(())
}

/// Instructions a request of the build that these options start.
pub(super) async fn instructions(options: &Options, config: &Config, seed: u64, folder: &Path) -> Result<f64> {
    let slowed = Slowed::write(options, folder)?;
    let stand = Box::pin(Stand::up(&slowed.options)).await.context("it does not start under callgrind")?;
    let counted = count(&stand, &slowed.output, config, seed).await;
    stand.down().await;
    counted
}

/// The same options with callgrind before the program.
struct Slowed {
    options: Options,
    output: PathBuf,
}

impl Slowed {
    fn write(options: &Options, folder: &Path) -> Result<Self> {
        let folder = std::path::absolute(folder)?;
        let name =
            options.run_dir.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        let (script, output) =
            (folder.join(format!("callgrind-{name}.sh")), folder.join(format!("callgrind-{name}.out")));
        let mut source = options.source.clone();
        let program = match (source.scenario.subject.kind, &options.service) {
            (SubjectKind::Service, Some(program)) => quoted(&std::path::absolute(program)?.display().to_string()),
            _ => String::new(),
        };
        let text = format!(
            "#!/bin/sh\nexec valgrind --tool=callgrind --callgrind-out-file={} {program} \"$@\"\n",
            quoted(&output.display().to_string())
        );
        std::fs::write(&script, text).with_context(|| format!("failed to write {}", script.display()))?;
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700))?;
        let mut service = None;
        if program.is_empty() {
            source.scenario.subject.command.insert(0, script.display().to_string());
        } else {
            service = Some(script);
        }
        let options = Options {
            source,
            runs: options.runs.clone(),
            run_dir: Some(folder.join(format!("callgrind-{name}"))),
            plant: options.plant.clone(),
            service,
            keep_events: false,
            quiet: true,
            left_out: None,
            repeat: options.repeat.clone(),
            window: crate::run::Addresses::default(),
        };
        Ok(Self { options, output })
    }
}

/// A word for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

async fn count(stand: &Stand<'_>, output: &Path, config: &Config, seed: u64) -> Result<f64> {
    fill(stand, config, seed, WARM).await?;
    let before = dump(stand, output, 1).await?;
    let answered = fill(stand, config, seed + 1, COUNTED).await?;
    let after = dump(stand, output, 2).await?;
    ensure!(before > 0 && after > 0, "callgrind counted nothing");
    Ok(after as f64 / answered as f64)
}

/// Sends so many reviews, one after the other, and returns how many were answered.
async fn fill(stand: &Stand<'_>, config: &Config, seed: u64, reviews: u64) -> Result<u64> {
    let mut config = config.clone();
    // The plan's times do not count: only how many there are.
    config.rate = Rate::per_second(reviews as f64);
    let plan = stand.plan(&config, seed, Duration::from_secs(1))?;
    let planned = plan.planned();
    let load = Load::saturate(plan, stand.target(), 1).context("failed to start the load")?;
    let began = Instant::now();
    let mut total = loadgen::admission::Interval::default();
    while total.counts.allowed + total.counts.denied + total.errors() < planned {
        if began.elapsed() > PATIENCE {
            bail!(
                "only {} of {planned} reviews were answered under callgrind",
                total.counts.allowed + total.counts.denied
            );
        }
        tokio::time::sleep(POLL).await;
        total.add(&load.take());
    }
    total.add(&load.stop(super::slice::DRAIN).await);
    let answered = total.counts.allowed + total.counts.denied;
    ensure!(answered * 10 >= planned * 9, "only {answered} of {planned} reviews were answered under callgrind");
    Ok(answered)
}

/// Has callgrind write what it has counted since the last dump, the `number`-th, and reads that.
async fn dump(stand: &Stand<'_>, output: &Path, number: u32) -> Result<u64> {
    let asked = Command::new("callgrind_control").args(["--dump", &stand.pid().to_string()]).output().await?;
    let path = PathBuf::from(format!("{}.{number}", output.display()));
    let began = Instant::now();
    loop {
        if let Some(total) = std::fs::read_to_string(&path).ok().as_deref().and_then(total) {
            return Ok(total);
        }
        if began.elapsed() > PATIENCE {
            bail!("callgrind wrote no {}: {}", path.display(), String::from_utf8_lossy(&asked.stdout).trim());
        }
        tokio::time::sleep(POLL).await;
    }
}

/// The instructions in a dump, whose last line they are.
fn total(text: &str) -> Option<u64> {
    text.lines().rev().find_map(|line| line.strip_prefix("totals: ")).and_then(|total| total.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_and_words_are_quoted() {
        assert_eq!(total("events: Ir\nsummary: 12\n1 2\n\ntotals: 4837992\n"), Some(4_837_992));
        assert_eq!(total("events: Ir\nsummary: 12\n"), None, "not written to its end");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
