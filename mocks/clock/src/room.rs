//! The added addresses in each program: the code of waits, and the data of the clocks.
//!
//! Pure. The assembly has the same numbers, which it gets when it is built.

/// The address of the code. The upper half of an address in the table, read as an instruction, is invalid (`ud2`). A
/// thread that is in the middle of a rewritten site therefore stops for the tracer.
pub const CODE: u64 = 0x0b0f_0000;
pub const CODE_BYTES: u64 = 0x1_0000;
/// The byte that selects the current set of clocks: it changes at once, for all threads of a program.
pub const WHICH: u64 = CODE + 0xa000;
/// The sets, each with the data of one clock. A thread that is delayed while it reads one finds it unchanged until this
/// many newer sets have been written.
pub const SETS: u64 = CODE + 0xc000;
pub const SET_BYTES: u64 = 256;
pub const SETS_COUNT: u8 = 64;

const _: () = assert!(SETS + SET_BYTES * 64 == CODE + CODE_BYTES);

/// The address of a set.
pub fn set(index: u8) -> u64 {
    SETS + SET_BYTES * u64::from(index)
}
