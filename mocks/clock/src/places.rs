//! Memory slots ([`MemorySlot`]), one for each thread of the traced programs.
//!
//! This pure module owns the numbers of the slots; [`crate::stack`] and [`crate::detour`] own their contents.

/// Number of slots that fit into the gap in a program's first stack.
pub const PLACES: u64 = 1023;

/// The memory slot of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySlot {
    pub index: u64,
    /// Whether only one thread uses the slot. If there are more threads than slots, two threads may share a slot,
    /// because the kernel reads the time of one thread before the time of the other is written.
    pub is_own: bool,
}

impl MemorySlot {
    /// The slot of a program's first thread.
    pub const FIRST: Self = Self { index: 0, is_own: true };
}

/// The free memory slots.
#[derive(Debug)]
pub struct Places {
    next: u64,
    free: Vec<u64>,
}

impl Places {
    pub fn new() -> Self {
        Self { next: 1, free: Vec::new() }
    }

    /// Takes a memory slot for a new thread.
    pub fn take(&mut self) -> MemorySlot {
        if let Some(index) = self.free.pop() {
            return MemorySlot { index, is_own: true };
        }
        self.next += 1;
        MemorySlot { index: (self.next - 1) % PLACES, is_own: self.next <= PLACES }
    }

    /// Frees the slot of a thread that has ended.
    pub fn give_back(&mut self, place: MemorySlot) {
        if place.is_own && place != MemorySlot::FIRST {
            self.free.push(place.index);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_place_is_one_threads_as_long_as_there_are_enough() {
        let mut places = Places::new();
        let taken: Vec<MemorySlot> = (1..PLACES).map(|_| places.take()).collect();
        assert!(taken.iter().all(|place| place.is_own && *place != MemorySlot::FIRST));
        assert_eq!(taken.iter().map(|place| place.index).collect::<BTreeSet<_>>().len(), taken.len());
        let shared = places.take();
        assert!(!shared.is_own);
        places.give_back(shared);
        assert!(!places.take().is_own);
        places.give_back(taken[7]);
        assert_eq!(places.take(), taken[7]);
    }
}
