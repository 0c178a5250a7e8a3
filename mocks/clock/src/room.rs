//! Addresses of the memory that is added to each program: the code for waits, and the data of the clocks.
//!
//! This module is pure. The build script passes the same addresses to the assembly code.

/// The address of the code for waits. The upper half of this address, which rewritten instructions contain, is the
/// invalid instruction `ud2`. A thread in the middle of a rewritten instruction therefore stops for the tracer.
pub const CODE: u64 = 0x0b0f_0000;
pub const CODE_BYTES: u64 = 0x1_0000;
/// The address of the byte that selects the current set of clock data, at once for all threads of a program.
pub const WHICH: u64 = CODE + 0xa000;
/// The address of the sets, each with the data of one clock. The sets are overwritten one after the other, so that a
/// thread that is delayed while it reads a set finds the set unchanged.
pub const SETS: u64 = CODE + 0xc000;
pub const SET_BYTES: u64 = 256;
pub const SETS_COUNT: u8 = 64;

const _: () = assert!(SETS + SET_BYTES * 64 == CODE + CODE_BYTES);

/// The address of the set with this number.
pub fn set(index: u8) -> u64 {
    SETS + SET_BYTES * u64::from(index)
}
