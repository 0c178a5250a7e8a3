//! Witness `children`: the subject creates child objects for the churned objects, as `subject: {children: …}` defines.
//!
//! The harness watches the children itself. A child proves that the subject saw the parent, and the version of the
//! parent that the child repeats. The end of the last child of a deleted parent proves that the subject saw the
//! deletion. The end of children proves nothing if the garbage collector removes them because they have owners, or if
//! the harness deletes children or their namespace.

use std::collections::{BTreeMap, HashMap};

use facts::{Change, Looks, Uid};
use loadgen::audit::{self, Audit};
use record::Sees;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use super::known::{By, Known};
use super::{About, Claim, Fact, Kind, Of, Open, Reporter, Scene, Statement};

/// Maximum number of changes of children that the witness reads in one batch.
const BATCH_MAX: usize = 1024;
/// The JSON pointer of a child's owner references.
const OWNERS: &str = "/metadata/ownerReferences";
const LABELS: &str = "/metadata/labels";

/// This witness has no keys, because `children` of the subject defines the children.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Children {}

/// The scenario's definition of children, as this witness needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Family {
    /// The resource of the children: `configmaps/v1`.
    pub resource: String,
    /// The API group of the parents; empty for the core group.
    pub group: String,
    /// How a child refers to its parent.
    pub by: Parent,
    /// The JSON pointer of the field in a child that repeats the parent's generation.
    pub generation: Option<String>,
    /// The JSON pointer of the field in a child that repeats the parent's resourceVersion.
    pub revision: Option<String>,
    /// Whether a parent without any child can be correct.
    pub may_be_none: bool,
    /// Whether another client deletes children: the harness, or a namespace that is removed.
    pub are_deleted: bool,
}

/// How a child refers to its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parent {
    Owner,
    Label(String),
    /// By the child's name: the texts before and after the parent's name.
    Name(String, String),
}

impl Kind for Children {
    const NAME: &'static str = "children";
    const REMEDY: &'static str =
        "Does it create the children of `children`, and do they name their parents as in `by`?";

    fn sees(&self, about: &About) -> Sees {
        let Some(family) = &about.family else { return Sees::NOTHING };
        Sees { created: true, updated: family.version().is_some(), deleted: family.tells_deletions(), ..Sees::NOTHING }
    }

    fn check(&self, about: &About) -> Result<(), String> {
        let Some(family) = &about.family else {
            return Err("`witness: {kind: children}` needs `children`: add to `subject` for example `children: {resource: configmaps/v1, by: \
                 {name: \"{name}-config\"}}`"
                .to_owned());
        };
        if family.may_be_none {
            return Err("`witness: {kind: children}` proves each object by a child, and with `perEntry` one may have none: use `perParent`, or \
                 another witness"
                .to_owned());
        }
        if let Some(other) = about.others.first() {
            return Err(format!(
                "`witness: {{kind: children}}` proves only parents, and {other} is judged as well: leave it out of `watches`"
            ));
        }
        if about.reuses_names && matches!(family.by, Parent::Name(..)) {
            return Err("`script` makes objects again under the same name, and `children.by.name` cannot tell them apart: use `owner` or \
                 `label`"
                .to_owned());
        }
        Ok(())
    }

    /// The children show the versions that the subject handled. In the parents, the witness reads only the finalizers.
    fn looks(&self) -> Option<Looks> {
        Some(Looks::default())
    }

    async fn open(&self, reporter: &Reporter, scene: &Scene) -> anyhow::Result<Open> {
        let Some(family) = scene.about.family.clone() else { anyhow::bail!("the scenario has no `children`") };
        let by = match (&family.generation, &family.revision) {
            (Some(_), _) => By::Generation,
            (None, Some(_)) => By::Revision,
            (None, None) => By::Nothing,
        };
        let known = Known::new(by, family.tells_deletions());
        let mut config = audit::Config::new(scene.api.clone(), &family.resource);
        config.fields = vec![OWNERS.to_owned(), LABELS.to_owned()];
        config.fields.extend(family.version().map(str::to_owned));
        let audit = Audit::start(config).await?;
        let listens = AbortOnDropHandle::new(tokio::spawn(listen(audit, Nursery::new(family), reporter.clone())));
        Ok(Open { commits: Some(Box::new(known)), _listens: Some(Box::new(listens)), ..Open::default() })
    }
}

async fn listen(audit: Audit, mut nursery: Nursery, reporter: Reporter) {
    loop {
        let batch = match audit.next_batch(BATCH_MAX).await {
            Ok(batch) => batch,
            Err(error) => {
                reporter.report(Statement::Deaf(format!("the harness lost sight of the children: {error}"))).await;
                return;
            }
        };
        for entry in batch {
            let t_ms = reporter.at_ms(entry.at);
            for (of, what) in nursery.read(&entry) {
                reporter.report(Statement::Claims(Claim { t_ms, of, what })).await;
            }
        }
    }
}

