//! Observes the program's reaction to each kind of the project: creates, changes and deletes an object, one kind after
//! the other.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use super::program::Program;
use super::world::{World, named};
use super::{is_over, listed};
use crate::init::seen::{Change, Reaction, Seen, Step, causes, kind_of_refusal, made};
use crate::init::{Crd, Found, Trial, apart, changes, varying};
use anyhow::Result;
use serde_json::Value;

const NAMESPACE: &str = "observed";
/// Maximum number of kinds of the project that are tried.
const KINDS_MAX: usize = 12;
/// Maximum number of templates of a kind that are tried in dry runs.
const TEMPLATES_MAX: usize = 80;
/// How many objects of a template with a varying field are tried in dry runs.
const DRAWS: u64 = 4;
/// Maximum number of children of the observed object that are read.
const MADE_MAX: usize = 60;
/// Maximum number of fields that are really changed, not only in a dry run.
const CHANGED_MAX: usize = 3;
/// Longest time for the observation of all kinds together.
const ALL_MAX: Duration = Duration::from_secs(45);
/// Longest time for creating the project's sample objects.
const COMPANY_TIME_MAX: Duration = Duration::from_secs(15);
const ONE_MAX: Duration = Duration::from_secs(5);
const QUIET: Duration = Duration::from_millis(900);
/// If the program makes no request for this time after a change, the change counts as unnoticed.
const NOTICE: Duration = Duration::from_millis(1200);
/// Longest wait until a deleted object is gone.
const GONE_MAX: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(100);

/// Tries the kinds that the program watches. Only the object of the kind with the strongest reaction is also changed
/// and deleted.
pub(super) async fn steps(
    found: &Found,
    world: &mut World,
    program: &mut Program,
    seen: &Seen,
    say: &dyn Fn(String),
) -> Result<Vec<Step>> {
    let is_followed = |trial: &Trial| seen.follows(&trial.crd.name());
    let place = seen.only.as_deref().unwrap_or(NAMESPACE);
    let trials: Vec<Trial> = found.trials().into_iter().filter(is_followed).take(KINDS_MAX).collect();
    let _ = world.api.create(&named("Namespace", place), None, false).await?;
    let began = Instant::now();
    let others = company(found, world, place, began).await?;
    program.rest(world, NOTICE, ONE_MAX, QUIET).await;
    let mut steps = Vec::new();
    for (number, trial) in trials.iter().enumerate() {
        if is_over(began, ALL_MAX) || program.ended().await.is_some() {
            break;
        }
        let mut step = made_of(found, world, trial, (number, place), began).await?;
        step.others.clone_from(&others);
        if step.refused.is_none() {
            step.began_us = began_us(&step, world);
            program.rest(world, NOTICE, ONE_MAX, QUIET).await;
            look(world, &mut step).await?;
        }
        let reaction = Reaction::of(&step, &world.asks);
        say(format!("{}: {}", step.kind, reaction.line()));
        steps.push(step);
    }
    let weight = |step: &Step| (step.refused.is_none(), Reaction::of(step, &world.asks).weight());
    let best = (0..steps.len()).max_by_key(|index| (weight(&steps[*index]), std::cmp::Reverse(*index)));
    if let Some(best) = best.filter(|best| weight(&steps[*best]).0) {
        let trial = trials.iter().find(|trial| trial.crd.kind == steps[best].kind);
        if let Some(trial) = trial {
            let own = apart(&steps[best].template, &written(found, world, seen));
            if own != steps[best].template
                && let Some(again) = made_again(world, program, &trial.crd, &steps[best], own).await?
            {
                steps[best] = again;
            }
            change(world, program, &trial.crd, &mut steps[best]).await?;
            restore(world, program, &mut steps[best]).await?;
            delete(world, program, &mut steps[best]).await?;
            let fields = steps[best].changes.iter().filter(|change| change.refused.is_none());
            say(format!("{}: {} may change", steps[best].kind, listed(fields.map(|change| change.pointer.as_str()))));
        }
    }
    Ok(steps)
}

