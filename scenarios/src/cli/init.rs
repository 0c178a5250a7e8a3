//! The command line of `longhaul init`. Other modules read the project's folder and observe its program.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use crate::init::seen::{Came, Seen, next_step};
use crate::init::{Found, build, pipeline, render, scenario, tool};
use crate::out::out;
use crate::scenario::Source;
use crate::{observe, placed, shown};

mod tried;

/// Arguments of `longhaul init`.
#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "they are the flags of a command line")]
pub(super) struct Arguments {
    /// The project's folder.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// The scenario file to write, in the project's folder.
    #[arg(long, default_value = "longhaul.yaml")]
    output: PathBuf,
    /// Replace the scenario file if it exists.
    #[arg(long)]
    force: bool,
    /// Build the program and run it for half a minute, without asking. Executes the project's code on your machine.
    #[arg(long)]
    yes: bool,
    /// Do not build or run the program, and do not ask. Without this observation, the scenario file marks every
    /// unconfirmed value with `check`.
    #[arg(long, conflicts_with = "yes")]
    no_run: bool,
    /// Run the written scenario once (a minute and a half) and print a summary of one screen. The exit code is that of the run, or 2 if
    /// there was no run.
    #[arg(long = "try", conflicts_with = "no_run")]
    tried: bool,
    /// Add a target to the Makefile that downloads this version of Longhaul into `bin/` and runs a soak. An existing Makefile is changed
    /// only with --force; without it, the change is printed. An existing scenario stays unchanged.
    #[arg(long)]
    make: bool,
    /// Write a workflow for GitHub Actions. An existing workflow is changed only with --force.
    #[arg(long)]
    github: bool,
    /// The main package of the program, such as `./cmd/manager`, if the project has several.
    #[arg(long, value_name = "PACKAGE")]
    main: Option<PathBuf>,
}

/// Writes the scenario and prints the source of each value.
pub(super) fn init(arguments: &Arguments) -> anyhow::Result<u8> {
    let Arguments { folder, output, force, .. } = arguments;
    let adds = arguments.make || arguments.github;
    if adds && folder.join(output).is_file() {
        let code = add(arguments)?;
        if arguments.tried {
            out!("left out  `--try`: the scenario was there and was not observed; `longhaul soak` plays it");
            return Ok(reports::exit::INCONCLUSIVE);
        }
        return Ok(code);
    }
    if !force && folder.join(output).symlink_metadata().is_ok() {
        // Checked before anything is built and run.
        anyhow::bail!("{}: the file exists; --force replaces it", folder.join(output).display());
    }
    let mut found = read(folder, arguments.main.as_deref()).with_context(|| folder.display().to_string())?;
    print(&found);
    if let Some(suite) = found.suite() {
        let (kit, command) = (suite.kit, suite.command);
        out!(
            "first     your own suite ({kit}), unchanged, in a bad network: longhaul envtest --chaos 1 --repeat 5 -- {command}"
        );
        out!("          and before a merge: longhaul gate --suite '{command}' --a MAIN --b . (two checkouts)");
    }
    let seen = seen(arguments, &mut found)?;
    found.observed(&seen);
    let text = scenario(&found, &seen);
    let made = found.made.iter().map(|(name, text)| (PathBuf::from(name), text));
    for (name, text) in made.chain([(output.clone(), &text)]) {
        let path = folder.join(&name);
        if let Err(error) = placed::write(folder, &name, text, *force) {
            let remedy = if error.kind() == std::io::ErrorKind::AlreadyExists { "; --force replaces it" } else { "" };
            anyhow::bail!("{}: {error}{remedy}", path.display());
        }
        out!("written   {}", path.display());
    }
    if adds {
        add(arguments)?;
    }
    let path = folder.join(output);
    let file = path.display();
    match Source::read(&path.display().to_string()) {
        Ok(source) if arguments.tried && seen.ran() => return tried::play(source, &path),
        Ok(_) => {
            out!("next      look at the lines with `check:`, then: longhaul check --plan {file}; longhaul soak {file}");
        }
        // If the folder contains values that the file cannot express, the message names the line.
        Err(error) => out!("next      correct the errors of `longhaul check {file}`:\n{error}"),
    }
    if arguments.tried {
        out!("left out  `--try` ran nothing, so there is no verdict");
        return Ok(reports::exit::INCONCLUSIVE);
    }
    Ok(reports::exit::PASS)
}

