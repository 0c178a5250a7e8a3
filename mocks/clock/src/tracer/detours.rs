//! The preparation of waits that do not stop for the tracer. Each program gets memory for the added code and for its
//! threads' slots. When a wait has stopped at a system-call instruction (a site), the tracer rewrites the code around
//! the site.
//!
//! Owns the operations on stopped threads. [`crate::detour`] decides the bytes that are written.

use std::cell::RefCell;
use std::rc::Rc;

use super::thread::{Process, Sites};
use super::{AT_CALL, Tracer};
use crate::detour::{self, COUNTS, Fault, HEAD, PLACE_BYTES, PLACES, PLACES_BYTES, REACH, Rewrite};
use crate::places::{self, MemorySlot};
use crate::registers::Registers;
use crate::room::{CODE, CODE_BYTES};
use crate::sys::{self, Go, Report, Tid};

/// Length of a system-call instruction in bytes; the instruction pointer of a stopped thread is behind that
/// instruction.
const CALL_BYTES: u64 = 2;

impl Tracer {
    /// Adds memory and code for waits to a program that has not run yet, if possible, and gives a slot to its first
    /// thread. Returns the signal with which the thread continues; `None` if the thread has ended.
    pub(super) fn give_room(&mut self, pid: Tid, process: &mut Process, place: MemorySlot) -> Option<i32> {
        let (Some(code), Some(call)) = (&self.machine.detour, self.machine.patch.call) else { return Some(0) };
        if process.page.is_empty() {
            return Some(0);
        }
        let mut signal = 0;
        // The end of the call that started the program.
        to_call(pid, &mut signal)?;
        let Ok(Some(start)) = sys::registers(pid) else { return Some(signal) };
        let shared = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
        let code_rights = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        let rooms = [(CODE, CODE_BYTES, code_rights), (PLACES, PLACES_BYTES, libc::PROT_READ | libc::PROT_WRITE)];
        let mut has_room = true;
        for (address, length, rights) in rooms {
            let mut make = start;
            make.set_number(-1);
            make.set_result(libc::SYS_mmap);
            make.set_instruction(process.page.start + call);
            let [rights, shared] = [rights, shared].map(|flags| u64::from(flags.cast_unsigned()));
            for (index, argument) in [address, length, rights, shared, u64::MAX, 0].into_iter().enumerate() {
                make.set_argument(index, argument);
            }
            sys::set_registers(pid, &make).ok();
            to_call(pid, &mut signal)?;
            to_call(pid, &mut signal)?;
            let made = sys::registers(pid).ok().flatten().map(|made| made.result());
            has_room &= made == Some(address.cast_signed());
        }
        has_room = has_room && sys::write(pid, CODE, &code.bytes).is_some();
        has_room = has_room && sys::poke(pid, process.page.start + self.machine.patch.has_room, 1).is_ok();
        let mut start = start;
        if has_room {
            process.sites = Some(Rc::new(RefCell::new(Sites::default())));
            start.set_place(place_at(place));
            set_head(pid, place);
        }
        sys::set_registers(pid, &start).ok();
        Some(signal)
    }

    /// Sets a register of a new thread to the address of its memory slot, before the thread runs.
    pub(super) fn tell_place(&mut self, tid: Tid) {
        let Some(thread) = self.threads.get_mut(&tid).filter(|thread| thread.is_new) else { return };
        thread.is_new = false;
        let has_room = thread.process.sites.is_some();
        self.live.add(tid, has_room);
        if !has_room {
            return;
        }
        if let Ok(Some(mut registers)) = sys::registers(tid) {
            set_head(tid, thread.place);
            registers.set_place(place_at(thread.place));
            let _ = sys::set_registers(tid, &registers);
        }
    }

    /// Whether a rewritten site and not the program caused a signal; if so, the thread's instruction pointer is
    /// corrected.
    pub(super) fn is_led_back(&self, tid: Tid, signal: i32) -> bool {
        if ![libc::SIGILL, libc::SIGTRAP, libc::SIGSEGV, libc::SIGBUS].contains(&signal) {
            return false;
        }
        let Some(sites) = self.threads.get(&tid).and_then(|thread| thread.process.sites.as_ref()) else { return false };
        let (Some(code), Ok(Some(mut registers))) = (&self.machine.detour, sys::registers(tid)) else { return false };
        let instruction = registers.instruction();
        let fault =
            if signal == libc::SIGSEGV || signal == libc::SIGBUS { code.after_fault(instruction) } else { None };
        let goes = match fault {
            Some(Fault::After) => Some(code.done),
            Some(Fault::Before) => {
                let mut plain = [0; 8];
                sys::read(tid, registers.site(), &mut plain).map(|()| u64::from_ne_bytes(plain))
            }
            None if signal == libc::SIGILL || signal == libc::SIGTRAP => {
                sites.borrow().astray.get(&instruction).copied()
            }
            None => None,
        };
        let Some(goes) = goes else { return false };
        registers.set_instruction(goes);
        sys::set_registers(tid, &registers).is_ok()
    }

