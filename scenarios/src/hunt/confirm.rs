//! Plays a suspicious trial again, shrinks it, and gives its odds.
//!
//! Owns the order of replays. A sign that no replay shows again is no finding. Replays have a longer quiet than trials,
//! so a subject that only needed more time is no finding.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use reports::hunt::{Odds, Sign, What};

use super::audit::Write;
use super::compare::signs;
use super::disturb::{Disturbance, HOLD_MS, Kind};
use super::operations::Extent;
use super::overlay::Trial;
use super::reference::Reference;
use super::trial::{Outcome, Played, Player};
use super::watching;

/// Number of replays that give the odds.
pub(crate) const REPLAYS: u32 = 5;
/// Number of replays that must show the sign: one may be an accident of a busy machine.
const FAILED_MIN: u32 = 2;
/// Number of plays of a reference with fewer operations.
const OF_FEWER: u32 = 2;
/// Number of plays of a smaller trial, of which one must show the sign.
const TRIES: u32 = 2;
/// Maximum number of smaller trials that are tried.
const SMALLER_MAX: usize = 10;
/// How much longer the quiet of a replay is.
pub(crate) const QUIET_FACTOR: u64 = 3;
/// The default quiet after which a wrong end is a finding in any case: many programs look at everything again each minute.
pub(crate) const PATIENT: std::time::Duration = std::time::Duration::from_secs(80);
/// Number of plays with this quiet, for a sign that most plays show.
const PATIENT_PLAYS: u32 = 2;
/// The first delay of client-go's usual back-off, in milliseconds, and the most doublings before its limit of 1000 s.
const BACK_OFF_MS: u64 = 5;
const DOUBLINGS_MAX: u32 = 17;
/// Shortest hold that shrinking tries, in milliseconds.
const HOLD_MIN_MS: u64 = 250;
/// Number of plays after whose event the sign must be absent, and of replays that must show it without the event.
const HEALED_PLAYS: u32 = 3;
const HEALED_FAILED_MIN: u32 = 4;

/// A confirmed sign with its smallest trial.
#[derive(Debug, Clone)]
pub(crate) struct Confirmed {
    pub(crate) trial: Trial,
    pub(crate) odds: Odds,
    /// The sign as the last play that failed showed it.
    pub(crate) sign: Sign,
    pub(crate) also: Vec<Sign>,
    pub(crate) played: Played,
    /// The reference with the same operations.
    pub(crate) reference: Arc<Reference>,
    /// The events after which the end is right, each a sentence.
    pub(crate) healing: Vec<String>,
}

/// All signs of a play, the most telling first; signs that the references have as well are left out.
/// A subject that was shown an old state may act on it once, and a deleted child is made again; then only the end and
/// the judges count. A status may say how
/// long something has lasted, so after a jump of the clock no field counts.
pub(crate) fn all_signs(
    reference: &Reference,
    known: &[Sign],
    played: &Played,
    disturbances: &[Disturbance],
) -> Vec<Sign> {
    let is_old = disturbances.iter().any(|disturbance| disturbance.kind.is_judged_by_end());
    let is_later = disturbances.iter().any(|disturbance| disturbance.kind == Kind::Time);
    let mut all = played.judged.clone();
    // The changes of a watch client's trials differ, and a restored store has another end.
    if watching::course(disturbances).is_none() {
        all.extend(signs(reference, &played.audit));
    }
    all.retain(|sign| !is_old || !matches!(sign.what, What::Made | What::Deleted | What::Most));
    all.retain(|sign| !is_later || sign.what != What::Field);
    all.retain(|sign| !known.iter().any(|known| known.is_like(sign)));
    all
}

/// The references of trials with all operations, and of those with fewer.
pub(crate) struct References {
    pub(crate) all: Arc<Reference>,
    fewer: tokio::sync::Mutex<BTreeMap<Extent, Option<Arc<Reference>>>>,
    /// The length of the quiet of further references, in milliseconds.
    quiet_ms: u64,
}

impl References {
    pub(crate) fn new(all: Reference, quiet_ms: u64) -> Self {
        Self { all: Arc::new(all), fewer: tokio::sync::Mutex::default(), quiet_ms }
    }

