//! The project's own build, one way after the other until one leaves a program.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::BufReader;

use crate::init::Way;
use crate::subject::Launch;

/// A large operator without a cache takes minutes.
const BUILD_MAX: Duration = Duration::from_mins(20);
/// Last lines of a build that are told.
const LINES: usize = 12;
/// Of a line.
const CHARS: usize = 400;

/// The first way whose build succeeds and leaves its program; or the last command with its last words.
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
    let Some(first) = program.first() else { return false };
    let launch = Launch {
        name: None,
        program: PathBuf::from(first),
        arguments: Vec::new(),
        environment: Vec::new(),
        directory: Some(place.to_owned()),
        awaited: None,
        clock: None,
    };
    launch.check().is_ok()
}

/// Runs a command to its end; an error has its last words.
async fn run(command: &str, place: &Path) -> Result<(), String> {
    let words = shlex::split(command).filter(|words| !words.is_empty());
    let (program, arguments) = words.as_ref().and_then(|words| words.split_first()).ok_or("it is no command")?;
    let mut child = tokio::process::Command::new(program)
        .args(arguments)
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("failed to start {program}: {error}"))?;
    let lines = child.stderr.take().map(BufReader::new);
    let read = async {
        let mut last: Vec<String> = Vec::new();
        if let Some(mut lines) = lines.map(tokio::io::AsyncBufReadExt::lines) {
            while let Ok(Some(line)) = lines.next_line().await {
                if last.len() == LINES {
                    last.remove(0);
                }
                last.push(line.chars().take(CHARS).collect());
            }
        }
        last
    };
    let ended = tokio::time::timeout(BUILD_MAX, async { tokio::join!(read, child.wait()) }).await;
    match ended {
        Ok((_, Ok(status))) if status.success() => Ok(()),
        Ok((last, Ok(status))) => Err(if last.is_empty() { status.to_string() } else { last.join("\n") }),
        Ok((_, Err(error))) => Err(error.to_string()),
        Err(_) => Err(format!("it takes longer than {} minutes", BUILD_MAX.as_secs() / 60)),
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
