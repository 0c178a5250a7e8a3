//! The admission role: its configuration sections, its listener, the functions that other roles use, and how the role
//! ends.
//!
//! This module owns the tasks of the admission role. The pipeline interprets the reviews that the role gets.

use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use service_core::config::Config as File;
use service_core::edge::{Files, Handler, Labels, Limits, Listener, Probe, Protocols, ServerTls, serve};
use service_core::role::{About, Prepared, Reload, Review, Role, Running, Start, Started};
use tokio::time::Instant;

use crate::config::{self, Admission, Config};
use crate::current::{Current, CurrentJudge};
use crate::decide::Hook;
use crate::endpoint::Endpoint;
use crate::generations::Generations;
use crate::upkeep::Upkeep;
use crate::validator;

const ABOUT: About = About {
    name: "admission",
    help: "Only the webhook",
    sections: config::KINDS,
    needs: &[File::has::<Admission>],
    lacks: "the section `admission` in the configuration (listen, certificate, key)",
    always: true,
};

#[derive(Debug)]
pub struct AdmissionRole;

impl Role for AdmissionRole {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn check(&self, config: &File) -> anyhow::Result<()> {
        Ok(validator::check(&Config::of(config))?)
    }

    fn notes(&self, config: &File) -> Vec<String> {
        Config::of(config).unasked()
    }

    fn prepare(&self, start: &mut Start<'_>) -> anyhow::Result<Prepared> {
        let config = Config::of(start.config);
        let generations = Generations::new(&config, start)?;
        let reviews =
            Arc::new(Reviews { current: Arc::clone(generations.current()), generations: Mutex::new(generations) });
        start.review = Some(Arc::new(CurrentReview(Arc::clone(&reviews.current))));
        start.judge = Some(Arc::new(CurrentJudge(Arc::clone(&reviews.current))));
        let reload = reload(config, Arc::clone(&reviews));
        Ok(Prepared { reload: Some(reload), begin: Box::new(|start| begin(reviews, start).boxed()) })
    }
}

/// The role's state that is needed even without a listener.
struct Reviews {
    current: Arc<Current>,
    generations: Mutex<Generations>,
}

/// The health note about validators that no rule uses.
struct Unasked(Arc<Current>);

impl Probe for Unasked {
    fn name(&self) -> &'static str {
        "validators"
    }

    fn note(&self) -> Option<String> {
        let pipeline = self.0.pipeline();
        let unasked = pipeline.policy().unasked();
        (!unasked.is_empty()).then(|| unasked.join("; "))
    }
}

/// Logs which validators verify nothing, because no rule uses them.
fn tell_of_unasked(config: &Config) {
    for reason in config.unasked() {
        tracing::warn!(name: crate::events::VALIDATOR_UNASKED, reason, "a validator is not asked");
    }
}

struct CurrentReview(Arc<Current>);

/// A reviewer that uses the current pipeline.
pub fn reviewer(current: Arc<Current>) -> Arc<dyn Review> {
    Arc::new(CurrentReview(current))
}

impl Review for CurrentReview {
    fn review(&self, review: Bytes, deadline: Instant) -> BoxFuture<'static, Result<Bytes, String>> {
        let current = Arc::clone(&self.0);
        async move {
            let answer = current.review(Hook::Mutating, &review, deadline).await;
            answer.map(Bytes::from).map_err(|error| error.to_string())
        }
        .boxed()
    }
}

/// Reloads policy, validators, lookup settings, and changed contents of the validators' files.
fn reload(mut running: Config, reviews: Arc<Reviews>) -> Reload {
    let mut trust = validator::trust(&running.validators);
    Box::new(move |fresh| {
        let fresh = Config::of(fresh);
        let now = validator::trust(&fresh.validators);
        let new_trust = trust != now;
        let same = |one: &Config, two: &Config| {
            (&one.policy, &one.resolve, &one.validators) == (&two.policy, &two.resolve, &two.validators)
        };
        if new_trust || !same(&running, &fresh) {
            reviews.generations.lock().change(&running, &fresh)?;
            tell_of_unasked(&fresh);
            running = Config { admission: running.admission.take(), kubeconfig: running.kubeconfig.take(), ..fresh };
            trust = now;
        }
        Ok(if new_trust { vec!["validators"] } else { Vec::new() })
    })
}

