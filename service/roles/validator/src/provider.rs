//! Answers requests of Gatekeeper's external data: each key is an image, which is judged by the policy's rules.
//!
//! The field `value` contains the ruling on an image, with its failure class. If an image is not verified, its item
//! also has an `error`, so that a constraint that checks only errors does not admit it. Gatekeeper passes only `value`
//! or `error` to a constraint.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Value, json};
use service_contract::external::{self, Item, ProviderResponse};
use service_core::judge::{Judge, Ruling, VERIFIED};
use tokio::time::Instant;

/// Longest key (an image reference), in bytes; no valid reference is longer.
const KEY_BYTES_MAX: usize = 1024;

pub async fn answer(judge: &Arc<dyn Judge>, body: &[u8], deadline: Instant) -> ProviderResponse {
    let keys = match external::read_question(body) {
        Ok(keys) => keys,
        Err(what) => return external::answer(Vec::new(), what),
    };
    let items = keys.into_iter().map(|key| async move {
        if key.len() > KEY_BYTES_MAX {
            return Item {
                key,
                value: Value::Null,
                error: format!("misconfigured: an image has at most {KEY_BYTES_MAX} bytes"),
            };
        }
        let ruling = judge.judge_by_policy(key.clone(), deadline).await;
        item(key, &ruling)
    });
    external::answer(join_all(items).await, String::new())
}

fn item(key: String, ruling: &Ruling) -> Item {
    let value = json!({
        "verdict": ruling.verdict, "digest": ruling.digest, "signers": ruling.signers, "cause": ruling.cause,
        "generation": ruling.generation, "unasked": ruling.unasked,
    });
    let error =
        if ruling.verdict == VERIFIED { String::new() } else { format!("{}: {}", ruling.verdict, ruling.cause) };
    Item { key, value, error }
}
