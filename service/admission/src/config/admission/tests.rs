//! Tests of the section `admission.ownCertificates`, whose settings belong to `service-own-certificates`.

use std::path::Path;

use service_own_certificates::OwnCertificates;

use crate::config::Config;

fn parsed(section: &str) -> Result<Config, String> {
    let text = format!("admission: {{listen: \"[::]:1\", {section}}}\n");
    Config::parse(&text, Path::new("/etc/service.yaml")).map_err(|error| error.to_string())
}

#[test]
fn an_empty_section_is_all_defaults_and_takes_the_place_of_files() {
    let admission = parsed("ownCertificates: {}").unwrap().admission.unwrap();
    assert_eq!(format!("{:?}", admission.own.unwrap()), format!("{:?}", OwnCertificates::default()));
    for (section, what) in [
        ("ownCertificates: {}, key: k, certificate: c", "takes the place of certificate and key"),
        ("certificate: c", "needs both certificate and key, or `ownCertificates: {}`"),
        ("ownCertificates: {secretNam: x}", "did you mean `secretName`?"),
        ("ownCertificates: {secretName: \"a/b\"}", "admission.ownCertificates.secretName: is no name"),
        ("ownCertificates: {webhooks: []}", "admission.ownCertificates.webhooks"),
    ] {
        let error = parsed(section).unwrap_err();
        assert!(error.contains(what), "{section}: {error}");
    }
}

#[test]
fn lifetimes_leave_time_for_every_step() {
    let short = "authorityLifetime: 30s, leafLifetime: 10s, settle: 3s, interval: 1s";
    parsed(&format!("ownCertificates: {{{short}}}")).unwrap();
    for (from, to, what) in [
        ("30s", "29s", "three times leafLifetime"),
        ("settle: 3s", "settle: 4s", "a third of leafLifetime"),
        ("interval: 1s", "interval: 5s", "longer than settle"),
        ("settle: 3s", "settle: 0s", "longer than zero"),
    ] {
        let error = parsed(&format!("ownCertificates: {{{}}}", short.replace(from, to))).unwrap_err();
        assert!(error.contains(what), "{error}");
    }
}
