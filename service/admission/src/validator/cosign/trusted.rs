//! Validators for inquiries of other processes: the trusted keys come from the named cosign validator, the demands from
//! the inquiry.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use service_registry::verdicts::{Class, Failure};
use service_verify::{RequirementError, Trust};
use sha2::{Digest as _, Sha256};

use super::{Engine, GENERATION_BYTES, Memory, Pieces, Validator, ValidatorKind, trust};
use crate::config::{Config, Cosign, demanded};

/// Maximum number of compiled demands that are kept: as many as the largest policy has. If there are more demands, the
/// kept demands are dropped.
const COMPILED_MAX: usize = 256;
const DEMANDS_BYTES_MAX: usize = 32 << 10;
/// The message about an unknown validator.
const NOWHERE: &str = "there is no cosign validator of that name in the configuration of the process that is asked";

type Engines = BTreeMap<(String, String), Arc<dyn Validator>>;

#[derive(Default)]
pub struct Trusted {
    by_name: BTreeMap<String, (Cosign, Arc<Trust>)>,
    parts: Option<(Arc<dyn Pieces>, Memory)>,
    compiled: Mutex<Engines>,
}

impl Trusted {
    /// Makes validators for `config`; `compiled` has the trusted keys by validator index.
    pub(super) fn new(
        config: &Config,
        compiled: &BTreeMap<usize, Arc<Trust>>,
        pieces: &Arc<dyn Pieces>,
        memory: &Memory,
    ) -> Self {
        let trusted = |(index, validator): (usize, &crate::config::Validator)| match &validator.kind {
            ValidatorKind::Cosign(cosign) => {
                Some((validator.name.clone(), (cosign.clone(), Arc::clone(compiled.get(&index)?))))
            }
            _ => None,
        };
        let by_name = config.validators.iter().enumerate().filter_map(trusted).collect();
        Self { by_name, parts: Some((Arc::clone(pieces), memory.clone())), compiled: Mutex::default() }
    }

    /// A validator with the trusted keys of the validator `name` and the demands `demands`.
    pub fn engine(&self, name: &str, demands: &str) -> Result<Arc<dyn Validator>, Failure> {
        let wrong = |what: String| Failure::new(Class::Misconfigured, format!("the validator `{name}`: {what}"));
        let (Some((cosign, trust)), Some((pieces, memory))) = (self.by_name.get(name), &self.parts) else {
            return Err(wrong(NOWHERE.to_owned()));
        };
        if demands.len() > DEMANDS_BYTES_MAX {
            return Err(wrong(format!("demands have at most {DEMANDS_BYTES_MAX} bytes")));
        }
        let key = (name.to_owned(), demands.to_owned());
        if let Some(known) = self.compiled.lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let with = demanded(demands, cosign).map_err(wrong)?;
        let requirement = trust::requirement("the question", &with).map_err(|error| wrong(error.to_string()))?;
        requirement.check(trust).map_err(|error: RequirementError| wrong(error.to_string()))?;
        let engine = Engine::asking(Arc::clone(trust), requirement, pieces, memory);
        let mut compiled = self.compiled.lock();
        if compiled.len() >= COMPILED_MAX {
            compiled.clear();
        }
        compiled.insert(key, Arc::clone(&engine));
        Ok(engine)
    }

    /// The names of validators, and a text that changes with their trusted keys.
    pub fn about(&self) -> (Vec<String>, String) {
        let mut hash = Sha256::new();
        for (name, (_, trust)) in &self.by_name {
            for text in [name.as_bytes(), trust.fingerprint().as_bytes()] {
                hash.update((text.len() as u64).to_le_bytes());
                hash.update(text);
            }
        }
        // Another release may judge differently.
        hash.update(env!("CARGO_PKG_VERSION"));
        (self.by_name.keys().cloned().collect(), hex::encode(&hash.finalize()[..GENERATION_BYTES]))
    }
}
