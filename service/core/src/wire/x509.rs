//! Facts of a certificate besides its key: its names and its end.

pub use service_core_x509::*;

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use rustls_pki_types::CertificateDer;

    use super::*;

    #[test]
    fn names_and_validity_are_read_and_rubbish_is_none() {
        let mut params = rcgen::CertificateParams::new(["api.local".to_owned()]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, "kube-apiserver");
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        let certificate = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        let facts = facts(certificate.der()).unwrap();
        assert_eq!(facts.names, ["kube-apiserver", "api.local"]);
        assert_eq!(
            (&*facts.alternatives, &*facts.identity()),
            (&[Alternative::Dns("api.local".into())][..], "api.local")
        );
        assert!(!facts.is_for_clients, "it does not say so");
        assert_eq!(facts.lifetime(), Duration::from_hours(366 * 24));
        assert_eq!(expiry(&[certificate.der().clone()]), Some(1_609_459_200));
        assert!(facts.is_expired(SystemTime::now()));
        assert!(!facts.is_expired(facts.not_after));
        assert_eq!(super::facts(&CertificateDer::from_slice(b"no certificate")), None);
    }
}
