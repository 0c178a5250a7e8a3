//! A client in another language as a child process that says what it saw, one JSON object a line.

use std::collections::BTreeMap;
use std::process::{ExitStatus, Stdio};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::world::{PATIENCE, World};

/// Most lines of a program that are kept.
const LINES_MAX: usize = 10_000;

pub struct Program {
    name: String,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// Events in the order in which the client told them: `(type, name, revision)`.
    pub events: Vec<(String, String, String)>,
    /// What the client believes to exist: name and revision.
    pub view: BTreeMap<String, String>,
    /// Everything else it said.
    pub remarks: Vec<Value>,
    home: tempfile::TempDir,
}

impl Program {
    /// Starts it with nothing of this process's environment but `PATH`, so that a proxy or a cluster of the machine
    /// has no say.
    pub fn start(name: &str, mut command: Command, world: &World) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("config"), world.kubeconfig()).unwrap();
        let errors = std::fs::File::create(home.path().join("stderr")).unwrap();
        let mut child = command
            .env("HOME", home.path())
            .env("KUBECONFIG", home.path().join("config"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (events, view, remarks) = (Vec::new(), BTreeMap::new(), Vec::new());
        Self { name: name.to_owned(), child, lines, events, view, remarks, home }
    }

    /// Takes in what the client says until `enough`.
    pub async fn until(&mut self, what: &str, mut enough: impl FnMut(&Self) -> bool) {
        while !enough(self) {
            match self.line(what).await {
                Some(line) => self.take_in(&line),
                None => panic!("{} ended before {what}\n{}", self.name, self.troubles()),
            }
        }
    }

    /// Takes in what it has to say until it ends, which must be with success.
    pub async fn finish(&mut self) {
        let status = self.end().await;
        assert!(status.success(), "{} {status}\n{}", self.name, self.troubles());
    }

    /// Takes in what it has to say until it ends by itself.
    pub async fn end(&mut self) -> ExitStatus {
        while let Some(line) = self.line("its end").await {
            self.take_in(&line);
        }
        tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("a closed stdout is an end").unwrap()
    }

    /// Ends it, whatever it is doing.
    pub async fn stop(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Its standard error and its last words.
    pub fn troubles(&self) -> String {
        let errors = std::fs::read(self.home.path().join("stderr")).unwrap_or_default();
        let errors = String::from_utf8_lossy(&errors);
        let tail: Vec<&str> = errors.lines().rev().take(12).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        format!("events {:?}\nremarks {:?}\n{}", self.events, self.remarks, tail.join("\n"))
    }

    /// The next line; `None` at the end of its output.
    async fn line(&mut self, what: &str) -> Option<String> {
        match tokio::time::timeout(PATIENCE, self.lines.next_line()).await {
            Ok(line) => line.unwrap(),
            Err(elapsed) => panic!("{}: {elapsed} before {what}\n{}", self.name, self.troubles()),
        }
    }

    fn take_in(&mut self, line: &str) {
        assert!(self.events.len() + self.remarks.len() < LINES_MAX, "{} says too much", self.name);
        let Ok(said) = serde_json::from_str::<Value>(line) else {
            return self.remarks.push(Value::from(line));
        };
        let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
        let (event, name, revision) = (text("event"), text("name"), text("revision"));
        match event.as_str() {
            "" => return self.remarks.push(said),
            "DELETED" => self.view.remove(&name),
            _ => self.view.insert(name.clone(), revision.clone()),
        };
        self.events.push((event, name, revision));
    }
}
