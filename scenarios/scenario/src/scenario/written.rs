//! Lists the writes of a run, as far as the scenario file shows them. The check of a project's webhooks uses this list
//! to find webhooks that no write matches.

use std::collections::BTreeMap;

use loadgen::admission::Through;
use loadgen::churn;

use super::Scenario;
use super::webhook::Written;

/// The label that Kubernetes itself sets on each namespace.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// Group, version and plural of a resource, from its notation in a scenario, such as `configmaps/v1`.
pub fn parts(resource: &str) -> Option<(String, String, String)> {
    let (name, watch) = churn::names(resource)?;
    let version = watch.rsplit_once('/').map(|(_, version)| version.to_owned())?;
    let (plural, group) = name.split_once('.').unwrap_or((&name, ""));
    Some((group.to_owned(), version, plural.to_owned()))
}

/// The writes that churn, script and load send through the API server.
pub fn written(scenario: &Scenario) -> Vec<Written> {
    let mut all = Vec::new();
    for config in scenario.churn.iter() {
        let Some((group, version, plural)) = parts(&config.resource) else { continue };
        let mix = config.mix;
        // The fill creates objects for any mix.
        let updates = mix.update + mix.label + mix.annotate > 0 || config.also.is_some();
        let deletes = mix.delete + mix.delete_collection > 0;
        let operations = [("CREATE", true), ("UPDATE", updates), ("DELETE", deletes)];
        let operations = operations.into_iter().filter(|(_, is_done)| *is_done).map(|(operation, _)| operation);
        let name = config.namespace.clone().unwrap_or_else(|| "lh-…".to_owned());
        let labels = [("longhaul.dev/churn", scenario.seed.to_string()), (NAMESPACE_NAME, name)];
        let namespace = (config.scope != Some(churn::Scope::Cluster)).then(|| of(labels));
        all.push(Written { by: "churn", group, version, plural, operations: operations.collect(), namespace });
    }
    if let Some((group, version, plural)) = scenario.script.as_ref().and_then(|script| parts(&script.resource)) {
        let namespace = Some(of([(NAMESPACE_NAME, "…".to_owned())]));
        let operations = vec!["CREATE", "UPDATE", "DELETE"];
        all.push(Written { by: "script", group, version, plural, operations, namespace });
    }
    let through = scenario.admission.as_ref().filter(|config| config.through == Through::Apiserver);
    for (group, version, plural) in
        through.into_iter().flat_map(|config| loadgen::admission::through::written(&config.mix))
    {
        let namespace = Some(of([(kind::manifests::OPT_IN_LABEL.0, kind::manifests::OPT_IN_LABEL.1.to_owned())]));
        let operations = vec!["CREATE", "UPDATE", "DELETE"];
        let (group, version, plural) = (group.to_owned(), version.to_owned(), plural.to_owned());
        all.push(Written { by: "load", group, version, plural, operations, namespace });
    }
    all
}

fn of<const N: usize>(labels: [(&str, String); N]) -> BTreeMap<String, String> {
    labels.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
