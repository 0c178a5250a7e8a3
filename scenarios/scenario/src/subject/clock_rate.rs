//! A subject under a clock of its own, which runs faster or can be changed: `longhaul` starts itself, and that becomes the subject.
//!
//! Owns how it is started. How the clock is made faster is in `mocks/clock`, what it does to a run in `docs/decisions/028`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{ClockLine, Launch};

/// The hidden command, after which everything is for [`mock_clock::command_line`].
pub const COMMAND: &str = "clock";
/// A nap by which it is tried.
const NAP: Duration = Duration::from_secs(2);

/// Why a clock cannot be made faster.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("a faster clock does not work on this machine: {0}; {REMEDY}")]
    Machine(String),
    #[error("the subject's clock cannot be made faster: {0}; {REMEDY}")]
    Program(mock_clock::Error),
}

const REMEDY: &str = "leave `clockRate` out, `compress` alone shortens the server's side";

/// A clock that runs faster.
#[derive(Debug, Clone)]
pub struct OwnClock {
    /// How many times.
    pub rate: u32,
    /// Since which reading of [`mock_clock::now`]: all processes of a subject, and those that are started again, have one time.
    pub since_ns: i64,
    /// By what it is told of changes, where a fault makes some.
    pub line: Option<Arc<ClockLine>>,
}

/// Gives what is launched a clock that runs faster; nothing has been started yet.
pub fn make_faster(launch: &mut Launch, clock: &OwnClock) -> Result<(), Error> {
    launch.clock = Some(clock.clone());
    // One that is not there is missed later, as without another clock.
    if let Some(program) = launch.found() {
        mock_clock::check(program.as_os_str()).map_err(Error::Program)?;
    }
    clock.works()
}

/// This program; tests are another one.
fn longhaul() -> std::io::Result<PathBuf> {
    if cfg!(test) { super::sibling("longhaul") } else { std::env::current_exe() }
}

impl OwnClock {
    /// What is started in the place of a program, and the words before it.
    pub(super) fn words(&self) -> std::io::Result<(PathBuf, Vec<OsString>)> {
        let [rate, since] = [self.rate.to_string(), self.since_ns.to_string()];
        let words = [COMMAND, "--rate", &rate, "--since", &since, "--with-parent", "--"].map(OsString::from);
        Ok((longhaul()?, words.to_vec()))
    }

    /// Tries it on a nap, which must be over early.
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

    /// Before anything is started.
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
