//! Attacks of a run: when each begins and ends, and the rows that prove what was done.
//!
//! Owns their places in the record. The connections are [`loadgen::admission::attack`]'s.

use std::time::Instant;

use anyhow::{Context as _, Result};
use loadgen::admission::Target;
use loadgen::admission::attack::{Attack, Attackers, Counts};
use reports::record::{FaultEvent, FaultRow};

use crate::clock::millis;
use crate::scenario::Scenario;

/// Attacks that are planned.
pub(super) struct AttackPlan {
    attacks: Vec<Attack>,
    target: Target,
    /// An image that the webhook lets in.
    image: String,
}

/// Attacks under way.
pub(super) struct Attacks {
    attackers: Attackers,
    /// Where each attack is, in the order of the scenario.
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Waits,
    Runs,
    Over,
}

/// The attacks of a scenario.
pub(super) fn of(scenario: &Scenario) -> &[Attack] {
    scenario.admission.as_ref().map_or(&[], |config| &config.attacks)
}

/// The name of an attack in the rows of `faults.jsonl`.
pub(super) fn name(attack: &Attack) -> String {
    format!("attack-{}", attack.name.as_str())
}

impl AttackPlan {
    /// The attacks of the scenario on `target`; none where the scenario has none.
    pub(super) fn new(scenario: &Scenario, target: &Target, images: &[mock_registry::Image]) -> Option<Self> {
        let attacks = of(scenario);
        if attacks.is_empty() {
            return None;
        }
        let images = images.iter().map(super::keys::image);
        let good = images.into_iter().find(|image| image.digest.is_some() && !matches!(image.verified, Some(Err(_))));
        let image = good.map(|image| image.reference).unwrap_or_default();
        Some(Self { attacks: attacks.to_vec(), target: target.clone(), image })
    }

    /// Lets each attack begin at its time after `begin`.
    pub(super) fn begin(self, begin: Instant) -> Result<Attacks> {
        let Self { attacks, target, image } = self;
        let attackers = Attackers::begin(&attacks, &target, &image, begin).context("failed to start the attacks")?;
        Ok(Attacks { attackers, steps: vec![Step::Waits; attacks.len()] })
    }
}

impl Attacks {
    /// The rows that say what is planned.
    pub(super) fn planned(scenario: &Scenario) -> Vec<FaultRow> {
        of(scenario).iter().map(|attack| row(0, attack, FaultEvent::Planned, 0, attack.describe())).collect()
    }

    /// The rows of attacks that have begun or ended by `now_ms`.
    pub(super) fn tick(&mut self, now_ms: u64) -> Vec<FaultRow> {
        let mut rows = Vec::new();
        for ((attack, counts), step) in self.attackers.counts().into_iter().zip(&mut self.steps) {
            if *step == Step::Waits && now_ms >= millis(attack.at.0) {
                *step = Step::Runs;
                rows.push(row(now_ms, &attack, FaultEvent::Started, 0, String::new()));
            }
            if *step == Step::Runs && now_ms >= millis(attack.at.0 + attack.lasts.0) {
                *step = Step::Over;
                rows.push(ended(now_ms, &attack, &counts));
            }
        }
        rows
    }

    /// Ends all attacks; the rows of those that had begun.
    pub(super) fn finish(&mut self, now_ms: u64) -> Vec<FaultRow> {
        self.attackers.stop();
        let all = self.attackers.counts().into_iter().zip(&mut self.steps);
        let running = all.filter(|(_, step)| **step == Step::Runs);
        running
            .map(|((attack, counts), step)| {
                *step = Step::Over;
                ended(now_ms, &attack, &counts)
            })
            .collect()
    }
}

fn ended(now_ms: u64, attack: &Attack, counts: &Counts) -> FaultRow {
    row(now_ms, attack, FaultEvent::Ended, counts.hits(attack.name), counts.describe())
}

fn row(t_ms: u64, attack: &Attack, event: FaultEvent, hits: u64, detail: String) -> FaultRow {
    let (name, detail) = (name(attack), (!detail.is_empty()).then_some(detail));
    FaultRow { t_ms, id: name.clone(), name, event, hits, ok: None, detail }
}
