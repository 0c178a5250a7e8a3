//! Room in a program's own memory for the changed times that the kernel reads instead of the program's times.
//!
//! The tracer must not change times in the program's own memory: all threads would see the change, and the memory may
//! be read-only. Before a program starts, its first stack is therefore moved down, and the tracer uses the gap. No
//! system call is needed.

use crate::change::{Memory, SCRATCH_BYTES};
use crate::places::PLACES;

/// Length of the gap in bytes: less than the 128 KiB that the kernel maps below the arguments.
const HOLE_BYTES: u64 = 64 << 10;
const _: () = assert!(PLACES < HOLE_BYTES / SCRATCH_BYTES, "every thread has its own place in the hole");
/// Maximum number of words that are read from a new program's stack. Arguments and environment variables are pointers
/// there; a command line of 2 MiB has at most this many.
const WORDS_MAX: usize = 1 << 18;
const CHUNK_WORDS: usize = 128;
/// `AT_SYSINFO_EHDR`, the key under which a program finds the vDSO.
const PAGE: u64 = 33;

/// The start of a program after its stack was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// The address of the moved stack.
    pub stack: u64,
    /// The address of the gap, at which the first memory slot begins.
    pub hole: u64,
    /// The address of the vDSO; 0 if there is none.
    pub page: u64,
}

/// Moves down the data that the kernel put on a new program's stack; `None` if the data's layout is unknown or no room
/// is left.
pub fn make_room(stack: u64, memory: &impl Memory) -> Option<Moved> {
    let words = first_words(stack, memory)?;
    let page = page(&words)?;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let below = stack.checked_sub(HOLE_BYTES)?;
    memory.write(below, &bytes)?;
    let hole = (below + bytes.len() as u64).next_multiple_of(SCRATCH_BYTES);
    Some(Moved { stack: below, hole, page })
}

/// The words on a new program's stack: the number of arguments, the arguments, a zero, the environment variables, a
/// zero, and the kernel's key-value pairs up to a pair of zeros.
fn first_words(stack: u64, memory: &impl Memory) -> Option<Vec<u64>> {
    let mut words: Vec<u64> = Vec::new();
    let mut ends = End::default();
    while words.len() < WORDS_MAX {
        let mut chunk = [0; CHUNK_WORDS * 8];
        // The top of the stack may be near.
        let length = [CHUNK_WORDS, 32, 1]
            .into_iter()
            .find(|length| memory.read(stack + words.len() as u64 * 8, &mut chunk[..length * 8]).is_some())?;
        for bytes in chunk[..length * 8].chunks_exact(8) {
            words.push(u64::from_ne_bytes(bytes.try_into().ok()?));
            if ends.is_there(&words) {
                return Some(words);
            }
        }
    }
    None
}

/// The progress of reading the words on a new program's stack.
#[derive(Default)]
struct End {
    /// The position of the first key-value pair, once the end of the environment variables was read.
    pairs: Option<usize>,
}

impl End {
    fn is_there(&mut self, words: &[u64]) -> bool {
        let last = words.len() - 1;
        let first_variable = usize::try_from(words[0]).unwrap_or(usize::MAX).saturating_add(2);
        match self.pairs {
            None if last >= first_variable && words[last] == 0 => self.pairs = Some(words.len()),
            None => {}
            Some(start) => return (words.len() - start).is_multiple_of(2) && words[last - 1] == 0,
        }
        false
    }
}

fn page(words: &[u64]) -> Option<u64> {
    let first_variable = usize::try_from(*words.first()?).ok()? + 2;
    let variables = words.get(first_variable..)?;
    let pairs = &variables[variables.iter().position(|word| *word == 0)? + 1..];
    Some(pairs.chunks_exact(2).find(|pair| pair[0] == PAGE).map_or(0, |pair| pair[1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pretended::Pretended;

    #[test]
    fn what_is_on_the_stack_is_moved_whole() {
        let memory = Pretended::default();
        let top = 0x7fff_0000;
        // Two arguments, one of them at address 0 by mistake; one variable; the page and the end.
        let words = [2_u64, 11, 0, 0, 13, 0, 33, 0x1000, 6, 4096, 0, 0];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        memory.write(top, &bytes).unwrap();
        let moved = make_room(top, &memory).unwrap();
        assert_eq!(moved.page, 0x1000);
        assert_eq!(moved.stack % 16, top % 16);
        let mut copy = vec![0; bytes.len()];
        memory.read(moved.stack, &mut copy).unwrap();
        assert_eq!(copy, bytes);
        assert!(moved.hole >= moved.stack + bytes.len() as u64);
        assert!(moved.hole + PLACES * SCRATCH_BYTES <= top + bytes.len() as u64);
        // Nothing is written below the program's data.
        assert_eq!(make_room(0x10, &Pretended::default()), None);
    }
}
