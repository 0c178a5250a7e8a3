use std::collections::BTreeSet;

use proptest::prelude::*;
use units::Rate;

use super::*;

fn plan(population: u32, per_second: f64, mix: Mix, seed: u64) -> Plan {
    let config = Config {
        resource: "packages.longhaul.dev/v1alpha1".to_owned(),
        population,
        rate: Rate::per_second(per_second).into(),
        mix,
        size: None,
        template: None,
        templates: Vec::new(),
        with: Vec::new(),
        vary: Vec::new(),
        scope: None,
        finalizers: None,
        tree: None,
        propagation: Vec::new(),
        also: None,
        end: super::super::End::Keep,
        made: false,
        namespace: None,
    };
    Plan::build(&config, seed, Duration::from_secs(20)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any mix: a name never returns, only existing objects are changed, the number of objects stays within its
    /// limits, and the number of used namespaces is bounded.
    #[test]
    fn the_population_is_constant_and_ever_new(
        population in 1u32..400, create in 1u32..9, update in 0u32..9, delete in 1u32..9, seed: u64,
    ) {
        let plan = plan(population, 200.0, Mix { create, update, delete, ..Mix::default() }, seed);
        let mut live: BTreeSet<u64> = (0..u64::from(population)).collect();
        let mut highest = u64::from(population) - 1;
        for (_, operation) in plan.operations() {
            match operation.kind {
                Kind::Create => {
                    prop_assert!(operation.object == highest + 1, "a new name each time");
                    highest = operation.object;
                    live.insert(operation.object);
                }
                Kind::Update | Kind::Label | Kind::Annotate | Kind::Status | Kind::Also => prop_assert!(live.contains(&operation.object)),
                Kind::Collect | Kind::Denied => unreachable!("it was not asked for"),
                Kind::Delete => prop_assert!(live.remove(&operation.object)),
            }
            let band = usize::try_from((population / BAND).max(1)).unwrap();
            prop_assert!(live.len().abs_diff(population as usize) <= band, "{} live", live.len());
            if operation.revision % 100 == 0 {
                let namespaces: BTreeSet<u64> = live.iter().map(|&object| plan.namespace_of(object)).collect();
                let bound = u64::from(population).div_ceil(plan.objects_per_namespace()) * 4 + 8;
                prop_assert!(namespaces.len() as u64 <= bound, "{} namespaces", namespaces.len());
            }
        }
    }
}

#[test]
fn exact_rate_weights_and_determinism() {
    let mix = Mix::usual();
    let plan = plan(500, 50.0, mix, 7);
    let all: Vec<_> = plan.operations().collect();
    assert_eq!(all.len() as u64, plan.total());
    assert_eq!(all.len(), 1000);
    for second in 0..20 {
        let inside = all.iter().filter(|(at, _)| at.as_secs() == second).count();
        assert_eq!(inside, 50, "in second {second}");
    }
    let updates = all.iter().filter(|(_, operation)| operation.kind == Kind::Update).count();
    assert!((546..=726).contains(&updates), "{updates} of 1000, 636 expected, six standard errors are 91");
    assert_eq!(all, plan.operations().collect::<Vec<_>>());
    assert_eq!(plan.fingerprint(), self::plan(500, 50.0, mix, 7).fingerprint());
    assert_ne!(plan.fingerprint(), self::plan(500, 50.0, mix, 8).fingerprint());
}

#[test]
fn updates_alone_are_possible_and_so_is_only_filling() {
    let updates = plan(3, 50.0, Mix { update: 1, ..Mix::default() }, 7);
    assert!(updates.operations().all(|(_, operation)| operation.kind == Kind::Update));
    assert_eq!(plan(3, 0.0, Mix::usual(), 7).operations().count(), 0);
}

#[test]
fn description_says_what_matters() {
    let text = plan(500, 50.0, Mix::usual(), 7).describe();
    for expected in
        ["500 packages.longhaul.dev (small)", "62 a namespace", "lh-7-0", "1000 operations in 20.0 s (50/s)"]
    {
        assert!(text.contains(expected), "`{expected}` is not in\n{text}");
    }
}

fn read(more: &str) -> Plan {
    let base = r#""resource": "v1/configmaps", "population": 100, "rate": "50/s""#;
    Plan::build(&serde_json::from_str(&format!("{{{base}{more}}}")).unwrap(), 7, Duration::from_secs(20)).unwrap()
}

/// After the deletion of a group, operations create as many new objects, and no deleted object is changed.
#[test]
fn collections_keep_the_population() {
    let plan = read(
        r#", "mix": {"create": 1, "update": 4, "delete": 1, "deleteCollection": 1}, "propagation": ["Background", "Orphan"]"#,
    );
    let (mut live, mut collected): (BTreeSet<u64>, u64) = ((0..100).collect(), 0);
    let mut below = 0;
    for (_, operation) in plan.operations() {
        match operation.kind {
            Kind::Create => assert!(live.insert(operation.object)),
            Kind::Delete => assert!(live.remove(&operation.object)),
            Kind::Collect => {
                let group = plan.groups().of(operation.object);
                assert_eq!(group.start, operation.object);
                let before = live.len();
                live.retain(|object| !group.contains(object));
                collected += (before - live.len()) as u64;
                assert!(before > live.len(), "a collection of none");
            }
            _ => assert!(live.contains(&operation.object)),
        }
        assert!((85..=102).contains(&live.len()), "{} live", live.len());
        below += usize::from(live.len() < 98);
        assert_eq!(plan.propagation(operation).is_some(), matches!(operation.kind, Kind::Delete | Kind::Collect));
    }
    assert!(collected > 50 && below < 600, "{collected} {below}");
    let policies: BTreeSet<&str> =
        plan.operations().filter_map(|(_, operation)| plan.propagation(operation)).map(Propagation::as_str).collect();
    assert_eq!(policies.into_iter().collect::<Vec<_>>(), ["Background", "Orphan"]);
}

#[test]
fn finalizers_groups_and_dependents_are_in_the_bodies() {
    let plan = read(
        r#", "mix": {"create": 1, "delete": 1, "deleteCollection": 1}, "finalizers": {"share": 0.5},
           "tree": {"resource": "v1/secrets", "per": 2}"#,
    );
    let held = (0..200).filter(|object| plan.holds(*object)).count();
    assert!((70..130).contains(&held), "{held} of 200 are held");
    for object in 0..20 {
        let metadata = &plan.body(object, 0)["metadata"];
        assert_eq!(metadata["finalizers"].is_array(), plan.holds(object));
        assert_eq!(metadata["labels"][GROUP], plan.groups().of(object).start.to_string());
        assert!(plan.groups().of(object).contains(&object));
        assert_eq!(plan.namespace_of(plan.groups().of(object).start), plan.namespace_of(object));
    }
    let children = plan.children(3);
    assert_eq!(
        children.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["configmap-0000003-0", "configmap-0000003-1"]
    );
    assert_eq!(children[0].1["kind"], "Secret");
    assert_ne!(children[0].1["data"], children[1].1["data"]);
    assert_eq!(plan.config().lifecycle(), ["50 % held by longhaul.dev/hold for 1s", "2 v1/secrets below each"]);
}

/// The plans of several sections have only the seed in common. The first section has the same plan as it would have
/// alone.
#[test]
fn sections_have_plans_of_their_own() {
    let one = r#"{"resource": "v1/configmaps", "population": 100, "rate": "50/s"}"#;
    let sections: Sections = serde_json::from_str(&format!("[{one}, {one}]")).unwrap();
    let plans = Plan::all(&sections, 7, Duration::from_secs(20)).unwrap();
    assert_eq!(plans[0].fingerprint(), read("").fingerprint());
    assert_ne!(plans[0].fingerprint(), plans[1].fingerprint());
    assert_eq!(plans[1].fingerprint(), Plan::all(&sections, 7, Duration::from_secs(20)).unwrap()[1].fingerprint());
    assert_eq!((plans[0].namespace_name(3), plans[1].namespace_name(3)), ("lh-7-3".to_owned(), "lh-7b-3".to_owned()));
    assert_eq!(plans[1].body(0, 0)["metadata"]["labels"][LABEL], "7b");
}

/// Objects that webhooks must refuse are as frequent as creations, are in namespaces of existing objects, and have
/// names of their own. Objects that webhooks must refuse change no other operation of the plan.
#[test]
fn what_has_to_be_refused_is_no_part_of_the_population() {
    let text = r#"{"resource": "caches.cache.example.com/v1", "population": 20, "rate": "100/s", "templates": [
        {"object": {"kind": "Cache", "spec": {"size": 1}}}, {"object": {"kind": "Cache", "spec": {"size": 2}}},
        {"object": {"kind": "Cache", "spec": {"size": 99}}, "expect": "denied", "file": "bad.yaml"}]}"#;
    let config: Config = serde_json::from_str(text).unwrap();
    assert!(config.expects_denials());
    let plan = Plan::build(&config, 7, Duration::from_secs(20)).unwrap();
    let operations: Vec<Operation> = plan.operations().map(|(_, operation)| operation).collect();
    let denied: Vec<&Operation> = operations.iter().filter(|operation| operation.kind == Kind::Denied).collect();
    let share = denied.len() as f64 / operations.len() as f64;
    assert!((0.1..0.22).contains(&share), "two in thirteen, and not {share}");
    for operation in denied {
        let (name, called, object) = plan.denied(operation.object, operation.revision).unwrap();
        assert_eq!((called, &object["spec"]["size"]), ("bad.yaml", &serde_json::json!(99)));
        assert!(name.starts_with("cache-denied-"), "{name}");
        assert_eq!(object["metadata"]["namespace"], plan.place(operation.object).0);
    }
    let sizes: std::collections::BTreeSet<u64> =
        (0..4).map(|object| plan.body(object, 0)["spec"]["size"].as_u64().unwrap()).collect();
    assert_eq!(sizes.into_iter().collect::<Vec<_>>(), [1, 2], "each object is made from one of the others");
    let wrong: Config =
        serde_json::from_str(&text.replace("\"population\"", "\"template\": {\"kind\": \"Cache\"}, \"population\""))
            .unwrap();
    let error = Plan::build(&wrong, 7, Duration::from_secs(1)).unwrap_err().to_string();
    assert!(error.starts_with("churn.templates: cannot be used with `template`"), "{error}");
}

