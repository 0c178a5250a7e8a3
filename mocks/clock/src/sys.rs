//! System calls of a tracer that no safe crate offers completely.
//!
//! This is the only file of the crate with `unsafe`. `nix` lacks real-time signals, which a tracer must pass on, and
//! `rustix` lacks `ptrace`.

#![expect(unsafe_code, reason = "ptrace, fork and the memory of another process; the reason is beside each")]

use std::io::{Error, Result};
use std::os::fd::{AsRawFd as _, BorrowedFd};

use crate::registers::{HERE, Registers, WORDS};
#[cfg(target_arch = "x86_64")]
use crate::room::{SETS, WHICH};

/// The set of general registers (`NT_PRSTATUS`).
const GENERAL: libc::c_int = 1;
/// The register set with the number of the system call (`NT_ARM_SYSTEM_CALL`), which arm64 keeps outside its general
/// registers.
#[cfg(target_arch = "aarch64")]
const SYSTEM_CALL: libc::c_int = 0x404;

/// The id of a thread or process.
pub type Tid = i32;

/// How far a stopped thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Go {
    /// The thread runs until its next stop.
    On,
    /// The thread runs until its next system call begins or ends.
    ToCall,
}

/// The kernel's report about a traced thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// The thread has ended.
    Gone,
    /// The thread stopped. `event` is 0 if the stop is no ptrace event.
    Stopped { signal: i32, event: i32 },
}

/// The process in which [`fork`] returned: the original or the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Parent(Tid),
    Child,
}

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    include_str!("page/x86_64.s"),
    include_str!("detour/x86_64.s"),
    which = const WHICH,
    sets = const SETS
);
#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(include_str!("page/aarch64.s"));

// SAFETY: the labels are those of the assembly above, which is part of this crate.
unsafe extern "C" {
    static longhaul_clock_page: u8;
    static longhaul_clock_page_gettimeofday: u8;
    static longhaul_clock_page_time: u8;
    static longhaul_clock_page_getres: u8;
    static longhaul_clock_page_data: u8;
    static longhaul_clock_page_end: u8;
}

#[cfg(target_arch = "x86_64")]
// SAFETY: the labels are those of the assembly above, which is part of this crate.
unsafe extern "C" {
    static longhaul_clock_detour: u8;
    static longhaul_clock_detour_call: u8;
    static longhaul_clock_detour_done: u8;
    static longhaul_clock_detour_data: u8;
    static longhaul_clock_detour_end: u8;
}

/// The added code for waits without a stop by the tracer, and offsets in that code.
#[derive(Debug, Clone)]
pub struct DetourCode {
    pub bytes: Vec<u8>,
    pub call: usize,
    pub done: usize,
    pub data: usize,
}

/// The added code for waits without a stop by the tracer; `None` on a CPU type without such code.
#[cfg(target_arch = "x86_64")]
#[expect(clippy::unnecessary_wraps, reason = "arm64 has none")]
pub fn detour_code() -> Option<DetourCode> {
    let start = &raw const longhaul_clock_detour;
    let at = |label: *const u8| label.addr() - start.addr();
    let length = at(&raw const longhaul_clock_detour_end);
    // SAFETY: the bytes between both labels are one piece of this program's read-only memory, which lives for ever.
    let bytes = unsafe { std::slice::from_raw_parts(start, length) }.to_vec();
    let [call, done, data] = [
        &raw const longhaul_clock_detour_call,
        &raw const longhaul_clock_detour_done,
        &raw const longhaul_clock_detour_data,
    ]
    .map(at);
    Some(DetourCode { bytes, call, done, data })
}

/// The added code for waits without a stop by the tracer; `None` on a CPU type without such code.
#[cfg(not(target_arch = "x86_64"))]
pub fn detour_code() -> Option<DetourCode> {
    None
}

/// The code that is added to the vDSO, as it was built, and offsets in it.
#[derive(Debug, Clone)]
pub struct Code {
    pub bytes: Vec<u8>,
    pub gettimeofday: usize,
    pub time: usize,
    pub getres: usize,
    pub data: usize,
}

