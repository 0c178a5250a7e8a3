//! Tests of `longhaul hunt` with the planted client, a watch client: its mistakes are found without their scenarios, and
//! the client without mistakes has no finding.
//!
//! Each mistake has a file as `longhaul init` writes it, with the flags of a client that has the feature of the mistake,
//! and a hunt that ends with its first finding.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use crate::support::{longhaul, program};

const FILE: &str = include_str!("../files/planted-hunt.yaml");
/// Arguments of each hunt. The client notices silence after 1.5 s, so a finding needs no patience of a minute.
const ARGUMENTS: [&str; 9] = ["--for", "3m", "--jobs", "12", "--patience", "12s", "--findings", "1", "--no-clock"];
/// Mistakes that only rare disturbances show, with the kind. Other hunts are without them: most mistakes also switch off
/// the periodic list of the client, so lost events alone would show them all.
const RARE: [(&str, &str); 6] = [
    ("never-relists", "lost-events"),
    ("ignores-rewind", "restored-store"),
    ("no-too-large-fallback", "restored-store"),
    ("believes-every-event", "repeated-events"),
    ("shared-backoff", "other-kinds"),
    ("one-bad-kind-blocks-all", "other-kinds"),
];
/// A mistake that is not hunted: only the effect of its missing periodic list would show.
const LEFT_OUT: &str = "skips-what-is-not-newer";
/// Number of mistakes that must be found. On a quiet machine there are 60; on a busy one large events come too slowly.
const FOUND_MIN: usize = 58;

/// A kind of client: which flags it has more, and which kinds it watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    Usual,
    /// A client that never lists again by itself in a trial.
    SeldomLists,
    /// A client that asks for the initial events on the watch.
    StreamsLists,
    /// Its handler writes the status.
    Writes,
    SlowHandler,
    /// A client with 12 watches on HTTP/2 connections.
    ManyWatches,
    /// A client with 70 watches.
    VeryManyWatches,
    /// A client of two kinds, with longer timeouts.
    TwoKinds,
}

impl Client {
    fn of(mistake: &str) -> Self {
        match mistake {
            "list-failure-kills-watch" | "keeps-old-continue" | "label-per-relist" => Self::SeldomLists,
            "ignores-delete-before-initial-end" | "asks-initial-events-again" | "waits-for-initial-end" => {
                Self::StreamsLists
            }
            "cache-before-callback" | "caches-its-own-writes" => Self::Writes,
            "unbounded-queue" | "handlers-overtake" => Self::SlowHandler,
            "one-connection-waits" => Self::ManyWatches,
            "queues-watches" => Self::VeryManyWatches,
            "shared-backoff" | "one-bad-kind-blocks-all" => Self::TwoKinds,
            _ => Self::Usual,
        }
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Usual => &[],
            Self::SeldomLists => &["--relist", "60s"],
            Self::StreamsLists => &["--streaming-lists"],
            Self::Writes => &["--handler", "status"],
            Self::SlowHandler => &["--handler-delay", "300ms"],
            Self::ManyWatches => &["--copies", "12", "--http", "2"],
            Self::VeryManyWatches => &["--copies", "70"],
            Self::TwoKinds => &["--silence", "4s"],
        }
    }
}

/// The result of one hunt: its exit code, and what it wrote.
struct Hunted {
    code: Option<i32>,
    result: Value,
    minutes: f64,
}

