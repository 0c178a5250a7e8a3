//! Addresses of ours in each program: the code of waits, and what there is to know of the clocks.
//!
//! Pure. The numbers are in the assembly as well, which is given them when it is built.

/// Where the code is. The upper half of an address in the table, read as an instruction, is one that there is not (`ud2`): a thread that is
/// in the middle of what was rewritten comes to the tracer.
pub const CODE: u64 = 0x0b0f_0000;
pub const CODE_BYTES: u64 = 0x1_0000;
/// The byte that says which set of clocks counts: it changes at once, for all threads of a program.
pub const WHICH: u64 = CODE + 0xa000;
/// The sets, each what a clock says of itself. A thread that was held up while it read one finds it unchanged until so many others took
/// its turn.
pub const SETS: u64 = CODE + 0xc000;
pub const SET_BYTES: u64 = 256;
pub const SETS_COUNT: u8 = 64;

const _: () = assert!(SETS + SET_BYTES * 64 == CODE + CODE_BYTES);

/// Where a set is.
pub fn set(index: u8) -> u64 {
    SETS + SET_BYTES * u64::from(index)
}
