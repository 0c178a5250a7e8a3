//! The seed: a tiny static program that brings images out of `ConfigMaps` into a cluster without a registry.
//!
//! The seed reads an index, assembles the payload chunk after chunk in bounded memory, verifies each chunk and the
//! whole, and unpacks it. Then it serves the unpacked files as a read-only registry (`/v2/`). It makes no connection of
//! its own and trusts nothing but the digest on its command line: all other input may come from anybody.
//!
//! `index` and `catalog` are the formats that the injector writes, and the only part that other crates use.

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

/// The variable that names a planted bug.
const PLANTED_VARIABLE: &str = "LONGHAUL_PLANTED_BUG";

/// Changes the arguments for the bug of a name.
pub type Plant = fn(&str, Args) -> Result<Args, Failure>;

/// Runs the command line of this process: assemble, verify, serve until a signal.
pub fn main(plant: Option<Plant>) -> ExitCode {
    match run(plant) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("longhaul-seed: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Assembles and verifies without serving; returns the folder with the unpacked files.
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

/// A clean program refuses a planted bug: if it ignored the bug, a harness would believe that its judge had missed one.
fn planted_with(plant: Option<Plant>, args: Args) -> Result<Args, Failure> {
    let Some(name) = std::env::var_os(PLANTED_VARIABLE).filter(|name| !name.is_empty()) else { return Ok(args) };
    let name = name.to_string_lossy();
    match plant {
        Some(plant) => plant(&name, args),
        None => Err(Failure::Usage(format!("{PLANTED_VARIABLE}={name} is set, and this program has no planted bugs"))),
    }
}
