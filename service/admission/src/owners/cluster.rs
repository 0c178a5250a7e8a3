//! The source of owners at the API server: the link between `admission`, which knows no API server, and `kube`.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::OwnerSource;
use service_core::kube::Client;

/// Largest object that is read, above etcd's limit.
const OBJECT_BYTES_MAX: usize = 2 << 20;

/// Reads objects with the rights of this process.
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
