//! The only needed field of a Deployment: the replica count. All other fields of a Deployment, above all the pod
//! template, are skipped.

use serde::Deserialize;

use service_watch::{Form, Kind, RawObject, Source};

/// The replica count of a Deployment without `spec.replicas` (`apps/v1`: "Defaults to 1").
const DEFAULT_REPLICAS: i32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deployment {
    /// `spec.replicas`: the desired number of replicas, not the number of ready replicas.
    pub replicas: i32,
}

#[derive(Deserialize)]
struct Spec {
    replicas: Option<i32>,
}

impl Deployment {
    pub const SOURCE: Source =
        Source::new("deployments.apps", "watch/deployments", "/apis/apps/v1/deployments", Form::Whole);
}

impl Kind for Deployment {
    fn read(raw: &RawObject<'_>) -> Self {
        let replicas = raw.spec_as::<Spec>().and_then(|spec| spec.replicas);
        Self { replicas: replicas.unwrap_or(DEFAULT_REPLICAS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use service_watch::Object;

    #[test]
    fn the_count_is_kept_and_is_1_when_nothing_is_written() {
        let read = |spec: &str| -> Object<Deployment> {
            let text = format!(
                r#"{{"metadata":{{"namespace":"n","name":"d","uid":"u","resourceVersion":"7"}},"spec":{spec},"status":{{"replicas":9}}}}"#
            );
            serde_json::from_str::<RawObject<'_>>(&text).unwrap().into_object()
        };
        assert_eq!(read(r#"{"replicas":3,"template":{"spec":{"containers":[]}}}"#).body.replicas, 3);
        assert_eq!(read(r#"{"replicas":0}"#).body.replicas, 0);
        assert_eq!(read(r#"{"template":{}}"#).body.replicas, 1);
        assert_eq!(&*read("{}").version, "7");
    }
}