    /// The reference of these operations, which is played if it is new; `None` if it could not be played.
    async fn of(&self, player: &Player, extent: Extent) -> Option<Arc<Reference>> {
        if extent == Extent::ALL || player.operations.watches() {
            return Some(Arc::clone(&self.all));
        }
        // Held while the plays run, so that two findings do not play the same reference.
        let mut fewer = self.fewer.lock().await;
        if let Some(known) = fewer.get(&extent) {
            return known.clone();
        }
        let trial = Trial { extent, ..Trial::reference(self.quiet_ms) };
        let mut audits = Vec::new();
        for outcome in all_of(player, &trial, OF_FEWER).await {
            if let Outcome::Played(played) = outcome {
                audits.push(played.audit);
            }
        }
        let enough = audits.len() == OF_FEWER as usize;
        let load = player.operations.plural().to_owned();
        let reference = enough.then(|| Arc::new(Reference { load, ..Reference::of(&audits) }));
        if !player.stop.is_cancelled() {
            fewer.insert(extent, reference.clone());
        }
        reference
    }
}

/// Replays a trial, then smaller ones until `ends`. `None` if no replay shows the sign, or the hunt was interrupted before
/// one did.
pub(crate) async fn confirm(
    player: &Player,
    references: &References,
    known: &[Sign],
    trial: &Trial,
    sign: &Sign,
    can_restart: bool,
    ends: Instant,
) -> Option<Confirmed> {
    // No play needs a longer quiet than the one after which a wrong end is a finding.
    let longer_ms = (trial.quiet_ms * QUIET_FACTOR).min(player.patient_ms.max(trial.quiet_ms));
    let long = Trial { quiet_ms: longer_ms, ..trial.clone() };
    let first = replay(player, references, known, &long, sign, REPLAYS).await?;
    if first.odds.failed < FAILED_MIN {
        return None;
    }
    let mut best = first.clone();
    let mut tried = 0;
    'smaller: while tried < SMALLER_MAX {
        for smaller in smaller(&best.trial, player.operations.can_shrink()) {
            tried += 1;
            if tried > SMALLER_MAX || player.stop.is_cancelled() || Instant::now() >= ends {
                break;
            }
            if let Some(shrunk) = replay(player, references, known, &smaller, sign, TRIES).await {
                best = shrunk;
                continue 'smaller;
            }
        }
        break;
    }
    if best.trial != first.trial {
        best = steady(first, replay(player, references, known, &best.trial, sign, REPLAYS).await);
    }
    let refuses = best.trial.disturbances.iter().any(|one| one.kind.is_at_last());
    if refuses && is_at_end(&best.sign) && still_waits(&best.played.audit.writes, player.patient_ms) {
        return None;
    }
    if let Some((patient, plays)) = patient(&best, player.patient_ms) {
        let is_shown = if player.stop.is_cancelled() {
            None
        } else {
            shows(player, references, known, &patient, &best.sign, plays).await
        };
        // After an interruption nobody knows whether the subject only needs more time.
        if is_shown == Some(false) || (is_shown.is_none() && player.stop.is_cancelled()) {
            return None;
        }
    }
    best.healing = healing(player, references, known, &best, can_restart, ends).await;
    Some(best)
}

/// The smallest trial, or the first one if too few plays of the smallest show the sign.
fn steady(first: Confirmed, smallest: Option<Confirmed>) -> Confirmed {
    smallest.filter(|smallest| smallest.odds.failed >= FAILED_MIN).unwrap_or(first)
}

/// Whether the subject still waits at the end, for longer than any quiet: one of its writes was refused so often that the
/// usual back-off is longer, and the subject has not written this object again. Then nobody knows whether it gave up.
fn still_waits(writes: &[Write], patient_ms: u64) -> bool {
    let mut refused: BTreeMap<[&str; 4], u32> = BTreeMap::new();
    for Write { verb, resource, subresource, object, status, .. } in writes {
        if *status < 300 {
            refused.retain(|[of, name, ..], _| of != resource || name != object);
        } else {
            *refused.entry([resource, object, verb, subresource]).or_default() += 1;
        }
    }
    refused.values().any(|times| BACK_OFF_MS << (*times).min(DOUBLINGS_MAX) > patient_ms)
}

/// The trial with a quiet of this length, for an end that may be wrong only because the subject needs more time, and how
/// often it is played; `None` if more time changes nothing. A sign that few plays show needs more of these plays.
fn patient(found: &Confirmed, patient_ms: u64) -> Option<(Trial, u32)> {
    let Trial { disturbances, quiet_ms, .. } = &found.trial;
    let needs_time = is_at_end(&found.sign) || watching::needs_time(&found.sign.subject, disturbances);
    if !needs_time || *quiet_ms >= patient_ms {
        return None;
    }
    let mut patient = Trial { quiet_ms: patient_ms, ..found.trial.clone() };
    for disturbance in patient.disturbances.iter_mut().filter(|one| one.lasts_ms > 0) {
        // A request without an answer must have none for longer than the client waits.
        if disturbance.kind.row().is_some() {
            disturbance.lasts_ms = disturbance.lasts_ms.max(patient_ms);
        }
    }
    let plays = if found.odds.failed < HEALED_FAILED_MIN { REPLAYS } else { PATIENT_PLAYS };
    Some((patient, plays))
}

