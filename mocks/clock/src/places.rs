//! The places in memory for the threads of a tree of programs, one for each thread.
//!
//! Pure. Owns their numbers; [`crate::stack`] and [`crate::detour`] own their content.

/// As many as fit into a program's first stack.
pub const PLACES: u64 = 1023;

/// The place of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub index: u64,
    /// Whether no other thread has the place. If there are more threads than places, two may share one. Short-lived
    /// content is read by the kernel before the other thread writes.
    pub is_own: bool,
}

impl Place {
    /// The place of a program's first thread.
    pub const FIRST: Self = Self { index: 0, is_own: true };
}

/// The free places.
#[derive(Debug)]
pub struct Places {
    next: u64,
    free: Vec<u64>,
}

impl Places {
    pub fn new() -> Self {
        Self { next: 1, free: Vec::new() }
    }

    /// Takes a place for a new thread.
    pub fn take(&mut self) -> Place {
        if let Some(index) = self.free.pop() {
            return Place { index, is_own: true };
        }
        self.next += 1;
        Place { index: (self.next - 1) % PLACES, is_own: self.next <= PLACES }
    }

    /// Frees the place of a thread that has ended.
    pub fn give_back(&mut self, place: Place) {
        if place.is_own && place != Place::FIRST {
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
        let taken: Vec<Place> = (1..PLACES).map(|_| places.take()).collect();
        assert!(taken.iter().all(|place| place.is_own && *place != Place::FIRST));
        assert_eq!(taken.iter().map(|place| place.index).collect::<BTreeSet<_>>().len(), taken.len());
        let shared = places.take();
        assert!(!shared.is_own);
        places.give_back(shared);
        assert!(!places.take().is_own);
        places.give_back(taken[7]);
        assert_eq!(places.take(), taken[7]);
    }
}
