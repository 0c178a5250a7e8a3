//! `watch-410`: the history is compacted to now and the open matching watches end cleanly, so that resuming them
//! answers 410, truthfully. A hit is one 410 that was answered.

use std::sync::Arc;

use super::{Behaviour, Ending, Fault, Form, Host, Row, Scene, Stream, WatchState};

pub(super) const ROW: Row =
    Row::watches("watch-410", "The history is compacted to now and open watches end: resuming answers 410.")
        .takes(&[("form", "`both`", "`http`, `stream` or `both` in turn")])
        .instant()
        .refuses(|fault| match fault.form {
            Some(form @ (Form::Modern | Form::Old)) => Err(form.wrong("write `http`, `stream` or `both`")),
            _ => Ok(()),
        })
        .sees("history is compacted, open watches end, resuming answers 410 in this form")
        .hit("a 410")
        .played(|fault| Box::new(Watch410::new(fault)));

#[derive(Debug)]
pub(super) struct Watch410 {
    form: Form,
    in_stream_next: bool,
}

impl Watch410 {
    pub(crate) fn new(fault: &Fault) -> Self {
        Self { form: fault.form.unwrap_or(Form::Both), in_stream_next: false }
    }
}

impl Behaviour for Watch410 {
    fn prepare(&mut self, host: &dyn Host, _targets: &[Arc<str>]) {
        host.compact(0);
    }

    fn begin(&mut self, open: &[Arc<Stream>], _scene: &mut Scene<'_>) {
        for stream in open {
            stream.decide(WatchState::Over(Ending::Clean));
        }
    }

    fn gone(&mut self, stream: &Stream, requested: u64, scene: &mut Scene<'_>) -> Option<Form> {
        let form = match self.form {
            Form::Both => {
                self.in_stream_next = !self.in_stream_next;
                if self.in_stream_next { Form::Http } else { Form::Stream }
            }
            one => one,
        };
        let how = if form == Form::Http { "as HTTP status" } else { "in the stream" };
        scene.hit(format!("{} resumed from {requested}: 410 {how}", stream.describe()));
        Some(form)
    }
}
