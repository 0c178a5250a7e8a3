//! `too-large`: a `resourceVersion` that the server, or the old state of a `stale-view`, has not reached is refused
//! with 504. The `Status` has the form of current or of old API servers. A hit is one refusal.

use super::request::TooLargeRule;
use super::settings::keys;
use super::{Behaviour, Form, Injection, On, PlayedRow, RequestFacts, Row, Scene};

keys! {
    pub struct Keys {
        form "form": Form = ("`modern`", "`modern` or `old`"),
        always "always": bool = ("false", "for every revision but 0"),
    }
}

pub(super) const ROW: PlayedRow =
    Row::requests("too-large", "A revision that the server has not seen is refused with 504, too large.")
        .takes::<Keys>()
        .on(On::Any)
        .refuses(|fault| match fault.keys::<Keys>().form {
            Some(form @ (Form::Http | Form::Stream | Form::Both)) => Err(form.wrong("write `modern` or `old`")),
            _ => Ok(()),
        })
        .sees("504 for a revision that the server, or its stale view, has not reached")
        .played(|_| Box::new(TooLarge));

#[derive(Debug)]
pub(super) struct TooLarge;

impl Behaviour for TooLarge {
    fn request(&mut self, _asked: &RequestFacts<'_>, injection: &mut Injection, scene: &mut Scene<'_>) {
        let fault = scene.fault;
        injection.too_large = Some(TooLargeRule {
            form: fault.keys::<Keys>().form.unwrap_or(Form::Modern),
            always: fault.keys::<Keys>().always == Some(true),
            active: scene.active.clone(),
        });
    }
}
