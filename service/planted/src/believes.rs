//! The planted bug `believes-redis`: a shared cache that does not check authentication codes.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use prometheus_client::registry::Registry;
use service_core::known::{Knowledge, Known};
use service_shared_cache::{Cache, HEAD_BYTES, Hmac, Opened, Seal, SharedCache};

/// Time for which each value stays in the cache.
const LIFE: Duration = Duration::from_mins(1);

/// The cache that `settings` name, with the bug that it accepts every stored value.
pub fn cache(settings: &SharedCache) -> anyhow::Result<Arc<dyn Knowledge>> {
    let seal = Hmac::read(&settings.key_file).map_err(anyhow::Error::msg)?;
    Ok(Cache::sealed_by(settings, Arc::new(Believes(seal)), &mut Registry::default())?)
}

struct Believes(Hmac);

impl Seal for Believes {
    fn name(&self, key: &str) -> String {
        self.0.name(key)
    }

    fn close(&self, key: &str, value: &[u8], life: Duration, now: SystemTime) -> Vec<u8> {
        self.0.close(key, value, life, now)
    }

    fn open(&self, _: &str, sealed: &[u8], _: SystemTime) -> Opened {
        let value = sealed.get(HEAD_BYTES..);
        value.map_or(Opened::Foreign, |value| Opened::Good(Known { value: value.to_vec(), life: LIFE }))
    }
}
