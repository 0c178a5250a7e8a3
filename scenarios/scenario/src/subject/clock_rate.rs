//! A subject with a clock of its own, which runs faster or can be changed. To start such a subject, `longhaul` starts
//! itself with a hidden command, and that process becomes the subject.
//!
//! `mocks/clock` makes the clock faster; `docs/decisions/028` describes the effects on a run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{ClockLine, Launch};

/// The name of the hidden command. The arguments after this name are for [`mock_clock::command_line`].
pub const COMMAND: &str = "clock";
/// The length of a sleep, by the clock under test, that shows whether the clock runs faster.
const NAP: Duration = Duration::from_secs(2);

/// The reason why a program cannot get a faster clock.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("a faster clock does not work on this machine: {0}; {REMEDY}")]
    Machine(String),
    #[error("the subject's clock cannot be made faster: {0}; {REMEDY}")]
    Program(mock_clock::Error),
}

const REMEDY: &str = "leave `clockRate` out, `compress` alone shortens the server's side";

#[derive(Debug, Clone)]
pub struct OwnClock {
    /// How many times faster the clock runs.
    pub rate: u32,
    /// The value of [`mock_clock::now`] from which the subject's clock counts. All processes of a subject, including
    /// restarted processes, count from the same value.
    pub since_ns: i64,
    /// The connection for changes of the clock, if a fault changes this clock.
    pub line: Option<Arc<ClockLine>>,
}

/// Sets a faster clock for a program that is not started yet, and checks that the clock runs faster.
pub fn make_faster(launch: &mut Launch, clock: &OwnClock) -> Result<(), Error> {
    launch.clock = Some(clock.clone());
    // A missing program is reported later, as without another clock.
    if let Some(program) = launch.found() {
        mock_clock::check(program.as_os_str()).map_err(Error::Program)?;
    }
    clock.works()
}

/// The path of the program `longhaul`. In a test, the running program is the test program and not `longhaul`.
fn longhaul() -> std::io::Result<PathBuf> {
    if cfg!(test) { super::sibling("longhaul") } else { std::env::current_exe() }
}

impl OwnClock {
    /// The program to start instead of the subject's program, and the arguments to put before the subject's own
    /// arguments.
    pub(super) fn words(&self) -> std::io::Result<(PathBuf, Vec<OsString>)> {
        let [rate, since] = [self.rate.to_string(), self.since_ns.to_string()];
        let words = [COMMAND, "--rate", &rate, "--since", &since, "--with-parent", "--"].map(OsString::from);
        Ok((longhaul()?, words.to_vec()))
    }

    /// Tests the faster clock: a sleep by this clock must end early.
    fn works(&self) -> Result<(), Error> {
        let began = Instant::now();
        let nap_s = if self.rate > 1 { NAP.as_secs() } else { 0 };
        let (program, words) = self.words().map_err(|error| Error::Machine(error.to_string()))?;
        let mut nap = std::process::Command::new(program);
        nap.args(words).arg(Path::new("sleep")).arg(nap_s.to_string()).stdin(Stdio::null());
        let output = nap.output().map_err(|error| Error::Machine(error.to_string()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.trim().trim_start_matches("longhaul-clock: ");
            return Err(Error::Machine(if said.is_empty() { output.status.to_string() } else { said.to_owned() }));
        }
        match began.elapsed() {
            took if self.rate > 1 && took >= NAP => {
                Err(Error::Machine(format!("a nap of {} s took as long", NAP.as_secs())))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn launch(program: &str) -> Launch {
        Launch {
            name: None,
            program: PathBuf::from(program),
            arguments: Vec::new(),
            environment: Vec::new(),
            directory: None,
            awaited: None,
            clock: None,
            mounts: None,
        }
    }

    fn faster(rate: u32) -> OwnClock {
        OwnClock { rate, since_ns: mock_clock::now(), line: None }
    }

    /// A program that cannot have a clock of its own is refused by name before any process is started.
    #[test]
    fn what_cannot_have_another_clock_is_refused_by_name() {
        let file = tempfile::Builder::new().suffix(".sh").tempfile().unwrap();
        std::fs::write(file.path(), "#!/no/such/interpreter\n").unwrap();
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let error = make_faster(&mut launch(file.path().to_str().unwrap()), &faster(30)).unwrap_err().to_string();
        let expected = "needs the interpreter /no/such/interpreter, which is not there; leave `clockRate` out";
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn a_program_is_looked_for_where_it_will_be_started() {
        assert!(launch("sh").found().is_some_and(|path| path.ends_with("sh")));
        assert_eq!(launch("no-such-program").found(), None);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("own"), "").unwrap();
        let told = [("PATH".to_owned(), folder.path().display().to_string())];
        let within = Launch { environment: told.to_vec(), ..launch("own") };
        assert_eq!(within.found(), Some(folder.path().join("own")));
        let beside = Launch { directory: Some(folder.path().to_owned()), ..launch("./own") };
        assert!(beside.found().is_some());
    }

    #[test]
    fn a_minute_is_over_in_seconds() {
        let Ok((program, words)) = faster(60).words() else {
            println!("skipped: needs longhaul");
            return;
        };
        let began = Instant::now();
        let mut command = std::process::Command::new(program);
        assert!(command.args(words).args(["sleep", "60"]).status().unwrap().success());
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}