impl Family {
    /// The JSON pointer of the field in a child that repeats the parent's version.
    fn version(&self) -> Option<&str> {
        self.generation.as_deref().or(self.revision.as_deref())
    }

    fn tells_deletions(&self) -> bool {
        self.by != Parent::Owner && !self.are_deleted
    }
}

/// The existing children. Memory use: one entry for each child and one for each parent.
struct Nursery {
    family: Family,
    parents: HashMap<Uid, Of>,
    children: BTreeMap<Of, u64>,
}

impl Nursery {
    fn new(family: Family) -> Self {
        Self { family, parents: HashMap::new(), children: BTreeMap::new() }
    }

    /// The facts about the parent that a change of a child proves.
    fn read(&mut self, entry: &audit::Entry) -> Vec<(Of, Fact)> {
        let (uid, mut shown) = (&entry.commit.uid, Vec::new());
        let owner = self.owner(&entry.fields);
        let parent = self.parent(entry, owner);
        // An edit may give a child to another parent.
        let before = if entry.commit.change == Change::Deleted || self.parents.get(uid) != parent.as_ref() {
            self.parents.remove(uid)
        } else {
            None
        };
        if let Some(left) = before.filter(|before| self.is_last(before)) {
            shown.push((left, Fact::Gone));
        }
        if entry.commit.change == Change::Deleted {
            return shown;
        }
        let Some(parent) = parent else { return shown };
        if self.parents.insert(uid.clone(), parent.clone()).is_none() {
            *self.children.entry(parent.clone()).or_default() += 1;
        }
        // Children with an owner are removed by the garbage collector, which proves nothing about the subject.
        shown.push((parent.clone(), Fact::There { ends: owner.is_none() && self.family.tells_deletions() }));
        if let Some(number) = self.family.version().and_then(|_| entry.fields.get(2)).and_then(facts::number) {
            shown.push((parent, Fact::Version(number)));
        }
        shown
    }

    /// Removes a child from the children of a parent. Returns whether this child was the parent's last child.
    fn is_last(&mut self, parent: &Of) -> bool {
        let Some(children) = self.children.get_mut(parent) else { return false };
        *children -= 1;
        let is_last = *children == 0;
        if is_last {
            self.children.remove(parent);
        }
        is_last
    }

    /// The owner of a child in the parents' API group: the controlling owner, or else the first owner.
    fn owner<'a>(&self, fields: &'a [Value]) -> Option<&'a str> {
        let group = |owner: &Value| {
            let version = owner["apiVersion"].as_str().unwrap_or_default();
            version.split_once('/').map_or("", |(group, _)| group) == self.family.group
        };
        let owners = || fields.first().and_then(Value::as_array).into_iter().flatten().filter(|owner| group(owner));
        let controller = owners().find(|owner| owner["controller"] == true);
        controller.or_else(|| owners().next()).and_then(|owner| owner["uid"].as_str())
    }

    fn parent(&self, entry: &audit::Entry, owner: Option<&str>) -> Option<Of> {
        let owners = entry.fields.first().unwrap_or(&Value::Null);
        let named = |key: &str| entry.fields.get(1).and_then(|labels| labels[key].as_str());
        match &self.family.by {
            Parent::Label(key) if is_grandchild(owners, named(key)) => return None,
            Parent::Name(..) if is_grandchild(owners, None) => return None,
            _ => {}
        }
        match &self.family.by {
            Parent::Owner => owner.map(|uid| Of::Uid(uid.into())),
            Parent::Label(key) => {
                let label = entry.fields.get(1).and_then(|labels| labels[key].as_str());
                label.map(|uid| Of::Uid(uid.into()))
            }
            Parent::Name(before, behind) => {
                let name = entry.commit.name.strip_prefix(before.as_str())?.strip_suffix(behind.as_str())?;
                (!name.is_empty()).then(|| Of::Name(entry.commit.namespace.clone(), name.into()))
            }
        }
    }
}

/// Kinds that Kubernetes' own controllers reconcile. Pods of a Deployment have its labels, but the controllers decide
/// their number, not the subject.
const CONTROLLERS: [&str; 5] = ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"];

/// Whether a controller of Kubernetes created an object with these owners, for an owner that is not `parent`.
pub fn is_grandchild(owners: &Value, parent: Option<&str>) -> bool {
    let mut owners = owners.as_array().into_iter().flatten();
    owners.any(|owner| {
        let built_in = matches!(owner["apiVersion"].as_str(), Some("apps/v1" | "batch/v1"));
        let controls = owner["controller"] == true && owner["uid"].as_str() != parent;
        built_in && controls && owner["kind"].as_str().is_some_and(|kind| CONTROLLERS.contains(&kind))
    })
}

