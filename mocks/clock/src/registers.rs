//! The registers of a stopped thread, as `PTRACE_GETREGSET` writes them, and the positions of arguments in them.
//!
//! This module is pure. The tables of x86-64 and arm64 exist on each machine, so that tests check both tables on one
//! machine.

use crate::forms::lower_half;

/// Number of words that is enough for the register set of every CPU type.
pub const WORDS: usize = 34;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    pub words: [u64; WORDS],
}

/// The positions of registers in the register set of a CPU.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Number of words in the register set.
    pub words: usize,
    /// The position of the system call's number, while a thread is stopped at a call.
    pub number: usize,
    pub arguments: [usize; 6],
    pub result: usize,
    pub instruction: usize,
    pub stack: usize,
}

/// `struct user_regs_struct` of x86-64.
#[cfg(any(test, target_arch = "x86_64"))]
pub const X86_64: Layout =
    Layout { words: 27, number: 15, arguments: [14, 13, 12, 7, 9, 8], result: 10, instruction: 16, stack: 19 };
/// `struct user_pt_regs` of arm64: x0 to x30, sp, pc, pstate.
#[cfg(any(test, target_arch = "aarch64"))]
pub const AARCH64: Layout =
    Layout { words: 34, number: 8, arguments: [0, 1, 2, 3, 4, 5], result: 0, instruction: 32, stack: 31 };

/// The layout of the CPU for which this program is built.
#[cfg(target_arch = "x86_64")]
pub const HERE: Layout = X86_64;
#[cfg(target_arch = "aarch64")]
pub const HERE: Layout = AARCH64;

/// The positions of the registers `rcx` and `gs_base`, which only the added code for waits on x86-64 uses.
const X86_64_SITE: usize = 11;
const X86_64_PLACE: usize = 22;

impl Registers {
    /// The number of the system call. On arm64 a new number is set separately from the registers.
    pub fn number(&self) -> i64 {
        i64::from(lower_half(self.words[HERE.number]))
    }

    pub fn set_number(&mut self, number: i64) {
        self.words[HERE.number] = number.cast_unsigned();
    }

    pub fn argument(&self, index: usize) -> u64 {
        self.words[HERE.arguments[index]]
    }

    pub fn arguments(&self) -> [u64; 6] {
        HERE.arguments.map(|register| self.words[register])
    }

    pub fn set_argument(&mut self, index: usize, value: u64) {
        self.words[HERE.arguments[index]] = value;
    }

    pub fn result(&self) -> i64 {
        self.words[HERE.result].cast_signed()
    }

    pub fn set_result(&mut self, result: i64) {
        self.words[HERE.result] = result.cast_unsigned();
    }

    pub fn instruction(&self) -> u64 {
        self.words[HERE.instruction]
    }

    pub fn stack(&self) -> u64 {
        self.words[HERE.stack]
    }

    pub fn set_instruction(&mut self, instruction: u64) {
        self.words[HERE.instruction] = instruction;
    }

    /// The address of the system-call instruction for which the added code for waits runs.
    pub fn site(&self) -> u64 {
        self.words[X86_64_SITE]
    }

    /// Sets the base of the segment `gs`, which is the address of the thread's memory slot.
    pub fn set_place(&mut self, address: u64) {
        self.words[X86_64_PLACE] = address;
    }

    pub fn set_stack(&mut self, stack: u64) {
        self.words[HERE.stack] = stack;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Each word of a layout has one use, except that arm64 keeps the first argument and the result in one register.
    #[test]
    fn no_register_is_two_things() {
        for (layout, shared) in [(X86_64, 0), (AARCH64, 1)] {
            let Layout { words, number, arguments, result, instruction, stack } = layout;
            let all = [number, result, instruction, stack].into_iter().chain(arguments);
            let distinct: BTreeSet<usize> = all.clone().collect();
            assert_eq!(distinct.len() + shared, all.count());
            assert!(distinct.iter().all(|word| *word < words) && words <= WORDS);
        }
    }
}
