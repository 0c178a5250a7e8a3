//! Waits without a stop by the tracer. After a wait stopped once, the code around its system-call instruction is
//! rewritten. From then on the program itself shortens the limit and makes the call.
//!
//! This pure module owns the addresses of the added code and of the threads' memory slots in each program, and the
//! bytes that are written. The code is `detour/x86_64.s`. For other CPUs such code does not exist, so the tracer stops
//! every wait.

use crate::room::{CODE, CODE_BYTES};
use crate::sys;

/// The address of the threads' memory slots: [`crate::places::PLACES`] slots, and one that all further threads share.
pub const PLACES: u64 = CODE + CODE_BYTES;
pub const PLACE_BYTES: u64 = 4096;
pub const PLACES_BYTES: u64 = PLACE_BYTES * (crate::places::PLACES + 1);
/// The offset of the slot's header in a thread's memory slot, as in `detour/x86_64.s`.
pub const HEAD: u64 = 2048;
pub const COUNTS: u64 = 2072;
/// Maximum number of rewritten system-call instructions of one program; the tracer stops at further instructions.
pub const SITES_MAX: u64 = 512;

const TABLE: u64 = CODE + 0x1000;
const STUBS: u64 = CODE + 0x2000;
const STUB_BYTES: u64 = 64;
/// Bytes of a stub: the added code for one system-call instruction.
const STUB_SIZE: usize = 64;
/// The offset behind the instruction that was moved into a stub.
const AFTER_MOVE: u64 = BEFORE_BYTES as u64;
const ADDRESSES: usize = 40;
const PLAIN: u64 = 17;

const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];
/// First byte of `mov eax, …`: five bytes that contain the number of the system call.
const MOVE_NUMBER: u8 = 0xb8;
/// `mov r9, [rsp + 8]`, before the call in the C library's `syscall`.
const MOVE_SIXTH: [u8; BEFORE_BYTES] = [0x4c, 0x8b, 0x4c, 0x24, 0x08];
const BEFORE_BYTES: usize = 5;
/// `int3`, which also fills the space between the functions of a Go program.
const BREAK: u8 = 0xcc;
/// `nop`
const NOTHING: u8 = 0x90;
/// `jmp [ADDRESS]`
const JUMP: [u8; 3] = [0xff, 0x24, 0x25];
const JUMP_BYTES: usize = 7;
/// How far a jump of two bytes reaches, in bytes.
pub const REACH: u64 = 128;

/// The added code that is the same in every program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detour {
    pub bytes: Vec<u8>,
    /// The address of the one system-call instruction whose calls the kernel's filter does not stop.
    pub call: u64,
    /// Where a thread continues if it could not write the remaining time of its wait.
    pub done: u64,
    end: u64,
}

/// The bytes that redirect one system-call instruction (a site).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// Address and bytes of the added code (stub) for this site.
    pub stub: (u64, [u8; STUB_SIZE]),
    pub table: (u64, u64),
    /// Address and bytes of a jump between two functions, where no code runs.
    pub padding: Option<(u64, [u8; JUMP_BYTES])>,
    /// Address and new bytes of the program's instructions. The tracer writes this rewritten instruction last, with a
    /// breakpoint as its first byte until all other bytes are written.
    pub site: (u64, Vec<u8>),
    /// For a thread that stopped in the rewritten bytes: the address where it stopped, and the address where it
    /// continues.
    pub astray: Vec<(u64, u64)>,
}

impl Detour {
    /// The added code for waits; `None` on a CPU type for which there is none.
    pub fn of(has_fine_epoll: bool) -> Option<Self> {
        let code = sys::detour_code()?;
        let mut bytes = code.bytes;
        bytes.get_mut(code.data..code.data + 8)?.copy_from_slice(&u64::from(has_fine_epoll).to_ne_bytes());
        let end = CODE + code.data as u64;
        Some(Self { bytes, call: CODE + code.call as u64, done: CODE + code.done as u64, end })
    }

    /// Where a thread continues after an access to memory that is not mapped. A thread that accessed the memory before
    /// its system call continues at the address in its third register and makes the original call. A thread that
    /// accessed the memory after its call continues behind the failed write. `None` if the thread was not in the added
    /// code.
    pub fn after_fault(&self, instruction: u64) -> Option<Fault> {
        let is_before = (CODE..self.call).contains(&instruction);
        let is_after = (self.call..self.end).contains(&instruction);
        is_before.then_some(Fault::Before).or_else(|| is_after.then_some(Fault::After))
    }
}

/// Where a thread was when it accessed memory that is not mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Before,
    After,
}

