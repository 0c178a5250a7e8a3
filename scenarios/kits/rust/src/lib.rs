//! Starts an API server that injects faults, for one test, and returns the ledger's verdict.
//!
//! This crate starts the program `longhaul` and reads its verdict. This crate needs no cluster, no etcd and no other
//! crate.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::io::{self, BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time limit of the API server's start on a busy machine. On an idle machine the API server is ready in 50 ms.
const START_WITHIN: Duration = Duration::from_secs(30);
/// Time limit of the API server's end, in which Longhaul judges the ledger of a long test.
const STOP_WITHIN: Duration = Duration::from_mins(1);
/// Interval between two checks whether the program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Maximum number of lines of Longhaul's output that are kept.
const LINES_MAX: usize = 200;
/// The beginning of the line that the API server writes when it is ready.
const SERVED: &str = "kube-apiserver: serving at ";
/// A shell script that runs the API server until its input ends. Through this script the API server ends with the test
/// process, even after SIGKILL.
const SCRIPT: &str = r#""$TEST_ASSET_KUBE_APISERVER" --secure-port="$1" --cert-dir="$2" --etcd-servers= </dev/null & cat >/dev/null; kill $!; wait $!"#;
/// The first line of a certificate in PEM.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";
/// Exit code of `longhaul` for a pass.
const PASS: i32 = 0;
const UNDECIDED: i32 = 2;

/// The reason why the API server could not be started.
#[derive(Debug)]
pub enum Error {
    /// The program `longhaul` is missing. A test can print this error after `skipped: needs`.
    NotInstalled,
    /// A file or a process failed.
    Io(io::Error),
    /// The program ended or hung before the API server was ready. The text of this error is the program's output.
    NotServing(String),
}

/// The verdict of the ledger, with Longhaul's output.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Exit code: 0 pass, 1 fail, 2 undecided because a fault hit nothing. All other exit codes are errors of Longhaul.
    pub code: i32,
    /// The output of Longhaul.
    pub lines: Vec<String>,
}

/// A fault with its keys, as in a scenario file.
#[derive(Debug, Clone)]
pub struct Fault(String);

/// The settings of an API server that is not started yet.
#[derive(Debug, Clone, Default)]
pub struct Longhaul {
    flags: Vec<String>,
    faults: Vec<Fault>,
    records: Option<PathBuf>,
    allow_undecided: bool,
}

/// A running API server. When this value is dropped, the test panics unless the verdict is a pass.
#[derive(Debug)]
pub struct Plane {
    folder: PathBuf,
    server: String,
    process: Child,
    reader: Option<JoinHandle<VecDeque<String>>>,
    verdict: Option<Verdict>,
    allow_undecided: bool,
}

impl fmt::Display for Error {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInstalled => text.write_str("longhaul on PATH, or the variable LONGHAUL with its path"),
            Self::Io(error) => write!(text, "failed to start longhaul: {error}"),
            Self::NotServing(output) => write!(text, "the API server did not start:\n{output}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Verdict {
    /// Whether the ledger found no error and every fault hit something.
    pub fn passed(&self) -> bool {
        self.code == PASS
    }

    /// The folder of the test's record, with `index.html` and `ledger.json`.
    pub fn record(&self) -> Option<PathBuf> {
        let page = self.lines.iter().rev().find_map(|line| line.strip_suffix("/index.html"))?;
        Some(PathBuf::from(page.trim_start_matches("longhaul:").trim()))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.code {
            PASS => "pass",
            1 => "fail",
            UNDECIDED => "undecided",
            _ => "error of longhaul",
        };
        write!(text, "longhaul: {word} (exit code {})\n{}", self.code, self.lines.join("\n"))
    }
}

impl Fault {
    /// A fault by its name, such as `watch-410`.
    pub fn named(name: &str) -> Self {
        Self(format!("- name: {name}\n"))
    }

    /// Injects the fault at this time after the start of the API server.
    #[must_use]
    pub fn at(self, after: Duration) -> Self {
        self.with("at", &millis(after))
    }

    /// Limits the fault to one resource, such as `configmaps`.
    #[must_use]
    pub fn on(self, resource: &str) -> Self {
        self.with("resource", resource)
    }

    /// Sets any other key of the fault to a YAML value; docs/faults.md lists the keys.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "  {key}: {value}");
        self
    }
}

impl Longhaul {
    /// An API server without faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Injects faults that are drawn at random from a seed. A correct client survives these faults.
    #[must_use]
    pub fn chaos(self, seed: u64) -> Self {
        self.flag("--chaos", &seed.to_string())
    }

    /// Adds a fault that the API server injects.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// Delivers events of objects of different kinds in another order than that of the writes.
    #[must_use]
    pub fn order(mut self) -> Self {
        self.flags.push("--order".to_owned());
        self
    }

    /// Lets the server answer reads from caches that are up to this many versions behind.
    #[must_use]
    pub fn stale(self, versions: u64) -> Self {
        self.flag("--stale", &versions.to_string())
    }

    /// Names the program under test by a part of its user agent. With this setting, faults affect only requests of that
    /// program.
    #[must_use]
    pub fn manager(self, agent: &str) -> Self {
        self.flag("--manager-agent", agent)
    }

    /// Lets Deployments and other workloads become ready, each after the time `after`.
    #[must_use]
    pub fn workloads(self, after: Duration) -> Self {
        self.flag("--workloads", &millis(after))
    }

    /// Keeps run records in a folder. Without this folder, and without the variable `LONGHAUL_RUNS`, records are in a
    /// temporary folder, which is kept only after a failure.
    #[must_use]
    pub fn records(mut self, folder: impl Into<PathBuf>) -> Self {
        self.records = Some(folder.into());
        self
    }

