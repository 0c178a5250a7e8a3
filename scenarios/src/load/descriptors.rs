//! Enough file descriptors for the calls that may be in flight, or a refusal before anything starts.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the process needs beside connections: its standard streams, log files, event loops, pipes of workers.
const BESIDES: u64 = 64;

/// Raises the process's own limit as far as it may, and refuses when that does not reach.
pub(crate) fn provide(in_flight_max: u32) -> anyhow::Result<()> {
    let needed = u64::from(in_flight_max) + BESIDES;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if maximum.is_none_or(|maximum| maximum >= needed) {
        return Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum })?);
    }
    let most = maximum.unwrap_or_default().saturating_sub(BESIDES);
    anyhow::bail!(
        "{in_flight_max} calls in flight need {needed} file descriptors, and this process may have {}: write \
         --max-in-flight {most}, or raise the limit with `ulimit -n` as root",
        maximum.unwrap_or_default()
    )
}
