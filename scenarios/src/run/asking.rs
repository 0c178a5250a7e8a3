//! One play of the part of a hunt that asks a webhook: a fresh API server, the subject, and rounds of questions.
//!
//! Owns the order of the rounds and the report of the play. The modules of `hunt/webhook` decide which questions are
//! asked and which answers are signs of a bug.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use loadgen::admission::Asking;
use mock_faults::Fault;
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use reports::record::{Answers, DIFFERENCES_MAX};
use serde_json::json;

mod ask;
mod bed;
mod kinds;

use self::ask::{Ask, Chained, chain, round};
use self::bed::Bed;
use self::kinds::{Hook, hooks, kinds};
use super::Options;
use crate::hunt::webhook::answer::Answer;
use crate::hunt::webhook::compare::{About, Facet, Mask, Signs, check, check_again, check_order};
use crate::hunt::webhook::corpus::questions;
use crate::hunt::webhook::{Condition, PLAN, Plan, REPORT, Report};

/// Number of questions that are open at the same time, side by side.
const SIDE_BY_SIDE: usize = 32;
/// How often each question is asked side by side.
const TIMES: usize = 4;
/// Number of open questions while the API server is slow, so that a round takes seconds, not minutes.
const WHILE_SLOW: usize = 8;
/// Longest time of a round. The rest of its questions is not asked.
const ROUND_MAX: Duration = Duration::from_secs(12);
/// Least time between the same question in both quiet rounds.
const APART: Duration = Duration::from_millis(1100);
/// Longest time of the round while the API server is slow.
const SLOW_MAX: Duration = Duration::from_secs(8);
/// Maximum number of notes of a play.
const NOTES_MAX: usize = 20;

/// Plays once by the plan in the folder, and writes the report there. An error says why the webhooks could not be asked.
pub(crate) async fn ask(options: &Options, folder: &Path) -> Result<()> {
    let plan = std::fs::read_to_string(folder.join(PLAN)).context("failed to read the plan")?;
    let plan: Plan = serde_json::from_str(&plan).context("failed to read the plan")?;
    let report = Box::pin(asked(options, &plan)).await?;
    let text = serde_json::to_string(&report).context("failed to write the report as JSON")?;
    std::fs::write(folder.join(REPORT), text).context("failed to write the report")
}

/// Plays once by this plan. An error says why the webhooks could not be asked.
async fn asked(options: &Options, plan: &Plan) -> Result<Report> {
    let mut signals = crate::signals::Signals::listen().context("failed to listen for Ctrl-C")?;
    let bed = tokio::select! {
        bed = Box::pin(Bed::up(options)) => bed?,
        signal = signals.next() => bail!("interrupted by {signal}"),
    };
    let mut play = Play { bed, signs: Signs::default(), mask: Mask::default(), report: Report::default() };
    let played = tokio::select! {
        played = Box::pin(play.play(options.source.scenario.seed, plan)) => played,
        signal = signals.next() => Err(anyhow::anyhow!("interrupted by {signal}")),
    };
    let Play { bed, signs, mask, mut report } = play;
    let played = match played {
        Ok(()) => Ok(()),
        Err(error) => Err(bed.with_words(&error).await),
    };
    bed.down().await;
    played?;
    report.masked = mask.masked().to_vec();
    report.signs = signs.shown();
    report.notes.truncate(NOTES_MAX);
    Ok(report)
}

/// Asks after a run, if a budget needs it, and writes the answers into the record in `directory`.
pub(super) async fn ask_again(mut options: Options, directory: &Path) -> Result<()> {
    let admission = options.source.scenario.budgets.admission.as_ref();
    let Some(consistent) = admission.and_then(|admission| admission.consistent.clone()) else { return Ok(()) };
    super::live::live(options.quiet)
        .say("the webhooks are asked the same questions, on a quiet system and then again …");
    let folder = directory.join("asked");
    options.run_dir = Some(folder.clone());
    let scenario = &mut options.source.scenario;
    if scenario.admission.is_none() {
        let load = serde_json::from_value(json!({"rate": "1/s"})).context("a load of the harness itself is invalid")?;
        scenario.admission = Some(load);
    }
    let asked = Box::pin(asked(&options, &Plan { conditions: consistent.under })).await;
    let _ = std::fs::remove_dir_all(&folder);
    let answers = match asked {
        Err(error) => Answers { why: Some(format!("{error:#}")), ..Answers::default() },
        Ok(report) => Answers {
            questions: report.questions,
            compared: report.conditions.iter().map(|(_, compared, _)| compared).sum(),
            differences: report.signs.iter().take(DIFFERENCES_MAX).map(|shown| shown.sign.sentence()).collect(),
            why: None,
        },
    };
    answers.write(directory).context("failed to write the answers into the run record")
}