/// The next planned write of an object, as the plan predicts it, equals the object's next write in the stream of
/// operations.
#[test]
fn the_next_write_of_an_object_is_that_of_the_operations() {
    let mix = Mix { create: 2, update: 4, delete: 2, ..Mix::default() };
    let plan = plan(30, 5.0, mix, 7);
    let of: BTreeSet<(String, String)> = (0..40).map(|object| plan.place(object)).collect();
    let (from, until) = (Duration::from_secs(6), Duration::from_secs(12));
    let next = plan.next_writes(&of, from, until);
    for object in 0..40 {
        let first = plan.operations().find(|(at, one)| (from..=until).contains(at) && one.object == object);
        assert_eq!(next.get(&plan.place(object)).copied(), first.map(|(at, _)| at), "{object}");
    }
    assert!(!next.is_empty() && next.len() < 30, "some are left alone: {}", next.len());
    let canary = plan.canary_place();
    assert_eq!(plan.next_writes(&BTreeSet::from([canary.clone()]), from, until).get(&canary), Some(&from));
}

/// With `rate: auto`, the same seed gives the same operations in the same order, and their predicted times equal the
/// real times.
#[test]
fn a_plan_that_is_steered_makes_the_same_operations() {
    let config: Config =
        serde_json::from_str(r#"{"resource": "v1/configmaps", "population": 20, "rate": "auto"}"#).unwrap();
    let length = Duration::from_mins(1);
    let steered = Plan::build(&config, 7, length).unwrap();
    let fixed = Plan::build(&Config { rate: Rate::per_second(4.0).into(), ..config.clone() }, 7, length).unwrap();
    let of = |plan: &Plan| plan.operations().map(|(_, operation)| operation).take(200).collect::<Vec<_>>();
    assert_eq!(of(&steered), of(&fixed));
    let place = steered.place(of(&steered)[12].object);
    let (wanted, now) = (BTreeSet::from([place.clone()]), Duration::from_secs(11));
    let next = |plan: &Plan| plan.next_writes(&wanted, now, length).get(&place).copied();
    assert_eq!(next(&steered), Some(now), "nobody knows");
    let steer = config.rate.steer().unwrap();
    steer.settle(std::time::Instant::now(), Duration::from_secs(10), Rate::per_second(2.0));
    let first = of(&steered).iter().skip(1).position(|operation| steered.place(operation.object) == place).unwrap();
    assert_eq!(next(&steered), Some(Duration::from_millis(11_000 + 500 * first as u64)));
}

/// All objects are in the given namespace, and their names differ between sections.
#[test]
fn one_namespace_holds_all_objects() {
    let usual = plan(60, 10.0, Mix::usual(), 7).config().clone();
    let config = Config { namespace: Some("default".to_owned()), ..usual };
    let plan = Plan::build(&config, 7, Duration::from_secs(20)).unwrap();
    assert_eq!(plan.place(3), ("default".to_owned(), "package-7-0000003".to_owned()));
    assert_eq!(plan.place(90_000).0, "default");
    assert_eq!(plan.canary_place(), ("default".to_owned(), "canary-7".to_owned()));
    assert!(plan.describe().contains("all in the namespace default"), "{}", plan.describe());
    assert!(plan.has_lasting_namespace() && plan.groups().of(10).end <= 60);
    for wrong in ["", "A", "-a", "a.b"] {
        let config = Config { namespace: Some(wrong.to_owned()), ..config.clone() };
        assert!(Plan::build(&config, 7, Duration::from_secs(20)).is_err(), "{wrong}");
    }
}
