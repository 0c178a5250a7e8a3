//! Tests that the remains of killed commands are found and removed. In these tests, sleeping processes and hand-written
//! state files replace real control planes.

use std::process::{Child, Command, Stdio};

use super::*;
use crate::state::{Entry, Identity, Process};

fn linux() -> bool {
    if !cfg!(target_os = "linux") {
        println!("skipped: needs Linux");
    }
    cfg!(target_os = "linux")
}

/// A child process that is waited for when the test ends.
struct Sleeper(Child);

impl Sleeper {
    /// Starts a process that waits for input which never comes, and ignores its arguments.
    fn start(arguments: &[String]) -> Self {
        let mut command = Command::new("/bin/sh");
        // A builtin, so that there is one process without children.
        command.args(["-c", "read line", "sh"]).args(arguments).stdin(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    fn process(&self, program: &str) -> Process {
        Process { program: program.to_owned(), identity: Identity::of(self.0.id()).unwrap() }
    }

    fn is_alive(&self) -> bool {
        Identity::of(self.0.id()).is_ok_and(|identity| identity.is_alive())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The identity of a process that no longer exists.
fn nobody() -> Identity {
    Identity { start_ticks: 0, ..Identity::of_self().unwrap() }
}

/// Writes the files of a control plane; the function `change` modifies the control plane's state entry beforehand.
fn leave(
    root: &Path,
    name: &str,
    purpose: Purpose,
    directory: Option<&Path>,
    change: impl FnOnce(&mut Entry),
) -> Entry {
    let registration = Registration::begin(root, name, purpose, directory).unwrap();
    let mut entry = registration.keep();
    change(&mut entry);
    for folder in ["pki", "etcd", "logs"] {
        fs::create_dir_all(entry.directory.join(folder)).unwrap();
        fs::write(entry.directory.join(folder).join("file"), "x").unwrap();
    }
    fs::write(root.join(name).join("cluster.json"), serde_json::to_string(&entry).unwrap()).unwrap();
    entry
}

fn health(root: &Path) -> Vec<(String, Health)> {
    status(root).unwrap().clusters.into_iter().map(|cluster| (cluster.name, cluster.health)).collect()
}

#[tokio::test]
async fn what_a_killed_command_left_is_found_named_and_taken_down() {
    if !linux() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let noted = Sleeper::start(&[]);
    // Its process id is in the entry, but with the start time of another process.
    let stranger = Sleeper::start(&[]);
    let reused =
        Process { program: "etcd".into(), identity: Identity { start_ticks: 1, ..stranger.process("etcd").identity } };
    let entry = leave(root.path(), "local", Purpose::Lasting, None, |entry| {
        entry.owner = nobody();
        entry.processes = vec![noted.process("kube-apiserver"), reused];
    });
    // Started, but its starter was killed before it registered it. The folder of another control plane has the same
    // name at another place.
    let unnoted = Sleeper::start(&[format!("--data-dir={}/etcd", entry.directory.display())]);
    let other = Sleeper::start(&["--data-dir=/elsewhere/local/etcd".to_owned()]);
    let pid = std::process::id();
    assert_eq!(health(root.path()), [("local".to_owned(), Health::Leftover { pid, alive: 2 })]);
    let text = status(root.path()).unwrap().to_string();
    assert!(
        text.starts_with(&format!("local: leftover of process {pid}, which was killed; 2 of its processes")),
        "{text}"
    );
    assert!(text.contains(&format!("\n  process {} sh", unnoted.0.id())), "{text}");
    assert!(text.ends_with("run `longhaul cluster down` to end and remove the leftovers"), "{text}");
    let error = up(Up::new("/nowhere", root.path())).await.unwrap_err().to_string();
    assert!(error.starts_with("parts of an earlier `local` remain (leftover of process"), "{error}");

    let done = down(root.path(), None).await.unwrap();
    assert!(done.is_complete(), "{done}");
    let mut ended: Vec<u32> = done.ended.iter().map(|(_, process)| process.identity.pid).collect();
    ended.sort_unstable();
    let mut expected = [noted.0.id(), unnoted.0.id()];
    expected.sort_unstable();
    assert_eq!(ended, expected);
    assert!(!noted.is_alive() && !unnoted.is_alive() && stranger.is_alive() && other.is_alive());
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    assert_eq!(down(root.path(), None).await.unwrap().to_string(), "no control plane was found");
}

#[tokio::test]
async fn folders_are_removed_only_with_the_mark_and_only_what_is_ours() {
    if !linux() {
        return;
    }
    let (root, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    leave(root.path(), "local", Purpose::Lasting, None, |entry| entry.owner = nobody());
    fs::write(root.path().join("local/notes.txt"), "mine").unwrap();
    // The folder was used for another control plane since.
    leave(root.path(), "run-a", Purpose::Run, Some(work.path()), |entry| entry.owner = nobody());
    leave(root.path(), "run-b", Purpose::Run, Some(work.path()), |entry| entry.owner = nobody());
    let done = down(root.path(), None).await.unwrap();
    let left: Vec<&Path> = done.left.iter().map(|(path, _)| path.as_path()).collect();
    assert_eq!(left, [root.path().join("local").as_path(), work.path()], "{done}");
    assert!(done.to_string().contains("it holds files that no control plane made"), "{done}");
    assert!(done.to_string().contains("not provably Longhaul's"), "{done}");
    assert_eq!(fs::read_to_string(root.path().join("local/notes.txt")).unwrap(), "mine");
    assert!(!root.path().join("local/pki").exists());
    // The second run's mark is right: its keys and data go, its logs stay.
    assert!(!work.path().join("pki").exists() && work.path().join("logs/file").exists());
    assert!(status(root.path()).unwrap().clusters.is_empty());
}

#[tokio::test]
async fn what_is_in_use_is_left_alone() {
    if !linux() {
        return;
    }
    let (root, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let pid = std::process::id();
    leave(root.path(), "run-a", Purpose::Run, Some(work.path()), |_| ());
    leave(root.path(), "other", Purpose::Lasting, None, |_| ());
    let expected = [("other".to_owned(), Health::Starting { pid }), ("run-a".to_owned(), Health::InUse { pid })];
    assert_eq!(health(root.path()), expected);
    assert_eq!(down(root.path(), None).await.unwrap(), Down::default());
    let error = down(root.path(), Some("run-a")).await.unwrap_err();
    assert!(matches!(error, Error::Starting { .. }), "{error}");
    assert!(matches!(down(root.path(), Some("no")).await, Err(Error::Unknown { .. })));
    let mut again = Up::new("/nowhere", root.path());
    again.name = "other".to_owned();
    assert!(matches!(up(again).await, Err(Error::Starting { .. })));
    assert!(work.path().join("pki/file").exists() && root.path().join("other/pki/file").exists());
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_is_named_and_left() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("local")).unwrap();
    fs::write(root.path().join("local/cluster.json"), "{").unwrap();
    let text = status(root.path()).unwrap().to_string();
    assert!(text.starts_with("local: unknown, its entry cannot be read ("), "{text}");
    let done = down(root.path(), None).await.unwrap();
    assert!(!done.is_complete() && root.path().join("local/cluster.json").exists(), "{done}");
}

#[tokio::test]
async fn a_control_plane_of_which_a_part_ended_is_broken_and_can_be_taken_down() {
    if !linux() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let etcd = Sleeper::start(&[]);
    leave(root.path(), "local", Purpose::Lasting, None, |entry| {
        entry.owner = nobody();
        entry.processes = vec![etcd.process("etcd")];
        let (version, url) = ("v1.34.1".to_owned(), "https://127.0.0.1:1".to_owned());
        entry.ready = Some(Ready { version, url, kubeconfig: Some("/k".into()) });
    });
    let programs = vec!["kube-apiserver".to_owned()];
    assert_eq!(health(root.path()), [("local".to_owned(), Health::Ended { programs })]);
    let text = status(root.path()).unwrap().to_string();
    assert!(
        text.contains("local: broken: kube-apiserver ended\n  kube-apiserver v1.34.1 at https://127.0.0.1:1"),
        "{text}"
    );
    assert!(down(root.path(), None).await.unwrap().is_complete());
    assert!(!etcd.is_alive());
}

#[tokio::test]
async fn a_start_that_fails_leaves_the_name_free() {
    let root = tempfile::tempdir().unwrap();
    if !linux() {
        return;
    }
    for _ in 0..2 {
        let error = up(Up::new("/nowhere", root.path())).await.unwrap_err();
        assert!(matches!(error, Error::Local(local::Error::Missing(_))), "{error}");
    }
    let empty = status(root.path()).unwrap();
    assert_eq!(empty.to_string(), "no control plane is up (start one with `longhaul cluster up`)");
}

#[test]
fn the_text_of_up_says_what_to_do_next() {
    let up = IsUp {
        is_kind: false,
        name: "other".into(),
        version: "v1.33.0".into(),
        url: "https://127.0.0.1:6443".into(),
        kubeconfig: "/s/other/kubeconfig".into(),
        logs: "/s/other/logs".into(),
        machine: None,
    };
    assert_eq!(
        up.to_string(),
        "kube-apiserver v1.33.0 is up at https://127.0.0.1:6443 (`other`, without nodes or controllers)\n  \
         use it:  KUBECONFIG=/s/other/kubeconfig kubectl get namespaces\n  logs:    /s/other/logs\n  \
         stop it: longhaul cluster down --name other"
    );
    let (name, machine) = ("node".to_owned(), Some([10, 200, 0, 1].into()));
    assert_eq!(
        IsUp { name, machine, ..up }.to_string(),
        "Kubernetes v1.33.0 with one node is up at https://127.0.0.1:6443 (`node`)\n  \
         its Pods reach this machine at 10.200.0.1\n  \
         use it:  KUBECONFIG=/s/other/kubeconfig kubectl get pods --all-namespaces\n  \
         images:  longhaul cluster load ARCHIVE\n  logs:    /s/other/logs\n  stop it: longhaul cluster down"
    );
}
