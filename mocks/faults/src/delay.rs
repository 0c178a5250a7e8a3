//! `delay-answer` and `hold-headers`: an answer is late. A list is decided at once and sent later, so it shows the past; a
//! watch begins later. With `hold-headers` a watch begins at once, and its head and events go out later, together. A hit
//! is one request.

use std::time::Duration;

use super::{Asked, Behaviour, Name, On, Scene, Treatment};

/// When the fault does not say: longer than a list takes, shorter than clients wait.
const DELAY: Duration = Duration::from_millis(400);
const HOLD: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Delay;

impl Behaviour for Delay {
    fn asked(&mut self, asked: &Asked<'_>, treatment: &mut Treatment, scene: &mut Scene<'_>) {
        let holds = scene.fault.name == Name::HoldHeaders;
        let delay = scene.fault.delay.map_or(if holds { HOLD } else { DELAY }, |delay| delay.0);
        let place = if asked.on == On::Watch && !holds { &mut treatment.before } else { &mut treatment.after };
        *place = Some(place.unwrap_or_default() + delay);
        scene.hit(format!("{} answered {delay:?} late", asked.describe()));
    }
}
