//! Tests in virtual time that the API servers trust the certificate of every replica during whole rotations.

use std::collections::VecDeque;
use std::time::UNIX_EPOCH;

use super::*;
use crate::config::OwnCertificates;
use crate::rotation::stored::pem;
use service_core::wire::certificates_from_pem;

fn place(authority_s: u64, leaf_s: u64, settle_s: u64) -> Installation {
    let settings = OwnCertificates {
        authority_lifetime: Duration::from_secs(authority_s),
        leaf_lifetime: Duration::from_secs(leaf_s),
        settle: Duration::from_secs(settle_s),
        interval: Duration::from_secs(1),
        ..OwnCertificates::default()
    };
    Installation { settings, namespace: "ns".into() }
}

fn start() -> SystemTime {
    UNIX_EPOCH + Duration::from_hours(500_000)
}

/// A model of the Secret and the webhook configurations, with the steps taken so far.
struct World {
    place: Installation,
    held: StoredCertificates,
    trusted: Trusted,
    steps: Vec<Step>,
}

impl World {
    fn new(place: Installation, bundle: Vec<CertificateDer<'static>>) -> Self {
        Self {
            place,
            held: StoredCertificates::default(),
            trusted: Trusted { entries: vec![bundle] },
            steps: Vec::new(),
        }
    }

    /// Takes all steps that are due at `now`. Between two steps, the Secret is written and parsed, as if another
    /// replica continued.
    fn turn(&mut self, now: SystemTime) {
        for _ in 0..8 {
            let step = next(&self.place, &self.held, &self.trusted, now);
            if let Step::Wait(wait) = step {
                assert!(wait > Duration::ZERO, "it would be asked again at once: {:?}", self.steps);
                return;
            }
            self.steps.push(step);
            let fresh = after(step, &self.place, &self.held, &self.trusted, now).unwrap();
            if step == Step::Publish {
                self.trusted.entries = vec![self.held.bundle()];
            }
            let mut secret = fresh.object("s");
            secret["metadata"]["resourceVersion"] = "1".into();
            self.held = StoredCertificates::read(secret.to_string().as_bytes()).unwrap();
        }
        panic!("no end: {:?}", self.steps);
    }

    fn shown(&self) -> Option<Vec<CertificateDer<'static>>> {
        self.held.leaf.as_ref().map(|leaf| leaf.chain.clone())
    }
}

#[test]
fn nobody_is_refused_in_many_rotations_however_late_somebody_looks() {
    let (settle, lag) = (10, 9);
    let mut world = World::new(place(90, 30, settle), Vec::new());
    let (mut shown, mut trusted) = (VecDeque::new(), VecDeque::new());
    world.turn(start());
    assert_eq!(world.steps, [Step::Begin, Step::Publish]);
    for second in 0..600 {
        let now = start() + Duration::from_secs(second);
        world.turn(now);
        shown.push_front(world.shown().unwrap());
        trusted.push_front(world.trusted.entries[0].clone());
        shown.truncate(lag);
        trusted.truncate(lag);
        for leaf in shown.iter().step_by(lag - 1) {
            for bundle in trusted.iter().step_by(lag - 1) {
                let verified = verifies(bundle, leaf, "longhaul-webhook.ns.svc", now);
                assert!(verified.is_ok(), "after {second} s: {verified:?} {:?}", world.steps);
            }
        }
        assert!(world.held.bundle().len() <= 3);
    }
    let count = |step| world.steps.iter().filter(|one| **one == step).count();
    assert!((5..=12).contains(&count(Step::Switch)), "{:?}", world.steps);
    assert_eq!(count(Step::Begin), 1);
    assert!(count(Step::Renew) >= 10 && count(Step::Retire) + 1 >= count(Step::Switch), "{:?}", world.steps);
}

