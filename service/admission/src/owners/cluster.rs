//! Reads objects' owners from the API server. This module connects `owners`, which does not know the API server, with
//! the API server client.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::OwnerSource;
use service_core::kube::Client;

/// Largest owner object that is read, in bytes; the limit exceeds etcd's limit for an object.
const OBJECT_BYTES_MAX: usize = 2 << 20;

/// A reader of objects with the rights of this process.
pub struct FromCluster(pub Arc<Client>);

impl OwnerSource for FromCluster {
    fn read(self: Arc<Self>, path: String, deadline: Instant) -> BoxFuture<'static, Option<Bytes>> {
        async move {
            let object = self.0.read_at_most(&path, OBJECT_BYTES_MAX, deadline).await;
            object
                .inspect_err(
                    |error| tracing::debug!(name: crate::events::OWNER_NOT_READ, path, %error, "an owner was not read"),
                )
                .ok()
        }
        .boxed()
    }
}
