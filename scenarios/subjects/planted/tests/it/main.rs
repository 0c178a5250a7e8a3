//! The planted client as a process against the mock API server: without a mistake it hears everything whatever happens to
//! its watches; with one it does not.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

mod clean;
mod faults;
mod mistaken;
mod script;
mod stories;
mod world;

use tokio::process::Command;

use world::World;

/// A world with a planted client.
async fn start(arguments: &[&str]) -> World {
    let mut client = Command::new(env!("CARGO_BIN_EXE_planted-client"));
    client.args(arguments);
    World::start(client).await.unwrap()
}
