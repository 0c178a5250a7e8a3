//! `longhaul init`: runs the project's program for half a minute against an empty API server, if the user agrees, and
//! records its requests and reactions.
//!
//! Owns the order, the limits and the cleanup of an observation. `init::seen` draws the conclusions. Build and program
//! are the project's code, so only `cli::init` calls this module, and only with the user's consent.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

mod api;
mod build;
mod hooks;
mod kinds;
mod ports;
mod program;
mod world;

#[cfg(test)]
pub(crate) use api::Api;

use crate::init::deployed::Deployed;
use crate::init::help::Help;
use crate::init::seen::{self, Came, Mend, Seen};
use crate::init::{Found, Way, words};
use crate::scenario::{Mount, check_mounts};
use crate::subject::Mounts;
use program::Program;
use world::World;

/// Longest wait for the program's first request. A program in Go starts in a second, on a busy machine in five.
const FIRST_ASK: Duration = Duration::from_secs(20);
/// Longest wait until the program has listed the kinds that it watches.
const START_MAX: Duration = Duration::from_secs(15);
/// A program without a request for this time counts as idle.
const REST: Duration = Duration::from_millis(1500);
/// The folder in which a Pod finds its service account.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Maximum number of starts of the program, each with changed arguments.
const STARTS_MAX: usize = 8;

/// The commands that the observation would run, as the user is asked to confirm them.
pub(crate) fn announced(found: &Found) -> Vec<String> {
    let ways = found.ways();
    let mut lines: Vec<String> = Vec::new();
    for (number, way) in ways.iter().enumerate() {
        let or = if number == 0 { "" } else { "   (if that fails)" };
        lines.extend(way.build.iter().map(|build| format!("{build}{or}")));
    }
    if let Some(way) = ways.first() {
        let program = way.program.join(" ");
        lines.push(format!("{program} --help"));
        lines.push(format!("{program} …   (for about half a minute, against a pretend API server on 127.0.0.1)"));
    }
    lines
}

pub(crate) async fn observe(found: &mut Found, folder: &Path, say: &dyn Fn(String)) -> Result<Seen> {
    let ways = found.ways();
    let Some(way) = ways.first() else {
        return Ok(Seen::nothing(Came::NotRun("no file in the folder shows how its program is started".to_owned())));
    };
    let way = match build::first_that_builds(&ways, folder, say).await {
        Ok(way) => way,
        Err((command, words)) => {
            return Ok(Seen { built: way.build.clone(), ..Seen::nothing(Came::NotBuilt(command, words)) });
        }
    };
    let folder = folder.canonicalize().context("the project's folder is gone")?;
    let mut world = World::start(found).await?;
    let seen = Box::pin(watched(found, &folder, way, &mut world, say)).await;
    world.stop().await;
    seen
}

