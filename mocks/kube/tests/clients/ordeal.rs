//! What every watching client goes through, whatever language it is written in.
//!
//! The server's duty is asserted: the list, each change once and in order while the stream is healthy, and after a
//! fault a way back to the truth for a client that does what clients are documented to do. What the client did on
//! the way is printed.

use mock_faults::{Form, Name};

use crate::program::Program;
use crate::world::{PACKAGES, World};

/// Whether a client resumes from the last revision when a watch ends cleanly, or lists again at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    Resumes,
    Lists,
}

/// `listed` must exist before the program is started.
pub async fn watch(world: &mut World, program: &mut Program, habit: Habit) {
    program.until("the list", |program| program.view.contains_key("listed")).await;
    world.watched().await;
    healthy(world, program).await;
    for (index, (name, form)) in
        [(Name::WatchReset, None), (Name::Watch410, Some(Form::Http)), (Name::Watch410, Some(Form::Stream))]
            .into_iter()
            .enumerate()
    {
        world.watched().await;
        let told = world.story(0).len();
        let gone = world.server.traffic("subject");
        let id = world.begin(name, PACKAGES, |fault| fault.put("form", form));
        // All three kinds of change happen while nobody is listening.
        world.create(&format!("born-{index}")).await;
        world.change("kept", &format!("kept:{index}")).await;
        world.delete(&format!("doomed-{index}")).await;
        converge(world, program).await;
        let hits = world.server.faults().hits(id);
        let now = world.server.traffic("subject");
        match (name, form) {
            (Name::Watch410, Some(Form::Http)) if habit == Habit::Resumes => {
                assert!(hits > 0 && now.gone_http > gone.gone_http && now.gone_stream == gone.gone_stream);
            }
            (Name::Watch410, _) if habit == Habit::Resumes => assert!(hits > 0 && now.gone_stream > gone.gone_stream),
            (Name::Watch410, _) => {}
            _ => assert!(hits > 0, "a watch was open"),
        }
        world.server.faults().end(id);
        println!("{name:?} {form:?}: {hits} hits, then\n  {}", world.story(told).join("\n  "));
        // And the new stream is as good as the first one.
        world.change("kept", &format!("again:{index}")).await;
        converge(world, program).await;
    }
}

/// Each change exactly once and in order, with the object's own revision.
async fn healthy(world: &World, program: &mut Program) {
    let before = program.events.len();
    for name in ["kept", "doomed-0", "doomed-1", "doomed-2", "short"] {
        world.create(name).await;
    }
    let created = world.truth().await;
    world.change("short", "a:2").await;
    let changed = world.truth().await["short"].clone();
    world.delete("short").await;
    program.until("the deletion", |program| program.events.iter().any(|(event, ..)| event == "DELETED")).await;
    let mut expected: Vec<(String, String, String)> = ["kept", "doomed-0", "doomed-1", "doomed-2", "short"]
        .into_iter()
        .map(|name| ("ADDED".to_owned(), name.to_owned(), created[name].clone()))
        .collect();
    expected.push(("MODIFIED".to_owned(), "short".to_owned(), changed));
    let seen = &program.events[before..];
    assert_eq!(seen[..6], expected);
    assert_eq!((seen.len(), seen[6].1.as_str()), (7, "short"));
}

/// The client believes what is true.
pub async fn converge(world: &World, program: &mut Program) {
    let truth = world.truth().await;
    program.until(&format!("the state {truth:?}"), |program| program.view == truth).await;
}
