//! The HTTP paths of the validator role, and their answers.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use serde::Serialize;
use service_contract::endpoint::{Endpoint, Refusal, Route};
use service_contract::{EXTERNAL_DATA, VALIDATE, answer};
use service_core::judge::{CONTRACT, Inquiry, Judge};
use tokio::time::Instant;

use crate::provider;

/// The paths of the role, in the order of the indices that [`Paths::answer`] gets.
const ROUTES: &[Route] = &[
    Route { method: Method::POST, path: VALIDATE },
    Route { method: Method::GET, path: VALIDATE },
    Route { method: Method::POST, path: EXTERNAL_DATA },
];
/// Maximum number of bytes of a host, a repository or a digest; no valid reference is longer.
const NAME_BYTES_MAX: usize = 512;
/// Maximum number of credentials in an inquiry, which are the credentials of a Pod for one registry.
const LOGINS_MAX: usize = 64;

/// The HTTP endpoint of the role, which answers inquiries with the rulings of its judge.
pub struct Paths(pub Arc<dyn Judge>);

impl Endpoint for Paths {
    fn name(&self) -> &'static str {
        "validator"
    }

    fn listener(&self) -> &'static str {
        "validator-listener"
    }

    fn routes(&self) -> &'static [Route] {
        ROUTES
    }

    fn answer(&self, route: usize, body: Bytes, deadline: Instant) -> BoxFuture<'_, Result<Bytes, Refusal>> {
        async move {
            match route {
                0 => {
                    let ruling = self.0.judge(inquiry(&body)?, deadline).await;
                    json(&ruling)
                }
                1 => json(&self.0.about()),
                _ => json(&provider::answer(&self.0, &body, deadline).await),
            }
        }
        .boxed()
    }
}

fn inquiry(body: &[u8]) -> Result<Inquiry, Refusal> {
    let inquiry: Inquiry =
        answer::read(body).map_err(|_| Refusal::bad("the question is not that of docs/contract.md"))?;
    if inquiry.contract != CONTRACT {
        let text = format!("the question is of version {} of the contract; here it is {CONTRACT}", inquiry.contract);
        return Err(Refusal::bad(text));
    }
    let image = &inquiry.image;
    let names = [&inquiry.validator, &image.host, &image.repository, &image.digest];
    if names.iter().any(|name| name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control)) {
        return Err(Refusal::bad(format!("validator, host, repository and digest have 1 to {NAME_BYTES_MAX} bytes")));
    }
    if inquiry.credentials.len() > LOGINS_MAX {
        return Err(Refusal::bad(format!("a question has at most {LOGINS_MAX} credentials")));
    }
    Ok(inquiry)
}

fn json(value: &impl Serialize) -> Result<Bytes, Refusal> {
    let failed = |_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer could not be written");
    serde_json::to_vec(value).map(Bytes::from).map_err(failed)
}