/// Creates another object of the kind, from a template in which the object names objects of its own, and counts its
/// children. `None` if it is refused.
async fn made_again(
    world: &mut World,
    program: &mut Program,
    crd: &Crd,
    step: &Step,
    template: Value,
) -> Result<Option<Step>> {
    let name = format!("{}-own", step.name);
    let Ok(object) = loadgen::churn::example(&template, &crd.api_version(), &step.namespace, &name) else {
        return Ok(None);
    };
    let Ok(after) = world.api.create(&object, Some(&step.namespace), false).await? else { return Ok(None) };
    let uid = after["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let mut again = Step { name, uid, template, after, made: Vec::new(), ..step.clone() };
    again.began_us = began_us(&again, world);
    program.rest(world, NOTICE, ONE_MAX, QUIET).await;
    look(world, &mut again).await?;
    Ok(Some(again))
}

/// The names of the objects that the program wrote.
fn written(found: &Found, world: &World, seen: &Seen) -> BTreeSet<String> {
    let updated =
        world.asks.iter().filter(|ask| matches!(ask.verb, "update" | "patch")).filter_map(|ask| ask.name.clone());
    let mut names: BTreeSet<String> = world.wrote.iter().filter(|one| one.is_new).map(|one| one.name.clone()).collect();
    names.extend(updated);
    // The harness created these.
    for object in found.company().iter().chain(&seen.objects) {
        names.remove(object["metadata"]["name"].as_str().unwrap_or_default());
    }
    names
}

/// Creates the project's sample objects. Returns the names of the objects that the API server accepted.
async fn company(found: &Found, world: &World, place: &str, began: Instant) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for object in found.company() {
        // A webhook may take ten seconds for each object.
        if is_over(began, COMPANY_TIME_MAX) {
            break;
        }
        if world.api.create(&object, Some(place), false).await?.is_ok() {
            names.extend(object["metadata"]["name"].as_str().map(str::to_owned));
        }
    }
    Ok(names)
}

/// Creates an object from the first template that the API server accepts.
async fn made_of(
    found: &Found,
    world: &World,
    trial: &Trial,
    (number, place): (usize, &str),
    began: Instant,
) -> Result<Step> {
    let crd = &trial.crd;
    let mut step = Step {
        kind: crd.kind.clone(),
        resource: crd.name(),
        churned: crd.resource(),
        name: format!("observed-{}", number + 1),
        namespace: if crd.is_cluster_wide { String::new() } else { place.to_owned() },
        refused: Some("nothing can be made from its definition".to_owned()),
        ..Step::default()
    };
    let mut templates: VecDeque<_> = trial.templates.iter().cloned().collect();
    let (mut tried, mut last) = (BTreeSet::new(), String::new());
    while let Some((from, template)) = templates.pop_front().filter(|_| tried.len() < TEMPLATES_MAX) {
        if !tried.insert(template.to_string()) {
            continue;
        }
        if is_over(began, ALL_MAX) {
            break;
        }
        let object = loadgen::churn::example(&template, &crd.api_version(), &step.namespace, &step.name);
        let answer = match &object {
            Ok(object) => world.api.create(object, Some(place), false).await?,
            Err(why) => Err(why.clone()),
        };
        match answer {
            Ok(object) => {
                step.uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                step.with = found.named_by(&object);
                // Fields vary only after the server has accepted their change.
                step.template = varying(&template, None, &object);
                step.original = template;
                step.from = from;
                step.refused = None;
                step.after = object;
                return Ok(step);
            }
            Err(why) => {
                // Only the first refusal is kept, because it concerns the author's own sample.
                if step.template.is_null() {
                    step.refused = Some(why.clone());
                    step.template = template.clone();
                    step.from.clone_from(&from);
                }
                // In a sample, no field is replaced by a guess.
                if from.is_none() && kind_of_refusal(&why) != kind_of_refusal(&last) {
                    let others = answers(crd, &template, object.as_ref().ok(), &why);
                    let others = others.into_iter().flat_map(|other| [found.referring(&other), other]);
                    let others: Vec<_> = others.map(|other| (None, other)).collect();
                    others.into_iter().rev().for_each(|other| templates.push_front(other));
                }
                last = why;
            }
        }
    }
    Ok(step)
}

