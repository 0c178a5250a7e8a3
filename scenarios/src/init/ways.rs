//! Commands that build and start a program according to the project's files, and its workload in a cluster. Does no
//! I/O.

use std::path::PathBuf;

use serde_json::Value;

use super::Found;
use super::deployed::Deployed;

/// A build command and a start command for the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Way {
    /// The build command, if the program must be built.
    pub(crate) build: Option<String>,
    /// The command that starts the program, as a list of words.
    pub(crate) program: Vec<String>,
    /// The folder in which the build and the start command run, relative to the project.
    pub(crate) folder: PathBuf,
}

impl Found {
    /// All pairs of a build and a start command, first the commands in the project's own files.
    pub(crate) fn ways(&self) -> Vec<Way> {
        let Some(language) = self.program() else { return Vec::new() };
        let folder = language.folder().to_owned();
        let first = (language.build.clone(), language.command.clone());
        let mut ways: Vec<Way> = Vec::new();
        for (build, program) in std::iter::once(first).chain(language.others.iter().cloned()) {
            if !program.is_empty() && ways.iter().all(|way| way.build != build || way.program != program) {
                ways.push(Way { build, program, folder: folder.clone() });
            }
        }
        ways
    }

    /// The objects that the deployed program reads.
    pub(crate) fn beside(&self, program: &[String]) -> Vec<Value> {
        let deployed = self.workloads.own(named(program));
        deployed.map(|deployed| self.workloads.objects(deployed).into_iter().cloned().collect()).unwrap_or_default()
    }

    /// The container that runs the program in a cluster; an empty value if no manifest has this container.
    pub(crate) fn deployed(&self, program: &[String]) -> Deployed {
        self.workloads.own(named(program)).cloned().unwrap_or_default()
    }

    /// Namespace and service account of the program's workload.
    pub(crate) fn place_of(&self, program: &[String]) -> (Option<String>, Option<String>) {
        let deployed = self.workloads.own(named(program));
        deployed.map(|deployed| (deployed.namespace.clone(), deployed.account.clone())).unwrap_or_default()
    }
}

fn named(program: &[String]) -> &str {
    program.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default()
}