/// Whether a sign is a difference at the end.
fn is_at_end(sign: &Sign) -> bool {
    matches!(sign.what, What::Missing | What::Additional | What::Field)
}

/// Events that make the end correct in spite of the disturbance: one more change, or a restart. None for a
/// sign that is no difference at the end or that most plays do not show, or if the time of the hunt is over.
async fn healing(
    player: &Player,
    references: &References,
    known: &[Sign],
    found: &Confirmed,
    can_restart: bool,
    ends: Instant,
) -> Vec<String> {
    if !is_at_end(&found.sign) || found.odds.failed < HEALED_FAILED_MIN {
        return Vec::new();
    }
    let extent = Extent { late: true, ..found.trial.extent };
    let changed = Trial { extent, ..found.trial.clone() };
    let restarted = Trial { restarts: true, ..found.trial.clone() };
    let events = [
        (player.operations.can_shrink(), changed, "one more change of the object"),
        (can_restart, restarted, "a restart of the program"),
    ];
    let mut healing = Vec::new();
    for (fits, trial, event) in events {
        if !fits || player.stop.is_cancelled() || Instant::now() >= ends {
            continue;
        }
        let Some(shown) = shows(player, references, known, &trial, &found.sign, HEALED_PLAYS).await else { continue };
        healing.push(if shown { format!("Not healed by {event}.") } else { format!("Healed by {event}.") });
    }
    healing
}

/// Whether plays of a trial show a sign; `None` if none could be played.
async fn shows(
    player: &Player,
    references: &References,
    known: &[Sign],
    trial: &Trial,
    sign: &Sign,
    times: u32,
) -> Option<bool> {
    let reference = references.of(player, trial.extent).await?;
    let mut shown = None;
    for outcome in all_of(player, trial, times).await {
        let Outcome::Played(played) = outcome else { continue };
        let signs = all_signs(&reference, known, &played, &trial.disturbances);
        shown = Some(shown == Some(true) || signs.iter().any(|one| one.is_like(sign)));
    }
    shown
}

/// Plays a trial several times; `None` if no play shows the sign.
async fn replay(
    player: &Player,
    references: &References,
    known: &[Sign],
    trial: &Trial,
    sign: &Sign,
    times: u32,
) -> Option<Confirmed> {
    let reference = references.of(player, trial.extent).await?;
    let (mut failed, mut plays, mut shown) = (0, 0, None);
    for outcome in all_of(player, trial, times).await {
        let Outcome::Played(played) = outcome else { continue };
        plays += 1;
        let signs = all_signs(&reference, known, &played, &trial.disturbances);
        if let Some(place) = signs.iter().position(|one| one.is_like(sign)) {
            failed += 1;
            shown = Some((signs, place, *played));
        }
    }
    let (mut signs, place, played) = shown?;
    let sign = signs.remove(place);
    let odds = Odds::of(failed, plays);
    Some(Confirmed { trial: trial.clone(), odds, sign, also: signs, played, reference, healing: Vec::new() })
}

/// Plays a trial several times at once.
pub(crate) async fn all_of(player: &Player, trial: &Trial, times: u32) -> Vec<Outcome> {
    futures_util::future::join_all((0..times).map(|_| player.play_again(trial))).await
}

