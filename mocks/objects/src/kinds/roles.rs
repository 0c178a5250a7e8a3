//! `Role` and `ClusterRole`: sets of permissions.

use serde_json::Value;

use super::{Causes, Generation, Kind, Meaning, Names};
use crate::fields::shown_empty;
use crate::status::Cause;

pub(super) const CLUSTER_ROLE: Kind = Kind {
    about: "What may be done in the whole cluster.",
    defaults: |value| shown_empty(value, &[], "rules"),
    names: Names::Path,
    check: |value, causes| check(value, true, causes),
    generation: Generation::None,
    created_by_update: true,
    meaning: Meaning::ClusterRole,
    ..Kind::of("clusterroles.rbac.authorization.k8s.io")
};

pub(super) const ROLE: Kind = Kind {
    about: "What may be done in one namespace.",
    defaults: |value| shown_empty(value, &[], "rules"),
    names: Names::Path,
    check: |value, causes| check(value, false, causes),
    generation: Generation::None,
    created_by_update: true,
    ..Kind::of("roles.rbac.authorization.k8s.io")
};

fn check(value: &Value, is_cluster: bool, causes: &mut Causes) {
    let selectors = &value["aggregationRule"]["clusterRoleSelectors"];
    if value["aggregationRule"].is_object() && selectors.as_array().is_none_or(Vec::is_empty) {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        causes.push(Cause::required("aggregationRule.clusterRoleSelectors", why));
    }
    for (index, rule) in value["rules"].as_array().into_iter().flatten().enumerate() {
        let at = format!("rules[{index}]");
        let count = |key: &str| rule[key].as_array().map_or(0, Vec::len);
        if count("verbs") == 0 {
            causes.push(Cause::required(&format!("{at}.verbs"), "verbs must contain at least one value"));
        }
        if count("nonResourceURLs") > 0 {
            if !is_cluster {
                let why = "namespaced rules cannot apply to non-resource URLs";
                causes.push(Cause::invalid(
                    &format!("{at}.nonResourceURLs"),
                    &rule["nonResourceURLs"].to_string(),
                    why,
                ));
            } else if count("apiGroups") + count("resources") + count("resourceNames") > 0 {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                causes.push(Cause::invalid(
                    &format!("{at}.nonResourceURLs"),
                    &rule["nonResourceURLs"].to_string(),
                    why,
                ));
            }
            continue;
        }
        for (key, why) in [
            ("apiGroups", "resource rules must supply at least one api group"),
            ("resources", "resource rules must supply at least one resource"),
        ] {
            if count(key) == 0 {
                causes.push(Cause::required(&format!("{at}.{key}"), why));
            }
        }
    }
}
