//! `longhaul init`: the command around what is found in a folder.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use crate::init::{Found, build, kubectl, scenario};
use crate::out::out;
use crate::placed;
use crate::scenario::Source;
use crate::shown;

/// What can be said on the command line.
#[derive(Args)]
pub(super) struct Arguments {
    /// The project's folder.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// The file to write, in the folder.
    #[arg(long, default_value = "longhaul.yaml")]
    output: PathBuf,
    /// Replace the file when it exists.
    #[arg(long)]
    force: bool,
}

/// Writes the scenario and says what it was made from.
pub(super) fn init(Arguments { folder, output, force }: &Arguments) -> anyhow::Result<u8> {
    let found = read(folder).with_context(|| folder.display().to_string())?;
    print(&found);
    if let Some(suite) = found.suite() {
        let (kit, command) = (suite.kit, suite.command);
        out!(
            "first     your own suite ({kit}), unchanged, in a bad network: longhaul envtest --chaos 1 --repeat 5 -- {command}"
        );
        out!("          and before a merge: longhaul gate --suite '{command}' --a MAIN --b . (two checkouts)");
    }
    let text = scenario(&found);
    let made = found.made.iter().map(|(name, text)| (PathBuf::from(name), text));
    for (name, text) in made.chain([(output.clone(), &text)]) {
        let path = folder.join(&name);
        if let Err(error) = placed::write(folder, &name, text, *force) {
            let remedy = if error.kind() == std::io::ErrorKind::AlreadyExists { "; --force replaces it" } else { "" };
            anyhow::bail!("{}: {error}{remedy}", path.display());
        }
        out!("written   {}", path.display());
    }
    let path = folder.join(output);
    let file = path.display();
    match Source::read(&path.display().to_string()) {
        Ok(_) => {
            out!("next      look at the lines with `check:`, then: longhaul check --plan {file}; longhaul soak {file}");
        }
        // What the folder holds is stranger than what this file can say: the message tells which line.
        Err(error) => out!("next      mend what `longhaul check {file}` finds:\n{error}"),
    }
    Ok(reports::exit::PASS)
}

/// What is in the folder, and what kustomize makes of it.
fn read(folder: &Path) -> std::io::Result<Found> {
    let mut found = Found::read(folder)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let kustomized = runtime.block_on(build(folder, kubectl().as_deref()));
    found.kustomized(kustomized);
    Ok(found)
}

/// Names come from the files of the folder: each is on its own line, whatever is in it.
fn print(found: &Found) {
    let say = |line: String| out!("{}", shown::line(&line));
    if let Some(project) = &found.project {
        say(format!("found     {}, laid out by {} (PROJECT)", project.layout, project.tool()));
        if !project.is_go() {
            say(format!("found     no program of its own: its image starts that of {}", project.tool()));
        }
    }
    for language in &found.languages {
        let with = language.framework.map(|framework| format!(" with {}", framework.name())).unwrap_or_default();
        say(format!("found     {}{with} ({})", language.name, language.file.display()));
    }
    if let Some(suite) = found.suite() {
        say(format!("found     a suite with {} ({})", suite.kit, suite.file.display()));
    }
    for crd in &found.crds {
        say(format!("found     {} {} ({})", crd.kind, crd.resource(), crd.file.display()));
    }
    for hook in &found.hooks {
        let kind = if hook.is_mutating { "mutating" } else { "validating" };
        say(format!("found     {kind} webhook at {} ({})", hook.path, hook.file.display()));
    }
    for doubt in &found.doubts {
        say(format!("left out  {doubt}"));
    }
    if found.languages.is_empty() && found.crds.is_empty() && found.hooks.is_empty() {
        say("found     nothing that is known: the file is a frame to fill in".to_owned());
    }
}
