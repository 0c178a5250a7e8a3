//! The actions on one resource: each accepted event of the resource's watch is passed to all its actions, in the order
//! of the configuration.

use std::sync::Arc;

use futures_util::FutureExt as _;
use parking_lot::RwLock;
use service_watch::{Backpressure, Change, Event};

use crate::filter::Filter;
use crate::finalize::{Step, step};
use crate::meta::Meta;
use crate::metrics::Metrics;
use crate::tell::{self, Entrance};
use crate::work::{Task, Work};

/// How an action handles an event that matches its filter.
#[derive(Clone)]
pub enum Way {
    Log,
    Tell(Entrance),
    Work(Arc<Work>),
}

#[derive(Clone)]
pub struct Action {
    pub name: Arc<str>,
    /// The filter for events; it can be replaced while the process runs.
    pub filter: Arc<RwLock<Filter>>,
    pub way: Way,
}

impl Action {
    fn show(&self, resource: &str, event: &Event<Meta>, metrics: &Metrics) -> Backpressure {
        let filter = self.filter.read();
        if let Way::Work(work) = &self.way
            && let Task::Finalize(finalizer) = work.task()
        {
            let object = &event.object;
            if event.change == Change::Deleted {
                work.forget(&object.key);
                return None;
            }
            if step(object, finalizer, filter.selects(object)) == Step::None {
                // The waiting visit is done, or not wanted any more.
                work.forget(&object.key);
                return None;
            }
            metrics.event(&self.name, "due");
            return work.due(event);
        }
        if !filter.passes(event.change, &event.object) {
            metrics.event(&self.name, "filtered");
            return None;
        }
        metrics.event(&self.name, "due");
        match &self.way {
            Way::Log => {
                tell::log(&self.name, resource, event);
                None
            }
            Way::Tell(entrance) => entrance.tell(&self.name, resource, event),
            Way::Work(work) => work.due(event),
        }
    }
}

/// Passes an event to every action on its resource. If an action cannot take more events yet, the result is the future
/// to wait for.
pub fn show(actions: &[Action], resource: &str, event: &Event<Meta>, metrics: &Metrics) -> Backpressure {
    let rooms: Vec<_> = actions.iter().filter_map(|action| action.show(resource, event, metrics)).collect();
    // One after the other: all of them must be free before the next event.
    (!rooms.is_empty()).then(|| {
        async move {
            for room in rooms {
                room.await;
            }
        }
        .boxed()
    })
}
