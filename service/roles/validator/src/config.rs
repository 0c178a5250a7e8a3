//! The section `validator`: the listener for requests to verify images. The section `validators` configures the trusted
//! keys.

use serde::Deserialize;
use service_contract::listen::{Listen, RawListen};
use service_core::config::{Checker, Error, Section, YamlError, yaml};

/// Default size limit of an inquiry, in bytes. An inquiry contains the demands of a rule and the credentials of a Pod.
/// A request from Gatekeeper contains the images of a large object.
const MAX_BODY_BYTES: usize = 128 << 10;

/// The listener for requests to verify images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validator(pub Listen);

#[doc(hidden)]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawFile {
    validator: Option<RawListen>,
}

impl Section for Validator {
    const KEYS: &'static [&'static str] = &["validator"];
    type Raw = RawFile;

    fn read(text: &str) -> Result<Self::Raw, YamlError> {
        yaml(text)
    }

    fn check(raw: RawFile, check: &Checker<'_>) -> Result<Option<Self>, Error> {
        let Some(raw) = raw.validator else { return Ok(None) };
        Listen::check(raw, "validator", MAX_BODY_BYTES, check).map(|listen| Some(Self(listen)))
    }
}
