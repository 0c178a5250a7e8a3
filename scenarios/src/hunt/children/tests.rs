use serde_json::json;

use super::super::audit::{Object, Write};
use super::super::operations::Operations;
use super::*;

fn object(resource: &str, object: Value) -> Object {
    Object { resource: resource.to_owned(), object }
}

fn parent(name: &str) -> Object {
    object("caches.x", json!({"metadata": {"name": name, "namespace": "n", "uid": name}}))
}

/// A child with a number and a text; `owner` is the name of its parent.
fn config(name: &str, owner: Option<&str>) -> Object {
    let owners: Vec<Value> = owner.iter().map(|owner| json!({"uid": owner})).collect();
    let metadata = json!({"name": name, "namespace": "n", "uid": format!("of-{name}"), "ownerReferences": owners});
    object("configmaps", json!({"apiVersion": "v1", "metadata": metadata, "data": {"a.conf": "1", "b": "2"}}))
}

fn write(verb: &str, resource: &str, fields: &[&str], t_ms: u64) -> Write {
    let fields = fields.iter().map(ToString::to_string).collect();
    Write { t_ms, verb: verb.into(), resource: resource.into(), fields, status: 200, ..Write::default() }
}

fn play(objects: Vec<Object>) -> Audit {
    let writes = vec![write("create", "configmaps", &[], 150), write("update", "configmaps", &["data.a.conf"], 1300)];
    Audit { writes, objects, watched: vec!["configmaps".to_owned(), "caches.x".to_owned()], ..Audit::default() }
}

fn operations() -> Operations {
    let file = json!({"churn": {"resource": "caches.x/v1", "template": {"kind": "Cache"}}});
    Operations::of(file.as_object().unwrap()).unwrap()
}

fn inferred(play: &Audit) -> Vec<Child> {
    let reference = Reference::of(&[play.clone(), play.clone()]);
    children(&reference, &[play], &operations())
}

/// A child is owned by an object of the subject's kind and watched; only a field that the subject changes is edited.
#[test]
fn children_are_owned_and_watched() {
    let both = play(vec![parent("hunt-a"), config("hunt-a", Some("hunt-a"))]);
    let found = inferred(&both);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].spelled.as_str(), found[0].each, found[0].later_ms), ("configmaps/v1", 1, 4250));
    assert_eq!(found[0].edit.as_deref(), Some(r#"{"data":{"a.conf":"edited"}}"#));
    let unwatched = Audit { watched: Vec::new(), ..both.clone() };
    assert_eq!(inferred(&unwatched), []);
    let others = play(vec![parent("hunt-a"), config("hunt-a", Some("somebody"))]);
    assert_eq!(inferred(&others), []);
}

/// A field that the API server fills in is not edited, although updates leave it out; another number is.
#[test]
fn what_the_server_fills_in_is_not_edited() {
    let edited = |fields: &[&str]| {
        let metadata = json!({"name": "hunt-a", "namespace": "n", "uid": "s", "ownerReferences": [{"uid": "hunt-a"}]});
        let spec = json!({"replicas": 1, "revisionHistoryLimit": 10});
        let set = json!({"apiVersion": "apps/v1", "metadata": metadata, "spec": spec});
        let writes =
            vec![write("create", "statefulsets.apps", &[], 150), write("update", "statefulsets.apps", fields, 1300)];
        let objects = vec![parent("hunt-a"), object("statefulsets.apps", set)];
        let play = Audit { writes, objects, watched: vec!["statefulsets.apps".to_owned()], ..Audit::default() };
        inferred(&play).into_iter().next().and_then(|child| child.edit)
    };
    assert_eq!(edited(&["spec.revisionHistoryLimit"]), None);
    let both = edited(&["spec.replicas", "spec.revisionHistoryLimit"]);
    assert_eq!(both.as_deref(), Some(r#"{"spec":{"replicas":2}}"#));
}

/// An annotation of the parent that the subject passes on is not edited; an annotation of its own is.
#[test]
fn an_annotation_that_is_passed_on_is_not_edited() {
    let edited = |of_child: Value| {
        let mut parent = parent("hunt-a");
        parent.object["metadata"]["annotations"] = json!({"x/team": "one"});
        let mut child = config("hunt-a", Some("hunt-a"));
        child.object["metadata"]["annotations"] = of_child;
        let all = &["metadata.annotations"];
        let writes = vec![write("create", "configmaps", &[], 150), write("update", "configmaps", all, 1300)];
        let play = Audit { writes, ..play(vec![parent, child]) };
        inferred(&play).into_iter().next().and_then(|child| child.edit)
    };
    assert_eq!(edited(json!({"x/team": "one"})), None);
    let own = r#"{"metadata":{"annotations":{"x/hash":"edited"}}}"#;
    assert_eq!(edited(json!({"x/team": "one", "x/hash": "5"})).as_deref(), Some(own));
    let other = r#"{"metadata":{"annotations":{"x/team":"edited"}}}"#;
    assert_eq!(edited(json!({"x/team": "two"})).as_deref(), Some(other), "the value is its own");
}

/// A trial with such a disturbance names the children, and does not judge their number.
#[test]
fn a_trial_names_its_children() {
    let child = &inferred(&play(vec![parent("hunt-a"), config("hunt-a", Some("hunt-a"))]))[0];
    let mut scenario = json!({"subject": {}, "budgets": {}}).as_object().cloned().unwrap();
    child.name_in(&mut scenario);
    child.name_in(&mut scenario);
    let kinds = json!([{"resource": "configmaps/v1", "by": "owner", "perParent": 1}]);
    assert_eq!(scenario["subject"]["children"], kinds);
    assert_eq!(scenario["budgets"]["children"]["excess"], JUDGED_FROM);
    let mut own =
        json!({"subject": {"children": {"resource": "configmaps/v1", "by": "owner"}}}).as_object().cloned().unwrap();
    child.name_in(&mut own);
    assert_eq!(own["subject"]["children"].as_array().map(Vec::len), Some(1), "the user's own keys stay");
}

/// A child without an owner must vanish with its parent, if the other parents have such a child as well.
#[test]
fn a_child_that_outlives_its_parent_is_found() {
    let here = vec![parent("hunt-a"), config("hunt-a-config", None)];
    let with = |more: Object| leftover(&play([here.clone(), vec![more]].concat()), &operations());
    let left = with(config("hunt-c-config", None)).unwrap();
    assert!(left.sentence().contains("configmaps hunt-c-config is still there after hunt-c was deleted"));
    assert_eq!(with(config("hunt-c-config", Some("somebody"))), None, "a garbage collector deletes it");
    assert_eq!(with(config("hunt-c-other", None)), None, "no other object has such a child");
    assert_eq!(with(config("hunt-bystander", None)), None);
    let mut secret = config("hunt-c-config", None);
    secret.resource = "secrets".to_owned();
    assert_eq!(with(secret), None, "programs keep Secrets on purpose");
    let audit = play([here, vec![config("hunt-c-config", None)]].concat());
    let mut reference = Reference::of(&[audit.clone(), audit.clone()]);
    expect_no_leftovers(&mut reference, &[audit], &operations());
    assert!(!reference.objects.contains_key("configmaps n/hunt-c-config"), "a trial without it is right");
}

#[test]
fn names_have_other_names_as_words() {
    assert!(has_part("hunt-c", "hunt-c") && has_part("hunt-c-0", "hunt-c") && has_part("x-hunt-c", "hunt-c"));
    assert!(!has_part("hunt-cx", "hunt-c") && !has_part("hunt", "hunt-c"));
}
