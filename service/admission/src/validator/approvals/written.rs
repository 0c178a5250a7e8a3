//! Verdicts as text for the cache that processes of one service share.
//!
//! Uncertain verdicts are not written. Text from the shared cache is checked as far as possible, although only a holder
//! of the service's key can have written it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::{Answer, Approval, SIGNERS_MAX, Signer};
use service_registry::verdicts::{Class, Failure};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum Written {
    Verified(Vec<By>),
    Failed { class: String, cause: String },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct By {
    name: String,
    evidence: String,
}

/// The text for a validator's answer; `None` if the answer may not be stored.
pub fn write(answer: &Answer) -> Option<Vec<u8>> {
    let written = match answer {
        Ok(approval) => {
            let by = |signer: &Signer| By { name: signer.name.clone(), evidence: signer.evidence.clone() };
            Written::Verified(approval.signers.iter().map(by).collect())
        }
        Err(failure) => {
            failure.class.cache_ttl()?;
            Written::Failed { class: failure.class.name().to_owned(), cause: failure.cause.clone() }
        }
    };
    serde_json::to_vec(&written).ok()
}

/// The answer in a text that another process stored; `None` if it is invalid.
pub fn read(text: &[u8]) -> Option<Answer> {
    Some(match serde_json::from_slice(text).ok()? {
        Written::Verified(by) if (1..=SIGNERS_MAX).contains(&by.len()) => {
            let signer = |By { name, evidence }| Signer { name, evidence };
            Ok(Arc::new(Approval { signers: by.into_iter().map(signer).collect() }))
        }
        Written::Verified(_) => return None,
        Written::Failed { class, cause } => {
            let class = Class::ALL.into_iter().find(|known| known.name() == class)?;
            // Uncertain answers are never stored.
            class.cache_ttl()?;
            Err(Failure::new(class, cause))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_nothing_that_is_not_definite() {
        let signer = Signer { name: "a \"b\"".into(), evidence: "tag".into() };
        let verified: Answer = Ok(Arc::new(Approval { signers: vec![signer] }));
        let unsigned: Answer = Err(Failure::new(Class::Unsigned, "none"));
        for answer in [verified, unsigned] {
            assert_eq!(read(&write(&answer).unwrap()), Some(answer));
        }
        assert_eq!(read(br#"{"verified": []}"#), None, "nobody signed it");
        for class in [Class::Unavailable, Class::Internal, Class::Auth, Class::Busy] {
            assert_eq!(write(&Err(Failure::new(class, "x"))), None);
            let text = format!("{{\"failed\": {{\"class\": \"{class}\", \"cause\": \"\"}}}}");
            assert_eq!(read(text.as_bytes()), None);
        }
        assert_eq!(read(b"{}"), None);
    }
}
