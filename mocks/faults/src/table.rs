//! The table of faults that every engine has: the begun faults, the numbers of their targets, and their hits.
//!
//! Owns the logic that the mock API server, the network proxy and the registry share: ids, `nth`, `count`,
//! `probability`, hits, and tasks that wait for a hit. The table knows neither the effects nor the targets of faults:
//! the engine stores both with each entry.

use std::collections::VecDeque;
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::sync::Notify;

use super::{Error, Fault, FaultId, Hit, Lasting};

/// Maximum number of hits that are kept until a caller takes them. If more hits wait, the oldest are dropped; counters
/// stay exact.
const HITS_MAX: usize = 8192;
/// Maximum number of faults that are remembered. Every request and every event searches all remembered faults, so
/// thousands would cost more than all other work. A run of a hundred hours begins six thousand faults, but faults that
/// ended long ago are not needed.
const FAULTS_MAX: usize = 256;

/// The faults of one engine, in the order in which they began. `P` is the data with which the engine injects a fault.
#[derive(Debug)]
pub struct Table<P> {
    /// All remembered faults, in the order in which they began.
    pub entries: Vec<Entry<P>>,
    pub ring: Ring,
    /// The random numbers that decide probabilities.
    pub random: ChaCha8Rng,
}

/// One fault that was begun. An ended fault stays in the table because of its hits.
#[derive(Debug)]
pub struct Entry<P> {
    /// The number that the caller gave to the fault.
    pub id: FaultId,
    pub fault: Fault,
    /// Whether the fault has not ended yet.
    pub active: bool,
    /// Number of real effects.
    pub hits: u64,
    /// Number of possible targets since the fault began, for `nth` and `every`.
    asked: u64,
    /// Number of chosen targets since the fault began; their effects may come later.
    chosen: u64,
    /// The data with which the engine injects the fault.
    pub played: P,
}

/// The newest hits, and the notification of new hits.
#[derive(Debug, Default)]
pub struct Ring {
    hits: VecDeque<Hit>,
    struck: Arc<Notify>,
}

impl Ring {
    /// Adds a hit; beyond the limit the oldest hit is dropped.
    pub fn push(&mut self, fault: FaultId, at_us: u64, detail: String) {
        if self.hits.len() == HITS_MAX {
            self.hits.pop_front();
        }
        self.hits.push_back(Hit { fault, at_us, detail });
        self.struck.notify_one();
    }
}

impl<P> Entry<P> {
    /// Counts the next possible target, and returns whether `nth` and `every` choose it.
    pub fn is_its_turn(&mut self) -> bool {
        self.asked += 1;
        self.fault.is_turn(self.asked)
    }

    /// Whether the fault acts only at its beginning, on the targets that exist then.
    pub fn is_moment(&self) -> bool {
        self.fault.lasting() == Lasting::Moment
    }

    /// Whether the fault has used up its `count`.
    pub fn is_spent(&self) -> bool {
        self.fault.count_most().is_some_and(|count| self.hits >= count)
    }
}

impl<P> Table<P> {
    /// A table without faults; `seed` decides all probabilities.
    pub fn new(seed: u64) -> Self {
        Self { entries: Vec::new(), ring: Ring::default(), random: ChaCha8Rng::seed_from_u64(seed) }
    }

    pub fn check_free(&self, id: FaultId) -> Result<(), Error> {
        let runs = self.entries.iter().any(|entry| entry.id == id && entry.active);
        if runs { Err(Error::AlreadyRunning { id: id.0 }) } else { Ok(()) }
    }

    pub fn begin(&mut self, id: FaultId, fault: &Fault, played: P) -> Result<usize, Error> {
        self.check_free(id)?;
        // An ended fault is kept for its hits; beyond the limit the oldest is dropped.
        if self.entries.len() >= FAULTS_MAX
            && let Some(oldest) = self.entries.iter().position(|entry| !entry.active)
        {
            self.entries.remove(oldest);
        }
        let fault = fault.clone();
        self.entries.push(Entry { id, fault, active: true, hits: 0, asked: 0, chosen: 0, played });
        Ok(self.entries.len() - 1)
    }

    /// Ends a fault and returns its index; `None` if the fault is unknown or has ended.
    pub fn end(&mut self, id: FaultId) -> Option<usize> {
        let index = self.entries.iter().position(|entry| entry.id == id && entry.active)?;
        self.entries[index].active = false;
        Some(index)
    }

    /// Returns true with the fault's probability; always true if it has no probability.
    pub fn chance(&mut self, index: usize) -> bool {
        let probability = self.entries[index].fault.probability;
        probability.is_none_or(|p| self.random.random_bool(p.clamp(0.0, 1.0)))
    }

