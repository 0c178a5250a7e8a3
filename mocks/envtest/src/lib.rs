//! A control plane for test suites: one program that acts as `kube-apiserver`, `etcd` or `kubectl`, depending on its
//! name.
//!
//! Owns the interface that envtest and similar kits expect of these three programs: flags, help texts, files, health
//! checks, signals. The process named `etcd` contains the state and the server. The process named `kube-apiserver`
//! passes its flags on and waits, so a suite can restart it without losing the state. The crate `mock-kube` is the API
//! server.

mod apiserver;
mod chaos;
mod draw;
mod etcd;
mod flags;
mod help;
mod kubectl;
mod order;
mod parent;
mod plane;
mod play;
mod record;
mod session;

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

pub use chaos::Drawn;
pub use mock_kube::ShownBy;
pub use record::{CommitLine, HitLine, RequestLine, ShownLine, Summary};
pub use session::{Manager, SESSION, Session};

/// The names of the programs, as suites use them.
pub const PROGRAMS: [&str; 3] = ["kube-apiserver", "etcd", "kubectl"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    ApiServer,
    Etcd,
    Kubectl,
}

impl Program {
    /// The program that has the file name of this path.
    pub fn called(path: &OsStr) -> Option<Self> {
        match Path::new(path).file_name()?.to_str()? {
            "kube-apiserver" => Some(Self::ApiServer),
            "etcd" => Some(Self::Etcd),
            "kubectl" => Some(Self::Kubectl),
            _ => None,
        }
    }

    /// Runs the program until it ends.
    pub fn run(self, arguments: &[String]) -> ExitCode {
        match self {
            Self::ApiServer => apiserver::main(arguments),
            Self::Etcd => etcd::main(arguments),
            Self::Kubectl => kubectl::main(arguments),
        }
    }
}

/// The `main` of `longhaul-envtest`. If the binary's file name is none of the three programs, the first argument names
/// the program.
pub fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let mut called = words.next().as_deref().and_then(Program::called);
    let mut words = words.peekable();
    if called.is_none() {
        called = words.peek().map(AsRef::as_ref).and_then(Program::called);
        words.next();
    }
    let arguments: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(program) = called {
        return program.run(&arguments);
    }
    eprintln!("longhaul-envtest: call it by a link named {}, or name one of them first", PROGRAMS.join(", "));
    ExitCode::from(64)
}

/// Runs `work` on a runtime with two threads, because a suite's machine has other work.
fn block_on(program: &str, work: impl Future<Output = Result<(), String>>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("{program}: failed to start threads: {error}");
            return ExitCode::FAILURE;
        }
    };
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{program}: {why}");
            ExitCode::FAILURE
        }
    }
}