/// Observes the program from its first start to its exit.
async fn watched(found: &mut Found, folder: &Path, way: &Way, world: &mut World, say: &dyn Fn(String)) -> Result<Seen> {
    let place = folder.join(&way.folder);
    let (command, help) = helped(found, &place, way, world).await;
    let (run, variables) = words::words(found, &way.program, command.as_deref(), &help);
    let mut seen = Seen { built: way.build.clone(), run, variables, ..Seen::nothing(Came::Ran) };
    seen.objects = found.beside(&way.program);
    world.furnish(found, &seen.objects, &way.program).await?;
    hooks::prepare(found, world).await?;
    let deployed = found.deployed(&way.program);
    let mut program = Box::pin(started(&deployed, &place, &help, world, &mut seen, say)).await?;
    if defined(found, folder, world, &mut program, say).await? {
        if let Some(program) = program.take() {
            program.stop().await;
        }
        seen.came = Came::Ran;
        program = Box::pin(started(&deployed, &place, &help, world, &mut seen, say)).await?;
    }
    seen.namespaces = world.made_namespaces();
    let Some(mut program) = program else {
        if !found.serves_metrics() {
            seen.settle_unseen();
        }
        return Ok(seen);
    };
    (seen.followed, seen.absent) = seen::follows(&world.asks);
    seen.only = seen::only_namespace(&world.asks, &|resource| is_namespaced(found, resource));
    if seen.came == Came::Ran {
        say(format!("it follows {}", listed(seen.followed.iter().map(|one| one.resource.as_str()))));
        seen.unserved = hooks::register(found, world, &seen).await?;
        let steps = Box::pin(kinds::steps(&*found, world, &mut program, &seen, say)).await?;
        world.take().await;
        seen.reactions = steps.iter().map(|step| seen::Reaction::of(step, &world.asks)).collect();
        seen.reactions.sort_by_key(|reaction| std::cmp::Reverse(reaction.weight()));
        if let Some(words) = program.ended().await {
            seen.came = Came::Ended(words);
        }
    }
    (seen.followed, seen.absent) = seen::follows(&world.asks);
    seen.refused = seen::refusals(&world.asks);
    seen.lease = seen::lease(&world.asks);
    seen.namespaces = world.made_namespaces();
    let serves = found.hooks.iter().any(|hook| !seen.unserved.contains(&hook.path));
    seen.settle(serves);
    program.stop().await;
    Ok(seen)
}

/// Defines the kinds that the program asks for and the server does not have, if a dependency of the project has their
/// definitions. Returns whether it defined any.
async fn defined(
    found: &mut Found,
    folder: &Path,
    world: &mut World,
    program: &mut Option<Program>,
    say: &dyn Fn(String),
) -> Result<bool> {
    if let Some(program) = program {
        program.rest(world, REST, REST, REST).await;
    }
    world.take().await;
    let (_, absent) = seen::follows(&world.asks);
    let needed = crate::init::definitions(folder, &absent);
    for one in &needed {
        // If the server refuses one, the first request for its kind shows that.
        let _ = world.api.create(&one.object, None, false).await?;
    }
    let names = || needed.iter().filter_map(|one| one.object["metadata"]["name"].as_str());
    if !needed.is_empty() {
        say(format!("it asks for kinds that its dependencies define: {}", listed(names())));
        found.needed(&needed);
    }
    Ok(!needed.is_empty())
}

/// Whether a resource is one of the project's kinds with namespaces.
fn is_namespaced(found: &Found, resource: &str) -> bool {
    found.crds.iter().any(|crd| crd.name() == resource && !crd.is_cluster_wide)
}

/// The program's help text, and the subcommand that runs the controller, if the program has subcommands.
async fn helped(found: &Found, place: &Path, way: &Way, world: &World) -> (Option<String>, Help) {
    let top = Help::read(&program::help(place, &way.program, None, world).await);
    let name = way.program.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let commands: Vec<String> = words::commands(found, name, &top).into_iter().map(str::to_owned).collect();
    let Some(command) = commands.into_iter().next() else { return (None, top) };
    let below = Help::read(&program::help(place, &way.program, Some(&command), world).await);
    let mut help = if below.flags.is_empty() { top.clone() } else { below };
    help.commands = top.commands;
    (Some(command), help)
}

