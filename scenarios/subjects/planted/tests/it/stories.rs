//! The stories whose mistakes no bug of the library names, told to the correct client and to the ones that make them: the
//! first gets it right, the others do not. Playing the library
//! proves the others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::script::{Ask, Piece, Play, Reply, Script, bookmark, error, event, object, pause_ms};

const PATIENCE: Duration = Duration::from_secs(20);
/// How long a mistaken client has to get it right all the same.
const LASTS: Duration = Duration::from_secs(4);

struct Story {
    arguments: &'static [&'static str],
    http: &'static str,
    script: Script,
    right: fn(&Play) -> bool,
}

impl Story {
    fn new(script: impl Fn(&Ask) -> Reply + Send + Sync + 'static, right: fn(&Play) -> bool) -> Self {
        Self { arguments: &["--silence", "1s", "--relist", "30s"], http: "1", script: Arc::new(script), right }
    }

    async fn tells_apart(self, mistakes: &[&[&str]]) {
        let play = |arguments: &[&str]| {
            let all = [self.arguments, arguments].concat();
            Play::start(&all, self.http, self.script.clone())
        };
        let correct = play(&[]);
        let mistaken: Vec<Play> = mistakes.iter().map(|arguments| play(arguments)).collect();
        // Many clients start at once: the time of each story begins when all of them are there.
        let began = Instant::now();
        while mistaken.iter().chain([&correct]).any(|play| play.asks.lock().is_empty()) {
            assert!(began.elapsed() < PATIENCE, "a client asks nothing");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let began = Instant::now();
        tokio::time::sleep(LASTS).await;
        while !(self.right)(&correct) {
            assert!(began.elapsed() < LASTS + PATIENCE, "correct: {:?}\n{:#?}", correct.heard, correct.asks);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for (play, arguments) in mistaken.iter().zip(mistakes) {
            assert!(!(self.right)(play), "{arguments:?} got it right: {:?}\n{:#?}", play.heard, play.asks);
        }
    }
}

fn mistake(name: &'static str) -> [&'static str; 2] {
    ["--mistake", name]
}

macro_rules! mistakes {
    ($($name:literal),+) => { &[$(&mistake($name)[..]),+] };
}

/// Told at the same time: most of their time is waiting.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn mistakes_that_no_bug_of_the_library_names() {
    tokio::join!(
        errors_make_no_hot_loop(),
        what_was_deleted_before_a_410_is_noticed(),
        a_revision_that_is_too_large_is_not_insisted_on(),
        the_watch_begins_where_the_list_ended(),
        after_silence_another_connection_is_used(),
        a_deletion_waits_behind_its_addition(),
    );
}

/// A list of `a` at 10, and after it one of `a` and `x` at 20.
fn list_then_more(ask: &Ask) -> Reply {
    match ask.nth {
        1 => Reply::list(10, &[object("a", 5)]),
        _ => Reply::list(20, &[object("a", 5), object("x", 15)]),
    }
}

/// A healthy watch that says `x` and stays.
fn tells_x() -> Reply {
    let mut pieces = vec![event("ADDED", &object("x", 15))];
    for n in 0..200 {
        pieces.extend([pause_ms(300), bookmark(20 + n)]);
    }
    Reply::watch(pieces)
}

fn healthy() -> Reply {
    Reply::watch((0..200).flat_map(|n| [bookmark(20 + n), pause_ms(300)]).collect())
}

fn told_x(play: &Play) -> bool {
    play.told("x", "added")
}

async fn errors_make_no_hot_loop() {
    let script = |ask: &Ask| match ask.kind {
        "list" => Reply::list(10, &[]),
        _ => Reply::refused(500, "InternalError"),
    };
    Story::new(script, |play| play.count("watch") < 12).tells_apart(mistakes!["hot-loop-on-error"]).await;
}

async fn what_was_deleted_before_a_410_is_noticed() {
    let script = |ask: &Ask| match (ask.kind, ask.asked("resourceVersion")) {
        ("list", _) if ask.nth == 1 => Reply::list(10, &[object("a", 5), object("b", 6)]),
        ("list", _) => Reply::list(20, &[object("b", 6)]),
        (_, Some("10")) => Reply::refused(410, "Expired"),
        _ => Reply::watch(vec![event("ADDED", &object("b", 6)), Piece::Hold]),
    };
    let mistakes = mistakes!["restarts-from-zero", "relist-without-diff"];
    Story::new(script, |play| play.told("a", "deleted")).tells_apart(mistakes).await;
}

async fn a_revision_that_is_too_large_is_not_insisted_on() {
    let script = |ask: &Ask| match (ask.kind, ask.asked("resourceVersion")) {
        ("list", None) if ask.nth <= 2 => Reply::list(12 - 2 * u32::try_from(ask.nth).unwrap(), &[object("a", 5)]),
        ("list", None) => list_then_more(ask),
        ("watch", Some("20")) => healthy(),
        _ => Reply::refused(504, "Too large resource version: 10, current: 8"),
    };
    Story::new(script, told_x).tells_apart(mistakes!["no-too-large-fallback", "retries-same-rv"]).await;
}

async fn the_watch_begins_where_the_list_ended() {
    let script = |ask: &Ask| match ask.kind {
        "list" => Reply::list(20, &[object("a", 9), object("b", 3)]),
        _ => healthy(),
    };
    let right = |play: &Play| {
        play.asked("watch", 1, "resourceVersion").as_deref() == Some("20")
            && play.asked("watch", 1, "allowWatchBookmarks").is_some()
    };
    let mistakes = mistakes!["watches-without-rv", "resumes-from-last-listed-item", "asks-no-bookmarks"];
    Story::new(script, right).tells_apart(mistakes).await;
}

async fn after_silence_another_connection_is_used() {
    let script = |ask: &Ask| match (ask.kind, ask.nth) {
        ("list", _) => Reply::list(10, &[]),
        _ if ask.connection == 1 => Reply::watch(vec![Piece::Hold]),
        _ => tells_x(),
    };
    let mut story = Story::new(script, told_x);
    story.http = "2";
    story.tells_apart(mistakes!["reuses-dead-connection"]).await;
}

async fn a_deletion_waits_behind_its_addition() {
    let script = |ask: &Ask| match (ask.kind, ask.nth) {
        ("list", 1) => Reply::list(10, &[]),
        ("list", _) => Reply::list(20, &[]),
        (_, 1) => Reply::watch(vec![event("ADDED", &object("x", 15)), error(410)]),
        _ => healthy(),
    };
    let mut story = Story::new(script, |play| play.told("x", "deleted"));
    story.arguments = &["--silence", "1s", "--relist", "30s", "--handler-delay", "1s"];
    story.tells_apart(mistakes!["drops-delete-of-unknown"]).await;
}
