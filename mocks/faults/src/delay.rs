//! `delay-answer` and `hold-headers`: an answer is late. With `delay-answer` a list is read at once and sent later, so
//! it shows an old state, and a watch begins later. With `hold-headers` a watch begins at once, and the head of the
//! answer is sent later, together with the first events. A hit is one delayed answer.

use std::time::Duration;

use units::Span;

use super::settings::keys;
use super::{Behaviour, Error, Injection, Name, On, PlayedRow, RequestFacts, Row, Scene};

keys! {
    pub struct AnswerKeys {
        delay "delay": Span = ("400ms", ""),
    }
}

keys! {
    pub struct HeadersKeys {
        delay "delay": Span = ("1s", ""),
    }
}

pub(super) const DELAY_ANSWER: PlayedRow =
    Row::requests("delay-answer", "Answers are decided at once and sent later; watches begin later.")
        .takes::<AnswerKeys>()
        .on(On::List)
        .sees("the answer is made at once (a list's snapshot too) and sent later; a watch begins later")
        .played(|_| Box::new(Delay));

pub(super) const HOLD_HEADERS: PlayedRow =
    Row::requests("hold-headers", "A watch is opened at once, but its headers and events are sent later, together.")
        .takes::<HeadersKeys>()
        .refuses(|fault| {
            if fault.on() == On::Watch {
                return Ok(());
            }
            let instead = "only watches have headers that can be held; see `delay-answer`";
            Err(Error::Value { key: "on", given: "not `watch`".to_owned(), instead })
        })
        .sees("headers and events of a watch arrive later, together")
        .played(|_| Box::new(Delay));

/// The default delay, longer than a list takes and shorter than the timeouts of clients.
const DELAY: Duration = Duration::from_millis(400);
const HOLD: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Delay;

impl Behaviour for Delay {
    fn request(&mut self, asked: &RequestFacts<'_>, injection: &mut Injection, scene: &mut Scene<'_>) {
        let holds = scene.fault.name == Name::HoldHeaders;
        let delay = if holds {
            scene.fault.keys::<HeadersKeys>().delay.map_or(HOLD, |delay| delay.0)
        } else {
            scene.fault.keys::<AnswerKeys>().delay.map_or(DELAY, |delay| delay.0)
        };
        let place = if asked.on == On::Watch && !holds { &mut injection.before } else { &mut injection.after };
        *place = Some(place.unwrap_or_default() + delay);
        scene.hit(format!("{} answered {delay:?} late", asked.describe()));
    }
}
