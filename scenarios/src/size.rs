//! `longhaul size`: memory and start of a program by number of objects, and the cost of each kind.
//!
//! Owns the order of the rows. Every row is a fresh start of the program against a mock that already holds the objects.
//! A first start without objects shows which kinds the program requests; only these kinds get objects.
//! [`reports::size`] draws all conclusions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use reports::size::{Fate, Finding, KindCost, Limit, Row, SCHEMA, Sizes, conclude};
use reports::words;
use tokio_util::sync::CancellationToken;

mod cage;
mod fill;
mod follow;
mod measure;
mod objects;
pub(crate) mod plan;
#[cfg(test)]
mod real;

use crate::run::Options;
use cage::Cage;
pub(crate) use measure::{Ground, Measured, measure};
use plan::{KINDS_MAX, Plan, Step};

/// The files of a result.
pub(crate) const FILES: [&str; 3] = ["size.html", "size.md", "size.json"];
/// Longest time that a ready program gets until it uses little processor time.
pub(crate) const SETTLE: Duration = Duration::from_secs(12);

/// Settings from the command line.
pub(crate) struct Choice {
    pub(crate) options: Options,
    pub(crate) plan: Plan,
    pub(crate) limit: Option<u64>,
    pub(crate) patience: Duration,
    /// The folder for the result.
    pub(crate) out: PathBuf,
}

/// The result, and whether the user interrupted the measurement.
pub(crate) struct Done {
    pub(crate) sizes: Sizes,
    pub(crate) interrupted: bool,
}

/// Measures all rows and writes the result. A program that fails without objects is an error; a program
/// that fails with objects is a result.
pub(crate) async fn play(choice: &Choice, stop: &CancellationToken, say: &dyn Fn(String)) -> Result<Done> {
    let scenario = &choice.options.source.scenario;
    let ground = Ground {
        options: &choice.options,
        folder: &choice.out,
        limit: choice.limit,
        seed: scenario.seed,
        patience: choice.patience,
        settle: SETTLE,
        stop,
    };
    let started_at = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    say(format!("about {} in all; the first row has no objects …", words::millis(millis(choice.plan.lasts(None)))));
    let none = Step { objects: 0, bytes: 0 };
    let Some(base) = Box::pin(measure(&ground, &[], none, None, 0)).await? else {
        bail!("interrupted before the first row: nothing was measured");
    };
    if base.row.fate != Fate::Lived {
        bail!("without any object: {}", base.row.fate.words());
    }
    let forms = base.followed.forms();
    if forms.is_empty() {
        bail!("the program lists and watches nothing: does it read $KUBECONFIG?");
    }
    let mut sizes = Sizes {
        schema: SCHEMA.to_owned(),
        started_at,
        longhaul: env!("CARGO_PKG_VERSION").to_owned(),
        machine: crate::machine::machine(),
        scenario: scenario.name.clone(),
        command: crate::secrets::arguments(
            &scenario.subject.command().map(|command| command.run.clone()).unwrap_or_default(),
        ),
        digest: base.digest.clone(),
        seed: scenario.seed,
        repeat: choice.options.repeat.clone(),
        limit: choice.limit.map(limit),
        base: base.row.clone(),
        steps: Vec::new(),
        kinds: kinds(&base),
        curves: Vec::<reports::size::Curve>::new(),
        findings: Vec::<Finding>::new(),
        notes: Vec::new(),
    };
    let resources: Vec<String> = forms.into_iter().map(|(resource, ..)| resource).collect();
    say(format!("kinds that the program lists or watches ({}): {}", resources.len(), resources.join(", ")));
    let lists = base.followed.lists();
    let mut rows = Rows { ground: &ground, lists: &lists, say, interrupted: false };
    for step in &choice.plan.steps {
        let Some(row) = rows.row(&resources, *step, choice.plan.relists, &sizes).await? else { break };
        sizes.steps.push(row);
    }
    if resources.len() > KINDS_MAX {
        sizes.notes.push(format!("Only the first {KINDS_MAX} of {} kinds have rows of their own.", resources.len()));
    }
    let alone = choice.plan.alone();
    for place in 0..sizes.kinds.len().min(KINDS_MAX) {
        let resource = vec![sizes.kinds[place].resource.clone()];
        if resources.len() == 1 {
            // If there is only one kind, the rows of all kinds are also its rows.
            let bytes = choice.plan.steps.iter().map(|step| step.bytes).max();
            sizes.kinds[place].rows =
                sizes.steps.iter().filter(|row| Some(row.object_bytes) == bytes).cloned().collect();
            break;
        }
        if !choice.plan.with_kinds || rows.interrupted {
            break;
        }
        for step in &alone {
            let Some(row) = rows.row(&resource, *step, 0, &sizes).await? else { break };
            sizes.kinds[place].rows.push(row);
        }
    }
    let interrupted = rows.interrupted;
    if interrupted {
        sizes.notes.push("You interrupted the measurement: unfinished rows are missing.".to_owned());
    }
    conclude(&mut sizes);
    write(&choice.out, &sizes)?;
    Ok(Done { sizes, interrupted })
}