/// Templates that differ from a refused one where the refusal says, or where the object has a text that the refusal
/// has in quotes.
fn answers(crd: &Crd, template: &Value, object: Option<&Value>, why: &str) -> Vec<Value> {
    let mut causes = causes(why);
    if causes.is_empty() {
        let named = object.map(|object| loadgen::churn::fields_named(object, why)).unwrap_or_default();
        causes = named.into_iter().map(|field| (field, why.to_owned())).collect();
    }
    let of = |(field, why): &(String, String)| {
        loadgen::churn::alternatives(&crd.definition, &crd.version, template, &loadgen::churn::Cause { field, why })
    };
    causes.iter().flat_map(of).collect()
}

/// Whether the API server and the webhooks accept several objects of a template, in dry runs: a value may be drawn that
/// was not tried before. Returns the first refusal.
async fn several(world: &World, crd: &Crd, step: &Step, template: &Value) -> Result<Option<String>> {
    for number in 1..=DRAWS {
        let name = format!("{}-{number}", step.name);
        let object = loadgen::churn::drawn_as(template, &crd.api_version(), &step.namespace, &name, number);
        let Ok(object) = object else { continue };
        if let Err(why) = world.api.create(&object, Some(&step.namespace), true).await?
            && !why.contains("does not support dry run")
        {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

/// The time in µs at which the object was created, by the server's clock, because the program may react before the
/// observer reads the answer.
fn began_us(step: &Step, world: &World) -> u64 {
    let it = world.wrote.iter().rev().find(|one| one.uid == step.uid);
    it.map_or_else(|| world.now_us().saturating_sub(100_000), |one| one.at_us)
}

/// Records the object's state, and the objects that the program created for this object.
async fn look(world: &mut World, step: &mut Step) -> Result<()> {
    step.ended_us = world.now_us();
    if let Some(path) = world.api.path(&step.after).await?
        && let Ok(now) = world.api.get(&path).await?
    {
        step.after = now;
    }
    let found: Vec<(String, Option<String>, String)> = made(step, &world.wrote)
        .into_iter()
        .take(MADE_MAX)
        .map(|one| (one.resource.clone(), one.namespace.clone(), one.name.clone()))
        .collect();
    for (resource, namespace, name) in found {
        let Some(path) = world.api.path_of(&resource, namespace.as_deref(), &name).await? else { continue };
        if let Ok(object) = world.api.get(&path).await? {
            step.made.push((resource, object));
        }
    }
    Ok(())
}

/// Changes one field after the other. Each change is first tried in a dry run, and the first accepted changes are
/// written.
async fn change(world: &mut World, program: &mut Program, crd: &Crd, step: &mut Step) -> Result<()> {
    let Some(path) = world.api.path(&step.after).await? else { return Ok(()) };
    let (mut changed, began_us) = (0, world.now_us());
    let all = changes(&step.original, crd);
    for (pointer, placeholder) in all {
        let template = varying(&step.template, Some((&pointer, &placeholder)), &step.after);
        let patch = (2..20)
            .filter_map(|revision| loadgen::churn::change(&template, &step.namespace, &step.name, revision).ok())
            .find(|patch| patch.pointer(&pointer) != step.after.pointer(&pointer));
        let Some(patch) = patch else { continue };
        let mut one = Change { pointer: pointer.clone(), refused: None, is_noticed: false, is_repeated: None };
        one.refused = world.api.patch(&path, &patch, true).await?.err();
        if one.refused.is_none() {
            one.refused = several(world, crd, step, &template).await?;
        }
        if one.refused.is_none() && changed < CHANGED_MAX {
            changed += 1;
            world.take().await;
            let before = world.asks.len();
            one.refused = world.api.patch(&path, &patch, false).await?.err();
            program.rest(world, NOTICE, ONE_MAX, QUIET).await;
            let about = |ask: &crate::init::seen::Ask| {
                !matches!(ask.verb, "" | "list" | "watch") && ask.resource != "leases.coordination.k8s.io"
            };
            one.is_noticed = world.asks[before.min(world.asks.len())..].iter().any(about);
        }
        let is_enough = one.is_noticed;
        if is_enough {
            one.is_repeated = repeats(world, program, step, &path, &template).await?;
            step.template = template;
        }
        step.changes.push(one);
        if is_enough {
            break;
        }
    }
    if let Some(taken) = step.changes.iter().find(|change| change.refused.is_none() && !change.is_noticed).cloned()
        && step.changes.iter().all(|change| !change.is_noticed)
    {
        let placeholder = changes(&step.original, crd).into_iter().find(|(pointer, _)| *pointer == taken.pointer);
        if let Some((pointer, placeholder)) = placeholder {
            step.template = varying(&step.template, Some((&pointer, &placeholder)), &step.after);
        }
    }
    if step.changes.iter().any(|change| change.is_noticed) {
        count_again(world, step, began_us).await?;
    }
    if let Ok(now) = world.api.get(&path).await? {
        step.after = now;
    }
    Ok(())
}

/// Whether the status contains the new generation after this change and after two more changes; `None` if the status
/// has no generation.
async fn repeats(
    world: &mut World,
    program: &mut Program,
    step: &Step,
    path: &str,
    template: &Value,
) -> Result<Option<bool>> {
    let mut is_repeated = None;
    for revision in 30..30 + CHANGED_MAX as u64 {
        let Ok(now) = world.api.get(path).await? else { break };
        let (generation, status) = (&now["metadata"]["generation"], &now["status"]);
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let mut told = conditions
            .map(|one| &one["observedGeneration"])
            .chain([&status["observedGeneration"]])
            .filter(|one| !one.is_null())
            .peekable();
        if told.peek().is_none() {
            return Ok(None);
        }
        is_repeated = Some(told.any(|one| one == generation));
        if is_repeated == Some(false) {
            break;
        }
        if let Ok(patch) = loadgen::churn::change(template, &step.namespace, &step.name, revision) {
            let _ = world.api.patch(path, &patch, false).await?;
            program.rest(world, NOTICE, ONE_MAX, QUIET).await;
        }
    }
    Ok(is_repeated)
}

/// Counts the children after a change: earlier children that still exist, and new children. Skips children that were
/// created meanwhile for objects of other kinds.
async fn count_again(world: &World, step: &mut Step, changed_us: u64) -> Result<()> {
    let since = Step { began_us: changed_us, ended_us: world.now_us(), ..step.clone() };
    let before = made(step, &world.wrote).into_iter().take(MADE_MAX);
    let all: Vec<_> = before.chain(made(&since, &world.wrote).into_iter().take(MADE_MAX)).collect();
    for one in all {
        let Some(path) = world.api.path_of(&one.resource, one.namespace.as_deref(), &one.name).await? else { continue };
        if world.api.get(&path).await?.is_ok() {
            *step.counted_later.entry(one.resource.clone()).or_default() += 1;
        }
    }
    Ok(())
}

/// Deletes one child of each kind and records whether the program creates the child again. Records nothing if the child
/// stays, or a child with another name replaces the child.
async fn restore(world: &mut World, program: &mut Program, step: &mut Step) -> Result<()> {
    let mut tried: Vec<String> = Vec::new();
    for (resource, object) in step.made.clone() {
        let owners = object["metadata"]["ownerReferences"].to_string();
        if tried.contains(&resource) || !owners.contains(&step.uid) {
            continue;
        }
        tried.push(resource.clone());
        let namespace = object["metadata"]["namespace"].as_str();
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let Some(path) = world.api.path_of(&resource, namespace, name).await? else { continue };
        let began_us = world.now_us();
        if world.api.delete(&path).await?.is_err() {
            continue;
        }
        program.rest(world, NOTICE, ONE_MAX, QUIET).await;
        let now = world.api.get(&path).await?;
        let is_back = now.as_ref().is_ok_and(|now| now["metadata"]["uid"] != object["metadata"]["uid"]);
        let since = Step { began_us, ended_us: world.now_us(), ..step.clone() };
        let is_replaced = made(&since, &world.wrote).iter().any(|one| one.resource == resource);
        if is_back || (now.is_err() && !is_replaced) {
            step.restored.insert(resource, is_back);
        }
    }
    Ok(())
}

/// Deletes the object and waits until it is gone.
async fn delete(world: &mut World, program: &mut Program, step: &mut Step) -> Result<()> {
    let Some(path) = world.api.path(&step.after).await? else { return Ok(()) };
    let _ = world.api.delete(&path).await?;
    let began = Instant::now();
    let mut is_gone = false;
    while !is_gone && !is_over(began, GONE_MAX) && program.ended().await.is_none() {
        world.take().await;
        is_gone = world.api.get(&path).await?.is_err();
        tokio::time::sleep(POLL).await;
    }
    step.is_gone = Some(is_gone);
    Ok(())
}
