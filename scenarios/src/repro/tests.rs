//! Tests of the settings that a client gets from the scenario that is pointed at it.

use super::*;

fn played(id: &str, command: &[&str], own_clocks: bool) -> Scenario {
    let source = Source::bugs().unwrap().into_iter().find(|source| source.scenario.name == id).unwrap();
    let command = command.iter().map(|&word| word.to_owned()).collect();
    aimed(source, &Play { own_clocks, command, ..Play::default() }).scenario
}

#[test]
fn a_command_is_told_how_slowly_to_handle() {
    let told = |id| played(id, &["client"], true).subject.command().unwrap().env.get(HANDLER_VARIABLE).cloned();
    assert_eq!(told("handlers-overtake").as_deref(), Some("1.5"), "it is no limit of the client's own");
    assert_eq!(told("410-inside-200"), None);
}

#[test]
fn own_clocks_are_left_alone() {
    let relist =
        |own| played("h2-max-streams", &["client"], own).subject.command().unwrap().env.contains_key(RELIST_VARIABLE);
    assert_eq!((relist(false), relist(true)), (true, false));
    let clocks = |own| {
        let watch =
            &played("410-inside-200", &[], own).subject.service_mut().unwrap().settings.clone().unwrap()["watch"];
        CLOCKS.iter().filter(|clock| watch.get(**clock).is_some()).count()
    };
    assert_eq!((clocks(false), clocks(true)), (CLOCKS.len(), 0));
}
