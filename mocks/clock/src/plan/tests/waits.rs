//! Tests of every wait in the table of calls, and of mistakes in that table.

use super::*;
use crate::calls::{Call, Rest};
use crate::finish::RESTART_BY_BLOCK;

fn waits() -> impl Iterator<Item = (&'static Call, usize, Form, Meaning, Rest)> {
    calls::all().filter_map(|call| match call.kind {
        Kind::Wait { limit, form, meaning, rest } => Some((call, limit, form, meaning, rest)),
        _ => None,
    })
}

/// Describes the error in a wait of the table, if there is one: a limit of a minute must become two seconds in the
/// scratch memory, and the program's own memory must stay unchanged.
fn wrong(call: &Call, as_made: &Call) -> Option<String> {
    let Kind::Wait { limit, form, meaning, .. } = as_made.kind else { return None };
    let memory = Pretended::default();
    let (said, expected) = match meaning {
        Meaning::Relative | Meaning::Flagged | Meaning::Futex => (MINUTE, TWO),
        // A minute after the start.
        Meaning::WallClock | Meaning::ClockIn(_) => (form.words(i128::from(BASE) + 60_000_000_000), [1002, 0]),
    };
    memory.set_time(LIMIT, said)?;
    let clock = Clock::of_test(RATE, BASE);
    let Plan::Change(change) = plan(call.kind, with(limit, LIMIT), &situation(&clock), &memory) else {
        return Some("it is left alone".to_owned());
    };
    let found = (memory.time(SCRATCH), memory.time(LIMIT), change.arguments);
    let mut arguments = [None; 6];
    arguments[limit] = Some(SCRATCH);
    (found != (Some(expected), Some(said), arguments)).then(|| format!("{found:?}"))
}

#[test]
fn every_wait_is_a_thirtieth() {
    for (call, ..) in waits() {
        assert_eq!(wrong(call, call), None, "{}", call.name);
    }
}

/// The test notices a call in the table with the wrong argument or the wrong meaning.
#[test]
fn a_mistake_in_the_table_is_noticed() {
    for (call, limit, form, meaning, rest) in waits() {
        let is_length = matches!(meaning, Meaning::Relative | Meaning::Flagged | Meaning::Futex);
        let other_meaning = if is_length { Meaning::WallClock } else { Meaning::Relative };
        let planted = [(limit ^ 1, form, meaning), (limit, form, other_meaning)];
        for (limit, form, meaning) in planted {
            let mistaken = Call { kind: Kind::Wait { limit, form, meaning, rest }, ..*call };
            assert!(wrong(&mistaken, call).is_some(), "{}: {limit} {form:?} {meaning:?}", call.name);
        }
    }
}

/// Time limits that the kernel refuses stay unchanged, as do waits without a limit.
#[test]
fn waits_that_are_none_pass() {
    for (call, limit, form, ..) in waits() {
        let memory = Pretended::default();
        assert_eq!(plan_of(call.name, [0; 6], &memory), Plan::Pass, "{}", call.name);
        assert_eq!(plan_of(call.name, with(limit, 0x666), &memory), Plan::Pass, "{}", call.name);
        let too_much = if form == Form::Nanos { 1_000_000_000 } else { 1_000_000 };
        for bad in [[-1, 0], [0, -1], [0, too_much]] {
            memory.set_time(LIMIT, bad).unwrap();
            assert_eq!(plan_of(call.name, with(limit, LIMIT), &memory), Plan::Pass, "{} {bad:?}", call.name);
        }
    }
}

/// At rate 30, a remaining time of two seconds becomes a minute in the memory where the program expects it.
#[test]
fn rests_are_thirty_times_as_long() {
    let clock = Clock::of_test(RATE, BASE);
    for (call, limit, form, _, rest) in waits() {
        let memory = Pretended::default();
        memory.set_time(LIMIT, [90, 0]).unwrap();
        let mut arguments = with(limit, LIMIT);
        if let Rest::At(index) = rest {
            arguments[index] = 0x2000;
        }
        let change = change(call.name, arguments, &memory);
        let told = match rest {
            Rest::Nowhere => {
                assert_eq!(change.then, Then::Nothing, "{}", call.name);
                continue;
            }
            Rest::InPlace => {
                // The kernel left it unchanged, and so does the tracer.
                finish(change.then, -14, &clock, &memory);
                assert_eq!(memory.time(LIMIT), Some([90, 0]), "{}", call.name);
                memory.set_time(SCRATCH, [2, 0]).unwrap();
                LIMIT
            }
            Rest::At(_) => {
                memory.set_time(0x2000, [2, 0]).unwrap();
                finish(change.then, 0, &clock, &memory);
                assert_eq!(memory.time(0x2000), Some([2, 0]), "nobody interrupted it");
                0x2000
            }
        };
        let outcome = finish(change.then, RESTART_BY_BLOCK, &clock, &memory);
        assert_eq!(memory.time(told), Some(form.words(60_000_000_000)), "{}", call.name);
        assert!(outcome.goes_on && outcome.result.is_none(), "{}", call.name);
    }
}
