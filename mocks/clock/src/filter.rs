//! The kernel's filter (seccomp) of system calls that stop, made from the table of calls.
//!
//! Owns the conditions under which a call stops. A wait without a time limit, a futex operation that wakes, and a read
//! of a CPU-time clock do not stop.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen as Size, SeccompCmpOp as Is, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use crate::calls::{self, Call, FUTEX_OPERATION, FUTEX_WAITS, Kind, Meaning, SOCKET_OPTIONS, Timer};
use crate::clock::Clock;

/// The index of the argument in which the code added to the vDSO marks its own system calls. Calls that read a clock
/// have fewer arguments than that.
pub const NONCE_ARGUMENT: u8 = 5;
/// The offset of the instruction pointer in `struct seccomp_data`; its lower half comes first.
const INSTRUCTION_OFFSET: u32 = 8;
/// Length of a system-call instruction on x86-64, the only CPU type with added code for waits.
const CALL_BYTES: u64 = 2;

/// Makes the filter. System calls with `nonce` in their sixth argument come from the code added to the vDSO and pass.
/// The call at the address `passes` passes too, because its limit is already shortened.
pub fn filter(clock: &Clock, nonce: u64, passes: Option<u64>) -> Result<BpfProgram, Error> {
    let target = TargetArch::try_from(std::env::consts::ARCH)?;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in calls::all() {
        rules.insert(call.number, conditions(call, clock, nonce)?);
    }
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Trace(0), target)?;
    let filter: BpfProgram = filter.try_into()?;
    let passes = passes.map_or_else(Vec::new, passing);
    Ok(short_words().into_iter().chain(passes).chain(filter).collect())
}

/// Stops x32 calls, whose times have another layout in memory. The numbers of x32 calls have one bit set, for which
/// seccompiler has no condition.
fn short_words() -> BpfProgram {
    if !cfg!(target_arch = "x86_64") {
        return Vec::new();
    }
    let [load, least, end] = [libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, libc::BPF_JMP | libc::BPF_JGE, libc::BPF_RET]
        .map(|code| u16::try_from(code).unwrap_or(0));
    let line = |code, k, jf| sock_filter { code, jt: 0, jf, k };
    vec![line(load, 0, 0), line(least, calls::SHORT_WORDS, 1), line(end, libc::SECCOMP_RET_TRACE, 0)]
}

/// Lets the system calls of one instruction pass. Seccompiler has no condition for an address, so this filter is
/// written in the kernel's bytecode.
fn passing(instruction: u64) -> BpfProgram {
    let [load, equal, end] = [libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, libc::BPF_JMP | libc::BPF_JEQ, libc::BPF_RET]
        .map(|code| u16::try_from(code).unwrap_or(0));
    let line = |code, k, jf| sock_filter { code, jt: 0, jf, k };
    // The kernel reports the instruction after the call.
    let after = instruction + CALL_BYTES;
    let [low, high] = [after, after >> 32].map(|half| u32::try_from(half & u64::from(u32::MAX)).unwrap_or(0));
    vec![
        line(load, INSTRUCTION_OFFSET + 4, 0),
        line(equal, high, 3),
        line(load, INSTRUCTION_OFFSET, 0),
        line(equal, low, 1),
        line(end, libc::SECCOMP_RET_ALLOW, 0),
    ]
}

/// The kernel stops a system call if one of these conditions holds; an empty list stops each call with this number.
fn conditions(call: &Call, clock: &Clock, nonce: u64) -> Result<Vec<SeccompRule>, Error> {
    let is = |argument: usize, size: Size, operator: Is, value: u64| {
        SeccompCondition::new(u8::try_from(argument).unwrap_or(u8::MAX), size, operator, value)
    };
    let foreign = || is(usize::from(NONCE_ARGUMENT), Size::Qword, Is::Ne, nonce);
    let rule = |conditions: Vec<SeccompCondition>| SeccompRule::new(conditions);
    let mut rules = Vec::new();
    match call.kind {
        Kind::Wait { limit, meaning: Meaning::Futex, .. } => {
            for operation in FUTEX_WAITS {
                let operation = u64::from(operation.cast_unsigned());
                rules.push(rule(vec![
                    is(1, Size::Dword, Is::MaskedEq(FUTEX_OPERATION), operation)?,
                    is(limit, Size::Qword, Is::Ne, 0)?,
                ])?);
            }
        }
        Kind::Wait { limit, .. } => rules.push(rule(vec![is(limit, Size::Qword, Is::Ne, 0)?])?),
        Kind::Millis { limit, .. } => rules.push(rule(vec![
            is(limit, Size::Dword, Is::Gt, 0)?,
            is(limit, Size::Dword, Is::Le, u64::from(i32::MAX.cast_unsigned()))?,
        ])?),
        Kind::Arm { timer: Timer::Process, .. } | Kind::Left { timer: Timer::Process, .. } => {
            rules.push(rule(vec![is(0, Size::Dword, Is::Eq, 0)?])?);
        }
        Kind::Read { clock: Some(which), .. } => {
            for id in clock.own_ids() {
                let id = u64::from(id.cast_unsigned());
                rules.push(rule(vec![is(which, Size::Dword, Is::Eq, id)?, foreign()?])?);
            }
        }
        Kind::Read { clock: None, .. } | Kind::Seconds | Kind::Resolution => rules.push(rule(vec![foreign()?])?),
        Kind::SetOption | Kind::GetOption => {
            for (level, name, _) in SOCKET_OPTIONS {
                let [level, name] = [*level, *name].map(|value| u64::from(value.cast_unsigned()));
                rules.push(rule(vec![is(1, Size::Dword, Is::Eq, level)?, is(2, Size::Dword, Is::Eq, name)?])?);
            }
        }
        Kind::Arm { .. } | Kind::Left { .. } | Kind::Alarm | Kind::Create | Kind::Restart | Kind::Refused { .. } => {}
    }
    Ok(rules)
}
