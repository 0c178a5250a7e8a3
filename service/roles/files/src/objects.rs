//! Judges the images of one object: returns edits of the object's text, and findings.
//!
//! This module finds the objects in a document, and the field to which each finding belongs.

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::json;
use service_core::role::Review;
use tokio::time::Instant;

use crate::edit::{self, Edit};
use crate::paths::Path;
use crate::review::{Answer, ReviewedObject, ask};
use crate::yaml::{Document, Error, Id};

/// Time limit of a review, because no API server waits longer for a webhook.
pub const LONGEST: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Info,
    /// A warning: the policy allows the image in spite of a problem.
    Warning,
    /// An error: an image may not run or was not found.
    Error,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    pub id: Id,
    pub api_version: String,
    pub kind: String,
    /// The namespace in the object; `None` if the object names none.
    pub namespace: Option<String>,
    pub name: String,
}

/// A message about a field of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    pub message: String,
    pub object: Object,
    /// Line in the file's text, from 1.
    pub line: usize,
    /// JSON pointer to the field, from the root of the object; `None` if the message is about the whole object.
    pub field: Option<String>,
    /// The image before the edit.
    pub current: Option<String>,
    pub proposed: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    pub image: String,
    pub pinned: String,
    /// The signers and their evidence, if signatures were verified.
    pub evidence: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Judged {
    pub edits: Vec<Edit>,
    pub findings: Vec<Finding>,
    pub pins: Vec<Pin>,
}

/// Options for judging images in files.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Further fields with images.
    pub paths: Vec<Path>,
    /// The namespace of objects that name no namespace.
    pub namespace: String,
}

/// The objects of a document: the document itself, or the items of a list.
pub fn objects(document: &Document) -> Vec<Object> {
    let root = document.root();
    let items = document
        .get(root, "items")
        .filter(|_| document.text_of(root, "kind").is_some_and(|kind| kind.ends_with("List")));
    let ids = items.map_or_else(|| vec![root], |items| document.items(items).to_vec());
    ids.into_iter().filter_map(|id| object(document, id)).collect()
}

fn object(document: &Document, id: Id) -> Option<Object> {
    let (api_version, kind) = (document.text_of(id, "apiVersion")?, document.text_of(id, "kind")?);
    let metadata = document.get(id, "metadata");
    let named = |key| metadata.and_then(|metadata| document.text_of(metadata, key)).map(str::to_owned);
    Some(Object {
        id,
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: named("namespace"),
        name: named("name").or_else(|| named("generateName")).unwrap_or_default(),
    })
}

/// The fields with images in Kubernetes' built-in kinds. The paths are used only to find the field to which an answer
/// about a whole object refers.
static USUAL: LazyLock<Vec<Path>> = LazyLock::new(|| {
    let specs = ["spec", "spec.template.spec", "spec.jobTemplate.spec.template.spec", "template.spec"];
    let fields = [
        "initContainers[*].image",
        "containers[*].image",
        "ephemeralContainers[*].image",
        "volumes[*].image.reference",
    ];
    let all = specs.iter().flat_map(|spec| fields.iter().map(move |field| format!("{spec}.{field}")));
    all.filter_map(|path| path.parse().ok()).collect()
});

/// Judges `object` by a review of the whole object.
pub async fn judge(
    review: &dyn Review,
    (text, document): (&str, &Document),
    object: &Object,
    wanted: &Wanted,
) -> Result<Judged, Error> {
    let json = document.json(object.id)?;
    let place = ObjectContext {
        review,
        text,
        document,
        object,
        namespace: object.namespace.as_deref().unwrap_or(&wanted.namespace),
    };
    let mut judged = Judged::default();
    let usual = USUAL.iter().flat_map(|path| path.find(document, object.id)).collect::<Vec<_>>();
    // Without any image no review is needed.
    if !usual.is_empty() {
        match place.ask(&json, &object.api_version, &object.kind).await {
            Ok(answer) if answer.refused.is_none() => {
                for (pointer, new) in &answer.images {
                    judged.take(&place, pointer, new, &answer);
                }
                judged.warn(&place, &answer);
            }
            Ok(Answer { refused, .. }) => place.one_by_one(&usual, refused.unwrap_or_default(), &mut judged).await,
            Err(why) => place.one_by_one(&usual, why, &mut judged).await,
        }
    }
    for (pointer, id) in wanted.paths.iter().flat_map(|path| path.find(document, object.id)) {
        if usual.iter().all(|(known, _)| *known != pointer) {
            place.alone(&pointer, id, &mut judged, None).await;
        }
    }
    judged.findings.sort_by_key(|finding| finding.line);
    Ok(judged)
}

