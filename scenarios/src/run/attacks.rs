//! Attacks on the webhook during a run: when each attack begins and ends, and the record rows that prove its effect.
//!
//! Owns the times of attacks and their record rows. [`loadgen::admission::attack`] makes the connections.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use loadgen::admission::Target;
use loadgen::admission::attack::{Attack, Attackers, Counts, Name};
use reports::record::{FaultEvent, FaultRow};

use crate::clock::millis;
use crate::scenario::Scenario;

pub(super) struct AttackPlan {
    attacks: Vec<Attack>,
    target: Target,
    image: String,
}

pub(super) struct Attacks {
    attackers: Attackers,
    /// The state of each attack, in the order of the scenario.
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Waits,
    Runs,
    Over,
}

pub(super) fn of(scenario: &Scenario) -> &[Attack] {
    scenario.admission.as_ref().map_or(&[], |config| &config.attacks)
}

/// The name of an attack in the rows of `faults.jsonl`.
pub(super) fn name(attack: &Attack) -> String {
    format!("attack-{}", attack.name.as_str())
}

impl AttackPlan {
    /// The attacks of the scenario on `target`, or `None` if the scenario has none.
    ///
    /// # Errors
    ///
    /// Fails for `unread-answers` without an image that the webhook admits, because the answers would be small.
    pub(super) fn new(scenario: &Scenario, target: &Target, images: &[mock_registry::Image]) -> Result<Option<Self>> {
        let attacks = of(scenario);
        if attacks.is_empty() {
            return Ok(None);
        }
        let images = images.iter().map(super::keys::image);
        let good = images.into_iter().find(|image| image.digest.is_some() && !matches!(image.verified, Some(Err(_))));
        ensure!(
            good.is_some() || attacks.iter().all(|attack| attack.name != Name::UnreadAnswers),
            "admission.attacks: `unread-answers` needs an image that the webhook admits: write `registry: {{kind: mock, images: 1}}`"
        );
        let image = good.map(|image| image.reference).unwrap_or_default();
        Ok(Some(Self { attacks: attacks.to_vec(), target: target.clone(), image }))
    }

    /// Starts the timers: each attack begins at its planned time after `begin`.
    pub(super) fn begin(self, begin: Instant) -> Result<Attacks> {
        let Self { attacks, target, image } = self;
        let attackers = Attackers::begin(&attacks, &target, &image, begin).context("failed to start the attacks")?;
        Ok(Attacks { attackers, steps: vec![Step::Waits; attacks.len()] })
    }
}

impl Attacks {
    pub(super) fn planned_rows(scenario: &Scenario) -> Vec<FaultRow> {
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

    /// Ends all attacks. Returns the rows of attacks that had begun.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Source;

    #[test]
    fn answers_are_large_only_of_an_admitted_image() {
        let target = Target {
            url: "https://127.0.0.1:1/".to_owned(),
            server_name: "localhost".to_owned(),
            ca_pem: String::new(),
            client_certificate: None,
            pace: None,
        };
        let mut scenario = Source::read("admission-hostile").unwrap().scenario;
        let refused = AttackPlan::new(&scenario, &target, &[]).err().unwrap().to_string();
        assert!(refused.contains("`registry: {kind: mock, images: 1}`"), "{refused}");
        let attacks = &mut scenario.admission.as_mut().unwrap().attacks;
        attacks.retain(|attack| attack.name == Name::OpenStreams);
        assert!(AttackPlan::new(&scenario, &target, &[]).unwrap().is_some());
    }
}