/// Whether an address is in the added code or a stub.
pub fn is_within(instruction: u64) -> bool {
    (CODE..CODE + CODE_BYTES).contains(&instruction)
}

/// Whether the added code handles the system call with this number.
pub fn knows(number: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    let old = [libc::SYS_epoll_wait, libc::SYS_poll];
    #[cfg(not(target_arch = "x86_64"))]
    let old: [i64; 0] = [];
    let known = [
        libc::SYS_futex,
        libc::SYS_epoll_pwait,
        libc::SYS_nanosleep,
        libc::SYS_clock_nanosleep,
        libc::SYS_ppoll,
        crate::calls::EPOLL_PWAIT2,
    ];
    known.contains(&number) || old.contains(&number)
}

/// The bytes that redirect the system call at `site`, the program's rewritten instruction number `index`; `around`
/// contains the program's bytes from the address `from` on. `None` if there is no unused space near the site and no
/// instruction before it can be moved.
pub fn rewrite(site: u64, index: u64, from: u64, around: &[u8]) -> Option<Rewrite> {
    let at = usize::try_from(site.checked_sub(from)?).ok()?;
    if index >= SITES_MAX || around.get(at..at + 2)? != SYSTEM_CALL {
        return None;
    }
    let (entry, stub_at) = (TABLE + index * 8, STUBS + index * STUB_BYTES);
    let jump = jump(entry)?;
    if let Some(padding) = padding(site, from, around) {
        let near = i8::try_from(padding.cast_signed() - site.cast_signed() - 2).ok()?;
        return Some(Rewrite {
            stub: (stub_at, stub(stub_at, [NOTHING; BEFORE_BYTES], site + 2)),
            table: (entry, stub_at + AFTER_MOVE),
            padding: Some((padding, jump)),
            site: (site, vec![0xeb, near.to_ne_bytes()[0]]),
            astray: vec![(site + 1, stub_at + AFTER_MOVE)],
        });
    }
    let before: [u8; BEFORE_BYTES] = around.get(at.checked_sub(BEFORE_BYTES)?..at)?.try_into().ok()?;
    if before[0] != MOVE_NUMBER && before != MOVE_SIXTH {
        return None;
    }
    let start = site - AFTER_MOVE;
    Some(Rewrite {
        stub: (stub_at, stub(stub_at, before, site + 2)),
        table: (entry, stub_at),
        padding: None,
        site: (start, jump.to_vec()),
        astray: vec![(start + 1, stub_at), (site, stub_at + AFTER_MOVE)],
    })
}

/// An unused address between functions for a long jump, so near that a jump of two bytes from the site reaches it.
fn padding(site: u64, from: u64, around: &[u8]) -> Option<u64> {
    let runs = around.windows(JUMP_BYTES + 1).zip(from..);
    runs.filter(|(window, _)| window.iter().all(|byte| *byte == BREAK))
        // The first byte of padding may be the last byte of a function that does not return.
        .map(|(_, at)| at + 1)
        .find(|at| i8::try_from(at.cast_signed() - site.cast_signed() - 2).is_ok())
}

fn jump(entry: u64) -> Option<[u8; JUMP_BYTES]> {
    let mut bytes = [0; JUMP_BYTES];
    let (jump, address) = bytes.split_at_mut(JUMP.len());
    jump.copy_from_slice(&JUMP);
    address.copy_from_slice(&u32::try_from(entry).ok()?.to_le_bytes());
    Some(bytes)
}

/// The added code for one site: the overwritten instruction, the addresses for the shared code, and the original system
/// call.
fn stub(at: u64, before: [u8; BEFORE_BYTES], goes_on: u64) -> [u8; STUB_SIZE] {
    let mut bytes = [BREAK; STUB_SIZE];
    let mut put = |index: usize, with: &[u8]| bytes[index..index + with.len()].copy_from_slice(with);
    put(0, &before);
    // lea rcx, [rip + …]: the addresses
    put(5, &[0x48, 0x8d, 0x0d, 28, 0, 0, 0]);
    // jmp CODE
    put(12, &[0xe9]);
    let back = i32::try_from(CODE.cast_signed() - (at.cast_signed() + 17)).unwrap_or(0);
    put(13, &back.to_le_bytes());
    put(17, &SYSTEM_CALL);
    // jmp [rip + …]: the second address
    put(19, &[0xff, 0x25, 23, 0, 0, 0]);
    put(ADDRESSES, &(at + PLAIN).to_le_bytes());
    put(ADDRESSES + 8, &goes_on.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests;
