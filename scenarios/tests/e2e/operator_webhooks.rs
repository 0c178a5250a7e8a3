//! Tests of mistakes in an operator's webhooks. The tests use the scenario that `init` writes for the operator. To that
//! scenario they add a template that must be refused, and reviews that are sent directly to the webhooks.

use std::path::Path;

use crate::operator::project;
use crate::plays::{PlayResult, is_held_up, play_so_many};
use crate::support::{Soak, longhaul, soak};

/// An object that its schema allows and that the operator's validating webhook must refuse.
const BAD: &str = "apiVersion: cache.example.com/v1\nkind: Cache\nspec: {memoryMiB: \"${random 128..131}\", settings: {port: \"6380\"}}\n";
/// The beginning of the commented line that `init` suggests for a gate.
const REVIEWS: &str = "admission: {rate: ";

/// The scenario that `init` writes for the project, with the changes that its comments suggest.
fn written(project: &Path) -> String {
    let init = longhaul(&["init"]).current_dir(project).output().unwrap();
    assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
    let text = std::fs::read_to_string(project.join("longhaul.yaml")).unwrap();
    let (before, rest) = text.split_once("  template:\n").unwrap();
    let (template, behind) = rest.split_once("  # check: for objects that your webhook must refuse").unwrap();
    let object: Vec<String> = template.lines().map(|line| format!("    {line}\n")).collect();
    let templates = format!(
        "  templates:\n    - object:\n{}    - {{file: bad.yaml, expect: denied}}\n  # check: that is",
        object.concat()
    );
    let reviews = before.lines().find(|line| line.contains(REVIEWS)).unwrap();
    let before = before.replace(reviews, &format!("{REVIEWS}100/s}}"));
    let text = format!("{before}{templates}{behind}");
    // On a busy machine, a minute does not decide growth of goroutines, and these mistakes have nothing to do with it.
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("  metrics: {go_goroutines")).collect();
    lines.join("\n")
}

fn play(project: &Path, text: &str, planted: &str) -> Soak {
    let file = project.join(format!("planted-{planted}.yaml"));
    let text = text.replacen("\n    cwd: .\n", &format!("\n    cwd: .\n    env: {{PLANTED: \"{planted}\"}}\n"), 1);
    assert!(text.contains("PLANTED"), "{text}");
    std::fs::write(&file, text).unwrap();
    // Its program is a link into the cache.
    soak(&[file.to_str().unwrap(), "--allow-outside"])
}

#[test]
#[ignore = "slow"]
fn nightly_webhooks_of_operators_are_judged_by_what_init_writes() {
    let Some(project) = project() else { return };
    std::fs::write(project.path().join("bad.yaml"), BAD).unwrap();
    let text = written(project.path());
    let plays = vec![
        ("", "PASS"),
        ("allows-on-error", "of them allowed a request that had to be denied"),
        ("response-shared", "answers were wrong"),
    ];
    let played = play_so_many(plays.len(), plays, |(planted, words)| {
        let soak = play(project.path(), &text, planted);
        let broken = if planted.is_empty() { &[][..] } else { &["admission.wrongVerdicts".to_owned()] };
        let code = Some(i32::from(!planted.is_empty()));
        let is_right = soak.code() == code && soak.broken() == broken && soak.stdout().contains(words);
        let wrong = if is_right { String::new() } else { soak.story() };
        PlayResult {
            wrong,
            stalled: is_held_up(&soak.verdict()).then(|| (*planted).to_owned()),
            ..PlayResult::default()
        }
    });
    let wrong = played.wrong(|(planted, _)| format!("planted `{planted}`"));
    assert!(wrong.is_empty(), "{wrong}");
}
