//! A watched resource of an API server, its selectors, and whether requests ask for whole objects.
//!
//! Names and paths are constants for built-in resources, and owned strings for resources from the configuration.

use std::borrow::Cow;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Whole,
    /// The requests ask for metadata only (`PartialObjectMetadata`). A server that does not support
    /// `PartialObjectMetadata` sends whole objects, which are read in the same way.
    Metadata,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The resource's name in observations, diagnostics and metrics: `configmaps`, `packages.longhaul.dev`.
    pub resource: Cow<'static, str>,
    /// The name of the probe, also used in paths below `/debug/`.
    pub probe: Cow<'static, str>,
    /// The API path of the objects in all namespaces, without query.
    pub path: Cow<'static, str>,
    pub form: Form,
    /// Whether lists are streamed (`sendInitialEvents=true`, KEP-3157) if the server supports that.
    pub streamed: bool,
    labels: Option<Cow<'static, str>>,
    fields: Option<Cow<'static, str>>,
}

impl Source {
    /// A source for all objects at `path`, listed in pages.
    pub const fn new(resource: &'static str, probe: &'static str, path: &'static str, form: Form) -> Self {
        let (resource, probe, path) = (Cow::Borrowed(resource), Cow::Borrowed(probe), Cow::Borrowed(path));
        Self { resource, probe, path, form, streamed: false, labels: None, fields: None }
    }

    /// A source whose texts come from the configuration, listed in pages.
    pub fn configured(resource: &str, probe: String, path: &str, form: Form) -> Self {
        Self {
            resource: resource.to_owned().into(),
            probe: probe.into(),
            path: path.to_owned().into(),
            form,
            streamed: false,
            labels: None,
            fields: None,
        }
    }

    /// Restricts the source to objects that match a label selector. If an object stops matching, the API server reports
    /// a deletion.
    #[must_use]
    pub fn labelled(mut self, selector: impl Into<Cow<'static, str>>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Restricts the source by a field selector, such as `metadata.name=config`.
    #[must_use]
    pub fn with_fields(mut self, selector: impl Into<Cow<'static, str>>) -> Self {
        self.fields = Some(selector.into());
        self
    }

    #[must_use]
    pub const fn streamed(mut self) -> Self {
        self.streamed = true;
        self
    }

    /// The path with `query` and the selectors.
    pub(super) fn path_with(&self, query: &str) -> String {
        let mut text = format!("{}?{query}", self.path);
        for (key, selector) in [("labelSelector", &self.labels), ("fieldSelector", &self.fields)] {
            if let Some(selector) = selector {
                text.extend(["&", key, "=", &encode(selector)]);
            }
        }
        text
    }
}

/// Percent-encodes a value of a query.
pub(super) fn encode(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_sent_escaped() {
        let all = Source::new("configmaps", "watch/configmaps", "/api/v1/configmaps", Form::Metadata);
        assert_eq!(all.path_with("limit=5"), "/api/v1/configmaps?limit=5");
        let some = all.labelled("a=b,!c").with_fields("metadata.name=x");
        assert_eq!(
            some.path_with("limit=5"),
            "/api/v1/configmaps?limit=5&labelSelector=a%3Db%2C%21c&fieldSelector=metadata%2Ename%3Dx"
        );
    }
}
