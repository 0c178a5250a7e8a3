//! `command`: a subject that is any command, either one program or several processes together.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use units::Span;

use super::{Kind, Profile, Role, Scene, Start, Subject, Templated, Upkeep, Wrong, wrong};
use crate::scenario::mounts::{self, Mount};
use crate::scenario::{BackOff, Readiness, Restart, Serves};
use crate::subject::{self, Launch};

/// Maximum number of processes of a subject.
const PROCESSES_MAX: usize = 16;

/// The keys of `command`. A list of words sets only `run`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default, remote = "Self")]
#[schemars(transform = or_words)]
pub struct Command {
    /// The program and its arguments. `${NAME}` is replaced by a variable's value: `KUBECONFIG`, `LONGHAUL_WATCH`, the
    /// variables of `serves` and `metrics`, a free port in `LONGHAUL_PORT_1` to `LONGHAUL_PORT_9`, and those of `env`.
    /// `$${NAME}` is passed on as `${NAME}`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub run: Vec<String>,
    /// Several processes instead of one process, such as a controller and its webhook, or two replicas. All processes
    /// get the same kubeconfig and variables, and are measured together. If one process ends, the subject has ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<Process>,
    /// `webhook`: the command answers reviews and watches nothing, so it is ready when its port answers TLS, and needs
    /// no witness. `both`: the command also watches, and its answers are judged as with `webhook`. Default: the role
    /// follows from the other keys, and reviews must be answered as the built-in service's policy says.
    pub role: Option<Role>,
    /// Environment variables for the command, besides `KUBECONFIG` and `LONGHAUL_WITNESS_URL`. Values may contain
    /// `${NAME}`, like the arguments of `run`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The working directory of the command, relative to the scenario file.
    pub cwd: Option<PathBuf>,
    /// The files and folders that make up the command's build, relative to the scenario file, such as the script that
    /// an interpreter runs. The record has one SHA-256 over them, the digest of the output of `sha256sum` for these
    /// files, so that two versions differ. Default: the file of the program in `run`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PathBuf>,
    /// Folders that only the command's processes see, as a kubelet mounts them: `/certs: {secret: NAMESPACE/NAME}`. Needs root or
    /// unprivileged user namespaces.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mounts: BTreeMap<PathBuf, Mount>,
    /// The endpoint for admission reviews. The command gets `LONGHAUL_WEBHOOK_PORT`, `LONGHAUL_TLS_CERT`,
    /// `LONGHAUL_TLS_KEY` and `LONGHAUL_TLS_DIR` as variables; arguments and variables may contain them, such as
    /// `${LONGHAUL_TLS_DIR}`. The folder `LONGHAUL_TLS_DIR` has both files, as `tls.crt` and `tls.key`.
    pub serves: Option<Serves>,
    /// The condition under which the command counts as ready: `{url: ADDRESS}`, `{log: TEXT}` or `{request: first}`.
    /// Default: the command has requested a judged resource from the control plane, and its webhook's port is open.
    /// With `role: webhook`, the default is that the webhook's port answers TLS.
    pub ready: Option<Readiness>,
    /// After which ends a process is started again, as by a kubelet: `always` or `onFailure`. Default: the end of a
    /// process fails the run. `budgets.crashes` limits the number of restarts.
    pub restart: Option<Restart>,
    /// The delay between a crash and the restart.
    pub back_off: Option<BackOff>,
    /// How many times faster the subject's own clock runs. A faster clock works for any 64-bit program and the
    /// processes that it starts. The harness measures in real time; lifetimes on the server are shortened by the same
    /// factor.
    pub clock_rate: Option<u32>,
    /// Time to exit after SIGTERM. Default: 30s.
    pub stop_timeout: Option<Span>,
}

/// One of the several processes of a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Process {
    /// The name of the process in the log and in the report.
    pub name: String,
    /// The program and its arguments.
    pub run: Vec<String>,
    /// Environment variables for this process only, besides those of the whole subject.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The working directory of this process, relative to the scenario file. Default: the working directory of the
    /// whole subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
}

