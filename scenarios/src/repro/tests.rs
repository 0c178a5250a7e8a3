//! What a client is told by the scenario that is pointed at it.

use super::*;
use crate::scenario::library;

fn play(id: &str, command: &[&str], own_clocks: bool) -> Play {
    let source = library::bugs().unwrap().into_iter().find(|source| source.scenario.name == id).unwrap();
    Play {
        source,
        command: command.iter().map(|&word| word.to_owned()).collect(),
        http: None,
        drain: None,
        own_clocks,
        clock_rate: None,
        out: PathBuf::new(),
        service: None,
        named_service: false,
        asked: id.to_owned(),
        own: Own::default(),
        outside: Outside::default(),
        cannot: Vec::new(),
        quiet: true,
    }
}

#[test]
fn a_command_is_told_how_slowly_to_handle() {
    let told =
        |id| aimed(&play(id, &["client"], true)).scenario.subject.command().unwrap().env.get(HANDLER_VARIABLE).cloned();
    assert_eq!(told("handlers-overtake").as_deref(), Some("1.5"), "it is no limit of the client's own");
    assert_eq!(told("410-inside-200"), None);
}

#[test]
fn own_clocks_are_left_alone() {
    let relist = |own| {
        aimed(&play("h2-max-streams", &["client"], own))
            .scenario
            .subject
            .command()
            .unwrap()
            .env
            .contains_key(RELIST_VARIABLE)
    };
    assert_eq!((relist(false), relist(true)), (true, false));
    let clocks = |own| {
        let watch =
            &aimed(&play("410-inside-200", &[], own)).scenario.subject.service_mut().unwrap().settings.clone().unwrap()
                ["watch"];
        CLOCKS.iter().filter(|clock| watch.get(**clock).is_some()).count()
    };
    assert_eq!((clocks(false), clocks(true)), (CLOCKS.len(), 0));
}