/// Starts the program. While the program exits because arguments are missing, changes the arguments; also moves the
/// program's ports. `None` if the program does not run.
async fn started(
    deployed: &Deployed,
    place: &Path,
    help: &Help,
    world: &mut World,
    seen: &mut Seen,
    say: &dyn Fn(String),
) -> Result<Option<Program>> {
    let (mut is_moved, mut is_given) = (false, false);
    for _ in 0..STARTS_MAX {
        say(format!("running {}", seen.run.join(" ")));
        world.forget().await?;
        let mut program = match Program::start(place, &seen.run, &seen.variables, world) {
            Ok(program) => program,
            Err(error) => {
                seen.came = Came::Ended(format!("{error:#}"));
                return Ok(None);
            }
        };
        let rested = program.rest(world, FIRST_ASK, START_MAX, REST).await;
        if let Some(words) = program.ended().await {
            let Some(mend) = seen::mend(&words, &seen.run, help, has_account(seen)) else {
                seen.came = Came::Ended(words);
                return Ok(None);
            };
            if let Mend::Object(kind, name) = &mend {
                let object = world.give(kind, name).await?;
                if seen.objects.contains(&object) {
                    // The object exists, and the program ends all the same.
                    seen.came = Came::Ended(words);
                    return Ok(None);
                }
                seen.objects.push(object);
            }
            if mend == Mend::Account {
                account(deployed, world, seen).await?;
                continue;
            }
            seen.mended.push(mend.text());
            apply(&mend, seen);
            continue;
        }
        if !rested && let Some(Mend::Account) = seen::mend(&program.words().await, &seen.run, help, has_account(seen)) {
            account(deployed, world, seen).await?;
            program.stop().await;
            continue;
        }
        if !is_given && !seen.is_given_certificate() {
            let mounts = seen::filled(&deployed.secrets, &world.asks, &world.wrote, &seen.objects);
            is_given = !mounts.is_empty();
            let paths = listed(mounts.keys().map(|path| path.to_str().unwrap_or_default()));
            let mut all = seen.mounts.clone();
            all.extend(mounts);
            match check_mounts(&all).and_then(|()| Mounts::check()) {
                Ok(()) if is_given => {
                    seen.mended
                        .push(format!("it finds the Secret that it fills at {paths}, where its manifests mount it"));
                    seen.mounts = all;
                    world.mount(&seen.mounts).await?;
                    program.stop().await;
                    continue;
                }
                Err(why) if is_given => {
                    say(format!(
                        "it fills the Secret that its manifests mount at {paths}, which is not mounted: {why}"
                    ));
                }
                Ok(()) | Err(_) => {}
            }
        }
        seen.ports = ports::open(&program, world).await;
        let moved = words::ports_moved(&seen.run, &seen.variables, help, &seen.ports).filter(|_| !is_moved);
        if let Some((run, variables)) = moved {
            is_moved = true;
            (seen.run, seen.variables) = (run, variables);
            program.stop().await;
            continue;
        }
        seen.came = if rested { Came::Ran } else { Came::Silent(program.words().await) };
        return Ok(Some(program));
    }
    if seen.came == Came::Ran {
        seen.came = Came::Ended("it ends again and again, each time for want of something else".to_owned());
    }
    Ok(None)
}

fn has_account(seen: &Seen) -> bool {
    seen.mounts.values().any(|mount| matches!(mount, Mount::ServiceAccount(_)))
}

/// Mounts the service account of the program's Pods where a Pod finds its service account.
async fn account(deployed: &Deployed, world: &mut World, seen: &mut Seen) -> Result<()> {
    let namespace = deployed.namespace.clone().unwrap_or_else(|| "default".to_owned());
    seen.mounts.insert(PathBuf::from(ACCOUNT), Mount::ServiceAccount(namespace));
    seen.mended.push(Mend::Account.text());
    world.mount(&seen.mounts).await
}

fn apply(mend: &Mend, seen: &mut Seen) {
    match mend {
        Mend::Without(flag) => {
            let is_it =
                |word: &String| word.starts_with('-') && word.trim_start_matches('-').split('=').next() == Some(flag);
            seen.run.retain(|word| !is_it(word));
        }
        Mend::Word(word) => seen.run.push(word.clone()),
        Mend::Object(..) | Mend::Account => {}
        Mend::Variable(name, value) => {
            seen.variables.retain(|(known, _)| known != name);
            seen.variables.push(((*name).to_owned(), (*value).to_owned()));
        }
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

fn is_over(since: Instant, limit: Duration) -> bool {
    since.elapsed() >= limit
}