struct Play<'a> {
    bed: Bed<'a>,
    signs: Signs,
    mask: Mask,
    report: Report,
}

impl Play<'_> {
    async fn play(&mut self, seed: u64, plan: &Plan) -> Result<()> {
        let hooks = hooks(&self.bed)?;
        let kinds = kinds(&self.bed, &hooks);
        let questions = questions(&kinds, seed);
        self.report.webhooks = hooks.iter().map(|hook| hook.path.clone()).collect();
        self.report.kinds = kinds.iter().map(|kind| kind.resource.kind.clone()).collect();
        let asking = self.bed.asking(SIDE_BY_SIDE)?;
        let Chained { asks, refused, questions } = self.dry_run(&asking, &hooks, &questions).await?;
        self.report.questions = u32::try_from(questions).unwrap_or(u32::MAX);
        if asks.is_empty() {
            bail!("the API server accepts no object about which a webhook is asked: add a sample as `churn.template`");
        }
        for (about, why) in &refused {
            let happened = format!("the API server refuses the patched object: {why}");
            self.signs.found(about, Facet::Refused, happened, "it accepts the object without the patch");
        }
        let all: Vec<&Ask> = asks.iter().collect();
        let began = Instant::now();
        let quiet = round(&asking, &all, 1, ROUND_MAX).await;
        // Times with a resolution of a second must differ between both rounds.
        tokio::time::sleep_until((began + APART).into()).await;
        let again = round(&asking, &all, 1, ROUND_MAX).await;
        let mut asked: Vec<(&Ask, &Answer)> = Vec::new();
        for ((ask, quiet), again) in asks.iter().zip(&quiet).zip(&again) {
            let (Some(quiet), Some(again)) = (quiet, again) else { continue };
            self.mask.learn(&ask.about, quiet, again);
            self.count(ask, quiet);
            if quiet.given().is_some() {
                asked.push((ask, quiet));
            }
        }
        if self.is_gone("one by one") {
            return Ok(());
        }
        if asked.is_empty() {
            let why = quiet.iter().flatten().next().map(Answer::describe).unwrap_or_default();
            bail!("no question has a valid answer: {why}");
        }
        self.look_at(&asking, &hooks, &asked).await;
        self.rounds(asking, &asked, seed, plan).await
    }

    /// Asks everything for the first time as a dry run, which must not write. Returns the questions to each webhook.
    async fn dry_run(
        &mut self,
        asking: &Asking,
        hooks: &[Hook],
        questions: &[crate::hunt::webhook::Question],
    ) -> Result<Chained> {
        let known = self.bed.settled_writes().await;
        let chained = chain(&self.bed, asking, hooks, questions).await?;
        let Some(known) = known else {
            self.note("the subject kept writing by itself, so writes on dry runs were not judged");
            return Ok(chained);
        };
        let written = self.bed.writes_soon().await;
        if let Some(write) = written.iter().find(|write| !known.contains(*write)) {
            let webhook = match hooks {
                [one] => one.path.clone(),
                _ => "the webhooks".to_owned(),
            };
            let about = About {
                number: 0,
                webhook,
                question: "questions with `dryRun: true`".to_owned(),
                kind: String::new(),
                name: String::new(),
            };
            let happened = format!("the subject sent a {write}");
            self.signs.found(&about, Facet::Writes, happened, "a dry run has no effect");
        }
        Ok(chained)
    }

    fn count(&mut self, ask: &Ask, answer: &Answer) {
        match answer {
            Answer::Given(given) if given.allowed => self.report.allowed += 1,
            Answer::Given(_) => self.report.denied += 1,
            Answer::Failed(why) => {
                self.report.unanswered += 1;
                if self.report.unanswered == 1 {
                    let About { webhook, question, .. } = &ask.about;
                    self.note(&format!("{webhook} gave no valid answer on a quiet system: {question}: {why}"));
                }
            }
        }
    }

    /// The checks of single answers: errors as warnings, patches, a second call, and a further call after others.
    async fn look_at(&mut self, asking: &Asking, hooks: &[Hook], asked: &[(&Ask, &Answer)]) {
        let until = Instant::now() + ROUND_MAX;
        for (ask, answer) in asked {
            check(&ask.about, answer, &mut self.signs);
        }
        for (ask, answer) in asked {
            let changes = answer.given().is_some_and(|given| given.allowed && !given.changes.is_empty());
            if !changes || Instant::now() >= until {
                continue;
            }
            let Some(result) = ask.result(asking).await else { continue };
            let (again, _) = ask.about_object(&result).answer(asking).await;
            check_again(&ask.about, &again, &self.mask, &mut self.signs);
            let others = hooks
                .iter()
                .enumerate()
                .filter(|(number, hook)| *number != ask.hook && hook.mutating && hook.covers(&ask.question));
            for (_, other) in others {
                let Some(after) = ask.by(other).about_object(&result).result(asking).await else { continue };
                let (further, Some(after)) = ask.about_object(&after).answer(asking).await else { continue };
                let (last, _) = ask.by(other).about_object(&after).answer(asking).await;
                check_order(&ask.about, &further, &last, &self.mask, &mut self.signs);
            }
        }
    }

    /// The rounds under other conditions, each compared with the quiet answers.
    async fn rounds(&mut self, mut asking: Asking, asked: &[(&Ask, &Answer)], seed: u64, plan: &Plan) -> Result<()> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let is_planned = |condition: &Condition| plan.conditions.contains(condition);
        for condition in Condition::ALL.into_iter().filter(is_planned) {
            let mut order: Vec<usize> = (0..asked.len()).collect();
            let mut parallel = 1;
            let fault = match condition {
                Condition::Order => {
                    order.shuffle(&mut rng);
                    None
                }
                Condition::Together => {
                    // Denials are rare, and an answer that is shared shows only beside another one.
                    let is_denied = |number: &usize| asked[*number].1.given().is_some_and(|given| !given.allowed);
                    let denied: Vec<usize> = order.iter().copied().filter(is_denied).collect();
                    order = order.repeat(TIMES);
                    order.extend(denied.repeat(TIMES));
                    order.shuffle(&mut rng);
                    parallel = SIDE_BY_SIDE;
                    None
                }
                Condition::Errors => Some(fault(&json!({"name": "http-error", "on": "any", "status": 500}))?),
                Condition::Slow => {
                    parallel = WHILE_SLOW;
                    Some(fault(&json!({"name": "delay-answer", "on": "any", "delay": "400ms"}))?)
                }
                Condition::Recovered => None,
                Condition::Reload => {
                    self.bed.reload()?;
                    asking = self.bed.asking(SIDE_BY_SIDE)?;
                    None
                }
                Condition::Restart => {
                    self.bed.restart().await.context("the subject could not be started again")?;
                    asking = self.bed.asking(SIDE_BY_SIDE)?;
                    None
                }
            };
            let asks: Vec<&Ask> = order.iter().map(|number| asked[*number].0).collect();
            if let Some(fault) = &fault {
                self.bed.begin(fault)?;
            }
            let limit = if condition == Condition::Slow { SLOW_MAX } else { ROUND_MAX };
            let answers = round(&asking, &asks, parallel, limit).await;
            if fault.is_some() {
                self.bed.end();
            }
            self.compare(condition, &order, asked, &answers);
            let ended = fault.is_some() && self.bed.exited().is_some();
            if ended {
                // A program may end if its API server fails, for example because it loses its Lease.
                self.note(&format!("the subject ended while {}", condition.phrase().trim_start_matches("while ")));
                self.bed.restart().await.context("the subject could not be started again")?;
                asking = self.bed.asking(SIDE_BY_SIDE)?;
            } else if self.is_gone(condition.phrase()) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn compare(
        &mut self,
        condition: Condition,
        order: &[usize],
        asked: &[(&Ask, &Answer)],
        answers: &[Option<Answer>],
    ) {
        let (mut compared, mut unanswered) = (0, 0);
        let mut example = None;
        for (number, answer) in order.iter().zip(answers) {
            let (Some((ask, quiet)), Some(answer)) = (asked.get(*number), answer) else { continue };
            compared += u32::from(self.signs.compare(&ask.about, quiet, answer, condition, &self.mask));
            if let Answer::Failed(why) = answer {
                unanswered += 1;
                example.get_or_insert_with(|| format!("{} {}: {why}", ask.about.webhook, ask.about.question));
            }
        }
        if let Some(example) = example.filter(|_| !condition.excuses_denials()) {
            self.note(&format!(
                "{unanswered} questions had no valid answer {}, for example {example}",
                condition.phrase()
            ));
        }
        self.report.conditions.push((condition.name().to_owned(), compared, unanswered));
    }

    /// Whether the subject has exited; if so, this is a sign.
    fn is_gone(&mut self, how: &str) -> bool {
        let Some(exit) = self.bed.exited() else { return false };
        let about = About {
            number: 0,
            webhook: "the subject".to_owned(),
            question: format!("questions {how}"),
            kind: String::new(),
            name: String::new(),
        };
        self.signs.found(&about, Facet::Exited, format!("it exited ({exit})"), "it answers each question");
        true
    }

    fn note(&mut self, text: &str) {
        self.report.notes.push(format!("{}.", crate::hunt::webhook::answer::shortened(text)));
    }
}

fn fault(settings: &serde_json::Value) -> Result<Fault> {
    serde_json::from_value(settings.clone()).context("a fault of the harness itself is invalid")
}
