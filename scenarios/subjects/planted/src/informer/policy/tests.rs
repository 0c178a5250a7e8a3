use super::*;
use crate::wire::Refusal;

const RELIST: Duration = Duration::from_secs(15);

fn policy(mistakes: &[Mistake]) -> Policy {
    let mut policy = Policy::new(Mistakes::new(mistakes), RELIST);
    policy.after(Step::List, &End::Listed, 0.0);
    policy
}

fn refused(code: u16, retry_after_s: u64) -> End {
    let retry_after = Duration::from_secs(retry_after_s);
    End::Failed(Trouble::Refused(Refusal { code, retry_after, ..Refusal::default() }))
}

fn watch_steps(policy: &mut Policy, end: &End, times: usize) -> Vec<(Step, u128)> {
    let once = |_| {
        let Decision { next, pause } = policy.after(Step::Watch, end, 0.0);
        if next == Step::List {
            policy.after(Step::List, &End::Listed, 0.0);
        }
        (next, pause.as_millis())
    };
    (0..times).map(once).collect()
}

const EMPTY: End = End::Clean { lived: Duration::ZERO };

#[test]
fn empty_answers_back_off_and_every_second_one_leads_to_a_list() {
    let steps = watch_steps(&mut policy(&[]), &EMPTY, 5);
    let expected = [(Step::Watch, 200), (Step::List, 400), (Step::Watch, 800), (Step::List, 1600), (Step::Watch, 2000)];
    assert_eq!(steps, expected);
    assert_eq!(watch_steps(&mut policy(&[Mistake::HotLoopOnEmpty]), &EMPTY, 2), [(Step::Watch, 0); 2]);
    let silent = policy(&[Mistake::GivesUpSilentlyAtEnd]).after(Step::Watch, &EMPTY, 0.0);
    assert_eq!(silent.next, Step::Stop);
}

#[test]
fn a_watch_that_lived_is_resumed() {
    let lived = End::Clean { lived: Duration::from_secs(20) };
    assert_eq!(watch_steps(&mut policy(&[]), &lived, 3), [(Step::Watch, 50); 3]);
}

#[test]
fn gone_lists_at_once_and_then_less_often() {
    assert_eq!(watch_steps(&mut policy(&[]), &End::Gone, 3), [(Step::List, 0), (Step::List, 400), (Step::List, 800)]);
    for (mistake, next) in [(Mistake::KeepsRvAfter410, Step::Watch), (Mistake::ExitsOn410, Step::Stop)] {
        assert_eq!(policy(&[mistake]).after(Step::Watch, &End::Gone, 0.0).next, next, "{mistake:?}");
    }
}

#[test]
fn it_never_gives_up_and_honours_retry_after() {
    let mut correct = policy(&[]);
    for (next, pause) in watch_steps(&mut correct, &refused(503, 0), 40) {
        assert!(next != Step::Stop && pause >= 200);
    }
    assert_eq!(correct.after(Step::Watch, &refused(429, 7), 0.5).pause, Duration::from_secs(7));
    correct.received();
    assert_eq!(correct.after(Step::Watch, &refused(500, 0), 0.0).pause, Duration::from_millis(200));
    let stops = |mistake, code, times| {
        let mut policy = policy(&[mistake]);
        (0..times).map(|_| policy.after(Step::Watch, &refused(code, 0), 0.0).next).any(|next| next == Step::Stop)
    };
    assert!(stops(Mistake::GivesUpOn5xx, 500, 1) && stops(Mistake::GivesUpOn5xx, 429, 1));
    assert!(!stops(Mistake::GivesUpAfterNErrors, 500, 4) && stops(Mistake::GivesUpAfterNErrors, 500, 5));
    assert!(stops(Mistake::StopsOn403, 403, 1) && !stops(Mistake::StopsOn403, 404, 1));
}