    /// When a thread stops, adds to the summary the waits that the thread made without a stop.
    pub(super) fn count_of(&mut self, tid: Tid, registers: &Registers) {
        if !detour::is_within(registers.instruction()) {
            return;
        }
        let Some(thread) = self.threads.get(&tid).filter(|thread| thread.place.is_own) else { return };
        let at = place_at(thread.place) + COUNTS;
        let mut counts = [0; 16];
        if sys::read(tid, at, &mut counts).is_some() {
            let [waits, too_short] = crate::forms::words(counts).map(|count| u64::try_from(count).unwrap_or(0));
            self.summary.add(waits, too_short);
            let _ = sys::write(tid, at, &[0; 16]);
        }
    }
}

/// Rewrites the site of a system call that has just stopped, unless the site was examined before.
pub(super) fn rewrite(tid: Tid, process: &Process, instruction: u64) {
    let (Some(sites), Some(site)) = (&process.sites, instruction.checked_sub(CALL_BYTES)) else { return };
    let mut sites = sites.borrow_mut();
    if detour::is_within(site) || !sites.seen.insert(site) {
        return;
    }
    let Some((from, around)) = around(tid, site) else { return };
    let Some(rewrite) = detour::rewrite(site, sites.count, from, &around) else { return };
    // From now on threads that stop in the middle are led back.
    sites.astray.extend(rewrite.astray.iter().copied());
    sites.count += 1;
    let _ = written(tid, &rewrite);
}

/// The program's bytes around a site that a short jump reaches; only the bytes before the site, if the bytes behind it
/// go beyond the end of the program's memory.
fn around(tid: Tid, site: u64) -> Option<(u64, Vec<u8>)> {
    let reads = [(REACH, 2 * REACH), (REACH, REACH + CALL_BYTES), (8, 8 + CALL_BYTES)];
    reads.into_iter().find_map(|(before, length)| {
        let from = site.checked_sub(before)?;
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        sys::read(tid, from, &mut bytes)?;
        Some((from, bytes))
    })
}

/// Writes the added code for a site, then the site itself. The first byte of the site is a breakpoint meanwhile, so
/// that no other thread runs half-written code.
fn written(tid: Tid, rewrite: &Rewrite) -> Option<()> {
    let (stub_at, stub) = &rewrite.stub;
    sys::write(tid, *stub_at, stub)?;
    sys::write(tid, rewrite.table.0, &rewrite.table.1.to_ne_bytes())?;
    if let Some((at, jump)) = &rewrite.padding {
        poke(tid, *at, jump)?;
    }
    let (at, bytes) = &rewrite.site;
    poke(tid, *at, &[0xcc])?;
    poke(tid, at + 1, bytes.get(1..)?)?;
    poke(tid, *at, bytes.get(..1)?)
}

/// Writes a few bytes into a program's code; the program gets its own copy of that memory.
fn poke(tid: Tid, at: u64, bytes: &[u8]) -> Option<()> {
    let mut word = [0; 8];
    sys::read(tid, at, &mut word)?;
    word.get_mut(..bytes.len())?.copy_from_slice(bytes);
    sys::poke(tid, at, u64::from_ne_bytes(word)).ok()
}

/// Lets a thread run until a system call begins or ends; `None` if the thread has ended. Signals that arrive meanwhile
/// are kept for later.
fn to_call(tid: Tid, signal: &mut i32) -> Option<()> {
    loop {
        sys::go(tid, Go::ToCall, 0).ok()?;
        match sys::wait_for_one(tid).ok()? {
            Report::Gone => return None,
            Report::Stopped { signal: AT_CALL, event: 0 } => return Some(()),
            Report::Stopped { signal: another, event: 0 } => *signal = another,
            Report::Stopped { .. } => {}
        }
    }
}

/// The address of a thread's memory slot. All threads without a slot of their own use the last slot.
fn place_at(place: MemorySlot) -> u64 {
    PLACES + PLACE_BYTES * if place.is_own { place.index } else { places::PLACES }
}

/// Writes the header of a thread's own memory slot.
fn set_head(tid: Tid, place: MemorySlot) {
    if place.is_own {
        let at = place_at(place);
        let head: Vec<u8> = [0, 1, at, 0, 0].into_iter().flat_map(u64::to_ne_bytes).collect();
        let _ = sys::write(tid, at + HEAD, &head);
    }
}
