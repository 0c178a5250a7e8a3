//! A correct list/watch client whose mistakes are switches: `planted-client [--mistake NAME]…`.
//!
//! It exists to prove that a run finds a mistake and finds nothing else: without a switch it must pass what any client
//! can pass. `KUBECONFIG`, `LONGHAUL_WITNESS_URL`, `LONGHAUL_WATCH` and `LONGHAUL_NAMESPACE` say where and what. It must
//! not know more of the harness than those four.

mod args;
mod mistakes;

use clap::Parser as _;

fn main() {
    let args = args::Args::parse();
    if args.list_mistakes {
        print!("{}", mistakes::listing());
    }
}