pub fn code() -> Code {
    let start = &raw const longhaul_clock_page;
    let at = |label: *const u8| label.addr() - start.addr();
    let length = at(&raw const longhaul_clock_page_end);
    // SAFETY: the bytes between both labels are one piece of this program's read-only memory, which lives for ever.
    let bytes = unsafe { std::slice::from_raw_parts(start, length) }.to_vec();
    Code {
        bytes,
        gettimeofday: at(&raw const longhaul_clock_page_gettimeofday),
        time: at(&raw const longhaul_clock_page_time),
        getres: at(&raw const longhaul_clock_page_getres),
        data: at(&raw const longhaul_clock_page_data),
    }
}

/// Makes a copy of this process. The caller must make sure that the process has only one thread.
pub fn fork() -> Result<Side> {
    // SAFETY: with one thread no lock can be held by another, so that the child may do whatever this process may.
    match unsafe { libc::fork() } {
        -1 => Err(Error::last_os_error()),
        0 => Ok(Side::Child),
        child => Ok(Side::Parent(child)),
    }
}

/// Closes all file descriptors from this number on.
pub fn close_from(first: BorrowedFd<'_>) {
    let after = first.as_raw_fd().cast_unsigned() + 1;
    // SAFETY: the caller owns none of them any more: it is a copy that was made to trace, and opens its own afterwards.
    // Before Linux 5.9 they stay open until this process ends.
    let _ = unsafe { libc::syscall(libc::SYS_close_range, after, u32::MAX, 0) };
}

/// Ends a copy of this process without the exit handlers of the original.
pub fn exit_at_once(code: i32) -> ! {
    // SAFETY: it has no preconditions.
    unsafe { libc::_exit(code) }
}

/// Waits for the next report of any traced thread. Without `block`, returns `None` if no report is ready. An error
/// means that no traced thread is left.
pub fn wait(block: bool) -> Result<Option<(Tid, Report)>> {
    wait_for(-1, block)
}

/// Waits for the next report of one thread.
pub fn wait_for_one(tid: Tid) -> Result<Report> {
    wait_for(tid, true).map(|seen| seen.map_or(Report::Gone, |(_, report)| report))
}

fn wait_for(whom: Tid, block: bool) -> Result<Option<(Tid, Report)>> {
    let flags = libc::__WALL | if block { 0 } else { libc::WNOHANG };
    let mut status = 0;
    loop {
        // SAFETY: the kernel writes one `int` to where it may.
        let tid = unsafe { libc::waitpid(whom, &raw mut status, flags) };
        match tid {
            -1 if Error::last_os_error().raw_os_error() == Some(libc::EINTR) => {}
            -1 => return Err(Error::last_os_error()),
            0 => return Ok(None),
            _ if libc::WIFSTOPPED(status) => {
                return Ok(Some((tid, Report::Stopped { signal: libc::WSTOPSIG(status), event: status >> 16 })));
            }
            _ => return Ok(Some((tid, Report::Gone))),
        }
    }
}

/// Begins to trace a running process, with these `PTRACE_O_` options.
pub fn seize(pid: Tid, options: libc::c_int) -> Result<()> {
    request(libc::PTRACE_SEIZE, pid, 0, usize::try_from(options).unwrap_or(0))
}

/// Lets a stopped thread run, and delivers a signal unless it is 0.
pub fn go(tid: Tid, how: Go, signal: i32) -> Result<()> {
    let kind = match how {
        Go::On => libc::PTRACE_CONT,
        Go::ToCall => libc::PTRACE_SYSCALL,
    };
    request(kind, tid, 0, usize::try_from(signal).unwrap_or(0))
}

/// Leaves a process that was stopped by a signal stopped until another signal continues it.
pub fn listen(tid: Tid) -> Result<()> {
    request(libc::PTRACE_LISTEN, tid, 0, 0)
}

/// The message of a ptrace event: the id of a new thread, or the former id of a thread that runs a new program.
pub fn message(tid: Tid) -> Result<u64> {
    let mut message: libc::c_ulong = 0;
    request(libc::PTRACE_GETEVENTMSG, tid, 0, (&raw mut message).addr())?;
    Ok(message)
}

