//! The observed program: its help text, its start, the wait until it is idle, and its end.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::io::AsyncReadExt as _;

use super::world::World;
use crate::run::Mounted;
use crate::subject::{Launch, Log, Running};

/// Interval at which requests are read; at most a thousand come in between.
const POLL: Duration = Duration::from_millis(50);
/// Timeout of `--help`; a program that ignores this flag starts instead.
const HELP_MAX: Duration = Duration::from_secs(10);
const HELP_BYTES: u64 = 1 << 20;
/// Time that the program gets to end orderly.
const STOP_MAX: Duration = Duration::from_secs(5);

pub(super) struct Program {
    running: Running,
}

impl Program {
    /// Starts the program with these arguments and environment variables. Placeholders are replaced by the values of
    /// this run.
    pub(super) fn start(place: &Path, run: &[String], variables: &[(String, String)], world: &World) -> Result<Self> {
        let mut given = world.given().clone();
        let own: Vec<(String, String)> =
            variables.iter().map(|(name, value)| (name.clone(), given.put(value))).collect();
        for (name, value) in &own {
            given.give(name, value);
        }
        let (program, arguments) = run.split_first().ok_or_else(|| anyhow::anyhow!("there is no program to start"))?;
        let cluster = world.mounted().into_iter().flat_map(|mounted| mounted.environment().to_vec());
        let launch = Launch {
            name: None,
            program: PathBuf::from(program),
            arguments: arguments.iter().map(|word| given.put(word)).collect(),
            environment: world.given().variables().chain(cluster).chain(own).collect(),
            directory: Some(place.to_owned()),
            awaited: None,
            clock: None,
            mounts: world.mounted().map(Mounted::mounts),
        };
        launch.check()?;
        Ok(Self { running: launch.start(Log::create(world.folder(), None)?)? })
    }

    pub(super) fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Reads requests until the program has made none for the time `quiet`, or has ended. Waits at most `first` for the
    /// first request, and afterwards at most `most` for the time without requests. Returns false if there was no
    /// request.
    pub(super) async fn rest(&mut self, world: &mut World, first: Duration, most: Duration, quiet: Duration) -> bool {
        let began = Instant::now();
        let (mut asked, mut last) = (None, began);
        loop {
            if world.take().await > 0 {
                last = Instant::now();
                asked.get_or_insert(last);
            }
            let is_over = asked
                .map_or_else(|| began.elapsed() >= first, |asked| asked.elapsed() >= most || last.elapsed() >= quiet);
            if is_over || self.running.exited().is_some() {
                return asked.is_some();
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// The program's last output, if it has ended.
    pub(super) async fn ended(&mut self) -> Option<String> {
        self.running.exited()?;
        Some(self.running.last_words().await)
    }

    pub(super) async fn words(&mut self) -> String {
        self.running.last_words().await
    }

    pub(super) async fn stop(mut self) {
        self.running.stop(STOP_MAX).await;
    }
}

/// The output of `--help`, for the subcommand `command` if one is given. Empty if the program does not end.
pub(super) async fn help(place: &Path, program: &[String], command: Option<&str>, world: &World) -> String {
    let Some((first, rest)) = program.split_first() else { return String::new() };
    let at = if first.contains('/') { place.join(first) } else { PathBuf::from(first) };
    let mut child = tokio::process::Command::new(at);
    child.args(rest).args(command).arg("--help").current_dir(place).envs(world.given().variables());
    child.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
    let Ok(mut child) = child.spawn() else { return String::new() };
    let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) else { return String::new() };
    let (mut text, mut also) = (Vec::new(), Vec::new());
    let (mut out, mut err) = (out.take(HELP_BYTES), err.take(HELP_BYTES));
    let both = async { tokio::join!(out.read_to_end(&mut text), err.read_to_end(&mut also)) };
    // A program that starts instead is ended; its output is no help.
    let is_done = tokio::time::timeout(HELP_MAX, both).await.is_ok();
    if let Some(group) = child.id().and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed())) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait().await;
    if !is_done {
        return String::new();
    }
    text.extend_from_slice(b"\n");
    text.extend_from_slice(&also);
    String::from_utf8_lossy(&text).into_owned()
}
