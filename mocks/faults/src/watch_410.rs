//! `watch-410`: the whole history is compacted and open matching watches end cleanly, so that a client which resumes
//! them gets a 410. A hit is one watch that gets this 410.

use std::sync::Arc;

use super::settings::keys;
use super::{Behaviour, Ending, Fault, Form, Host, PlayedRow, Row, Scene, Stream, WatchState};

keys! {
    pub struct Keys {
        form "form": Form = ("`both`", "`http`, `stream` or `both` in turn"),
    }
}

pub(super) const ROW: PlayedRow =
    Row::watches("watch-410", "The history is compacted to now and open watches end: resuming answers 410.")
        .takes::<Keys>()
        .instant()
        .refuses(|fault| match fault.keys::<Keys>().form {
            Some(form @ (Form::Modern | Form::Old)) => Err(form.wrong("write `http`, `stream` or `both`")),
            _ => Ok(()),
        })
        .sees("the history is compacted and open watches end; resuming answers 410 in this form")
        .hit("a 410 answer")
        .played(|fault| Box::new(Watch410::new(fault)));

#[derive(Debug)]
pub(super) struct Watch410 {
    form: Form,
    in_stream_next: bool,
}

impl Watch410 {
    pub(crate) fn new(fault: &Fault) -> Self {
        Self { form: fault.keys::<Keys>().form.unwrap_or(Form::Both), in_stream_next: false }
    }
}

impl Behaviour for Watch410 {
    fn prepare(&mut self, host: &dyn Host, _targets: &[Arc<str>]) {
        host.compact(0);
    }

    /// Compacts again after the watches were ended: a client that got an event in between could otherwise resume from
    /// the event's revision.
    fn once_begun(&self) -> Option<fn(&dyn Host)> {
        Some(|host| {
            host.compact(0);
        })
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use parking_lot::Mutex;

    use super::super::handle::Handle;
    use super::super::{FaultId, Faults, Moment, Name, On, RequestFacts, Restore, Streaming};
    use super::*;

    /// A test server that remembers the state of the watch at each compaction.
    #[derive(Debug)]
    struct Server(Arc<Stream>, Arc<Mutex<Vec<WatchState>>>);

    impl Host for Server {
        fn now_us(&self) -> u64 {
            0
        }
        fn compact(&self, _keep: u64) -> (u64, u64) {
            self.1.lock().push(self.0.watch_state());
            (0, 0)
        }
        fn restore(&self, _restore: Restore) -> Option<String> {
            None
        }
        fn moment(&self, _age: Duration) -> Moment {
            Moment { revision: 1, revision_then: 1, next_connection: 2 }
        }
        fn rotate_token(&self, _user: &str, _stays: Duration) -> Option<String> {
            None
        }
    }

    /// The revisions of events that are sent until the watch ends are compacted too. A client that resumes from one of
    /// these revisions must get a 410.
    #[test]
    fn history_ends_behind_the_last_event_of_the_watch() {
        let faults = Faults::new(1);
        faults.target_users(["subject"]);
        let stream = Arc::new(Stream::new(Streaming {
            id: 1,
            user: "subject".into(),
            resource: "pods".into(),
            user_agent: "".into(),
            query: "".into(),
            connection: Arc::new(Handle::new(1, 1)),
        }));
        let seen = Arc::default();
        faults.attach(Box::new(Server(Arc::clone(&stream), Arc::clone(&seen))));
        let asked = RequestFacts {
            user: &stream.user,
            resource: &stream.resource,
            user_agent: &stream.user_agent,
            on: On::Watch,
            query: "",
            endpoint: 1,
            connection: 1,
        };
        faults.opened(&stream, &faults.injection(&asked));
        faults.begin(FaultId(1), &Fault::armed(Name::Watch410)).unwrap();
        assert_eq!(*seen.lock(), [WatchState::Served, WatchState::Over(Ending::Clean)]);
    }
}
