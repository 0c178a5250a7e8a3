//! Tests of the cache of verdicts, with a scripted validator.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::config::Config;
use crate::validator::Signer;
use service_registry::Keyring;

/// A validator that gives a prepared answer and counts its calls.
struct Script {
    generation: String,
    asked: AtomicUsize,
    says: Mutex<Answer>,
    takes: Duration,
}

impl Script {
    fn new(generation: &str, says: Answer) -> Arc<Self> {
        let (asked, takes) = (AtomicUsize::new(0), Duration::from_millis(100));
        Arc::new(Self { generation: generation.to_owned(), asked, says: Mutex::new(says), takes })
    }

    fn questions(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Validator for Script {
    fn validate(self: Arc<Self>, _: Question) -> BoxFuture<'static, Answer> {
        async move {
            self.asked.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(self.takes).await;
            assert_ne!(self.generation, "panics", "a planted panic");
            self.says.lock().clone()
        }
        .boxed()
    }

    fn generation(&self) -> std::borrow::Cow<'_, str> {
        (&*self.generation).into()
    }

    fn relevant(&self, _: &str, _: &str, keyring: &Keyring) -> Keyring {
        keyring.clone()
    }
}

fn approvals(more: &str) -> Approvals {
    let config = Config::parse(more, Path::new("c.yaml")).unwrap();
    let metrics = Metrics::register(&mut Registry::default());
    Approvals::new(&config.policy.verdicts, &config.resolve, metrics)
}

fn question(digest: &str) -> Question {
    Question {
        host: "h.io".into(),
        repository: "a".into(),
        digest: digest.into(),
        keyring: Keyring::default(),
        deadline: Instant::now() + Duration::from_secs(10),
    }
}

fn approval() -> Arc<Approval> {
    Arc::new(Approval { signers: vec![Signer { name: "release".into(), evidence: "bundle".into() }] })
}

fn failure(class: Class) -> Failure {
    Failure::new(class, "scripted")
}

/// The number of calls of a validator that always gives `answer`, if two reviews ask about the same image one after the
/// other.
async fn asked_twice(answer: Answer) -> usize {
    let (approvals, script) = (approvals(""), Script::new("g", answer.clone()));
    let validator: Arc<dyn Validator> = script.clone();
    for _ in 0..2 {
        assert_eq!(approvals.ask(&validator, question("d")).await, answer);
    }
    script.questions()
}

