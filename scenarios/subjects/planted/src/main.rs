//! A correct list/watch client that can make mistakes: `planted-client [--mistake NAME]…`.
//!
//! The client proves that a run finds a mistake and nothing else: without a mistake the client must pass all tests.
//! `KUBECONFIG`, `LONGHAUL_WITNESS_URL`, `LONGHAUL_WATCH` and `LONGHAUL_NAMESPACE` set the server, the witness and the
//! resources. The client uses nothing else of the harness.

mod args;
mod backoff;
mod growth;
mod handler;
mod informer;
mod kubeconfig;
mod list;
mod mistakes;
mod object;
mod revision;
mod store;
mod watch;
mod wire;
mod witness;

use clap::Parser as _;
use tokio::task::JoinSet;

use args::{Args, Environment};
use handler::{Handler, Queues};
use informer::{Informer, Parts, SharedBackoff};
use kubeconfig::Kubeconfig;
use mistakes::{Mistake, Mistakes};
use wire::Wire;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if args.list_mistakes {
        print!("{}", mistakes::listing());
        return Ok(());
    }
    let environment = Environment::read()?;
    let mistakes = Mistakes::new(&args.mistakes);
    let wire = Wire::new(Kubeconfig::read(&environment.kubeconfig)?, args.http, mistakes.clone())?;
    let mut tasks = JoinSet::new();
    let lines = witness::start(&environment.witness, &mut tasks)?;
    let kinds = environment.scopes.len() * args.copies.max(1);
    let (listed, synced) = tokio::sync::watch::channel(0);
    let (asked, _) = tokio::sync::watch::channel(0);
    let shared_backoff =
        if mistakes.made(Mistake::SharedBackoff) { SharedBackoff::shared() } else { SharedBackoff::default() };
    for copy in (0..args.copies.max(1)).rev() {
        for scope in &environment.scopes {
            let handler = || Handler {
                scope: scope.clone(),
                handling: args.handler,
                delay: args.handler_delay.0,
                wire: wire.clone(),
                lines: lines.clone(),
                synced: (synced.clone(), kinds),
                answers: handler::Answers::default(),
                mistakes: mistakes.clone(),
            };
            let parts = Parts {
                path: scope.path(),
                wire: wire.clone(),
                clocks: args.clocks(),
                mistakes: mistakes.clone(),
                streaming: args.streaming_lists,
                asked: asked.clone(),
                // The last one of many is the one that a limit hits, in any order of the answers to their lists.
                after: if copy == 0 { kinds - environment.scopes.len() } else { 0 },
                queues: (copy == 0).then(|| Queues::start(handler())),
                growth: growth::Growth::default(),
                shared_backoff: shared_backoff.clone(),
                synced: listed.clone(),
                verbose: args.verbose,
            };
            tasks.spawn(Informer::new(parts).run());
        }
    }
    drop(lines);
    // None of them ends by itself; one that panics ends the process.
    while let Some(ended) = tasks.join_next().await {
        ended?;
    }
    Ok(())
}
