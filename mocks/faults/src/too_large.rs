//! `too-large`: a `resourceVersion` that the server, or the old state of a `stale-view`, has not reached is refused with 504,
//! in the words of today's servers or of old ones. A hit is one refusal.

use super::asked::TooLargeRule;
use super::{Asked, Behaviour, Form, Scene, Treatment};

#[derive(Debug)]
pub(super) struct TooLarge;

impl Behaviour for TooLarge {
    fn asked(&mut self, _asked: &Asked<'_>, treatment: &mut Treatment, scene: &mut Scene<'_>) {
        let fault = scene.fault;
        treatment.too_large = Some(TooLargeRule {
            form: fault.form.unwrap_or(Form::Modern),
            always: fault.always == Some(true),
            grip: scene.grip.clone(),
        });
    }
}
