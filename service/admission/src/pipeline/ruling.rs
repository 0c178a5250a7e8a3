//! Judges single images for other processes, either by the validator and demands in the inquiry or by the policy.

use std::sync::Arc;

use service_core::judge::{About, CONTRACT, Inquiry, Login, Ruling, Signed, VERIFIED};
use service_registry::verdicts::{Class, Failure};
use service_registry::{Keyring, Proof, Question};
use tokio::time::Instant;

use super::Pipeline;
use crate::policy::Treatment;
use crate::validator::Answer;

const NOBODY: &str = "this process verifies no signatures";
const CROWDED: &str = "too many images are asked about at one time";

impl Pipeline {
    pub fn about(&self) -> About {
        let (validators, generation) = match &self.validation {
            Some(validation) => validation.validators.lent(),
            None => (Vec::new(), "none".to_owned()),
        };
        About { contract: CONTRACT, generation, validators }
    }

    pub async fn judge(&self, inquiry: Inquiry, deadline: Instant) -> Ruling {
        // Read before judging: a trust that is replaced meanwhile must not be named as the one that judged.
        let generation = self.about().generation;
        let digest = inquiry.image.digest.clone();
        let answer = self.answer_of_validator(inquiry, deadline).await;
        ruling(generation, digest, answer)
    }

    async fn answer_of_validator(&self, inquiry: Inquiry, deadline: Instant) -> Answer {
        let nobody = || Failure::new(Class::Misconfigured, NOBODY);
        let validation = self.validation.as_ref().ok_or_else(nobody)?;
        let demands = inquiry.demands.as_ref().map_or("", |demands| demands.get());
        let validator = validation.validators.demanded(&inquiry.validator, demands)?;
        let keyring = ring(inquiry.credentials)?;
        let _held = self.memory.image().ok_or_else(|| Failure::new(Class::Busy, CROWDED))?;
        let image = inquiry.image;
        let question = Question {
            keyring: validator.relevant(&image.host, &image.repository, &keyring),
            host: image.host,
            repository: image.repository,
            digest: image.digest.into(),
            deadline,
        };
        let answer = validation.approvals.ask(&validator, question).await;
        validation.approvals.metrics().answered(&answer);
        answer
    }

    /// The ruling on `image`, spelled as in a Pod, under the policy rule for the image.
    pub async fn judge_by_policy(&self, image: &str, deadline: Instant) -> Ruling {
        let generation = self.about().generation;
        let nobody = |what: &str| Err(Failure::new(Class::Unsigned, what));
        let treatment = self.memo.treatment(image);
        let mut digest = String::new();
        let answer = match &*treatment {
            Treatment::LeaveAlone => nobody("the policy leaves it alone: nobody is asked"),
            Treatment::Resolve { .. } => nobody("the rule asks for no signature"),
            Treatment::Refuse { failure, .. } => Err(failure.clone()),
            Treatment::Verify { .. } => match self.memory.image() {
                None => Err(Failure::new(Class::Busy, CROWDED)),
                Some(_held) => match self.answered(&treatment, None, deadline).await {
                    None => nobody("nobody is asked"),
                    Some((Ok(found), ..)) => {
                        digest = found.digest.to_string();
                        Ok(found.approval.unwrap_or_default())
                    }
                    Some((Err(failure), ..)) => Err(failure),
                },
            },
        };
        ruling(generation, digest, answer)
    }
}

fn ruling(generation: String, digest: String, answer: Answer) -> Ruling {
    let mut ruling = Ruling {
        contract: CONTRACT,
        generation,
        digest,
        verdict: VERIFIED.to_owned(),
        signers: Vec::new(),
        cause: String::new(),
        unasked: false,
    };
    match answer {
        Ok(approval) => {
            let signed = |signer: &crate::validator::Signer| Signed {
                name: signer.name.clone(),
                evidence: signer.evidence.clone(),
            };
            ruling.signers = approval.signers.iter().map(signed).collect();
        }
        Err(failure) => {
            failure.class.name().clone_into(&mut ruling.verdict);
            (ruling.cause, ruling.unasked) = (failure.cause, failure.unasked);
        }
    }
    ruling
}

fn ring(logins: Vec<Login>) -> Result<Keyring, Failure> {
    let key = |login: Login| {
        let proof = match (login.password, login.identity_token) {
            (_, Some(token)) => Proof::IdentityToken(token),
            (Some(password), None) => Proof::Password(password),
            (None, None) => return None,
        };
        Some((login.registry, login.username, proof))
    };
    let source: Arc<str> = "the process that asks".into();
    let keys: Vec<_> = logins.into_iter().filter_map(key).collect();
    Keyring::of_keys(keys, &source).map_err(|error| Failure::new(Class::Misconfigured, error.to_string()))
}
