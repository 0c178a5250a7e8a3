//! The metric of certificates' expiry times, whose label has a closed list of values.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCertificate {
    certificate: &'static str,
}

/// Expiry times of certificates, by purpose.
#[derive(Debug, Clone, Default)]
pub struct Certificates(Family<ByCertificate, Gauge>);

impl Certificates {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "longhaul_certificate_expiry_timestamp_seconds",
            "Expiry of the first certificate of a file, seconds since 1970, by purpose",
            metrics.0.clone(),
        );
        metrics
    }

    /// The gauge for `certificate`, a label value from a closed list.
    pub fn of(&self, certificate: &'static str) -> Gauge {
        self.0.get_or_create(&ByCertificate { certificate }).clone()
    }
}
