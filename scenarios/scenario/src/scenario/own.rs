//! Changes a scenario so that it runs with objects of the user's own kind and with another witness.
//!
//! This module changes the resource of the scenario's script, churn and faults, and the watched resources. Objects of
//! the user's kind come from a template, or are generated from the schema in the kind's definition.

use std::path::PathBuf;

use loadgen::churn;

use super::reach::Ground;
use super::{Error, Scenario, Source, Witness, manifests};

/// The resource and the witness of the user's own client, which replace those of the scenario.
#[derive(Debug, Clone, Default)]
pub struct Own {
    /// Files and folders of manifests that the run applies first, such as the definition of the resource.
    pub manifests: Vec<PathBuf>,
    /// The resource that the scenario writes: `caches.cache.example.com/v1`.
    pub resource: Option<String>,
    /// A template of the resource's objects. Without a template, objects are generated from the resource's definition.
    pub template: Option<PathBuf>,
    /// The witness that the client supports.
    pub witness: Option<Witness>,
}

impl Own {
    /// Whether no command-line option changes the scenario.
    pub fn is_none(&self) -> bool {
        self.manifests.is_empty() && self.resource.is_none() && self.template.is_none() && self.witness.is_none()
    }

    /// Parses a witness from the command line: a kind, or a kind with keys, such as `finalizer, name:
    /// example.com/cleanup`.
    pub fn witness(text: &str) -> Result<Witness, String> {
        let text = text.trim();
        let keys = if text.starts_with('{') {
            text.to_owned()
        } else {
            format!("{{kind: {}}}", text.trim_start_matches("kind:"))
        };
        serde_saphyr::from_str(&keys).map_err(|error| {
            format!("{error}; write `status`, `http`, `'finalizer, name: example.com/cleanup'` or another of docs/witnesses.md")
        })
    }
}

impl Source {
    /// Changes the scenario to objects of another kind, and to another witness. The scenario keeps all budgets, even if
    /// the new witness cannot decide them.
    pub fn own(&mut self, own: &Own) -> Result<(), Error> {
        let fail = |text: String| Error::of_options("soak", text);
        let scenario = &mut self.scenario;
        let here =
            std::env::current_dir().map_err(|error| fail(format!("the working folder cannot be read: {error}")))?;
        scenario.control_plane.manifests.extend(own.manifests.iter().map(|path| here.join(path)));
        if let Some(resource) = &own.resource {
            redirect(scenario, resource).map_err(fail)?;
        }
        if let (Some(path), Some(script)) = (&own.template, &mut scenario.script) {
            script.template = Some(serde_json::Value::String(here.join(path).to_string_lossy().into_owned()));
            super::parse::read_template("script", &mut script.template, &Ground::looked_at(&here))
                .map_err(|(_, text)| fail(text))?;
        }
        let found = scenario.control_plane.manifests().map_err(fail)?;
        for churn in scenario.churn.iter_mut() {
            manifests::complete(churn, &found).map_err(fail)?;
        }
        if let Some(script) = &mut scenario.script {
            manifests::complete_script(script, &found).map_err(fail)?;
            script
                .check()
                .map_err(|error| fail(format!("{error} (`--manifests FILE` brings one, `--template FILE` another)")))?;
        }
        let Some(witness) = &own.witness else { return Ok(()) };
        scenario.subject.witness = witness.clone();
        witness.check(&scenario.about()).map_err(fail)
    }
}

/// Replaces the resource that the scenario writes by `resource`.
fn redirect(scenario: &mut Scenario, resource: &str) -> Result<(), String> {
    let (name, _) = churn::names(resource)
        .ok_or_else(|| format!("`--resource {resource}` is no resource: write it as {}", churn::SPELLINGS))?;
    let written = scenario.churn.first().map(|churn| churn.resource.clone());
    let written = scenario.script.as_ref().map(|script| script.resource.clone()).or(written);
    let Some((before, _)) = written.as_deref().and_then(churn::names) else {
        return Err("`--resource`: this scenario writes no objects that this resource could replace".to_owned());
    };
    let is_it = |spelled: &str| churn::names(spelled).is_some_and(|(name, _)| name == before);
    if let Some(script) = scenario.script.as_mut().filter(|script| is_it(&script.resource)) {
        (script.resource, script.template, script.scope) = (resource.to_owned(), None, None);
        script.vary.clear();
    }
    for churn in scenario.churn.iter_mut().filter(|churn| is_it(&churn.resource)) {
        (churn.resource, churn.template, churn.scope) = (resource.to_owned(), None, None);
        churn.vary.clear();
        // The size of objects from a template is that of the template.
        churn.size = None;
    }
    let plural = before.split('.').next().unwrap_or_default().to_owned();
    for fault in scenario.faults.each_mut() {
        if fault.resource.as_ref().is_some_and(|named| *named == before || *named == plural) {
            fault.resource = Some(name.clone());
        }
    }
    for watched in scenario.subject.watches.iter_mut().filter(|watched| is_it(watched)) {
        resource.clone_into(watched);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/files/stranger/memcached-crd.yaml");

    fn own(resource: &str, witness: &str) -> Own {
        let witness = Some(Own::witness(witness).unwrap());
        Own { manifests: vec![CRD.into()], resource: Some(resource.to_owned()), template: None, witness }
    }

    /// The scenario of a documented bug can run with objects of the kind that the user's controller watches.
    #[test]
    fn a_bug_is_played_with_a_kind_of_ones_own() {
        let mut source = Source::read("410-inside-200").unwrap();
        source.own(&own("memcacheds.cache.example.com/v1", "status")).unwrap();
        let scenario = &source.scenario;
        let script = scenario.script.as_ref().unwrap();
        assert_eq!(script.resource, "memcacheds.cache.example.com/v1");
        assert!(
            script.template.as_ref().is_some_and(|template| template["kind"] == "Memcached"),
            "{:?}",
            script.template
        );
        assert!(scenario.faults.iter().all(|fault| fault.resource.as_deref() == Some("memcacheds.cache.example.com")));
        assert_eq!(scenario.judged_resources()[0].0, "memcacheds.cache.example.com");
        assert!(super::super::validate::validate(scenario).is_ok());
    }

    #[test]
    fn what_cannot_be_written_is_refused_with_what_to_add() {
        let wrong = |own: &Own| Source::read("410-inside-200").unwrap().own(own).unwrap_err().to_string();
        let unknown = wrong(&Own { manifests: Vec::new(), ..own("memcacheds.cache.example.com/v1", "status") });
        assert!(unknown.contains("cannot be written") && unknown.contains("--manifests FILE"), "{unknown}");
        let nonsense = wrong(&own("memcacheds", "status"));
        assert!(nonsense.contains("is no resource"), "{nonsense}");
        assert!(Own::witness("children, by: x").unwrap_err().contains("docs/witnesses.md"));
        assert_eq!(Own::witness("{kind: status, condition: Ready}"), Own::witness("status, condition: Ready"));
    }
}
