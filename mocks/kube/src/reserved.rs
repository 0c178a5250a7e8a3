//! The objects of admitted writes that may not be in the store yet, so that concurrent writes never exceed a quota
//! together.
//!
//! Owns the reservations. [`crate::quota`] decides which objects a quota counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use mock_objects::catalogue::Resource;
use parking_lot::Mutex;
use serde_json::Value;

/// Reserved objects with their resources, by the number of the write.
pub(crate) type Objects = BTreeMap<u64, (Arc<Resource>, Value)>;

#[derive(Debug, Default)]
pub(crate) struct Reserved(Mutex<Reservations>);

#[derive(Debug, Default)]
struct Reservations {
    /// Number of reservations so far.
    writes: u64,
    objects: Objects,
}

/// The reservation of one write. The object counts for quotas until the reservation is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    of: Arc<Reserved>,
    write: u64,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.of.0.lock().objects.remove(&self.write);
    }
}

impl Reserved {
    /// Reserves `object` if `judge` admits it. `judge` gets the objects that are reserved already. No other write is
    /// judged at the same time.
    pub fn admit<E>(
        self: &Arc<Self>,
        resource: &Arc<Resource>,
        object: &Value,
        judge: impl FnOnce(&Objects) -> Result<(), E>,
    ) -> Result<Reservation, E> {
        let mut held = self.0.lock();
        judge(&held.objects)?;
        held.writes += 1;
        let write = held.writes;
        held.objects.insert(write, (resource.clone(), object.clone()));
        Ok(Reservation { of: self.clone(), write })
    }
}
