//! Functions for the benchmarks of admission. No other code may call these functions.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use prometheus_client::registry::Registry as MetricsRegistry;
use serde_json::{Value, json};
use tokio::time::Instant;

#[cfg(feature = "verify")]
use super::Validation;
use super::patch;
use super::site::Site;
use super::{Current, Endpoint, Metrics, Pipeline, Policy, Resolver, Source, walk};
use crate::config::Config;
#[cfg(feature = "verify")]
use crate::validator::{Answer, Approval, Approvals, Question, Signer, Validator, Validators};
use service_core::edge::{Accounts, Peer};
use service_core::share::Share;
use service_registry::verdicts::Failure;
use service_registry::{Keyring, Reference};

const DIGEST: &str = "sha256:3f1c8e2b9a7d5c4e6f0a1b2c3d4e5f60718293a4b5c6d7e8f9a0b1c2d3e4f506";

struct Everything;

impl Source for Everything {
    fn digest(self: Arc<Self>, _: Reference, _: Keyring, _: Instant) -> BoxFuture<'static, Result<String, Failure>> {
        async { Ok(DIGEST.to_owned()) }.boxed()
    }
}

/// A validator for which every image is signed.
#[cfg(feature = "verify")]
struct Everybody;

#[cfg(feature = "verify")]
impl Validator for Everybody {
    fn validate(self: Arc<Self>, _: Question) -> BoxFuture<'static, Answer> {
        let signer = Signer { name: "default: key sha256:00".to_owned(), evidence: "bundle sha256:00".to_owned() };
        std::future::ready(Ok(Arc::new(Approval { signers: vec![signer] }))).boxed()
    }

    fn generation(&self) -> std::borrow::Cow<'_, str> {
        "0123456789abcdef0123456789abcdef".into()
    }

    fn relevant(&self, _: &str, _: &str, _: &Keyring) -> Keyring {
        Keyring::default()
    }
}

/// A webhook for benchmarks. After the webhook's first call, the digests of the images are in its cache.
pub struct Webhook(Arc<Endpoint>, Arc<Peer>);

impl Webhook {
    pub fn new() -> Self {
        let text = "admission: {listen: 127.0.0.1:0, certificate: none, key: none}";
        let config = Config::parse(text, Path::new("bench.yaml")).expect("the text is a configuration");
        let metrics = Metrics::register(&mut MetricsRegistry::default());
        let policy = Arc::new(Policy::new(&config));
        let resolver = Arc::new(Resolver::new(&config.resolve, Arc::new(Everything), Arc::clone(&metrics)));
        let settings = config.admission.as_ref().expect("the text has the section");
        let peer = Accounts::default().peer(Ipv4Addr::LOCALHOST.into(), None);
        Self(
            Arc::new(Endpoint::new(
                settings,
                Current::new(Pipeline::new(policy, resolver, metrics)),
                Arc::clone(Share::default().reviews()),
            )),
            peer,
        )
    }

    /// Like [`Self::new`], with a rule that demands signatures; every image counts as signed.
    #[cfg(feature = "verify")]
    pub fn verifying() -> Self {
        let text = "{admission: {listen: 127.0.0.1:0, certificate: none, key: none}, validators: [{name: default, type: cosign, \
                    trustRoots: [{name: default, keyFile: none}]}], policy: {rules: [{pattern: '*', with: \
                    {verifyInTransparencyLog: false}}]}}";
        let config = Config::parse(text, Path::new("bench.yaml")).expect("the text is a configuration");
        let mut registry = MetricsRegistry::default();
        let metrics = Metrics::register(&mut registry);
        let counts = crate::validator::Metrics::register(&mut registry);
        let approvals = Arc::new(Approvals::new(&config.policy.verdicts, &config.resolve, counts));
        let validators = Validators::scripted(vec![Some(Arc::new(Everybody) as _)]);
        let resolver = Arc::new(Resolver::new(&config.resolve, Arc::new(Everything), Arc::clone(&metrics)));
        let pipeline = Pipeline::new(Arc::new(Policy::new(&config)), resolver, metrics).with_validation(Validation {
            validators,
            approvals,
            owners: None,
        });
        let settings = config.admission.as_ref().expect("the text has the section");
        let peer = Accounts::default().peer(Ipv4Addr::LOCALHOST.into(), None);
        Self(Arc::new(Endpoint::new(settings, Current::new(pipeline), Arc::clone(Share::default().reviews()))), peer)
    }

