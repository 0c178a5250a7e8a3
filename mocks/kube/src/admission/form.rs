//! The versions and APIs in which a webhook sees a request's objects.
//!
//! With `matchPolicy: Equivalent`, a webhook may see a request for one version of a resource in another version, or in
//! another API of the same objects; the webhook's changes are converted back (Kubernetes documentation, "Matching
//! requests: matchPolicy"). This module must not know which requests a webhook's rules match.

use std::borrow::Cow;
use std::sync::Arc;

use mock_objects::catalogue::Resource;
use mock_objects::convert;
use mock_objects::status::Failure;
use serde_json::{Value, json};

use super::Attempt;
use crate::call::Call;
use crate::conversion;

/// One version of a resource in one API.
#[derive(Debug, Clone)]
pub(super) struct Form {
    pub resource: Arc<Resource>,
    pub version: Arc<str>,
    /// The kind of the request's body if a subresource has its own kind, which is the same in every version of the
    /// resource.
    instead: Option<&'static Other>,
}

/// The kind of a subresource's body.
#[derive(Debug)]
struct Other {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
}

const SCALE: Other = Other { group: "autoscaling", version: "v1", kind: "Scale" };
const BINDING: Other = Other { group: "", version: "v1", kind: "Binding" };
const EVICTION: Other = Other { group: "policy", version: "v1", kind: "Eviction" };
const TOKEN_REQUEST: Other = Other { group: "authentication.k8s.io", version: "v1", kind: "TokenRequest" };

/// A request's objects in the version and API that a webhook sees.
#[derive(Debug)]
pub(super) struct ReviewedObjects<'a> {
    pub form: Form,
    pub object: Cow<'a, Value>,
    pub old: Option<Cow<'a, Value>>,
}

impl Form {
    /// The version and API that the request's path names.
    pub fn of_path(call: &Call) -> Self {
        let instead = match call.target.subresource.as_deref() {
            Some("scale") => Some(&SCALE),
            Some("binding") => Some(&BINDING),
            Some("eviction") => Some(&EVICTION),
            Some("token") => Some(&TOKEN_REQUEST),
            _ => None,
        };
        Self { resource: call.resource.clone(), version: call.served().name.clone(), instead }
    }

    /// Other versions and APIs of the same objects that also have the request's subresource.
    pub fn equivalents(call: &Call) -> Vec<Self> {
        let own = Self::of_path(call);
        let catalogue = call.cluster().catalogue();
        let mut found = Vec::new();
        for resource in catalogue.iter().filter(|resource| resource.id == call.resource.id) {
            for version in resource.versions.iter().filter(|version| version.active) {
                let has_subresource = match call.target.subresource.as_deref() {
                    Some("status") => version.status || !resource.custom,
                    Some("scale") => version.scale.is_some(),
                    _ => true,
                };
                let form = Self { resource: resource.clone(), version: version.name.clone(), ..own.clone() };
                if has_subresource && !form.is(&own) {
                    found.push(form);
                }
            }
        }
        found
    }

    pub fn is(&self, other: &Self) -> bool {
        self.resource.group == other.resource.group && self.version == other.version
    }

    pub fn kind(&self) -> Value {
        if let Some(Other { group, version, kind }) = self.instead {
            return json!({"group": group, "version": version, "kind": kind});
        }
        json!({"group": &*self.resource.group, "version": &*self.version, "kind": &*self.resource.kind})
    }

    fn api_version(&self) -> String {
        match &*self.resource.group {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Converts an object from this version and API into those of `to`.
    pub async fn convert(&self, call: &Call, to: &Self, value: &mut Value) -> Result<(), Failure> {
        if self.is(to) || self.instead.is_some() || !value.is_object() {
            return Ok(());
        }
        if self.resource.conversion.is_some() {
            *value = conversion::one(call.cluster(), &self.resource, value.take(), &to.api_version()).await?;
            return Ok(());
        }
        convert::to_stored(value, &self.resource);
        convert::from_stored(value, &to.resource, &to.api_version());
        Ok(())
    }

    async fn shown<'a>(&self, call: &Call, to: &Self, value: &'a Value) -> Result<Cow<'a, Value>, Failure> {
        if self.is(to) {
            return Ok(Cow::Borrowed(value));
        }
        let mut value = value.clone();
        self.convert(call, to, &mut value).await?;
        Ok(Cow::Owned(value))
    }
}

impl<'a> ReviewedObjects<'a> {
    /// Converts the request's objects into the version and API that the rules of a webhook name.
    pub async fn new(attempt: &Attempt<'a>, object: &'a Value, form: Form) -> Result<Self, Failure> {
        let (asked, call) = (Form::of_path(attempt.call), attempt.call);
        let old = match attempt.old {
            Some(old) => Some(asked.shown(call, &form, old).await?),
            None => None,
        };
        Ok(Self { object: asked.shown(call, &form, object).await?, old, form })
    }
}