/// The registers of a stopped thread; `None` for a 32-bit thread.
pub fn registers(tid: Tid) -> Result<Option<Registers>> {
    let mut registers = Registers { words: [0; WORDS] };
    let mut vector = libc::iovec { iov_base: registers.words.as_mut_ptr().cast(), iov_len: WORDS * 8 };
    request(libc::PTRACE_GETREGSET, tid, usize::try_from(GENERAL).unwrap_or(0), (&raw mut vector).addr())?;
    Ok((vector.iov_len == HERE.words * 8).then_some(registers))
}

pub fn set_registers(tid: Tid, registers: &Registers) -> Result<()> {
    let mut copy = registers.words;
    let mut vector = libc::iovec { iov_base: copy.as_mut_ptr().cast(), iov_len: HERE.words * 8 };
    request(libc::PTRACE_SETREGSET, tid, usize::try_from(GENERAL).unwrap_or(0), (&raw mut vector).addr())
}

/// Replaces the system call that a thread is about to make by the call `number`; -1 means no call.
#[cfg(target_arch = "aarch64")]
pub fn set_call(tid: Tid, number: i64) -> Result<()> {
    let mut number = i32::try_from(number).unwrap_or(-1);
    let mut vector = libc::iovec { iov_base: (&raw mut number).cast(), iov_len: 4 };
    request(libc::PTRACE_SETREGSET, tid, usize::try_from(SYSTEM_CALL).unwrap_or(0), (&raw mut vector).addr())
}

/// Does nothing: on this CPU the number of the call is one of the registers.
#[cfg(not(target_arch = "aarch64"))]
#[expect(clippy::unnecessary_wraps, reason = "arm64 asks the kernel")]
pub fn set_call(_tid: Tid, _number: i64) -> Result<()> {
    Ok(())
}

/// Writes a word into memory that the program itself must not write, such as shared code. The program then gets its own
/// copy of the memory page.
pub fn poke(tid: Tid, address: u64, word: u64) -> Result<()> {
    let [address, word] = [address, word].map(|value| usize::try_from(value).unwrap_or(usize::MAX));
    request(libc::PTRACE_POKEDATA, tid, address, word)
}

/// The type that the C library declares for kinds of requests.
#[cfg(target_env = "musl")]
type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

fn request(kind: Request, tid: Tid, address: usize, data: usize) -> Result<()> {
    // SAFETY: the kernel touches memory of this process only through the `iovec` and the word that callers above own
    // for the length of the call. Everything else concerns a traced thread; for one that is not traced the kernel
    // returns an error.
    match unsafe { libc::ptrace(kind, tid, address, data) } {
        -1 => Err(Error::last_os_error()),
        _ => Ok(()),
    }
}

pub fn read(tid: Tid, address: u64, into: &mut [u8]) -> Option<()> {
    let here = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let there = libc::iovec { iov_base: std::ptr::without_provenance_mut(usize::try_from(address).ok()?), ..here };
    // SAFETY: the kernel writes at most as many bytes as the slice has; the other address belongs to the other process.
    let count = unsafe { libc::process_vm_readv(tid, &raw const here, 1, &raw const there, 1, 0) };
    (usize::try_from(count) == Ok(into.len())).then_some(())
}

/// Writes memory that the process itself may write.
pub fn write(tid: Tid, address: u64, bytes: &[u8]) -> Option<()> {
    let here = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let there = libc::iovec { iov_base: std::ptr::without_provenance_mut(usize::try_from(address).ok()?), ..here };
    // SAFETY: the kernel only reads the slice; the other address belongs to the other process.
    let count = unsafe { libc::process_vm_writev(tid, &raw const here, 1, &raw const there, 1, 0) };
    (usize::try_from(count) == Ok(bytes.len())).then_some(())
}

/// The error of `epoll_pwait2` with an invalid file descriptor, which shows whether the kernel has the call.
pub fn epoll_pwait2_of_nothing() -> Option<i32> {
    // SAFETY: the file is invalid, and there is room for no event and no time: the kernel writes nothing.
    let result = unsafe { libc::syscall(crate::calls::EPOLL_PWAIT2, -1, 0, 1, 0, 0, 0) };
    (result == -1).then(|| Error::last_os_error().raw_os_error()).flatten()
}

/// Reads one of the kernel's clocks: seconds and nanoseconds.
pub fn reading(clock: i32) -> Option<[i64; 2]> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one time to where it may.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (result == 0).then_some([time.tv_sec, time.tv_nsec])
}
