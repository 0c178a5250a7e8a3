//! Tests that causes in the subject's own work take precedence over causes in its client, and that each of these causes
//! needs its proof.

use units::Rate;

use super::*;
use crate::example::Example;
use crate::judge::Queue;
use crate::record::{LEASES, RequestRow};

fn wrote(t_ms: u64, verb: Verb, resource: &str, name: &str, status: u16, times: u64) -> Step {
    let message = (status == 422).then(|| "volumeMounts[0].name: Not found: \"data\"".to_owned());
    let (resource, object) = (resource.to_owned(), format!("default/{name}"));
    Step::Wrote { t_ms, verb, resource, object, status, times, message }
}

/// A missed version that was sent. The witness reports only the subject's writes, and the evidence contains the
/// subject's writes for the object.
fn missed(steps: &[Step]) -> AnomalyRow {
    let sent = [watched(100, 3, 9), sent(4010, 17, 3)];
    row(Outcome::Missed, &[&sent[..], steps].concat())
}

fn by_writes(conduct: Conduct) -> Facts {
    Facts { faults: Faults::default(), conduct }
}

#[test]
fn a_refused_write_comes_first() {
    let refused = wrote(11_000, Verb::Create, "statefulsets.apps", "a-db", 422, 5);
    let text = "written at 4 s; the subject's `create` of statefulsets.apps default/a-db was refused 5 times with 422, last at 11 s: \
                volumeMounts[0].name: Not found: \"data\"";
    let conduct = || Conduct { never_led: Some("no".to_owned()), queue: Some(queue()), ..Conduct::default() };
    assert_eq!(under(&missed(std::slice::from_ref(&refused)), &by_writes(conduct())), says(Cause::WriteRefused, text));
    assert_eq!(of(&missed(std::slice::from_ref(&refused)), &[]).0, Cause::WriteRefused, "whatever the witness is");
    // The write succeeded at last, or the wanted object existed already.
    let made = wrote(12_000, Verb::Create, "statefulsets.apps", "a-db", 201, 1);
    let there = wrote(11_000, Verb::Create, "statefulsets.apps", "a-db", 409, 1);
    for steps in [vec![refused.clone(), made.clone()], vec![there]] {
        assert_eq!(of(&missed(&steps), &[]).0, Cause::LostInClient, "{steps:?}");
    }
    // A version that never reached the subject cannot be explained by its writes.
    let mut not_sent = missed(std::slice::from_ref(&refused));
    not_sent.evidence.iter_mut().for_each(|evidence| evidence.steps.retain(|step| !matches!(step, Step::Sent { .. })));
    assert_eq!(of(&not_sent, &[]).0, Cause::NotSent);
    // A conflict before the version reached the subject is about an older version.
    let conflict = wrote(4005, Verb::Update, "packages.longhaul.dev", "a", 409, 1);
    let mut held = row(Outcome::Late, &[watched(100, 3, 9), conflict, sent(11_000, 17, 3)]);
    held.observed_ms = Some(11_050);
    assert_ne!(of(&held, &[]).0, Cause::WriteRefused);
    // A version is late if its write had to be tried again.
    let mut late = row(Outcome::Late, &[watched(100, 3, 9), sent(4010, 17, 3), refused, made]);
    late.observed_ms = Some(12_100);
    let (cause, sentence) = of(&late, &[]);
    assert_eq!(cause, Cause::WriteRefused);
    assert!(sentence.ends_with("\"data\"; reported only at 12.1 s"), "{sentence}");
}

fn queue() -> Queue {
    Queue {
        waiting: 37,
        needs_ms: 41_000,
        served: Rate::per_second(0.9),
        requests: Some(Rate::per_second(7.4)),
        is_constant: true,
        from_ms: 20_000,
    }
}

#[test]
fn what_waits_in_a_queue_is_not_lost() {
    let conduct = |is_constant| Conduct { queue: Some(Queue { is_constant, ..queue() }), ..Conduct::default() };
    let text = "written at 4 s, never reported: from 20 s on the subject sent a constant 7.4 requests a second, and 37 objects still \
        waited after the drain: it limits itself, and needs 41 s more at its 7.4 requests a second; `rate: 0.4/s` fits";
    assert_eq!(under(&missed(&[]), &by_writes(conduct(true))), says(Cause::Queued, text));
    let text = "written at 4 s, never reported: the subject worked in order until the end of the drain, and 37 objects still waited: it needs 41 s more \
                at its 7.4 requests a second; `rate: 0.4/s` fits";
    assert_eq!(under(&missed(&[]), &by_writes(conduct(false))), says(Cause::Queued, text));
    // A version that was not sent is in no queue of the subject.
    let not_sent = row(Outcome::Missed, &[watched(100, 3, 9)]);
    assert_eq!(under(&not_sent, &by_writes(conduct(true))).0, Cause::NotSent);
}

