//! The plays without disturbances: the reference of all trials, and what they show by themselves.
//!
//! Owns how many such plays are needed and may fail, and when no search is possible.

use std::collections::BTreeSet;

use reports::hunt::{Baseline, Found, Odds, Sign};

use super::audit::{self, is_ignored};
use super::bystanders;
use super::children::{expect_no_leftovers, leftover};
use super::confirm::{QUIET_FACTOR, all_of};
use super::operations::{Extent, Operations, QUIET_MS};
use super::overlay::Trial;
use super::peaks::Peaks;
use super::points::Signature;
use super::reference::Reference;
use super::story;
use super::trial::{Outcome, Played, Player};
use super::watching;

/// Number of plays without disturbances.
pub(super) const REFERENCES: u32 = 3;
/// Number of plays without disturbances that may fail: a subject with a bug may disturb the operations even then.
const REFERENCES_FAILED_MAX: u32 = 2;
/// Maximum number of masked fields in the result.
const MASKED_MAX: usize = 200;
/// Why a program without writes cannot be hunted, if its witness proves nothing either.
const WRITES_NOTHING: &str = "the subject writes nothing that every play has, so there is nothing to disturb. Another sample, or the \
                              missing program beside it (`--beside`), may help.";

/// The results of the references.
pub(super) struct Known {
    pub(super) reference: Reference,
    /// Signs of judges that the subject shows without disturbances.
    pub(super) findings: Vec<Sign>,
    /// Number of references with each of these signs.
    pub(super) times: Vec<u32>,
    pub(super) plays: Vec<Played>,
    /// Why plays without disturbances failed.
    pub(super) failed: Vec<String>,
    /// The length of the quiet of trials, in milliseconds.
    pub(super) quiet_ms: u64,
}

/// Why no search is possible, and what would help.
pub(super) struct Stopped {
    pub(super) why: String,
    /// The plays, if judges may have found a reason in them.
    pub(super) known: Option<Box<Known>>,
}

impl From<String> for Stopped {
    fn from(why: String) -> Self {
        Self { why, known: None }
    }
}

impl Known {
    fn of(reference: Reference, plays: Vec<Played>, failed: Vec<String>, quiet_ms: u64) -> Self {
        let mut known = Self { reference, findings: Vec::new(), times: Vec::new(), plays, failed, quiet_ms };
        for sign in known.plays.iter().flat_map(|played| &played.judged) {
            if let Some(place) = known.findings.iter().position(|one| one.is_like(sign)) {
                known.times[place] += 1;
            } else {
                known.findings.push(sign.clone());
                known.times.push(1);
            }
        }
        known
    }
}

/// Plays the references. `None` after an interruption.
pub(super) async fn references(player: &mut Player, say: &(dyn Fn(String) + Sync)) -> Result<Option<Known>, Stopped> {
    let mut quiet_ms = QUIET_MS;
    loop {
        let (mut plays, failed) = match undisturbed_plays(player, quiet_ms, say).await {
            Ok(Some(played)) => played,
            Ok(None) => return Ok(None),
            Err(why) if player.operations.leave_out_scaling(&why) => {
                say("the API server refuses an object without replicas, so no object is scaled to zero …".to_owned());
                continue;
            }
            Err(why) => return Err(why.into()),
        };
        for played in &mut plays {
            played.judged.extend(leftover(&played.audit, &player.operations));
            played
                .judged
                .extend(Some(&played.audit).filter(|_| !player.operations.watches()).and_then(bystanders::lost));
        }
        if player.operations.watches() && plays.iter().all(|played| played.is_silent) {
            let path = &player.path;
            let silent = format!("nothing came through the witness in any play: `longhaul soak {path}` shows more.");
            let reports = watching::reports_events(&player.file);
            return Err(if reports { silent.into() } else { WRITES_NOTHING.to_owned().into() });
        }
        let restless = restless(&plays, player.operations.phases(quiet_ms).1);
        if let (Some(writes), true) = (&restless, quiet_ms == QUIET_MS) {
            quiet_ms *= QUIET_FACTOR;
            say(format!("it still writes at the end ({writes}); the quiet is now {} s …", quiet_ms / 1000));
            continue;
        }
        if let Some(writes) = restless {
            let why = format!(
                "the subject never settles: {writes} in the last second of each play. A longer quiet, another sample, or the missing \
                 program beside it (`--beside`) may help."
            );
            let known = Known::of(Reference::default(), plays, failed, quiet_ms);
            return Err(Stopped { why, known: Some(Box::new(known)) });
        }
        let audits: Vec<audit::Audit> = plays.iter().map(|played| played.audit.clone()).collect();
        let mut reference = Reference::of(&audits);
        player.operations.plural().clone_into(&mut reference.load);
        expect_no_leftovers(&mut reference, &audits, &player.operations);
        if reference.points.is_empty() && !player.operations.watches() && !reference.watched.is_empty() {
            say("it writes nothing that every play has, so it is hunted as a watch client …".to_owned());
            player.operations.watch();
            continue;
        }
        if reference.points.is_empty() && !player.operations.watches() {
            return Err(WRITES_NOTHING.to_owned().into());
        }
        if reference.is_empty() {
            return Err("the plays differ in everything, so nothing can be compared. A longer quiet may help."
                .to_owned()
                .into());
        }
        if player.operations.watches() {
            let peaks = plays.iter().map(|played| &played.peaks);
            let first = Peaks { is_one_watch_each: true, ..Peaks::default() };
            player.operations.needed(peaks.fold(first, Peaks::or_more));
        }
        say(format!(
            "{} points, {} objects at the end, {} fields differ between plays and are not compared",
            reference.points.len(),
            reference.objects.len(),
            reference.masked.len()
        ));
        let known = Known::of(reference, plays, failed, quiet_ms);
        return Ok(Some(known));
    }
}