#[tokio::test(start_paused = true)]
async fn good_and_definitely_bad_verdicts_are_remembered_and_doubts_never() {
    assert_eq!(asked_twice(Ok(approval())).await, 1);
    for class in Class::ALL {
        let definite = [Class::NotFound, Class::Unsigned, Class::Invalid, Class::Mismatch, Class::TooMuchEvidence];
        let definite = definite.contains(&class);
        assert_eq!(asked_twice(Err(failure(class))).await, if definite { 1 } else { 2 }, "{class}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_verdict_is_known_for_its_digest_rule_and_trust_alone() {
    let approvals = approvals("");
    let script = Script::new("one", Ok(approval()));
    let validator: Arc<dyn Validator> = script.clone();
    approvals.ask(&validator, question("d")).await.unwrap();
    assert_eq!(approvals.known(&*validator, "h.io", "a", "d"), Some(Ok(approval())));
    assert_eq!(approvals.known(&*validator, "h.io", "a", "other"), None);
    assert_eq!(approvals.known(&*validator, "h.io", "b", "d"), None);
    assert_eq!(approvals.known(&*validator, "i.io", "a", "d"), None);
    // Another key, another rule: another generation.
    let other = Script::new("two", Err(failure(Class::Invalid)));
    assert_eq!(approvals.known(&*other, "h.io", "a", "d"), None);
    let validator: Arc<dyn Validator> = other;
    assert_eq!(approvals.ask(&validator, question("d")).await, Err(failure(Class::Invalid)));
    // Credentials of a pod's own are not shared.
    let docker = r#"{"auths":{"h.io":{"username":"u","password":"p"}}}"#;
    let keyring = Keyring::docker_config(docker.as_bytes(), &"secret".into()).unwrap();
    let validator: Arc<dyn Validator> = script.clone();
    approvals.ask(&validator, Question { keyring, ..question("d") }).await.unwrap();
    assert_eq!(script.questions(), 2);
}

#[tokio::test(start_paused = true)]
async fn five_hundred_callers_cause_one_question() {
    let (approvals, script) = (approvals(""), Script::new("g", Ok(approval())));
    let validator: Arc<dyn Validator> = script.clone();
    let answers = futures_util::future::join_all((0..500).map(|_| approvals.ask(&validator, question("d")))).await;
    assert!(answers.iter().all(|answer| *answer == Ok(approval())));
    assert_eq!(script.questions(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_hangs_or_panics_is_a_doubt_of_every_caller_and_of_no_later_one() {
    let approvals = approvals("resolve: {timeout: 2s}");
    let mut script = Script::new("hangs", Ok(approval()));
    Arc::get_mut(&mut script).unwrap().takes = Duration::from_hours(1);
    let validator: Arc<dyn Validator> = script.clone();
    let answer = approvals.ask(&validator, question("d")).await;
    assert_eq!(answer.unwrap_err().class, Class::Busy);
    let hasty = Question { deadline: Instant::now() + Duration::from_millis(50), ..question("d") };
    let started = Instant::now();
    assert_eq!(approvals.ask(&validator, hasty).await.unwrap_err().class, Class::Busy);
    assert!(started.elapsed() < Duration::from_millis(60), "the deadline of the review counts");
    let validator: Arc<dyn Validator> = Script::new("panics", Ok(approval()));
    assert_eq!(approvals.ask(&validator, question("d")).await.unwrap_err().class, Class::Internal);
    assert!(approvals.flights.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_is_bounded_in_bytes() {
    let approvals = approvals("policy: {cache: {maxBytes: 8KiB}}");
    let validator: Arc<dyn Validator> = Script::new("g", Ok(approval()));
    for n in 0..100 {
        approvals.ask(&validator, question(&format!("d{n}"))).await.unwrap();
        assert!(approvals.cache.lock().used_bytes() <= 8 << 10);
    }
    assert!(!approvals.cache.lock().is_empty());
}

/// A shared store, which several processes can read.
#[derive(Default)]
struct SharedValues(Mutex<std::collections::HashMap<String, (Vec<u8>, Duration)>>);

impl Knowledge for SharedValues {
    fn known(&self, key: &str, _: Instant) -> BoxFuture<'static, Option<service_core::known::Known>> {
        let known = self.0.lock().get(key).cloned();
        std::future::ready(known.map(|(value, life)| service_core::known::Known { value, life })).boxed()
    }

    fn keep(&self, key: &str, value: Vec<u8>, life: Duration) {
        self.0.lock().insert(key.to_owned(), (value, life));
    }
}

/// Two processes of a service have separate caches and one shared cache. While an answer that one process stored in the
/// shared cache is valid, the other process calls no validator. Uncertain answers are not written to the shared cache.
#[tokio::test(start_paused = true)]
async fn what_another_process_was_told_is_not_asked_again_and_doubts_are_told_nobody() {
    for answer in [Ok(approval()), Err(failure(Class::Unsigned)), Err(failure(Class::Unavailable))] {
        let board = Arc::new(SharedValues::default());
        let (one, other) = (approvals("").sharing(Some(board.clone())), approvals("").sharing(Some(board.clone())));
        let script = Script::new("g", answer.clone());
        let validator: Arc<dyn Validator> = script.clone();
        let is_definite = answer.as_ref().err().is_none_or(|failure| failure.class.cache_ttl().is_some());
        assert_eq!(one.ask(&validator, question("d")).await, answer);
        assert_eq!(other.ask(&validator, question("d")).await, answer);
        assert_eq!(script.questions(), if is_definite { 1 } else { 2 });
        assert_eq!(board.0.lock().len(), usize::from(is_definite));
        assert_eq!(other.known(&*validator, "h.io", "a", "d"), is_definite.then_some(answer));
        // Under another rule the answer is unknown.
        let stranger = Script::new("h", Ok(approval()));
        let validator: Arc<dyn Validator> = stranger.clone();
        assert_eq!(other.ask(&validator, question("d")).await, Ok(approval()));
        assert_eq!(stranger.questions(), 1);
    }
}

/// An invalid value in the shared cache leads to a call of the validator.
#[tokio::test(start_paused = true)]
async fn a_shared_value_that_is_none_is_asked_for() {
    let board = Arc::new(SharedValues::default());
    let approvals = approvals("").sharing(Some(board.clone()));
    let script = Script::new("g", Ok(approval()));
    let validator: Arc<dyn Validator> = script.clone();
    let key = key(&*validator, "h.io", "a", "d", None);
    board.keep(&key, b"{\"verified\": 1}".to_vec(), Duration::from_mins(1));
    assert_eq!(approvals.ask(&validator, question("d")).await, Ok(approval()));
    assert_eq!(script.questions(), 1);
}

/// A validator that exceeds its time limit by waiting either for another server or inside this process.
struct Late {
    for_a_peer: bool,
}

impl Validator for Late {
    fn validate(self: Arc<Self>, _: Question) -> BoxFuture<'static, Answer> {
        async move {
            let _listening = if self.for_a_peer { service_core::wire::Silence::listen() } else { None };
            std::future::pending().await
        }
        .boxed()
    }

    fn generation(&self) -> std::borrow::Cow<'_, str> {
        "late".into()
    }

    fn relevant(&self, _: &str, _: &str, keyring: &Keyring) -> Keyring {
        keyring.clone()
    }
}

/// A timeout that this program caused does not count as a failure of the registry, whether the review or the
/// validator's call ends first.
#[tokio::test(start_paused = true)]
async fn who_was_waited_for_says_whose_failure_it_is() {
    for (for_a_peer, class) in [(true, Class::Unavailable), (false, Class::Busy)] {
        for seconds in [1, 20] {
            let mut question = question("d");
            question.deadline = Instant::now() + Duration::from_secs(seconds);
            let validator: Arc<dyn Validator> = Arc::new(Late { for_a_peer });
            let failure = approvals("").ask(&validator, question).await.unwrap_err();
            assert_eq!(failure.class, class, "{seconds} s: {failure}");
        }
    }
}