#[test]
fn what_waits_for_a_workload_says_for_which() {
    let made = wrote(4100, Verb::Create, "statefulsets.apps", "a-db", 201, 1);
    let conduct = |nothing_readies| Conduct { nothing_readies, ..Conduct::default() };
    let text = "the subject made statefulsets.apps default/a-db at 4.1 s and wrote nothing for the object after that; nothing in this \
        control plane makes it ready";
    let waits = under(&missed(std::slice::from_ref(&made)), &by_writes(conduct(true)));
    assert_eq!(waits, says(Cause::AwaitsWorkload, text));
    // The subject went on, or the workload becomes ready, or its objects need no controller.
    let after = wrote(4200, Verb::Patch, "packages.longhaul.dev", "a", 200, 1);
    let map = wrote(4200, Verb::Create, "configmaps", "a", 201, 1);
    assert_ne!(under(&missed(&[made.clone(), after]), &by_writes(conduct(true))).0, Cause::AwaitsWorkload);
    assert_ne!(under(&missed(&[made]), &by_writes(conduct(false))).0, Cause::AwaitsWorkload);
    assert_ne!(under(&missed(&[map]), &by_writes(conduct(true))).0, Cause::AwaitsWorkload);
}

/// The client is not blamed if no report shows that it read later versions, or if the witness shows only the subject's
/// writes.
#[test]
fn a_cause_that_nothing_proves_is_not_known() {
    let ruled_out = "ruled out: a refused write, a Lease that it never got, a queue";
    let mut row = missed(&[]);
    row.evidence.iter_mut().for_each(|evidence| evidence.read_on = None);
    let text = format!("sent on watch 3 at 4.01 s, never reported, and nothing later was reported either; {ruled_out}");
    assert_eq!(of(&row, &[]), says(Cause::Unknown, &text));
    let by_design = format!(
        "sent on watch 3 at 4.01 s, never reported; the subject never wrote anything for this object, perhaps by design; {ruled_out}"
    );
    assert_eq!(under(&missed(&[]), &Facts::default()), says(Cause::Unknown, &by_design));
    // The subject had reported an older version of the same object: then its client lost this one.
    assert_eq!(under(&missed(&[reported(3000, 16)]), &Facts::default()).0, Cause::LostInClient);
    let mut list = self::row(Outcome::Missed, &[listed(4400, 20)]);
    list.evidence.iter_mut().for_each(|evidence| evidence.read_on = None);
    assert_eq!(of(&list, &[]).0, Cause::Unknown);
    for cause in Cause::ALL {
        assert!(!cause.remedy().contains("filter"), "{cause}: {}", cause.remedy());
    }
}

fn conduct_of(rows: Vec<RequestRow>) -> Conduct {
    let mut example = Example::clean();
    example.intervals.iter_mut().for_each(|row| row.events.observations = 0);
    example.requests = Some(rows);
    Conduct::of(&example.opened())
}

fn lease(t_ms: u64, verb: Verb, status: u16) -> RequestRow {
    let name = if verb == Verb::Create { String::new() } else { "leader".to_owned() };
    let message = (verb == Verb::Create && status == 404).then(|| "namespaces \"system\" not found".to_owned());
    let (resource, namespace) = (LEASES.to_owned(), "system".to_owned());
    RequestRow { id: t_ms, t_ms, verb, resource, namespace, name, status, message, ..RequestRow::default() }
}

#[test]
fn who_never_led_says_why() {
    let pairs = (1..4).flat_map(|at| [lease(at * 2000, Verb::Get, 404), lease(at * 2000 + 1, Verb::Create, 404)]);
    let refused = conduct_of(pairs.collect()).never_led.unwrap();
    let text = "the subject never became the leader: its Lease in the namespace `system` was refused 3 times with 404 (namespaces \
        \"system\" not found)";
    assert_eq!(refused, text);
    let held = conduct_of((1..9).map(|at| lease(at * 2000, Verb::Get, 200)).collect()).never_led.unwrap();
    assert_eq!(
        held,
        "the subject never became the leader: it read the Lease system/leader 8 times and never took it, so another process holds it"
    );
    let conduct = Conduct { never_led: Some(held.clone()), ..Conduct::default() };
    // Without leading it watches nothing, which is no fault of its informers.
    assert_eq!(under(&row(Outcome::Missed, &[]), &by_writes(conduct)), says(Cause::NeverLed, &held));
    // A subject that took the Lease, or that acts like a leader, is a leader.
    let took = vec![lease(2000, Verb::Get, 404), lease(2001, Verb::Create, 404), lease(4000, Verb::Create, 201)];
    assert_eq!(conduct_of(took).never_led, None);
    let works = RequestRow { resource: "configmaps".into(), ..lease(5000, Verb::Patch, 200) };
    assert_eq!(conduct_of(vec![lease(2001, Verb::Create, 404), works]).never_led, None);
    assert_eq!(conduct_of(vec![]).never_led, None);
}

#[test]
fn who_asked_for_nothing_at_all_is_said_to_have() {
    let conduct = conduct_of(vec![]);
    assert!(conduct.is_silent && !conduct_of(vec![lease(1, Verb::Get, 200)]).is_silent);
    let silent = says(Cause::Silent, "the subject sent no request at all");
    assert_eq!(under(&row(Outcome::Missed, &[]), &by_writes(conduct)), silent);
}