    /// Answers one review whose body is already in memory. The future is boxed as in the role's handler, so that its
    /// code is compiled in this crate and not in the benchmark.
    pub fn answer(&self, review: Bytes) -> BoxFuture<'_, Response<Full<Bytes>>> {
        let request = Request::post("/mutate?timeout=10s")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(review))
            .expect("the parts are a request");
        async {
            let response = service_core::edge::serve(Arc::clone(&self.0), request, Arc::clone(&self.1)).await;
            assert_eq!(response.status(), StatusCode::OK);
            response
        }
        .boxed()
    }
}

impl Default for Webhook {
    fn default() -> Self {
        Self::new()
    }
}

pub struct Sites(Vec<Site>);

pub fn walk(object: &str) -> Sites {
    let mut sites = Vec::new();
    walk::walk(object, &mut |seen| {
        sites.push(Site { pointer: seen.pointer.to_owned(), image: seen.image.to_owned(), mutable: true });
        Ok(())
    })
    .expect("the object is JSON");
    Sites(sites)
}

pub fn patch(sites: &Sites) -> Option<String> {
    patch::replace(&sites.0, |_| Some(DIGEST))
}

/// A Pod with this many images, one for each container, in the form in which an API server stores it.
pub fn pod(images: usize) -> Value {
    let containers: Vec<Value> = (0..images)
        .map(|i| {
            json!({
                "name": format!("app-{i}"), "image": format!("registry.example.com:5000/shop/service-{i}:1.4.{i}"),
                "args": ["serve", "--listen=:8080"], "imagePullPolicy": "IfNotPresent",
                "env": [{"name": "LOG_LEVEL", "value": "info"}, {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
                "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
                "resources": {"limits": {"memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
                "readinessProbe": {"failureThreshold": 3, "httpGet": {"path": "/readyz", "port": "http", "scheme": "HTTP"}, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1},
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true},
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                "volumeMounts": [{"mountPath": "/tmp", "name": "tmp"}, {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "kube-api-access-x7k2p", "readOnly": true}]
            })
        })
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "cart-5d4f8c7b9-x2lkq", "namespace": "shop", "creationTimestamp": null,
            "labels": {"app.kubernetes.io/name": "cart", "pod-template-hash": "5d4f8c7b9"},
            "annotations": {"prometheus.io/scrape": "true", "checksum/config": "8c1f6a0b6a5d4c3e2f1a0b9c8d7e6f5a"},
            "managedFields": [{"apiVersion": "v1", "fieldsType": "FieldsV1", "manager": "kube-controller-manager", "operation": "Update", "time": "2026-01-05T08:30:00Z",
                "fieldsV1": {"f:metadata": {"f:generateName": {}, "f:labels": {".": {}, "f:app.kubernetes.io/name": {}}}, "f:spec": {"f:containers": {"k:{\"name\":\"app-0\"}": {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}}}, "f:restartPolicy": {}}}}]
        },
        "spec": {
            "containers": containers, "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "enableServiceLinks": true,
            "securityContext": {"fsGroup": 10001, "runAsNonRoot": true, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
            "serviceAccountName": "cart", "terminationGracePeriodSeconds": 30,
            "tolerations": [{"effect": "NoExecute", "key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300}],
            "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "kube-api-access-x7k2p", "projected": {"defaultMode": 420, "sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]}}]
        },
        "status": {}
    })
}

/// The review of the creation of `pod`, with fields in the order of kube-apiserver.
pub fn review(pod: &Value) -> Bytes {
    let resource = json!({"group": "", "version": "v1", "resource": "pods"});
    let kind = json!({"group": "", "version": "v1", "kind": "Pod"});
    let user = json!({"username": "system:serviceaccount:kube-system:replicaset-controller", "groups": ["system:serviceaccounts", "system:authenticated"]});
    let review = format!(
        r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{{"uid":"0df28fbd-5f5f-11e8-bc74-36e6bb280816","kind":{kind},"resource":{resource},"requestKind":{kind},"requestResource":{resource},"name":"cart-5d4f8c7b9-x2lkq","namespace":"shop","operation":"CREATE","userInfo":{user},"object":{pod},"oldObject":null,"dryRun":false,"options":{{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}}}}}}"#
    );
    Bytes::from(review)
}