struct ObjectContext<'a> {
    review: &'a dyn Review,
    text: &'a str,
    document: &'a Document,
    object: &'a Object,
    namespace: &'a str,
}

impl ObjectContext<'_> {
    async fn ask(&self, json: &str, api_version: &str, kind: &str) -> Result<Answer, String> {
        let asked = ReviewedObject { api_version, kind, namespace: self.namespace, name: &self.object.name, json };
        ask(self.review, asked, Instant::now() + LONGEST).await
    }

    /// Judges each image separately, after a review of the whole object was refused with the message `whole`.
    async fn one_by_one(&self, images: &[(String, Id)], whole: String, judged: &mut Judged) {
        let before = judged.findings.len();
        for (pointer, id) in images {
            self.alone(pointer, *id, judged, Some(())).await;
        }
        let is_error = |finding: &Finding| finding.severity == Severity::Error;
        if !judged.findings[before..].iter().any(is_error) {
            judged.findings.push(self.finding(Severity::Error, whole, None));
        }
    }

    /// Judges one image by a review of a Pod with only this image. If the whole object was refused, no image is
    /// changed.
    async fn alone(&self, pointer: &str, id: Id, judged: &mut Judged, refused: Option<()>) {
        let Some(image) = self.document.text(id) else { return };
        let spec = json!({"containers": [{"name": "image", "image": image}]});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": self.object.name}, "spec": spec});
        match self.ask(&pod.to_string(), "v1", "Pod").await {
            Ok(answer) if answer.refused.is_none() => {
                if let Some((_, new)) = answer.images.first().filter(|_| refused.is_none()) {
                    judged.take(self, pointer, new, &answer);
                }
                judged.warn(self, &answer);
            }
            Ok(Answer { refused, .. }) => {
                let message = refused.unwrap_or_default();
                judged.findings.push(self.finding(Severity::Error, message, Some((pointer, id))));
            }
            Err(why) => judged.findings.push(self.finding(Severity::Error, why, Some((pointer, id)))),
        }
    }

    fn finding(&self, severity: Severity, message: String, field: Option<(&str, Id)>) -> Finding {
        let node = self.document.node(field.map_or(self.object.id, |(_, id)| id));
        Finding {
            severity,
            message,
            object: self.object.clone(),
            line: node.line,
            field: field.map(|(pointer, _)| pointer.to_owned()),
            current: field.and_then(|(_, id)| self.document.text(id)).map(str::to_owned),
            proposed: None,
        }
    }
}

impl Judged {
    /// Records the edit of an image.
    fn take(&mut self, place: &ObjectContext<'_>, pointer: &str, new: &str, answer: &Answer) {
        let Some(id) = place.document.at(place.object.id, pointer) else { return };
        let image = place.document.text(id).unwrap_or_default().to_owned();
        let field = Some((pointer, id));
        let Some(edit) = edit::scalar(place.text, place.document, id, new) else {
            let message = format!("`{image}` is written as a block: write it on one line, so that it can be pinned");
            return self.findings.push(place.finding(Severity::Error, message, field));
        };
        self.edits.push(edit);
        let mut finding = place.finding(Severity::Info, format!("pinned to {new}"), field);
        finding.proposed = Some(new.to_owned());
        self.findings.push(finding);
        let known = answer.known.iter().find(|known| known.image == image);
        let evidence = known.map(|known| known.signers.iter().zip(&known.evidence));
        let evidence = evidence.into_iter().flatten().map(|(signer, evidence)| format!("{signer}, {evidence}"));
        self.pins.push(Pin { image, pinned: new.to_owned(), evidence: evidence.collect() });
    }

    fn warn(&mut self, place: &ObjectContext<'_>, answer: &Answer) {
        self.findings.extend(answer.warnings.iter().map(|text| place.finding(Severity::Warning, text.clone(), None)));
    }
}