/// Writes the target of the Makefile and the workflow, or prints how existing files would change.
fn add(arguments: &Arguments) -> anyhow::Result<u8> {
    let Arguments { folder, output, force, .. } = arguments;
    let scenario = output.display().to_string();
    let make = arguments.make.then(|| pipeline::make(folder, &scenario));
    let github = arguments.github.then(|| pipeline::github(folder, &scenario));
    for change in make.into_iter().chain(github) {
        let Some(change) = change.with_context(|| folder.display().to_string())? else { continue };
        let (name, path) = (Path::new(change.name), folder.join(change.name));
        if let Some(difference) = change.difference.as_ref().filter(|_| !force) {
            out!("left out  {}: it is there, and --force makes this change:", path.display());
            difference.lines().for_each(|line| out!("          {}", shown::line(line)));
            continue;
        }
        placed::make_room(folder, name)
            .and_then(|()| placed::write(folder, name, &change.text, *force))
            .with_context(|| format!("failed to write {}", path.display()))?;
        out!("written   {}", path.display());
    }
    Ok(reports::exit::PASS)
}

/// Reads the project's folder, and the output of kustomize for this folder.
fn read(folder: &Path, main: Option<&Path>) -> std::io::Result<Found> {
    let mut found = Found::read(folder, main)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let kustomized = runtime.block_on(build(folder, tool().as_deref()));
    found.kustomized(kustomized);
    let charted = runtime.block_on(render(folder, &found.charts, installer::on_path("helm").as_deref()));
    found.charted(charted);
    Ok(found)
}

/// Prints the command that runs the program, and runs it if the user agrees.
fn seen(arguments: &Arguments, found: &mut Found) -> anyhow::Result<Seen> {
    let say = |line: String| out!("{}", shown::line(&line));
    let lines = observe::announced(found);
    if lines.is_empty() {
        let why = "no file in the folder shows how its program is started";
        say(format!("left out  {why}, so it was not run"));
        return Ok(Seen::nothing(Came::NotRun(why.to_owned())));
    }
    for (number, line) in lines.iter().enumerate() {
        let first = if number == 0 { "will run  " } else { "          " };
        say(format!("{first}{line}"));
    }
    if let Err(why) = may_run(arguments)? {
        say(format!("left out  the program was not run: {why}"));
        return Ok(Seen::nothing(Came::NotRun(format!("the program was not run: {why}"))));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let tell = |line: String| say(format!("seen      {line}"));
    let observed = observe::observe(found, &arguments.folder, &tell);
    let seen = runtime.block_on(observed).unwrap_or_else(|error| {
        // The values from the files are written all the same.
        Seen::nothing(Came::NotRun(format!("the observation failed: {error:#}")))
    });
    if let Some(next) = next_step(&seen.came) {
        if let Came::NotBuilt(_, words) | Came::Ended(words) | Came::Silent(words) = &seen.came {
            words.lines().for_each(|word| say(format!("          {word}")));
        }
        say(format!("next      {next}"));
    }
    Ok(seen)
}

/// Whether the user agrees, or the reason why the program is not observed.
fn may_run(arguments: &Arguments) -> std::io::Result<Result<(), &'static str>> {
    if arguments.no_run {
        return Ok(Err("`--no-run` says so"));
    }
    if arguments.yes {
        return Ok(Ok(()));
    }
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stderr());
    if !input.is_terminal() || !output.is_terminal() {
        return Ok(Err("there is no terminal to ask; `--yes` answers"));
    }
    write!(output, "Run it? This executes the project's own code with your rights. [y/N] ")?;
    output.flush()?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    let is_yes = matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    Ok(if is_yes { Ok(()) } else { Err("the answer was no") })
}

/// Prints the findings. Names come from files of the project, so each name is escaped and kept on one line.
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
        say("found     no known project: the file is a template to fill in".to_owned());
    }
}
