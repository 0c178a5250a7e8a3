//! The injected program (`longhaul-seed`): a small static program that serves images from `ConfigMap`s in a cluster
//! without a registry.
//!
//! The program reads an index, assembles the payload chunk by chunk in limited memory, verifies each chunk and the
//! whole payload, and unpacks it. After unpacking, the program serves the files as a read-only registry (`/v2/`). The
//! program opens no connection, and trusts only the digest on its command line: any other input may come from an
//! attacker.
//!
//! The modules `index` and `catalog` are the formats that the injector writes; other crates use only these two modules.

pub mod args;
mod assemble;
pub mod catalog;
mod chunks;
pub mod digest;
pub mod failure;
mod http;
pub mod index;
#[cfg(feature = "planted-bugs")]
pub mod planted;
mod server;
mod signals;
mod tar;
mod unpack;

use std::process::ExitCode;

use args::Args;
use failure::Failure;

/// The environment variable that names a planted bug.
const PLANTED_VARIABLE: &str = "LONGHAUL_PLANTED_BUG";

/// A function that changes the arguments so that the named bug occurs.
pub type Plant = fn(&str, Args) -> Result<Args, Failure>;

/// Assembles and verifies the payload, and serves it until a signal arrives.
pub fn main(plant: Option<Plant>) -> ExitCode {
    match run(plant) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("longhaul-seed: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Assembles and verifies the payload without serving it; returns the folder with the unpacked files.
pub fn assembled(args: &Args) -> Result<std::path::PathBuf, Failure> {
    assemble::assemble(args).map(|store| store.folder)
}

fn run(plant: Option<Plant>) -> Result<(), Failure> {
    let args = planted_with(plant, Args::parse(std::env::args_os().skip(1))?)?;
    // The signals are caught from the start: process 1 of a container ends only by signals that it handles.
    let signals = signals::Signals::catch()?;
    let store = assemble::assemble(&args)?;
    match args.listen {
        Some(listen) => server::serve(&listen, store, signals),
        None => Ok(()),
    }
}

/// Changes `args` so that the bug in the environment variable occurs. A program without planted bugs refuses the
/// variable, because the harness would otherwise believe that its judge had missed the bug.
fn planted_with(plant: Option<Plant>, args: Args) -> Result<Args, Failure> {
    let Some(name) = std::env::var_os(PLANTED_VARIABLE).filter(|name| !name.is_empty()) else { return Ok(args) };
    let name = name.to_string_lossy();
    match plant {
        Some(plant) => plant(&name, args),
        None => Err(Failure::Usage(format!("{PLANTED_VARIABLE}={name} is set, and this program has no planted bugs"))),
    }
}
