//! Both example watchers against the mock API server: whatever happens to their watches, the witness hears it all.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

#[path = "../../planted/tests/it/world.rs"]
#[expect(dead_code, reason = "the planted client's tests ask for more")]
mod world;

use tokio::process::Command;

use world::World;

fn rust() -> Command {
    Command::new(env!("CARGO_BIN_EXE_example-watcher"))
}

fn python() -> Command {
    let mut command = Command::new("python3");
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../watcher.py"));
    command
}

/// The whole life of a watcher: list, events, and each kind of trouble.
async fn sees_everything(watcher: Command) {
    let Some(world) = World::start(watcher).await else { return };
    world.churn("calm").await;
    world.until_told().await;
    let first = world.heard.lock()[0].clone();
    assert_eq!((&first["resource"], &first["name"]), (&"packages.longhaul.dev".into(), &"early".into()));
    assert_eq!((&first["namespace"], &first["change"]), (&"default".into(), &"added".into()));

    let reset = world.fault(1, "{name: watch-reset, at: 0s}");
    world.churn("reset").await;
    world.until_hit(reset).await;
    world.server.faults().end(reset);
    world.until_told().await;

    for (id, form) in [(2, "http"), (3, "stream")] {
        // Cut first, so that the watcher has something to catch up with when its version is too old.
        let gone = world.fault(id, &format!("{{name: watch-410, at: 0s, form: {form}}}"));
        world.churn(form).await;
        world.admin.delete(&format!("{form}-0")).await;
        world.until_told().await;
        world.server.faults().end(gone);
    }

    // The silence falls on open watches; the watcher may just have listed and not have opened its next one.
    world.until_watching().await;
    let silent = world.fault(4, "{name: silent-watch, at: 0s}");
    world.churn("silent").await;
    world.until_hit(silent).await;
    world.until_told().await;
    world.server.faults().end(silent);
    let mut known = std::collections::BTreeSet::new();
    for line in world.heard.lock().iter() {
        let uid = line["uid"].to_string();
        let right = if line["change"] == "deleted" {
            known.remove(&uid)
        } else {
            known.insert(uid) || line["change"] == "modified"
        };
        assert!(right, "deleted and never added: {line}");
    }
    world.server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn the_rust_watcher_sees_everything() {
    sees_everything(rust()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn the_python_watcher_sees_everything() {
    sees_everything(python()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn a_bug_that_is_not_compiled_in_is_refused() {
    let mut watcher = rust();
    let output = watcher.env("LONGHAUL_PLANTED_BUG", "missed-delete").output().await.unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&output.stderr).contains("this program has no bugs"));
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(feature = "planted-bugs")]
#[ignore = "slow"]
async fn a_planted_missed_delete_shows() {
    let mut watcher = Command::new(env!("CARGO_BIN_EXE_example-watcher-planted"));
    watcher.env("LONGHAUL_PLANTED_BUG", "missed-delete");
    let world = World::start(watcher).await.unwrap();
    world.admin.create("gone").await;
    world.until_told().await;
    world.admin.delete("gone").await;
    // Something that it does report, after the deletion: so it has had its chance.
    world.admin.create("after").await;
    world.until("nothing was heard of it", |world| world.has_heard("after", "added")).await;
    assert!(!world.heard.lock().iter().any(|line| line["change"] == "deleted"));
}