    /// Lets a test pass even if a fault hits nothing.
    #[must_use]
    pub fn allow_undecided(mut self) -> Self {
        self.allow_undecided = true;
        self
    }

    fn flag(mut self, name: &str, value: &str) -> Self {
        self.flags.extend([name.to_owned(), value.to_owned()]);
        self
    }

    /// Starts the API server with the program that the variable `LONGHAUL` names, or with `longhaul` on `PATH`.
    pub fn start(self) -> Result<Plane, Error> {
        self.start_with(std::env::var_os("LONGHAUL").map_or_else(|| PathBuf::from("longhaul"), PathBuf::from).as_path())
    }

    /// Starts the API server with this program.
    pub fn start_with(self, program: &Path) -> Result<Plane, Error> {
        let folder = temporary()?;
        // The port is free again when the listener is dropped.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let named = self.records.or_else(|| std::env::var_os("LONGHAUL_RUNS").map(PathBuf::from));
        let mut command = Command::new(program);
        command
            .args(["envtest", "--judge", "--replays", "0", "--runs"])
            .arg(named.unwrap_or_else(|| folder.join("runs")));
        command.args(&self.flags);
        if !self.faults.is_empty() {
            let list: String = self.faults.iter().map(|fault| fault.0.as_str()).collect();
            let file = folder.join("faults.yaml");
            std::fs::write(&file, list)?;
            command.arg("--faults").arg(file);
        }
        command.args(["--", "sh", "-c", SCRIPT, "sh", &port.to_string()]).arg(&folder);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::NotInstalled,
            _ => Error::Io(error),
        })?;
        let (tell, ready) = sync_channel(1);
        let output = process.stderr.take();
        let reader = output.map(|output| std::thread::spawn(move || follow(output, &tell)));
        let server = format!("https://127.0.0.1:{port}");
        let mut plane = Plane { folder, server, process, reader, verdict: None, allow_undecided: self.allow_undecided };
        plane.settle(&ready)?;
        Ok(plane)
    }
}

impl Plane {
    /// The path of a kubeconfig for the API server, with all rights.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig.yaml")
    }

    /// The path of the certificate of the API server's authority.
    pub fn authority(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    /// The address of the API server, such as `https://127.0.0.1:34567`.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Ends the API server and returns the verdict. After this call a bad verdict no longer fails the test by itself.
    pub fn stop(mut self) -> Verdict {
        let verdict = self.end();
        self.allow_undecided = true;
        self.verdict = Some(Verdict { code: PASS, lines: Vec::new() });
        verdict
    }

    /// Waits until the API server is ready, and writes the kubeconfig.
    fn settle(&mut self, ready: &Receiver<()>) -> Result<(), Error> {
        if let Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) = ready.recv_timeout(START_WITHIN) {
            let verdict = self.end();
            // It is no verdict of a test.
            self.verdict = Some(Verdict { code: PASS, lines: Vec::new() });
            return Err(Error::NotServing(verdict.to_string()));
        }
        let chain = std::fs::read_to_string(self.folder.join("apiserver.crt"))?;
        // The authority is the last certificate of the chain.
        let last = chain.rfind(CERTIFICATE).unwrap_or(0);
        std::fs::write(self.authority(), &chain[last..])?;
        let text = format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters: [{{name: longhaul, cluster: {{server: \"{}\", certificate-authority: \"{}\"}}}}]\n\
             users: [{{name: longhaul, user: {{}}}}]\n\
             contexts: [{{name: longhaul, context: {{cluster: longhaul, user: longhaul}}}}]\n\
             current-context: longhaul\n",
            self.server,
            self.authority().display()
        );
        std::fs::write(self.kubeconfig(), text)?;
        Ok(())
    }

    /// Ends the API server. Returns the verdict; a second call returns the same verdict.
    fn end(&mut self) -> Verdict {
        if let Some(verdict) = &self.verdict {
            return verdict.clone();
        }
        drop(self.process.stdin.take());
        let code = self.wait().unwrap_or(-1);
        let lines = self.reader.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        let verdict = Verdict { code, lines: lines.into() };
        self.verdict = Some(verdict.clone());
        verdict
    }

    /// Waits until `longhaul` has ended, and returns its exit code. If `longhaul` hangs, it is killed.
    fn wait(&mut self) -> Option<i32> {
        let began = Instant::now();
        while began.elapsed() < STOP_WITHIN {
            match self.process.try_wait() {
                Ok(Some(status)) => return status.code(),
                Ok(None) => std::thread::park_timeout(LOOK_EVERY),
                Err(_) => break,
            }
        }
        let _ = self.process.kill();
        self.process.wait().ok()?.code()
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        let verdict = self.end();
        let passes = verdict.passed() || (self.allow_undecided && verdict.code == UNDECIDED);
        if std::thread::panicking() {
            eprintln!("{verdict}");
            return;
        }
        assert!(passes, "{verdict}");
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Reads the output of `longhaul` and returns its last lines. Sends one message on `tell` when the API server is ready.
fn follow(output: ChildStderr, tell: &SyncSender<()>) -> VecDeque<String> {
    let mut lines = VecDeque::new();
    for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        if line.starts_with(SERVED) {
            // Nobody waits for a second one.
            let _ = tell.try_send(());
        }
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }
    lines
}

/// A new temporary folder that only this user can read.
fn temporary() -> io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("longhaul-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(name);
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder)
}

fn millis(span: Duration) -> String {
    format!("{}ms", span.as_millis())
}