    /// Whether a fault affects another connection: its `nth` or `every`, its `count` and its probability decide.
    pub fn picks(&mut self, index: usize) -> bool {
        let entry = &mut self.entries[index];
        let picked = entry.is_its_turn() && entry.fault.count_most().is_none_or(|count| entry.chosen < count);
        let picked = picked && self.chance(index);
        self.entries[index].chosen += u64::from(picked);
        picked
    }

    /// Counts one real effect.
    pub fn hit(&mut self, index: usize, at_us: u64, detail: String) {
        let entry = &mut self.entries[index];
        entry.hits += 1;
        self.ring.push(entry.id, at_us, detail);
    }

    /// The index of the newest fault with this id. If several faults had the id, only the newest can be active.
    pub fn newest(&self, id: FaultId) -> Option<usize> {
        self.entries.iter().rposition(|entry| entry.id == id)
    }

    pub fn hits_of(&self, id: FaultId) -> u64 {
        self.entries.iter().filter(|entry| entry.id == id).map(|entry| entry.hits).sum()
    }

    /// The hits since the last call, oldest first.
    pub fn take_hits(&mut self) -> Vec<Hit> {
        self.ring.hits.drain(..).collect()
    }

    /// The notification that wakes tasks which wait for a hit.
    pub fn struck(&self) -> Arc<Notify> {
        self.ring.struck.clone()
    }

    /// Every fault that was begun: id, settings, whether it is active, and its number of hits.
    pub fn all(&self) -> Vec<(FaultId, Fault, bool, u64)> {
        self.entries.iter().map(|entry| (entry.id, entry.fault.clone(), entry.active, entry.hits)).collect()
    }
}

#[cfg(test)]
mod tests {
    use units::Span;

    use super::super::{Name, Nth};
    use super::*;

    fn table(fault: &Fault) -> Table<()> {
        let mut table = Table::new(7);
        table.begin(FaultId(1), fault, ()).unwrap();
        table
    }

    #[test]
    fn a_turn_a_count_and_a_chance() {
        let plain = Fault::new(Name::NetReset, Span::from_secs(1));
        let nth = Fault { nth: Some(Nth::Range { from: 2, to: Some(3) }), ..plain.clone() };
        let mut turns = table(&nth);
        assert_eq!([0; 4].map(|_| turns.picks(0)), [false, true, true, false]);
        let mut counted = table(&Fault { count: Some(2), ..plain.clone() });
        assert_eq!([0; 3].map(|_| counted.picks(0)), [true, true, false]);
        let mut never = table(&Fault { probability: Some(0.0), ..plain });
        assert_eq!([0; 3].map(|_| never.picks(0)), [false; 3]);
    }

    /// If too many faults are remembered, the oldest ended fault is dropped, never an active fault. Remembered faults
    /// keep their hits.
    #[test]
    fn thousands_of_faults_are_begun_and_few_are_remembered() {
        let fault = Fault::new(Name::NetReset, Span::from_secs(1));
        let mut table: Table<()> = Table::new(7);
        table.begin(FaultId(0), &fault, ()).unwrap();
        for number in 1..=6000 {
            let index = table.begin(FaultId(number), &fault, ()).unwrap();
            table.hit(index, 5, "struck".to_owned());
            table.end(FaultId(number)).unwrap();
            assert_eq!(table.hits_of(FaultId(number)), 1);
        }
        assert_eq!(table.entries.len(), FAULTS_MAX);
        assert!(table.entries[0].active && table.entries[0].id == FaultId(0), "it still runs");
        assert_eq!((table.hits_of(FaultId(5990)), table.hits_of(FaultId(1))), (1, 0));
    }

    #[test]
    fn an_id_runs_once_and_keeps_its_hits() {
        let fault = Fault::new(Name::NetReset, Span::from_secs(1));
        let mut table = table(&fault);
        assert_eq!(table.begin(FaultId(1), &fault, ()), Err(Error::AlreadyRunning { id: 1 }));
        table.hit(0, 5, "first".to_owned());
        assert_eq!((table.end(FaultId(1)), table.end(FaultId(1)), table.end(FaultId(9))), (Some(0), None, None));
        table.begin(FaultId(1), &fault, ()).unwrap();
        let newest = table.newest(FaultId(1)).unwrap();
        table.hit(newest, 6, "second".to_owned());
        assert_eq!((table.hits_of(FaultId(1)), table.entries[0].hits, table.entries[1].hits), (2, 1, 1));
        assert_eq!((table.take_hits().len(), table.take_hits().len()), (2, 0));
    }
}
