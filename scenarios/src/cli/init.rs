//! `longhaul init`: the command around what is found in a folder.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::init::{Found, scenario};
use crate::out::{err, out};
use crate::scenario::Source;

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
pub(super) fn init(Arguments { folder, output, force }: &Arguments) -> ExitCode {
    let found = match Found::read(folder) {
        Ok(found) => found,
        Err(error) => {
            err!("{}: {error}", folder.display());
            return ExitCode::from(reports::exit::USAGE);
        }
    };
    told(&found);
    let path = folder.join(output);
    let text = scenario(&found);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(*force).create_new(!force).truncate(*force);
    if let Err(error) = options.open(&path).and_then(|mut file| file.write_all(text.as_bytes())) {
        let remedy = if error.kind() == std::io::ErrorKind::AlreadyExists { "; --force replaces it" } else { "" };
        err!("{}: {error}{remedy}", path.display());
        return ExitCode::from(reports::exit::USAGE);
    }
    let file = path.display();
    out!("written   {file}");
    match Source::read(&path.display().to_string()) {
        Ok(_) => out!("next      look at the lines with `check:`, then: longhaul plan {file}; longhaul soak {file}"),
        // What the folder holds is stranger than what this file can say: the message tells which line.
        Err(error) => out!("next      mend what `longhaul check {file}` finds:\n{error}"),
    }
    ExitCode::from(reports::exit::PASS)
}

fn told(found: &Found) {
    for language in &found.languages {
        let with = language.framework.map(|framework| format!(" with {}", framework.name())).unwrap_or_default();
        out!("found     {}{with} ({})", language.name, language.file.display());
    }
    for crd in &found.crds {
        out!("found     {} {} ({})", crd.kind, crd.resource(), crd.file.display());
    }
    for hook in &found.hooks {
        let kind = if hook.is_mutating { "mutating" } else { "validating" };
        out!("found     {kind} webhook at {} ({})", hook.path, hook.file.display());
    }
    for doubt in &found.doubts {
        out!("left out  {doubt}");
    }
    if found.languages.is_empty() && found.crds.is_empty() && found.hooks.is_empty() {
        out!("found     nothing that is known: the file is a frame to fill in");
    }
}
