//! The project's own build: tries one command after the other until a command produces a program.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::is_over;
use crate::init::Way;
use crate::keeper::Folder;
use crate::subject::{self, Launch, Log};

/// Timeout of a build; a large operator without a cache takes minutes.
const BUILD_MAX: Duration = Duration::from_mins(20);
const POLL: Duration = Duration::from_millis(50);

/// Tries the build commands. Returns the first command that produces its program, or the last command with its last
/// output.
pub(super) async fn first_that_builds<'w>(
    ways: &'w [Way],
    folder: &Path,
    say: &dyn Fn(String),
) -> Result<&'w Way, (String, String)> {
    let mut failed = (String::new(), String::new());
    for way in ways {
        let place = folder.join(&way.folder);
        if let Some(command) = &way.build {
            say(format!("building: {command}"));
            if let Err(words) = run(command, &place).await {
                say(format!("it does not build so: {}", words.lines().last().unwrap_or_default()));
                failed = (command.clone(), words);
                continue;
            }
        }
        if is_there(&way.program, &place) {
            return Ok(way);
        }
        let program = way.program.first().cloned().unwrap_or_default();
        failed = (way.build.clone().unwrap_or_default(), format!("there is no program `{program}` afterwards"));
    }
    Err(failed)
}

fn is_there(program: &[String], place: &Path) -> bool {
    program.first().is_some_and(|first| launch(first, &[], place).check().is_ok())
}

fn launch(program: &str, arguments: &[String], place: &Path) -> Launch {
    Launch {
        name: None,
        program: PathBuf::from(program),
        arguments: arguments.to_vec(),
        // Some builds run tests, which must not find a cluster.
        environment: vec![("KUBECONFIG".to_owned(), "/dev/null".to_owned())],
        directory: Some(place.to_owned()),
        awaited: None,
        clock: None,
        mounts: None,
    }
}

/// Runs a command in its own process group, which the keeper process ends if Longhaul is killed. The error contains the
/// last output of the command.
async fn run(command: &str, place: &Path) -> Result<(), String> {
    let words = shlex::split(command).filter(|words| !words.is_empty());
    let (program, arguments) = words.as_ref().and_then(|words| words.split_first()).ok_or("it is no command")?;
    let folder = Folder::make().map_err(|error| format!("{error:#}"))?;
    let log = Log::create(folder.path(), None).map_err(|error| error.to_string())?;
    let mut running = launch(program, arguments, place).start(log).map_err(|error| match error {
        subject::Error::Start { source, .. } => format!("failed to start {program}: {source}"),
        other => other.to_string(),
    })?;
    let began = Instant::now();
    loop {
        if let Some(status) = running.exited() {
            return if status.success() { Ok(()) } else { Err(running.last_words().await) };
        }
        if is_over(began, BUILD_MAX) {
            return Err(format!("it takes longer than {} minutes", BUILD_MAX.as_secs() / 60));
        }
        tokio::time::sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(build: &str, program: &str) -> Way {
        Way { build: Some(build.to_owned()), program: vec![program.to_owned()], folder: PathBuf::new() }
    }

    #[tokio::test]
    async fn the_next_way_is_tried_when_one_fails() {
        let folder = tempfile::tempdir().unwrap();
        let ways = [
            way("sh -c 'echo no such package >&2; exit 1'", "./a"),
            way("true", "./missing"),
            way("sh -c 'touch b'", "./b"),
        ];
        let found = first_that_builds(&ways, folder.path(), &|_| {}).await;
        assert_eq!(found.map(|way| way.program[0].as_str()), Ok("./b"));
        let (command, words) = first_that_builds(&ways[..1], folder.path(), &|_| {}).await.unwrap_err();
        assert!(command.starts_with("sh -c") && words == "no such package", "{command}: {words}");
        let (_, words) = first_that_builds(&[way("no-such-tool x", "a")], folder.path(), &|_| {}).await.unwrap_err();
        assert!(words.contains("failed to start no-such-tool"), "{words}");
    }
}