fn hunt(program: &Path, client: Client, mistake: Option<&str>, arguments: &[&str]) -> Hunted {
    let began = Instant::now();
    let folder = tempfile::tempdir().unwrap();
    let mut flags: Vec<String> = client.flags().iter().map(|flag| format!(", \"{flag}\"")).collect();
    flags.extend(mistake.map(|mistake| format!(", \"--mistake\", {mistake}")));
    let mut text = FILE
        .replace("[planted-client,", &format!("[{},", program.display()))
        .replace("1500ms]", &format!("1500ms{}]", flags.concat()));
    if client == Client::TwoKinds {
        text = text
            .replace("  witness:", "  watches: [packages.longhaul.dev/v1alpha1, configmaps/v1]\n  witness:")
            .replace("400ms}", "1s}");
    }
    std::fs::write(folder.path().join("hunt.yaml"), text).unwrap();
    let asked = ["hunt", "hunt.yaml", "--allow-outside", "--json", "--quiet"];
    let output = longhaul(&[&asked, arguments].concat()).current_dir(folder.path()).output().unwrap();
    let result = serde_json::from_slice(&output.stdout);
    let result = result.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    Hunted { code: output.status.code(), result, minutes: began.elapsed().as_secs_f64() / 60.0 }
}

/// The names of all mistakes, as the client lists them.
fn mistakes(client: &Path) -> Vec<String> {
    let output = std::process::Command::new(client).arg("--list-mistakes").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Prints a table of all mistakes: found or not, the budget, the disturbance, trials and minutes.
#[test]
#[ignore = "slow: an hour"]
fn nightly_hunts_find_the_mistakes_of_a_watch_client() {
    let Some(client) = program("planted-client") else { return };
    let (mut found, mut missing) = (0, BTreeSet::new());
    for mistake in mistakes(&client).into_iter().filter(|mistake| mistake != LEFT_OUT) {
        let rare = RARE.iter().find(|(name, _)| *name == mistake).map_or(Vec::new(), |(_, rare)| vec!["--rare", rare]);
        let arguments = [&ARGUMENTS, rare.as_slice()].concat();
        let Hunted { code, result, minutes } = hunt(&client, Client::of(&mistake), Some(&mistake), &arguments);
        let first = &result["findings"][0];
        let sign = first["sign"]["subject"].as_str().unwrap_or("–");
        let by = first["disturbances"][0].as_str().unwrap_or("no disturbance");
        let name = first["shownBy"][0].as_str().unwrap_or("–");
        let trials = &result["coverage"]["trials"];
        println!("| `{mistake}` | {code:?} | {sign} | {name} | {trials} | {minutes:.1} | {by}");
        if code == Some(1) {
            found += 1;
        } else {
            missing.insert(mistake);
        }
    }
    assert!(found >= FOUND_MIN, "{found} were found, not {missing:?}");
}

#[test]
#[ignore = "slow"]
fn nightly_a_hunt_of_the_client_without_mistakes_finds_nothing() {
    let Some(client) = program("planted-client") else { return };
    let clients = [
        Client::Usual,
        Client::StreamsLists,
        Client::Writes,
        Client::SlowHandler,
        Client::TwoKinds,
        Client::ManyWatches,
    ];
    for kind in clients {
        let all = "lost-events,repeated-events,restored-store";
        let rare = if kind == Client::TwoKinds { format!("{all},other-kinds") } else { all.to_owned() };
        let arguments =
            ["--for", "8m", "--trials", "90", "--jobs", "12", "--patience", "12s", "--no-clock", "--rare", &rare];
        let Hunted { code, result, .. } = hunt(&client, kind, None, &arguments);
        assert_eq!((code, &result["findings"]), (Some(0), &serde_json::json!([])), "{kind:?}: {result:#}");
    }
}

/// A hunt of a watch client ends with its first finding. Here the references show it, so no trial is played.
#[test]
#[ignore = "slow"]
fn a_hunt_of_a_watch_client_ends_with_its_first_finding() {
    let Some(client) = program("planted-client") else { return };
    let Hunted { code, result, .. } = hunt(&client, Client::Usual, Some("watches-without-rv"), &ARGUMENTS);
    assert_eq!(code, Some(1), "{result:#}");
    assert_eq!(result["findings"].as_array().map(Vec::len), Some(1), "{result:#}");
    assert_eq!(result["findings"][0]["sign"]["subject"], "requests.unanchored", "{result:#}");
    assert_eq!(result["coverage"]["trials"], 0, "{result:#}");
    assert_eq!(result["reference"]["points"], serde_json::json!(["list and watch of packages"]));
}
