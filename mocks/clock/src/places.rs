//! Numbers of places in memory, one for each thread of a tree of programs.
//!
//! Pure. Owns how many there are; what is in one is said by [`crate::stack`] and [`crate::detour`].

/// As many as there is room for in a program's first stack.
pub const PLACES: u64 = 1023;

/// The place of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub index: u64,
    /// No other thread has it. Of more threads than there are places, two may share one: what is there for a moment only, the kernel has
    /// read before the other thread writes.
    pub is_own: bool,
}

impl Place {
    /// That of the program's first thread.
    pub const FIRST: Self = Self { index: 0, is_own: true };
}

/// Which places are taken.
#[derive(Debug)]
pub struct Places {
    next: u64,
    free: Vec<u64>,
}

impl Places {
    pub fn new() -> Self {
        Self { next: 1, free: Vec::new() }
    }

    /// A place for a new thread.
    pub fn take(&mut self) -> Place {
        if let Some(index) = self.free.pop() {
            return Place { index, is_own: true };
        }
        self.next += 1;
        Place { index: (self.next - 1) % PLACES, is_own: self.next <= PLACES }
    }

    /// The thread has ended.
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