async fn begin(reviews: Arc<Reviews>, start: &mut Start<'_>) -> anyhow::Result<Started> {
    let config = Config::of(start.config);
    let settings = config.admission.as_ref().context("the section `admission` is missing")?;
    let upkeep = Upkeep::open(&config, settings)?;
    let files = Files {
        certificate: settings.certificate.clone(),
        key: settings.key.clone(),
        handed: upkeep.as_ref().and_then(Upkeep::handed),
        client_cas: settings.client_ca.iter().cloned().collect(),
        client_names: settings.client_names.clone(),
        ..Files::default()
    };
    let labels = Labels { check: "certificate", server: "server", client_ca: "client-ca", revoked: "revoked" };
    let tls = ServerTls::load(files, labels, start.certificates.clone());
    let tls = tls.context("failed to load admission.certificate, admission.key and admission.clientCA")?;
    let edge = start.edge.of("admission");
    let listener = Listener::bind(settings.listen, Protocols::Tls(Arc::clone(&tls)), edge).await;
    let listener = listener.with_context(|| format!("failed to listen on {} (admission.listen)", settings.listen))?;
    let listener = listener.with_limits(Limits {
        connections: settings.max_connections,
        connections_per_peer: settings.max_connections_per_peer,
        // After a pause, a kube-apiserver connects for hundreds of calls at once: it must not be refused.
        handshakes_per_peer: settings.max_connections_per_peer.div_ceil(4) * 3,
    });
    let address = listener.address().context("failed to read the admission address")?;
    let memory = Arc::clone(reviews.generations.lock().share().reviews());
    let endpoint = Arc::new(Endpoint::new(settings, Arc::clone(&reviews.current), memory));
    let mut probes = vec![
        Arc::clone(&tls) as Arc<dyn Probe>,
        Arc::clone(listener.heartbeat()) as _,
        Arc::clone(endpoint.load()) as Arc<dyn Probe>,
        Arc::new(Unasked(Arc::clone(&reviews.current))) as _,
    ];
    tell_of_unasked(&config);
    let calls = upkeep.as_ref().map(Upkeep::calls);
    let handler: Handler = Arc::new(move |request, peer| {
        if let Some(calls) = &calls {
            calls.note();
        }
        serve(Arc::clone(&endpoint), request, peer).boxed()
    });
    let upkeep = upkeep.map(|mut upkeep| {
        upkeep.start(settings, &tls, start.metrics);
        probes.extend(upkeep.probes());
        upkeep
    });
    start.background.spawn(tls.follow_files(start.look.subscribe()));
    tracing::info!(name: service_core::logs::names::SERVED, listener = "admission", %address, "the webhook is served");
    Ok(Started { served: Some((listener, handler)), probes, reload: None, running: Box::new(Tasks(upkeep)) })
}

struct Tasks(Option<Upkeep>);

impl Running for Tasks {
    fn broken(&mut self) -> BoxFuture<'_, String> {
        async move {
            match &mut self.0 {
                Some(upkeep) => {
                    format!("what the webhook asks the API server about itself broke: {}", upkeep.broken().await)
                }
                None => std::future::pending().await,
            }
        }
        .boxed()
    }

    /// Lets another replica make certificates from now on. This replica still reads the certificates and answers
    /// reviews.
    fn leave(&mut self) -> BoxFuture<'_, ()> {
        if let Some(upkeep) = &self.0 {
            upkeep.resign();
        }
        std::future::ready(()).boxed()
    }

    fn stop(self: Box<Self>) -> BoxFuture<'static, ()> {
        async move {
            if let Some(upkeep) = self.0 {
                upkeep.stop().await;
            }
        }
        .boxed()
    }
}