/// Trials with one disturbance, one operation or half of a length less, the largest step first.
fn smaller(trial: &Trial, fewer_operations: bool) -> Vec<Trial> {
    let mut all = Vec::new();
    if trial.disturbances.len() > 1 {
        for place in 0..trial.disturbances.len() {
            let mut disturbances = trial.disturbances.clone();
            disturbances.remove(place);
            all.push(Trial { disturbances, ..trial.clone() });
        }
    }
    if fewer_operations {
        all.extend(trial.extent.smaller().into_iter().map(|extent| Trial { extent, ..trial.clone() }));
    }
    for place in 0..trial.disturbances.len() {
        let Disturbance { lasts_ms, kind, .. } = &trial.disturbances[place];
        let half = lasts_ms / 2;
        if kind.has_length() && *lasts_ms >= HOLD_MS && half >= HOLD_MIN_MS {
            let mut disturbances = trial.disturbances.clone();
            disturbances[place].lasts_ms = half;
            all.push(Trial { disturbances, ..trial.clone() });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::disturb::tests::at;
    use super::*;

    /// Each smaller trial differs in one thing, and shrinking ends.
    #[test]
    fn trials_shrink_to_nothing() {
        let disturbances = vec![at(Kind::HoldOwn, "create"), at(Kind::Conflict, "update")];
        let trial = Trial { disturbances, ..Trial::reference(4000) };
        let first = smaller(&trial, true);
        assert_eq!(first[0].disturbances.len(), 1);
        assert!(first.iter().any(|one| !one.extent.goes));
        assert!(first.iter().any(|one| one.disturbances[0].lasts_ms == 1000));
        let (mut now, mut steps) = (trial, 0);
        while let Some(next) = smaller(&now, true).into_iter().next() {
            now = next;
            steps += 1;
            assert!(steps < 20);
        }
        assert_eq!((now.disturbances.len(), now.extent.changes), (1, 0));
        assert!(smaller(&Trial::reference(1), false).is_empty());
    }

    fn found(what: What, failed: u32, quiet_ms: u64) -> Confirmed {
        let sign = super::super::compare::of_object(what, "pods n/a", "is missing", "there");
        let trial = Trial { disturbances: vec![at(Kind::HoldOwn, "create")], ..Trial::reference(quiet_ms) };
        let (odds, played, reference) = (Odds::of(failed, REPLAYS), Played::default(), Arc::default());
        Confirmed { trial, odds, sign, also: Vec::new(), played, reference, healing: Vec::new() }
    }

    /// A subject whose write was refused 14 times waits for longer than 80 s. Fewer refusals, a later write of the same
    /// object, or refusals of different writes are no reason to wait so long.
    #[test]
    fn a_subject_that_was_refused_often_may_still_wait() {
        let patient_ms = u64::try_from(PATIENT.as_millis()).unwrap();
        let write = |object: &str, verb: &str, status: u16| Write {
            verb: verb.to_owned(),
            resource: "caches.x".to_owned(),
            object: object.to_owned(),
            status,
            ..Write::default()
        };
        let often = |times: usize| vec![write("n/a", "update", 409); times];
        assert!(still_waits(&often(14), patient_ms));
        assert!(!still_waits(&often(13), patient_ms));
        assert!(still_waits(&[often(14), vec![write("n/b", "update", 200)]].concat(), patient_ms));
        assert!(!still_waits(&[often(14), vec![write("n/a", "update", 200)]].concat(), patient_ms));
        assert!(!still_waits(&[often(13), vec![write("n/a", "patch", 409)]].concat(), patient_ms));
        assert!(!still_waits(&often(30), 1_000_000), "the limit of the back-off is shorter");
    }

    /// A smaller trial that shows the sign too seldom is not the result.
    #[test]
    fn the_result_shows_the_sign_often_enough() {
        let plays = |smallest: Option<u32>| {
            let smallest = smallest.map(|failed| found(What::Made, failed, 2));
            let best = steady(found(What::Made, 3, 1), smallest);
            (best.trial.quiet_ms, best.odds.failed)
        };
        assert_eq!(plays(Some(2)), (2, 2));
        assert_eq!(plays(Some(1)), (1, 3));
        assert_eq!(plays(None), (1, 3));
    }

    /// A wrong end is played with a quiet of 80 s, often if few plays showed it. What happened before the end needs no
    /// more time, and a longer quiet changes nothing then.
    #[test]
    fn a_wrong_end_gets_more_time() {
        let patient_ms = u64::try_from(PATIENT.as_millis()).unwrap();
        let plays = |found: &Confirmed| patient(found, patient_ms).map(|(trial, plays)| (trial.quiet_ms, plays));
        assert_eq!(plays(&found(What::Missing, 5, 12_000)), Some((80_000, PATIENT_PLAYS)));
        assert_eq!(plays(&found(What::Field, 2, 12_000)), Some((80_000, REPLAYS)));
        assert_eq!(plays(&found(What::Made, 5, 12_000)), None);
        assert_eq!(plays(&found(What::Missing, 5, 80_000)), None);
        let held = patient(&found(What::Missing, 5, 12_000), patient_ms).unwrap().0.disturbances[0].lasts_ms;
        assert_eq!(held, HOLD_MS, "the disturbance itself is no longer");
    }

    /// A field that differs is a sign, but not after a jump of the clock.
    #[test]
    fn no_field_counts_after_a_jump_of_the_clock() {
        let play = |ready: u64| super::super::reference::tests::play(&serde_json::json!({"ready": ready}), 2);
        let reference = Reference::of(&[play(1), play(1)]);
        let played = Played { audit: play(2), ..Played::default() };
        let count = |kind: Kind| all_signs(&reference, &[], &played, &[at(kind, "update")]).len();
        assert_eq!((count(Kind::HoldOwn), count(Kind::Time)), (1, 0));
    }
}