#[cfg(test)]
mod tests {
    use facts::{Commit, Order, Progress, Revision};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_controller_of_kubernetes_controls_is_its_own() {
        let owners = |version: &str, kind: &str, controls: bool| json!([{"apiVersion": version, "kind": kind, "uid": "7", "controller": controls}]);
        assert!(is_grandchild(&owners("apps/v1", "ReplicaSet", true), Some("1")));
        assert!(is_grandchild(&owners("batch/v1", "Job", true), None));
        // The parent itself, an owner that does not control, and a controller of a project.
        assert!(!is_grandchild(&owners("apps/v1", "Deployment", true), Some("7")));
        assert!(!is_grandchild(&owners("apps/v1", "ReplicaSet", false), Some("1")));
        assert!(!is_grandchild(&owners("example.com/v1", "Job", true), Some("1")));
        assert!(!is_grandchild(&Value::Null, None));
    }

    fn family(by: Parent) -> Family {
        Family {
            resource: "configmaps/v1".to_owned(),
            group: "longhaul.dev".to_owned(),
            by,
            generation: Some("/data/generation".to_owned()),
            revision: None,
            may_be_none: false,
            are_deleted: false,
        }
    }

    fn child(name: &str, change: Change, fields: Value) -> audit::Entry {
        let commit = Commit {
            order: Order::default(),
            resource: "configmaps".into(),
            namespace: "n".into(),
            name: name.into(),
            uid: format!("uid-{name}").into(),
            revision: Revision::of_number(1),
            change,
        };
        let fields = serde_json::from_value(fields).unwrap();
        let (at, progress, images) = (std::time::Instant::now(), Progress::default(), Vec::new());
        audit::Entry { at, commit, progress, images, fields, source: audit::Source::Watched }
    }

    const ENDS: Fact = Fact::There { ends: true };

    #[test]
    fn the_last_child_that_goes_tells() {
        let mut nursery = Nursery::new(family(Parent::Label("parent".to_owned())));
        let fields = || json!([null, {"parent": "p"}, "3"]);
        let p = || Of::Uid("p".into());
        let first = nursery.read(&child("a", Change::Added, fields()));
        assert_eq!(first, [(p(), ENDS), (p(), Fact::Version(3))]);
        nursery.read(&child("b", Change::Added, fields()));
        nursery.read(&child("b", Change::Modified, fields()));
        assert_eq!(nursery.read(&child("a", Change::Deleted, fields())), []);
        // A list that shows a deletion has no other facts about the child.
        assert_eq!(nursery.read(&child("b", Change::Deleted, json!([]))), [(p(), Fact::Gone)]);
        assert!(nursery.parents.is_empty() && nursery.children.is_empty());
        assert_eq!(nursery.read(&child("c", Change::Added, json!([null, {"other": "p"}, null]))), []);
    }

    /// Children that the garbage collector removes prove nothing about the subject.
    #[test]
    fn a_child_with_an_owner_tells_of_no_deletion() {
        let owners =
            json!([{"apiVersion": "apps/v1", "uid": "x"}, {"apiVersion": "longhaul.dev/v1alpha1", "uid": "p"}]);
        let fields = || json!([owners, {}, null]);
        let name = Parent::Name("the-".to_owned(), "-child".to_owned());
        let seen = Nursery::new(family(name)).read(&child("the-q-child", Change::Added, fields()));
        assert_eq!(seen, [(Of::Name("n".into(), "q".into()), Fact::There { ends: false })]);
        let seen = Nursery::new(family(Parent::Owner)).read(&child("a", Change::Added, fields()));
        assert_eq!(seen, [(Of::Uid("p".into()), Fact::There { ends: false })]);
    }

    #[test]
    fn what_children_tell_depends_on_how_they_are_known() {
        let sees = |family: Family| {
            let about = About { family: Some(family), ..About::default() };
            assert_eq!(Children {}.check(&about), Ok(()));
            let sees = Children {}.sees(&about);
            (sees.created, sees.updated, sees.deleted)
        };
        let label = || family(Parent::Label("l".to_owned()));
        assert_eq!(sees(label()), (true, true, true));
        assert_eq!(sees(Family { generation: None, ..label() }), (true, false, true));
        assert_eq!(sees(Family { are_deleted: true, ..label() }), (true, true, false));
        assert_eq!(sees(family(Parent::Owner)), (true, true, false));
    }

    #[test]
    fn what_cannot_be_told_is_refused() {
        let about = |family: Family| About { family: Some(family), ..About::default() };
        let owner = || about(family(Parent::Owner));
        let wrong = |about: About| Children {}.check(&about).unwrap_err();
        assert!(wrong(About::default()).contains("needs `children`"));
        assert!(wrong(about(Family { may_be_none: true, ..family(Parent::Owner) })).contains("use `perParent`"));
        assert!(wrong(About { others: vec!["pods".to_owned()], ..owner() }).contains("pods is judged as well"));
        let name = about(family(Parent::Name(String::new(), "-c".to_owned())));
        assert!(wrong(About { reuses_names: true, ..name }).contains("cannot tell them apart"));
    }
}
