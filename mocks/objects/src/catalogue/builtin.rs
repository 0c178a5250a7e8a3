//! Makes the catalogue entry of each built-in kind. The table from a real kube-apiserver (`builtin`) gives names and
//! versions; the module `kinds` gives the behaviour.

use std::sync::Arc;

use mock_store::ResourceId;

use super::{Field, Resource, Scale, Served};
use crate::builtin::{self, api_version};
use crate::kinds;

pub(super) fn resource(published: &'static builtin::Resource) -> Resource {
    let texts = |list: &[&str]| list.iter().map(|text| Arc::from(*text)).collect();
    let full_name = published.full_name();
    let rules = kinds::of(&full_name);
    let scale = published.has("scale").then(|| Scale {
        spec_replicas: "/spec/replicas".to_owned(),
        status_replicas: "/status/replicas".to_owned(),
        selector: Some("/spec/selector".to_owned()),
    });
    let served = |version: &builtin::Version| Served {
        name: version.name.into(),
        api_version: api_version(published.group, version.name).into(),
        active: true,
        status: published.has("status"),
        scale: scale.clone(),
        deprecation: None,
        columns: Vec::new(),
        schema: None,
        structure: None,
    };
    let field = |label: &&'static str| {
        let elsewhere = rules.selectable.iter().find(|(name, _)| name == label);
        let unset = rules.selectable_unset.iter().find(|(name, _)| name == label);
        Field {
            label: (*label).into(),
            pointers: match elsewhere {
                None => vec![format!("/{}", label.replace('.', "/"))],
                Some((_, pointers)) => pointers.iter().map(|pointer| (*pointer).to_owned()).collect(),
            },
            unset: unset.map_or("", |(_, value)| value),
        }
    };
    let stored =
        published.versions.iter().find(|version| version.is_stored(published)).unwrap_or(&published.versions[0]);
    Resource {
        id: ResourceId(u32::MAX),
        group: published.group.into(),
        storage: stored.name.into(),
        versions: published.versions.iter().map(served).collect(),
        plural: published.plural.into(),
        singular: published.singular.into(),
        kind: published.kind.into(),
        list_kind: format!("{}List", published.kind).into(),
        short_names: texts(&published.short_names),
        categories: texts(&published.categories),
        namespaced: published.namespaced,
        custom: false,
        fields: stored.fields.iter().map(field).collect(),
        virtual_only: rules.review.is_some(),
        late_defaults: false,
        conversion: None,
        moved: false,
        edition: 0,
        mirrors: rules.mirror.is_some(),
        full_name: full_name.into(),
        published: Some(published),
        rules,
    }
}
