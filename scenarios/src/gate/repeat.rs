//! Repeats pairs of measurements during which the machine was under pressure.

use anyhow::Result;
use reports::gate::order::BLOCK;
use reports::gate::record::Line;
use reports::gate::{Side, Slice, halves_dropped};

use super::Choice;
use super::book::Book;
use super::slice::Position;

/// The session whose pairs are repeated.
#[derive(Clone, Copy)]
pub(super) struct Session<'a> {
    pub(super) choice: &'a Choice,
    /// The number of the session, from 1.
    pub(super) number: u32,
    /// The planned build of each measurement.
    pub(super) sides: &'a [Side],
    /// The text of a measurement for the terminal, with its number and the number of all.
    pub(super) line: fn(&Slice, usize, usize) -> String,
}

impl Session<'_> {
    /// Repeats the pairs of which a measurement is dropped, by `measure`. Stops after twice the planned number of
    /// measurements, or if `has_room` says that no further pair fits after so many measurements. A pair is recorded only
    /// when both measurements exist, because measurements that are far apart cannot be compared. Returns false if
    /// `measure` ended the session.
    pub(super) async fn repeat(
        self,
        book: &mut Book,
        has_room: impl Fn(usize) -> bool,
        mut measure: impl AsyncFnMut(Position, &mut Book) -> Result<Option<Slice>>,
    ) -> Result<bool> {
        let Self { choice, number, sides, line } = self;
        let (mut played, most) =
            (book.record().slices.iter().filter(|one| one.session == number).count(), 2 * sides.len());
        loop {
            let halves = halves_dropped(book.record(), number);
            if halves.is_empty() {
                return Ok(true);
            }
            choice
                .say(&format!("{} under pressure: played again", reports::words::counted(halves.len() as u64, "pair")));
            for (block, first) in halves {
                if played + 2 > most || !has_room(played) {
                    choice.say("no more pairs are repeated: the session has its maximum length");
                    return Ok(true);
                }
                let mut pair = Vec::with_capacity(2);
                for index in [block * BLOCK + first, block * BLOCK + first + 1] {
                    let Some(side) = sides.get(index as usize) else { continue };
                    let place = Position::of(choice.source.scenario.seed, number, index, *side);
                    let Some(slice) = measure(place, book).await? else { return Ok(false) };
                    played += 1;
                    choice.say(&line(&slice, played, most));
                    pair.push(slice);
                }
                for slice in pair {
                    book.write(&Line::Slice(Box::new(slice)))?;
                }
            }
        }
    }
}
