//! An operation as a request: its method, path and body as kubectl sends them.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::plan::{Operation, Step};
use super::stock::Stock;
use crate::admission::objects::Kind;
use crate::churn::api::{Client, Reply};
use crate::failure::Failure;

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

#[derive(Debug, Clone)]
pub(super) struct Operator {
    pub client: Arc<Client>,
    pub stock: Arc<Stock>,
}

#[derive(Debug)]
pub(super) struct Request {
    pub method: Method,
    pub path: String,
    pub body: Option<(&'static str, Value)>,
}

impl Operator {
    pub(super) fn namespace(&self, object: u64) -> &str {
        let namespaces = &self.stock.namespaces;
        &namespaces[usize::try_from(object % namespaces.len() as u64).unwrap_or(0)]
    }

    pub(super) fn kind(&self, operation: Operation) -> Kind {
        self.stock.made(operation.made).kind
    }

    pub(super) fn place(&self, operation: Operation) -> (String, String) {
        let name = self.stock.made(operation.made).name(operation.object);
        (self.namespace(operation.object).to_owned(), name)
    }

    /// A label for messages: `set the image of deployments lh-…/cart-7`.
    pub(super) fn label(&self, operation: Operation) -> String {
        let (namespace, name) = self.place(operation);
        let what = match operation.step {
            Step::Create => "CREATE",
            Step::DryRun => "CREATE (dry run)",
            Step::SetImage(_) => "new image",
            Step::Label => "label",
            Step::Scale { .. } => "scale",
            Step::Rewrite => "UPDATE",
            Step::Delete => "DELETE",
        };
        format!("{} {what} {namespace}/{name}", self.kind(operation).name())
    }

    pub(super) fn request(&self, operation: Operation) -> Request {
        let Operation { object, made, step } = operation;
        let made = self.stock.made(made);
        let namespace = self.namespace(object);
        let collection = collection(made.kind, namespace);
        let own = format!("{collection}/{}", made.name(object));
        let patch = |content_type, path: String, manager: &str, body| Request {
            method: Method::PATCH,
            path: format!("{path}?fieldManager={manager}"),
            body: Some((content_type, body)),
        };
        match step {
            Step::Create | Step::DryRun => {
                let dry_run = if step == Step::DryRun { "&dryRun=All" } else { "" };
                Request {
                    method: Method::POST,
                    path: format!("{collection}?fieldManager=kubectl-create{dry_run}"),
                    body: Some((JSON, made.body(object, namespace))),
                }
            }
            Step::SetImage(number) => {
                let image = &self.stock.images()[number as usize].reference;
                let container = json!({"name": made.first_container(), "image": image});
                let body = json!({"spec": {"template": {"spec": {"containers": [container]}}}});
                patch(STRATEGIC, own, "kubectl-set", body)
            }
            Step::Label => {
                let body = json!({"metadata": {"labels": {"longhaul.dev/touched": object.to_string()}}});
                patch(MERGE, own, "kubectl-label", body)
            }
            Step::Scale { replicas, subresource } => {
                let path = if subresource { format!("{own}/scale") } else { own };
                patch(MERGE, path, "kubectl-scale", json!({"spec": {"replicas": replicas}}))
            }
            Step::Rewrite => patch(MERGE, own, "kubectl-edit", json!({"data": {"note": object.to_string()}})),
            // As kubectl does: the dependents of a Job or a ReplicationController must not delay its deletion.
            Step::Delete => {
                Request { method: Method::DELETE, path: format!("{own}?propagationPolicy=Background"), body: None }
            }
        }
    }

    pub(super) async fn send(&self, request: &Request) -> Result<Reply, Failure> {
        let body = request.body.as_ref().map(|(content_type, body)| (*content_type, body));
        self.client.send(request.method.clone(), &request.path, body).await
    }
}

fn collection(kind: Kind, namespace: &str) -> String {
    let root = if kind.group().is_empty() { "/api" } else { "/apis" };
    format!("{root}/{}/namespaces/{namespace}/{}", kind.api_version(), kind.plural())
}
