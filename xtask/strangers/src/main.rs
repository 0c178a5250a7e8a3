//! `cargo xtask strangers`: tries published operators and webhooks ("strangers" in the code) from package registries,
//! from the download to a verdict.
//!
//! The package owns the table of published programs, their cache, and the document `docs/measured/strangers.md`. Like a
//! user, the package uses only the commands and files of `longhaul`.

mod bounded;
#[path = "../../../reports/src/exit.rs"]
#[expect(dead_code, reason = "this program needs a part of what all of Longhaul's programs share")]
mod exit;
mod facts;
mod page;
mod play;
mod source;
mod table;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Parser;

use crate::bounded::Limits;
use crate::play::{Ground, Played};
use crate::table::{Stranger, strangers};

/// Try published operators and webhooks as a new user does in the first hour, and write docs/measured/strangers.md.
#[derive(Parser)]
#[command(name = "cargo xtask strangers", bin_name = "cargo xtask strangers")]
struct Arguments {
    /// Try only the programs with these names. Default: all.
    names: Vec<String>,
    /// Only list the names of the programs.
    #[arg(long)]
    list: bool,
    /// Try no program, and rewrite docs/measured/strangers.md from stored measurements and from strangers.yaml.
    #[arg(long)]
    draw: bool,
    /// Also run the test suites of Go modules that have one.
    #[arg(long)]
    suites: bool,
    /// Maximum number of minutes for each program, from an empty folder to a verdict.
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// The folder for docs/measured/strangers.md and its figures.
    #[arg(long, default_value = "docs/measured")]
    out: PathBuf,
    /// The `longhaul` program that tries the published programs.
    #[arg(long, hide = true, default_value = "longhaul")]
    longhaul: PathBuf,
    /// The revision from which `longhaul` was built, if it is not the checked-out revision.
    #[arg(long, hide = true)]
    revision: Option<String>,
}

/// The file names of the document and of its figures; the latter file has one line for each published program.
const PAGE: &str = "strangers.md";
const FIGURES: &str = "strangers.jsonl";
/// Maximum memory of a command in bytes: enough to build a large operator, and more than any subject needs.
const MEMORY_BYTES: u64 = 8 << 30;

fn main() -> ExitCode {
    run(&Arguments::parse()).unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::from(exit::SOFTWARE)
    })
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let all = strangers().map_err(anyhow::Error::msg)?;
    if arguments.list {
        for one in &all {
            println!("{:26} {:8} {}", one.name, one.language(), one.published());
        }
        return Ok(ExitCode::from(exit::PASS));
    }
    let chosen = chosen(&all, &arguments.names)?;
    std::fs::create_dir_all(&arguments.out)?;
    let mut figures = read_figures(&arguments.out.join(FIGURES))?;
    if !arguments.draw {
        let ground = ground(arguments)?;
        for stranger in chosen {
            println!("strangers: {} ({})", stranger.name, stranger.published());
            let until = Instant::now() + Duration::from_secs(60 * arguments.minutes);
            let mut played = ground.play(stranger, &Limits { until, memory_bytes: MEMORY_BYTES })?;
            println!("           {}", outcome(&played));
            let before = figures.iter().position(|one| one.name == played.name).map(|at| figures.remove(at));
            let known = before.filter(|before| played.suite.is_none() && before.published == played.published);
            played.suite = played.suite.take().or(known.and_then(|before| before.suite));
            figures.push(played);
            write(&arguments.out, &all, &mut figures)?;
        }
    }
    write(&arguments.out, &all, &mut figures)?;
    Ok(ExitCode::from(exit::PASS))
}

/// The published programs with these names, or all if no name is given.
fn chosen<'a>(all: &'a [Stranger], names: &[String]) -> Result<Vec<&'a Stranger>> {
    if names.is_empty() {
        return Ok(all.iter().collect());
    }
    let find = |name: &String| {
        let known = || all.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
        all.iter().find(|one| one.name == *name).with_context(|| format!("{name}: there are {}", known()))
    };
    names.iter().map(find).collect()
}

fn ground(arguments: &Arguments) -> Result<Ground> {
    let longhaul = arguments.longhaul.canonicalize().with_context(|| arguments.longhaul.display().to_string())?;
    let output = |arguments: &[&str]| -> Result<String> {
        let output = Command::new(&longhaul).args(arguments).output().context("failed to start longhaul")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let help = output(&["init", "--help"])?;
    let init_flags = ["--force", "--yes"].into_iter().filter(|flag| help.contains(flag)).collect();
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let Some(cache) = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"))) else {
        bail!("a home folder is needed for the cache");
    };
    let git = Command::new("git").args(["rev-parse", "--short=10", "HEAD"]).output();
    let here = || git.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    let revision = arguments.revision.clone().unwrap_or_else(here);
    let takes_main = help.contains("--main");
    let cache = cache.join("longhaul/strangers");
    Ok(Ground { longhaul, revision, init_flags, takes_main, cache, suites: arguments.suites })
}

/// The outcome of trying a program, as one line for people.
fn outcome(played: &Played) -> String {
    match (&played.needs, &played.stopped, &played.facts) {
        (Some(needs), ..) => format!("skipped: needs {needs}"),
        (None, Some(stopped), _) => format!("{} ended it: {}", stopped.step, stopped.why),
        (None, None, Some(facts)) => {
            let exercised = if facts.is_exercised() { "exercised" } else { "not exercised" };
            format!(
                "started, {exercised}, {} writes, {}: {}",
                facts.written(),
                facts.verdict.to_uppercase(),
                facts.reason
            )
        }
        (None, None, None) => "nothing is known".to_owned(),
    }
}

/// Reads the figures of earlier runs. A line that an older version of Longhaul wrote is read as far as possible.
fn read_figures(path: &Path) -> Result<Vec<Played>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    text.lines().map(|line| serde_json::from_str(line).with_context(|| path.display().to_string())).collect()
}

/// Writes `strangers.md` and the file with the results that it shows, in the order of `strangers.yaml`. Programs that
/// `strangers.yaml` no longer lists are left out.
fn write(out: &Path, all: &[Stranger], figures: &mut Vec<Played>) -> Result<()> {
    let place = |played: &Played| all.iter().position(|one| one.name == played.name);
    figures.retain(|played| place(played).is_some());
    figures.sort_by_key(place);
    let lines: Vec<String> = figures.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    let lines: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    std::fs::write(out.join(FIGURES), lines)?;
    std::fs::write(out.join(PAGE), page::page(all, figures))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_refused_with_those_that_there_are() {
        let all = strangers().unwrap();
        assert!(chosen(&all, &["nobody".to_owned()]).unwrap_err().to_string().contains(&all[0].name));
        assert_eq!(chosen(&all, &[all[1].name.clone()]).unwrap().len(), 1);
    }

    /// The document in the repository equals a document that is made from the figures in the repository.
    #[test]
    fn the_page_is_drawn_from_its_figures() {
        let out = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/measured");
        let figures = read_figures(&out.join(FIGURES)).unwrap();
        let written = std::fs::read_to_string(out.join(PAGE)).unwrap_or_default();
        let drawn = page::page(&strangers().unwrap(), &figures);
        assert!(written == drawn, "docs/measured/strangers.md is old: cargo xtask strangers --draw");
    }
}
