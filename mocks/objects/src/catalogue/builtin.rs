//! The resources of the built-in kinds.

use std::sync::Arc;

use mock_store::ResourceId;

use super::{Field, Resource, Scale, Served};
use crate::kinds::Kind;

pub(super) fn resource(kind: &'static Kind) -> Resource {
    let texts = |list: &[&str]| list.iter().map(|text| Arc::from(*text)).collect();
    let scale = kind.scale.then(|| Scale {
        spec_replicas: "/spec/replicas".to_owned(),
        status_replicas: "/status/replicas".to_owned(),
        selector: Some("/spec/selector".to_owned()),
    });
    let served = |version: &&str| Served {
        name: Arc::from(*version),
        api_version: if kind.group.is_empty() {
            Arc::from(*version)
        } else {
            format!("{}/{version}", kind.group).into()
        },
        active: true,
        status: kind.status,
        scale: scale.clone(),
        deprecation: None,
        columns: Vec::new(),
        schema: None,
        structure: None,
    };
    let versions: Vec<Served> = kind.versions.iter().map(served).collect();
    let fields = kind.selectable.iter().map(|(label, pointers)| Field {
        label: Arc::from(*label),
        pointers: match pointers {
            [] => vec![format!("/{}", label.replace('.', "/"))],
            given => given.iter().map(|pointer| (*pointer).to_owned()).collect(),
        },
        unset: kind.selectable_unset.iter().find(|(field, _)| field == label).map_or("", |(_, value)| value),
    });
    Resource {
        id: ResourceId(u32::MAX),
        group: kind.group.into(),
        storage: versions[0].name.clone(),
        versions,
        plural: kind.plural.into(),
        singular: kind.kind.to_lowercase().into(),
        kind: kind.kind.into(),
        list_kind: format!("{}List", kind.kind).into(),
        short_names: texts(kind.short_names),
        categories: texts(kind.categories),
        namespaced: kind.namespaced,
        custom: false,
        fields: fields.collect(),
        virtual_only: kind.review.is_some(),
        late_defaults: false,
        conversion: None,
        moved: false,
        edition: 0,
        mirrors: kind.mirror.is_some(),
        full_name: kind.full_name().into(),
        rules: kind,
    }
}
