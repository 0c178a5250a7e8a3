use serde_json::json;

use super::*;

const NOW: Duration = Duration::from_secs(10);

fn items(count: usize) -> Vec<(String, Item)> {
    let item = |number: usize| {
        let meta =
            json!({"namespace": "n", "name": format!("o{number}"), "uid": number.to_string(), "resourceVersion": "1"});
        (format!("parent-{number}"), Item::of(json!({ "metadata": meta })).unwrap())
    };
    (0..count).map(item).collect()
}

fn names(chosen: Vec<(String, Item, Option<Duration>)>) -> Vec<String> {
    chosen.into_iter().map(|(_, item, _)| item.name).collect()
}

#[test]
fn the_seed_chooses_and_the_order_of_the_list_does_not() {
    let chosen = |items, share, seed, index| names(chosen(items, |_| None, NOW, share, seed, index));
    let mut backwards = items(40);
    backwards.reverse();
    let first = chosen(items(40), 0.25, 7, 0);
    assert_eq!(first.len(), 10);
    assert_eq!(first, chosen(backwards, 0.25, 7, 0));
    assert_ne!(first, chosen(items(40), 0.25, 8, 0));
    assert_ne!(first, chosen(items(40), 0.25, 7, 1));
    assert_eq!(chosen(items(3), 0.01, 7, 0).len(), 1, "a share of something is something");
    assert!(chosen(Vec::new(), 1.0, 7, 0).is_empty());
    assert_eq!(one("/api/v1/configmaps", &items(1)[0].1), "/api/v1/namespaces/n/configmaps/o0");
}

/// Children of parents that are written soon are not changed, because a subject that watches only parents would also
/// restore such children.
#[test]
fn children_of_parents_that_are_written_soon_are_left_alone() {
    let next = |uid: &str| match uid {
        "parent-0" => Some(NOW + Duration::from_secs(4)),
        "parent-1" => Some(NOW + Duration::from_secs(6)),
        _ => None,
    };
    let all = chosen(items(4), next, NOW, 1.0, 7, 0);
    let untils: Vec<Option<u64>> = all.iter().map(|(_, _, until)| until.map(|at| at.as_secs())).collect();
    assert_eq!(untils, [None, None, Some(16)], "those that nobody writes any more come first");
    let mut taken = names(all);
    taken.sort_unstable();
    assert_eq!(taken, ["o1", "o2", "o3"], "one is written too soon");
    assert_eq!(names(chosen(items(4), next, NOW, 0.2, 7, 0)).len(), 1);
}

#[test]
fn what_a_script_will_write_nobody_knows_of_single_objects() {
    let of = BTreeSet::from([("n".to_owned(), "a".to_owned())]);
    let writers = |script: &[Option<u64>]| Writers {
        script: script.iter().map(|at| at.map(Duration::from_secs)).collect(),
        loaded: Duration::from_mins(1),
        ..Writers::default()
    };
    let next = |script: &[Option<u64>], now| {
        writers(script).next_writes(&of, Duration::from_secs(now)).into_values().next().map(|at| at.as_secs())
    };
    assert_eq!(next(&[Some(5), Some(20), Some(30)], 10), Some(20));
    assert_eq!(next(&[Some(5)], 10), None, "no step is left");
    assert_eq!(next(&[Some(5), None], 10), Some(10), "a step that waits for a hit may come at any time");
    assert_eq!(next(&[Some(70)], 61), None, "load has ended");
}
