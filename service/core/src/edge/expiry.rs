//! The metric of when certificates end. Its label has a closed list of values.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCertificate {
    certificate: &'static str,
}

/// The ends of certificates, by purpose.
#[derive(Debug, Clone, Default)]
pub struct Certificates(Family<ByCertificate, Gauge>);

impl Certificates {
    /// Registers the metric without values.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "longhaul_certificate_expiry_timestamp_seconds",
            "Expiry of the first certificate of a file, seconds since 1970, by purpose",
            metrics.0.clone(),
        );
        metrics
    }

    /// The gauge of the certificates for `certificate`, one of a closed list.
    pub fn of(&self, certificate: &'static str) -> Gauge {
        self.0.get_or_create(&ByCertificate { certificate }).clone()
    }
}