impl Kind for Command {
    fn profile(&self) -> Profile<'_> {
        let Self { restart, back_off, clock_rate, stop_timeout, .. } = *self;
        Profile {
            build: &self.files,
            texts: self.texts(),
            role: self.role,
            ready: self.ready.clone(),
            serves: self.serves.as_ref(),
            mounts: Some(&self.mounts).filter(|mounts| !mounts.is_empty()),
            is_started: true,
            processes: self.processes.iter().map(|one| one.name.as_str()).collect(),
            upkeep: Upkeep { restart, back_off, clock_rate, stop_timeout, ..Upkeep::default() },
            plan: self.plan(),
            ..Profile::of("command")
        }
    }

    fn check(&self, _: &Subject) -> Result<(), Wrong> {
        match (self.run.is_empty(), self.processes.is_empty()) {
            (true, true) => {
                return wrong(
                    "command",
                    "`command` names no program: write `command: [program, argument, …]`, or `processes` with several",
                );
            }
            (false, false) => return wrong("processes", "has both `run` and `processes`: keep one"),
            _ => {}
        }
        if let Err(text) = mounts::check(&self.mounts) {
            return wrong("mounts", text);
        }
        if self.processes.len() > PROCESSES_MAX {
            let count = self.processes.len();
            return wrong("processes", format!("`processes`: there are {count}; at most {PROCESSES_MAX}"));
        }
        let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        for (index, one) in self.processes.iter().enumerate() {
            let Process { name, run, .. } = one;
            let text = if name.is_empty() || name.len() > 63 || !name.chars().all(is_fine) {
                format!("`processes`: `{name}`: a name has 1 to 63 lower-case letters, digits and `-`")
            } else if run.is_empty() {
                format!("`processes`: `{name}` needs `run: [program, argument, …]`")
            } else if self.processes[..index].iter().any(|other| other.name == *name) {
                format!("`processes`: two are called `{name}`: give each a name of its own")
            } else {
                continue;
            };
            return wrong("processes", text);
        }
        Ok(())
    }

    fn hurry(&mut self, rate: u32) {
        self.clock_rate = Some(rate);
    }

    fn start(&self, scene: &Scene<'_>) -> Result<Start> {
        let launch = |one: Option<&Process>, words: &[String]| -> Result<Launch> {
            let (program, arguments) = words.split_first().context("the scenario names no command")?;
            let own = one.iter().flat_map(|one| &one.env);
            let cwd = one.and_then(|one| one.cwd.as_ref()).or(self.cwd.as_ref());
            Ok(Launch {
                name: one.map(|one| one.name.clone()),
                program: find(program, scene.is_planted),
                arguments: arguments.to_vec(),
                environment: self.env.iter().chain(own).map(|(name, value)| (name.clone(), value.clone())).collect(),
                directory: cwd.map(|cwd| scene.ground.folder().join(cwd)),
                awaited: scene.awaited.clone(),
                clock: None,
                mounts: None,
            })
        };
        let launches = if self.processes.is_empty() {
            vec![launch(None, &self.run)?]
        } else {
            self.processes.iter().map(|one| launch(Some(one), &one.run)).collect::<Result<_>>()?
        };
        Ok(Start::Programs(launches, None))
    }
}

impl Command {
    fn texts(&self) -> Vec<Templated<'_>> {
        let mut texts = written(&self.run, &self.env, None);
        texts.extend(values(&self.env));
        for one in &self.processes {
            texts.extend(written(&one.run, &self.env, Some(one)));
            texts.extend(values(&one.env));
        }
        texts
    }

    /// The line about the subject's processes in the printed plan, if there are several.
    fn plan(&self) -> Option<(&'static str, String)> {
        let each: Vec<String> =
            self.processes.iter().map(|one| format!("{} (`{}`)", one.name, one.run.join(" "))).collect();
        (!each.is_empty()).then(|| ("processes", each.join(", ")))
    }
}

/// The arguments of a program as templates, each with the names of the variables that the scenario sets for the
/// program.
fn written<'t>(words: &'t [String], env: &'t BTreeMap<String, String>, one: Option<&'t Process>) -> Vec<Templated<'t>> {
    let own: Vec<&str> = env.keys().chain(one.iter().flat_map(|one| one.env.keys())).map(String::as_str).collect();
    words.iter().map(|text| Templated { key: "run", text, own: own.clone() }).collect()
}

fn values(env: &BTreeMap<String, String>) -> impl Iterator<Item = Templated<'_>> {
    env.values().map(|text| Templated { key: "env", text, own: Vec::new() })
}

/// Finds the path of a program. Longhaul's own programs are in the folder of the running program and need no path;
/// other programs are searched in `PATH`, as a shell does. If a bug is planted, Longhaul's own programs are taken from
/// separate builds. Other programs can read the bug's name in an environment variable.
fn find(program: &str, planted: bool) -> PathBuf {
    if program.contains('/') {
        return PathBuf::from(program);
    }
    let names = [planted.then(|| format!("{program}-planted")), Some(program.to_owned())];
    let found = names.into_iter().flatten().find_map(|name| subject::sibling(&name).ok());
    found.unwrap_or_else(|| PathBuf::from(program))
}

impl Serialize for Command {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Command {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> de::Visitor<'de> for Either {
            type Value = Command;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a program and its arguments as a list, or a mapping with `run`")
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, words: A) -> Result<Command, A::Error> {
                let run = Vec::deserialize(de::value::SeqAccessDeserializer::new(words))?;
                Ok(Command { run, ..Command::default() })
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Command, A::Error> {
                Command::deserialize(de::value::MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Lets the schema of `command` also accept a list of words.
fn or_words(schema: &mut Schema) {
    let mapping = schema.clone();
    *schema = json_schema!({"anyOf": [{"type": "array", "items": {"type": "string"}}, mapping]});
}