#[test]
fn a_replica_that_never_read_the_secret_again_is_trusted_until_its_certificate_ends() {
    let mut world = World::new(place(90, 30, 10), Vec::new());
    world.turn(start());
    let mut seen: Vec<(Vec<CertificateDer<'static>>, SystemTime)> = Vec::new();
    for second in 0..400 {
        let now = start() + Duration::from_secs(second);
        world.turn(now);
        let leaf = world.held.leaf.as_ref().unwrap();
        if seen.last().is_none_or(|(chain, _)| *chain != leaf.chain) {
            seen.push((leaf.chain.clone(), leaf.ends()));
        }
        for (chain, ends) in seen.iter().filter(|(_, ends)| *ends >= now) {
            let verified = verifies(&world.trusted.entries[0], chain, "longhaul-webhook.ns.svc", now);
            assert!(verified.is_ok(), "after {second} s, ends {ends:?}: {verified:?}");
        }
    }
    assert!(seen.len() > 10);
}

/// If the webhook configurations trust an authority of unknown origin, replicas may use its certificates. So this
/// program adds its own authority, and trusts the unknown authority for a while.
#[test]
fn who_was_trusted_before_is_not_cut_off() {
    let before = make::authority(start(), start() + Duration::from_secs(1000)).unwrap();
    let foreign = make::leaf(&before, &place(90, 30, 10).names(), start(), start() + Duration::from_secs(500)).unwrap();
    let mut world = World::new(place(90, 30, 10), before.chain.clone());
    world.turn(start());
    assert_eq!(world.steps, [Step::Introduce, Step::Publish, Step::Confirm]);
    assert!(world.held.leaf.is_none() && world.trusted.entries[0].len() == 2);
    world.turn(start() + Duration::from_secs(12));
    assert_eq!(world.steps[3..], [Step::Switch]);
    for chain in [&foreign.chain, &world.shown().unwrap()] {
        verifies(&world.trusted.entries[0], chain, "longhaul-webhook.ns.svc", start()).unwrap();
    }
    for second in 12..60 {
        world.turn(start() + Duration::from_secs(second));
    }
    assert!(!world.trusted.entries[0].contains(&before.chain[0]), "{:?}", world.steps);
}

#[test]
fn what_somebody_took_away_is_put_back_and_time_counts_anew() {
    let mut world = World::new(place(90, 30, 10), Vec::new());
    world.turn(start());
    world.trusted.entries[0].clear();
    world.turn(start() + Duration::from_secs(1));
    assert_eq!(world.steps, [Step::Begin, Step::Publish, Step::Publish]);
    // In the middle of a change of authorities.
    let middle = start() + Duration::from_secs(61);
    world.turn(start() + Duration::from_secs(30));
    world.turn(middle);
    assert!(world.held.next.is_some() && world.held.confirmed.is_some(), "{:?}", world.steps);
    world.trusted.entries[0].clear();
    world.turn(middle + Duration::from_secs(9));
    world.turn(middle + Duration::from_secs(12));
    assert!(world.held.next.is_some(), "not before everybody had time to see it again");
    world.turn(middle + Duration::from_secs(22));
    assert!(world.held.next.is_none(), "{:?}", world.steps);
}

#[test]
fn it_goes_on_after_a_long_sleep_and_with_other_settings() {
    let mut world = World::new(place(90, 30, 10), Vec::new());
    world.turn(start());
    let later = start() + Duration::from_secs(5000);
    world.turn(later);
    assert_eq!(world.steps[2..], [Step::Begin, Step::Publish], "what is trusted has ended: nobody is cut off");
    let soon = later + Duration::from_secs(1);
    world.place.settings.service = "renamed".into();
    world.turn(soon);
    assert_eq!(world.steps.last(), Some(&Step::Renew));
    verifies(&world.trusted.entries[0], &world.shown().unwrap(), "renamed.ns.svc", soon).unwrap();
    world.place.settings.leaf_lifetime = Duration::from_secs(9);
    world.turn(soon);
    assert_eq!(world.steps.last(), Some(&Step::Renew), "it was made for a longer life");
}

/// If the configured lifetimes are shortened, each authority is trusted for its own time: a long-lived authority does
/// not prolong the trust in others.
#[test]
fn each_authority_is_trusted_for_its_own_time_and_the_newest_never_goes_first() {
    let mut world = World::new(place(2100, 700, 10), Vec::new());
    world.turn(start());
    let long = world.held.authority.as_ref().unwrap().chain[0].clone();
    world.place = place(90, 30, 10);
    for second in 0..1000 {
        let now = start() + Duration::from_secs(second);
        let before = world.shown().unwrap();
        world.turn(now);
        for chain in [before, world.shown().unwrap()] {
            verifies(&world.trusted.entries[0], &chain, "longhaul-webhook.ns.svc", now).unwrap();
        }
        assert!(world.held.previous.len() <= 2, "{:?}", world.steps);
    }
    assert!(!world.trusted.entries[0].contains(&long));
    let mut held = world.held.clone();
    let one = make::authority(start(), start() + Duration::from_hours(1)).unwrap().chain[0].clone();
    held.previous = (0..20).map(|until| Previous::new(one.clone(), until)).collect();
    let mut secret = held.object("s");
    secret["metadata"]["resourceVersion"] = "1".into();
    let read = StoredCertificates::read(secret.to_string().as_bytes()).unwrap();
    assert_eq!((read.previous.len(), read.previous.last().unwrap().until), (8, 19));
}

impl World {
    /// Whether a caller with a correct clock accepts the certificate by Go's rules, which also check the validity of
    /// authorities.
    fn is_taken(&self, now: SystemTime) -> bool {
        let trusted: Vec<_> = self.trusted.entries[0]
            .iter()
            .filter(|one| facts(one).is_some_and(|facts| is_valid(&facts, now)))
            .cloned()
            .collect();
        self.shown().is_some_and(|leaf| verifies(&trusted, &leaf, "longhaul-webhook.ns.svc", now).is_ok())
    }
}

/// If the clock of the Lease's holder jumps far ahead and back, in any phase of a rotation, callers are served after
/// one check with a correct clock.
#[test]
fn a_clock_that_jumps_does_no_lasting_harm() {
    for (authority, leaf, settle) in [(9_000, 3_000, 100), (365 * 86_400, 7 * 86_400, 90)] {
        let mut world = World::new(place(authority, leaf, settle), Vec::new());
        world.turn(start());
        for phase in 0..40 {
            let now = start() + Duration::from_secs(phase * authority / 20);
            for jump in [leaf / 2, authority / 2 + 1, authority * 2, 20 * 365 * 86_400] {
                world.turn(now + Duration::from_secs(jump));
                world.turn(now);
                assert!(world.is_taken(now) || world.held.next.is_some(), "{phase} {jump}: {:?}", world.steps);
                // A rotation begun by a wrong clock continues by the right one.
                let later = now + Duration::from_secs(settle + 5);
                world.turn(later);
                assert!(world.is_taken(later), "{phase} {jump}: {:?}", world.steps);
                world.steps.clear();
            }
            for jump in [3_600, 86_400] {
                world.turn(now - Duration::from_secs(jump));
                world.turn(now);
                let later = now + Duration::from_secs(settle + 5);
                world.turn(later);
                assert!(world.is_taken(later), "{phase} -{jump}: {:?}", world.steps);
                assert!(world.held.bundle().len() < 12);
            }
        }
    }
}

/// Invalid or foreign content in the Secret does not stop the rotation.
#[test]
fn a_foreign_pair_and_a_time_to_come_are_not_believed() {
    let mut world = World::new(place(9_000, 3_000, 10), Vec::new());
    world.turn(start());
    let good = world.held.clone();
    // A pair that belongs together and whose certificates no caller accepts.
    let names = ["other.ns.svc".to_owned()];
    let foreign =
        make::leaf(good.authority.as_ref().unwrap(), &names, start(), start() + Duration::from_mins(15)).unwrap();
    let mut secret = good.object("s");
    secret["metadata"]["resourceVersion"] = "7".into();
    let other = StoredCertificates { authority: Some(foreign.clone()), ..StoredCertificates::default() }.object("s");
    for key in ["authority.crt", "authority.key"] {
        secret["data"][key] = other["data"][key].clone();
    }
    world.held = StoredCertificates::read(secret.to_string().as_bytes()).unwrap();
    assert!(world.held.authority.is_none(), "{:?}", world.held.authority);
    world.turn(start() + Duration::from_secs(1));
    world.turn(start() + Duration::from_secs(20));
    assert!(world.is_taken(start() + Duration::from_secs(20)), "{:?}", world.steps);
    // A foreign certificate is not shown.
    let stranger = make::authority(start(), start() + Duration::from_mins(15)).unwrap();
    let theirs = make::leaf(&stranger, &world.place.names(), start(), start() + Duration::from_secs(800)).unwrap();
    assert!(good.vouches_for(good.leaf.as_ref().unwrap()) && !good.vouches_for(&theirs));
    // A future time would block the next authority until all certificates have ended.
    world.held.next = Some(make::authority(start(), start() + Duration::from_mins(150)).unwrap());
    world.held.confirmed = Some(u64::MAX);
    world.trusted.entries = vec![world.held.bundle()];
    world.turn(start() + Duration::from_secs(21));
    world.turn(start() + Duration::from_secs(40));
    assert!(world.held.next.is_none(), "{:?}", world.steps);
}

#[test]
fn a_secret_with_rubbish_is_begun_anew() {
    let mut world = World::new(place(90, 30, 10), Vec::new());
    world.turn(start());
    let mut secret = world.held.object("s");
    secret["metadata"]["resourceVersion"] = "7".into();
    // A key that does not belong to its certificate.
    secret["data"]["authority.key"] = secret["data"]["tls.key"].clone();
    let held = StoredCertificates::read(secret.to_string().as_bytes()).unwrap();
    assert!(held.authority.is_none() && held.leaf.is_some());
    assert_eq!(next(&world.place, &held, &world.trusted, start()), Step::Introduce);
    assert_eq!(next(&world.place, &held, &Trusted::default(), start()), Step::Begin);
    let text = pem(&world.held.bundle());
    assert_eq!(certificates_from_pem(text.as_bytes()).unwrap(), world.held.bundle());
}
