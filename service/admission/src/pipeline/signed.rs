//! Signature checks of a review: approvals by owners, cached verdicts, and calls of validators.

use std::sync::Arc;

use tokio::time::Instant;

use super::super::decide::Found;
use super::super::owners::Owners;
use super::super::policy::{RuleName, Target, Treatment};
use super::super::review::Ask;
use super::super::site::Site;
use super::Pipeline;
use crate::validator::{Approvals, Question, Validator, Validators};
use service_registry::Brought;
use service_registry::verdicts::{Class, Failure};

/// The message if a rule demands signatures and has no validator.
const NO_VALIDATOR: &str = "the rule asks for signatures and nobody here can verify any";
const CHILD: &str = "child";

pub struct Validation {
    pub validators: Validators,
    pub approvals: Arc<Approvals>,
    /// The reader of owners, if owners may approve images.
    pub owners: Option<Arc<Owners>>,
}

impl Pipeline {
    /// Images that need verification but are approved, because an owner of the object already has them.
    pub(super) async fn inherited<'s>(&self, ask: &Ask<'_>, sites: &'s [Site], deadline: Instant) -> Vec<&'s str> {
        let owners = self.validation.as_ref().and_then(|validation| validation.owners.as_ref());
        let Some(owners) = owners.filter(|_| self.policy().approves_children()) else { return Vec::new() };
        let mut images: Vec<&str> = Vec::new();
        for image in sites.iter().map(|site| site.image.as_str()) {
            let inherited = |rule: RuleName| self.policy().is_inherited(rule);
            if !images.contains(&image)
                && matches!(&*self.memo.treatment(image), Treatment::Verify { rule, .. } if inherited(*rule))
            {
                images.push(image);
            }
        }
        if images.is_empty() {
            return images;
        }
        let known = owners.images(ask, deadline).await;
        images.retain(|image| known.iter().any(|of_owner| of_owner.iter().any(|other| other == image)));
        for _ in &images {
            self.count(|validation| validation.approvals.metrics().skip(CHILD));
        }
        images
    }

    /// Images that start without the verification that their rule demands, because the configuration lists their
    /// digests.
    pub(super) fn bootstrapped<'s>(&self, ask: &Ask<'_>, sites: &'s [Site]) -> Vec<&'s str> {
        let mut images: Vec<&str> = Vec::new();
        for image in sites.iter().map(|site| site.image.as_str()) {
            if self.policy().bootstraps(ask.namespace.as_deref(), image)
                && !images.contains(&image)
                && matches!(&*self.memo.treatment(image), Treatment::Verify { .. })
            {
                images.push(image);
            }
        }
        images
    }

    /// The cached verdict on an image; no validator is called.
    pub(super) fn verdict(
        &self,
        target: &Target,
        rule: RuleName,
        pin: bool,
        digest: impl FnOnce() -> Option<Result<Arc<str>, Failure>>,
    ) -> Option<Result<Found, Failure>> {
        if self.resolver.reads_pull_secrets() {
            return None;
        }
        let (validation, validator) = self.validator(rule)?;
        let (host, repository, digest) = match target {
            Target::Digest { host, repository, digest } => (host, repository, Ok(Arc::clone(digest))),
            Target::Tag(reference) => (&reference.host, &reference.repository, digest()?),
        };
        let result = match digest {
            Ok(digest) => {
                let answer = validation.approvals.known(&**validator, host, repository, &digest)?;
                validation.approvals.metrics().answered(&answer);
                answer.map(|approval| Found { digest, pin, approval: Some(approval) })
            }
            Err(failure) => {
                self.count_failure(&failure);
                Err(failure)
            }
        };
        Some(result)
    }

    /// The digest of an image and its signers, or the failure.
    pub(super) async fn verified(
        &self,
        target: &Target,
        name: &str,
        rule: RuleName,
        pin: bool,
        brought: Option<&Brought>,
        deadline: Instant,
    ) -> Result<Found, Failure> {
        let Some((validation, validator)) = self.validator(rule) else {
            return Err(Failure::new(Class::Misconfigured, NO_VALIDATOR));
        };
        let (host, repository, digest) = match target {
            Target::Digest { host, repository, digest } => (host, repository, Arc::clone(digest)),
            Target::Tag(reference) => {
                let digest = self.resolver.resolve(reference, name, brought, deadline).await;
                let digest = digest.inspect_err(|failure| self.count_failure(failure))?;
                (&reference.host, &reference.repository, digest)
            }
        };
        let keyring = brought.map(|brought| validator.relevant(host, repository, &brought.keyring)).unwrap_or_default();
        let question = Question {
            host: host.clone(),
            repository: repository.clone(),
            digest: Arc::clone(&digest),
            keyring: keyring.clone(),
            deadline,
        };
        let answer = validation.approvals.ask(validator, question).await;
        validation.approvals.metrics().answered(&answer);
        match (answer, brought) {
            (Ok(approval), _) => Ok(Found { digest, pin, approval: Some(approval) }),
            (Err(failure), Some(brought)) => Err(brought.explain(failure, &keyring)),
            (Err(failure), None) => Err(failure),
        }
    }

    fn validator(&self, rule: RuleName) -> Option<(&Validation, &Arc<dyn Validator>)> {
        let validation = self.validation.as_ref()?;
        Some((validation, validation.validators.of_rule(self.policy().index(rule)?)?))
    }

    fn count(&self, count: impl FnOnce(&Validation)) {
        if let Some(validation) = &self.validation {
            count(validation);
        }
    }

    fn count_failure(&self, failure: &Failure) {
        self.count(|validation| validation.approvals.metrics().answered(&Err(failure.clone())));
    }
}