/// Measures rows one after the other.
struct Rows<'a> {
    ground: &'a Ground<'a>,
    lists: &'a BTreeMap<String, u64>,
    say: &'a dyn Fn(String),
    interrupted: bool,
}

impl Rows<'_> {
    /// The next row; `None` after an interruption.
    async fn row(&mut self, resources: &[String], step: Step, relists: u32, sizes: &Sizes) -> Result<Option<Row>> {
        if self.interrupted || self.ground.stop.is_cancelled() {
            self.interrupted = true;
            return Ok(None);
        }
        let of = if let [only] = resources { format!(" ({only})") } else { String::new() };
        if let Err(words) = room(sizes, step, free_bytes()) {
            (self.say)(format!("{}{of}: left out: {words}", step.words()));
            let fate = Fate::LeftOut { words };
            return Ok(Some(Row { objects: step.objects, object_bytes: step.bytes, fate, figures: None }));
        }
        let measured = Box::pin(measure(self.ground, resources, step, Some(self.lists), relists)).await?;
        let Some(Measured { row, .. }) = measured else {
            self.interrupted = true;
            return Ok(None);
        };
        let highest = row.figures.as_ref().map_or(0, |figures| figures.highest_bytes);
        (self.say)(format!("{}{of}: {}, highest memory {}", step.words(), row.fate.words(), words::bytes(highest)));
        Ok(Some(row))
    }
}

/// Refuses a step (a number of objects of one size) if the machine lacks the memory, by an estimate from the latest
/// row. The error is the reason.
fn room(sizes: &Sizes, step: Step, free: Option<u64>) -> Result<(), String> {
    let Some(free) = free else { return Ok(()) };
    let mut needed = sizes.steps.iter().filter_map(|row| {
        let highest = row.whole()?.highest_bytes as f64;
        let total = row.objects.saturating_mul(row.object_bytes) as f64;
        (total > 0.0).then(|| highest / total * step.total() as f64)
    });
    // The latest row is the most similar one.
    let program = words_whole(needed.next_back().unwrap_or(0.0));
    let limit = sizes.limit.as_ref().filter(|limit| limit.enforced_by.is_some()).map_or(u64::MAX, |limit| limit.bytes);
    let needs = step.needs() / 2 + program.min(limit).max(step.total().min(limit));
    if needs <= free / 10 * 9 {
        return Ok(());
    }
    Err(format!("mock and program need about {}, and {} are free", words::bytes(needs), words::bytes(free)))
}

fn words_whole(value: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates at both ends")]
    let whole = value as u64;
    whole
}

/// The free memory of the machine, in bytes; `None` if the kernel does not say.
pub(crate) fn free_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The kinds that the program requested in the first start. Their rows are still empty.
fn kinds(base: &Measured) -> Vec<KindCost> {
    let forms = base.followed.forms();
    let of = |(resource, form, named_requests)| KindCost { resource, form, named_requests, ..KindCost::default() };
    forms.into_iter().map(of).collect()
}

/// The limit for the result. A trial shows whether a cgroup can enforce it.
fn limit(bytes: u64) -> Limit {
    match Cage::make(bytes) {
        Ok(cage) => Limit { bytes, enforced_by: Some(cage.version.to_owned()), why_not: None },
        Err(why) => Limit { bytes, enforced_by: None, why_not: Some(why) },
    }
}

fn write(folder: &Path, sizes: &Sizes) -> Result<()> {
    let json = serde_json::to_string_pretty(sizes)? + "\n";
    let texts = [reports::render::size_html(sizes)?, reports::render::size_markdown(sizes), json];
    for (name, text) in FILES.into_iter().zip(texts) {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
