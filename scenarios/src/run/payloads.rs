//! The payloads of admission load in a run: the images that they name, and their plan. Pure, so that the plan of a run,
//! with its fingerprint, can be shown without starting one.

use std::sync::Arc;

use anyhow::{Context, Result};
use loadgen::admission::{Image, Plan, Through, Truth, through};
use mock_registry::Population;

use crate::scenario::Scenario;

/// The number of images with heavy signatures, so large that no request for one waits for another review.
const HEAVY_IMAGES: usize = 8;

/// The registry's host in images. Reserved for tests by RFC 6761.
pub(super) const HOST: &str = "registry.test:5000";

/// The registry's name in images, if it is the same in every run: the service can be configured with the real address
/// of a host. A foreign subject needs the address itself. For it the name is `None`, because the address is only known
/// when the registry listens.
pub(super) fn host(scenario: &Scenario) -> Option<String> {
    scenario.subject.kind().is_service().then(|| HOST.to_owned())
}

/// The images in the registry, and those that only appear to be there.
pub(super) fn population(scenario: &Scenario) -> Population {
    Population { count: scenario.registry.images, seed: scenario.seed, signed: scenario.registry.signed }
}

/// Number of images with heavy signatures in the scenario's registry.
pub(super) fn heavy(scenario: &Scenario) -> usize {
    let wanted = scenario.admission.as_ref().is_some_and(|config| config.mix.has_bundles());
    if wanted && scenario.registry.signed { HEAVY_IMAGES } else { 0 }
}

/// Planned admission load.
#[derive(Debug, Clone)]
pub(crate) enum Planned {
    /// Reviews for the webhook itself.
    Direct(Plan),
    /// Requests for the API server.
    Through(through::Plan),
}

impl Planned {
    pub(crate) fn planned(&self) -> u64 {
        match self {
            Self::Direct(plan) => plan.planned(),
            Self::Through(plan) => plan.planned(),
        }
    }

    pub(crate) fn length(&self) -> std::time::Duration {
        match self {
            Self::Direct(plan) => plan.length(),
            Self::Through(plan) => plan.length(),
        }
    }

    /// The plan, if it goes through the API server.
    pub(super) fn through(&self) -> Option<&through::Plan> {
        match self {
            Self::Direct(_) => None,
            Self::Through(plan) => Some(plan),
        }
    }

    /// Changes of the right answers, if the answers themselves are judged.
    pub(super) fn truth(&self) -> Option<Arc<Truth>> {
        match self {
            Self::Direct(plan) => Some(plan.truth()),
            Self::Through(_) => None,
        }
    }

    pub(crate) fn fingerprint(&self) -> String {
        match self {
            Self::Direct(plan) => plan.fingerprint(),
            Self::Through(plan) => plan.fingerprint(),
        }
    }
}

/// The plan of admission load over these images; `None` if there is none.
pub(super) fn plan(scenario: &Scenario, images: &[mock_registry::Image]) -> Result<Option<Planned>> {
    let Some(config) = &scenario.admission else { return Ok(None) };
    let images: Vec<Image> = images.iter().map(super::keys::image).collect();
    let (seed, length) = (scenario.seed, scenario.phases.loaded());
    let plan = match config.through {
        // The policy of a foreign webhook is unknown.
        Through::Webhook if scenario.subject.has_own_policy() => {
            Plan::for_any_webhook(config, seed, length).map(Planned::Direct)
        }
        Through::Webhook => Plan::build(config, seed, length, &images).map(Planned::Direct),
        Through::Apiserver => through::Plan::build(config, seed, length, &images).map(Planned::Through),
    };
    plan.map(Some).context("failed to plan the admission load")
}

/// The knowledge about the payloads before a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fingerprint {
    /// They are the same in every run.
    Known(String),
    /// They depend on the registry's address.
    OfTheRun,
}

/// The fingerprint of the payloads that a run of the scenario will send; `None` if it sends none.
pub(crate) fn fingerprint(scenario: &Scenario) -> Result<Option<Fingerprint>> {
    let at = |host: &str| {
        let mut images = population(scenario).images(host).context("failed to make the registry's images")?;
        images.extend(Population::heavy(host, heavy(scenario)).context("failed to make the registry's images")?);
        Ok::<_, anyhow::Error>(plan(scenario, &images)?.map(|plan| plan.fingerprint()))
    };
    let fixed = host(scenario);
    let Some(fingerprint) = at(fixed.as_deref().unwrap_or(HOST))? else { return Ok(None) };
    // Payloads without images are the same for every address of the registry.
    let known = fixed.is_some() || at("127.0.0.1:1")?.as_ref() == Some(&fingerprint);
    Ok(Some(if known { Fingerprint::Known(fingerprint) } else { Fingerprint::OfTheRun }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Command, Source, SubjectKind};

    /// A fingerprint is only shown in advance if no address of the run can change it.
    #[test]
    fn what_names_the_registry_is_known_when_that_listens() {
        let mut scenario = Source::read("smoke").unwrap().scenario;
        assert!(matches!(fingerprint(&scenario).unwrap(), Some(Fingerprint::Known(_))));
        scenario.subject.kind = SubjectKind::Command(Command::default());
        assert_eq!(fingerprint(&scenario).unwrap(), Some(Fingerprint::OfTheRun));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("traffic.jsonl");
        let review = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"any"}}"#;
        std::fs::write(&file, format!("{{\"atUs\":0,\"body\":{review}}}\n")).unwrap();
        scenario.admission = Some(serde_json::from_value(serde_json::json!({"replay": file})).unwrap());
        assert!(matches!(fingerprint(&scenario).unwrap(), Some(Fingerprint::Known(_))));
        scenario.admission = None;
        assert_eq!(fingerprint(&scenario).unwrap(), None);
    }
}
