//! `no-answer`: a request is read and never answered, until the client leaves or the fault ends; then the connection is
//! closed. A hit is one request.

use super::{Asked, Behaviour, Instead, Scene, Treatment};

#[derive(Debug)]
pub(super) struct NoAnswer;

impl Behaviour for NoAnswer {
    fn asked(&mut self, asked: &Asked<'_>, treatment: &mut Treatment, scene: &mut Scene<'_>) {
        if treatment.instead.is_none() {
            scene.hit(format!("{} not answered", asked.describe()));
            treatment.instead = Some(Instead::Silence(scene.grip.clone()));
        }
    }
}
