//! The payloads of admission load: the images in them, and the plan of reviews. Does no I/O, so that the plan and its
//! fingerprint can be shown without a run.

use std::sync::Arc;

use anyhow::{Context, Result};
use loadgen::admission::{Image, Plan, Through, Truth, through};
use mock_registry::Population;

use crate::scenario::Scenario;

/// The number of images with very large signatures: enough that reviews of the same image do not wait for each other.
const HEAVY_IMAGES: usize = 8;

/// The host of the registry in image references. RFC 6761 reserves `.test`.
pub(super) const HOST: &str = "registry.test:5000";

/// The host of the registry in image references, if it is the same in every run: the service can map a host to the real
/// address. `None` for subjects that need the real address. The real address is known only when the registry listens.
pub(super) fn host(scenario: &Scenario) -> Option<String> {
    scenario.subject.profile().is_service.then(|| HOST.to_owned())
}

/// The images in the registry, and the images that are only referenced.
pub(super) fn population(scenario: &Scenario) -> Population {
    Population { count: scenario.registry.images, seed: scenario.seed, signed: scenario.registry.signed }
}

/// Number of images with very large signatures in the scenario's registry.
pub(super) fn heavy(scenario: &Scenario) -> usize {
    let wanted = scenario.admission.as_ref().is_some_and(|config| config.mix.has_bundles());
    if wanted && scenario.registry.signed { HEAVY_IMAGES } else { 0 }
}

#[derive(Debug, Clone)]
pub(crate) enum Planned {
    /// Reviews sent directly to the webhook.
    Direct(Plan),
    /// Requests sent to the API server.
    Through(through::Plan),
}

impl Planned {
    pub(crate) fn total(&self) -> u64 {
        match self {
            Self::Direct(plan) => plan.total(),
            Self::Through(plan) => plan.total(),
        }
    }

    pub(crate) fn length(&self) -> std::time::Duration {
        match self {
            Self::Direct(plan) => plan.length(),
            Self::Through(plan) => plan.length(),
        }
    }

    /// The plan of load through the API server; `None` for direct load.
    pub(super) fn through(&self) -> Option<&through::Plan> {
        match self {
            Self::Direct(_) => None,
            Self::Through(plan) => Some(plan),
        }
    }

    /// Tells the load about changes of the right answers; `None` for load through the API server.
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

/// The plan of admission load with the given images; `None` if the scenario has no admission load.
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

/// The fingerprint of the payloads, if known before a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fingerprint {
    /// The payloads are the same in every run, with this fingerprint.
    Known(String),
    /// The payloads depend on the address of the registry, which each run chooses.
    OfTheRun,
}

/// The fingerprint of the payloads of a run; `None` if the scenario sends none.
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

    /// A fingerprint is shown before the run only if no address of the run can change it.
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