/// Plays the operations without disturbances until enough plays succeeded. Returns these plays, and why others failed.
/// `None` after an interruption.
async fn undisturbed_plays(
    player: &Player,
    quiet_ms: u64,
    say: &(dyn Fn(String) + Sync),
) -> Result<Option<(Vec<Played>, Vec<String>)>, String> {
    let (mut plays, mut failed) = (Vec::new(), Vec::new());
    while plays.len() < REFERENCES as usize {
        let missing = REFERENCES - u32::try_from(plays.len()).unwrap_or(REFERENCES);
        for outcome in all_of(player, &Trial::reference(quiet_ms), missing).await {
            match outcome {
                Outcome::Played(played) => plays.push(*played),
                Outcome::Interrupted => return Ok(None),
                Outcome::Broken(why) => {
                    say(format!("a play without disturbances failed: {why}"));
                    failed.push(why);
                }
            }
        }
        if let Some(why) = failed.last().filter(|_| failed.len() > REFERENCES_FAILED_MAX as usize) {
            return Err(format!(
                "without any disturbance, a play failed: {why} `longhaul soak {}` shows more.",
                player.path
            ));
        }
    }
    Ok(Some((plays, failed)))
}

/// Writes of the last second that every play has, as text.
fn restless(plays: &[Played], length_ms: u64) -> Option<String> {
    let late = |played: &Played| {
        let writes = played.audit.writes.iter();
        let late = writes.filter(|write| write.t_ms + 1000 >= length_ms && write.status < 300);
        late.filter(|write| !is_ignored(&write.resource)).map(Signature::of).collect::<BTreeSet<_>>()
    };
    let mut all = plays.iter().map(late);
    let first = all.next()?;
    let same: BTreeSet<Signature> = all.fold(first, |same, late| same.intersection(&late).cloned().collect());
    same.first().map(Signature::describe)
}

pub(super) fn baseline(reference: &Reference, operations: &Operations) -> Baseline {
    let mut points: Vec<String> = reference.points.iter().map(|point| point.signature.describe()).collect();
    if operations.watches() {
        points.extend(watching::points(operations.plural(), &reference.watched));
    }
    let masked = reference.masked.iter().take(MASKED_MAX).map(|(object, field)| format!("{object}: {field}"));
    let copies = reference.copies.iter().map(|(resource, field)| format!("{resource}: {field}"));
    Baseline {
        plays: reference.plays,
        objects: reference.objects.len(),
        points,
        unsteady_points: reference.unsteady,
        masked: masked.chain(copies).take(MASKED_MAX).collect(),
        loose: reference.loose.iter().take(MASKED_MAX).cloned().collect(),
    }
}

/// A finding that needs no disturbance.
pub(super) fn undisturbed(sign: &Sign, known: &Known, operations: &Operations) -> Found {
    let place = known.findings.iter().position(|one| one.is_like(sign)).unwrap_or(0);
    let plays = u32::try_from(known.plays.len()).unwrap_or(0);
    let shown = known.plays.iter().find(|played| played.judged.iter().any(|one| one.is_like(sign)));
    Found {
        title: sign.sentence(),
        sign: sign.clone(),
        also: Vec::new(),
        disturbances: Vec::new(),
        shown_by: Vec::new(),
        trials: known.times[place],
        odds: Odds::of(known.times[place], plays),
        healing: Vec::new(),
        story: shown.map(|played| story::of_trial(played, operations, Extent::ALL)).unwrap_or_default(),
        without: Vec::new(),
        scenario: None,
        play: None,
    }
}
