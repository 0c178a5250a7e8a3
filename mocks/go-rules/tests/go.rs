//! Compares the rules for certificates with Go, which verifies the same certificates.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CustomExtension, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, UnixTime};
use serde_json::{Value, json};

/// A Go program that prints for each certificate whether `Certificate.Verify` accepts it.
const PROGRAM: &str = r#"package main

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"os"
	"time"
)

type testCase struct {
	Pool  []string
	Shown string
	Name  string
	At    int64
}

func certificate(text string) *x509.Certificate {
	der, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return parsed
}

func main() {
	var cases []testCase
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		panic(err)
	}
	believed := []bool{}
	for _, one := range cases {
		pool := x509.NewCertPool()
		for _, text := range one.Pool {
			pool.AddCert(certificate(text))
		}
		options := x509.VerifyOptions{Roots: pool, DNSName: one.Name, CurrentTime: time.Unix(one.At, 0)}
		_, err := certificate(one.Shown).Verify(options)
		believed = append(believed, err == nil)
	}
	json.NewEncoder(os.Stdout).Encode(believed)
}
"#;

struct Case {
    what: &'static str,
    pool: Vec<CertificateDer<'static>>,
    shown: CertificateDer<'static>,
    name: &'static str,
    at_s: u64,
}

const NAME: &str = "webhook.shop.svc";
/// The start of 2025 in seconds since the epoch; the certificates are valid from 2020 to 2030.
const NOW_S: u64 = 1_735_689_600;
const LATER_S: u64 = 2_051_222_400;

fn params(change: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
    let mut params = CertificateParams::new([NAME.to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2030, 1, 1);
    change(&mut params);
    params
}

fn authority() -> (Issuer<'static, KeyPair>, CertificateDer<'static>) {
    let params = params(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
    let key = KeyPair::generate().unwrap();
    let der = params.self_signed(&key).unwrap().der().clone();
    (Issuer::new(params, key), der)
}

fn cases() -> Vec<Case> {
    let (issuer, ca) = authority();
    let (_, namesake) = authority();
    let signed = |change: fn(&mut CertificateParams)| {
        params(change).signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap().der().clone()
    };
    let own = |change: fn(&mut CertificateParams)| {
        params(change).self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    };
    let leaf = signed(|_| {});
    let case = |what, pool: &[&CertificateDer<'static>], shown: &CertificateDer<'static>| Case {
        what,
        pool: pool.iter().map(|one| (*one).clone()).collect(),
        shown: shown.clone(),
        name: NAME,
        at_s: NOW_S,
    };
    let by = |purpose: ExtendedKeyUsagePurpose| {
        let mut with = params(|_| {});
        with.extended_key_usages = vec![purpose];
        with.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap().der().clone()
    };
    let (client, any) = (by(ExtendedKeyUsagePurpose::ClientAuth), by(ExtendedKeyUsagePurpose::Any));
    let unknown = signed(|params| {
        let mut extension = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 99999, 1], vec![5, 0]);
        extension.set_criticality(true);
        params.custom_extensions.push(extension);
    });
    let plain = own(|_| {});
    let marked = own(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
    let marked_client = own(|params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    });
    vec![
        case("signed by the pool", &[&ca], &leaf),
        case("itself in the pool", &[&leaf], &leaf),
        case("itself in the pool beside a namesake of its authority", &[&namesake, &leaf], &leaf),
        case("a namesake of its authority alone", &[&namesake], &leaf),
        case("another of the same authority in the pool", &[&client], &leaf),
        Case { name: "other.shop.svc", ..case("itself, by another name", &[&leaf], &leaf) },
        Case { at_s: LATER_S, ..case("itself, expired", &[&leaf], &leaf) },
        case("itself, for clients", &[&client], &client),
        case("itself, for anything", &[&any], &any),
        case("itself, with something critical that nobody knows", &[&unknown], &unknown),
        case("signed by itself", &[&plain], &plain),
        case("signed by itself and marked as a CA", &[&marked], &marked),
        case("signed by itself, marked as a CA, for clients", &[&marked_client], &marked_client),
    ]
}

#[test]
fn go_believes_the_same_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("main.go");
    std::fs::write(&file, PROGRAM).unwrap();
    let mut go = Command::new("go");
    go.arg("run").arg(&file).env("GO111MODULE", "off").env("GOFLAGS", "").current_dir(folder.path());
    go.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let Ok(mut child) = go.spawn() else {
        println!("skipped: needs go");
        return;
    };
    let cases = cases();
    let text = |certificate: &CertificateDer<'_>| STANDARD.encode(certificate);
    let told: Vec<Value> = cases
        .iter()
        .map(|case| {
            let pool: Vec<String> = case.pool.iter().map(text).collect();
            json!({"Pool": pool, "Shown": text(&case.shown), "Name": case.name, "At": case.at_s})
        })
        .collect();
    serde_json::to_writer(child.stdin.take().unwrap(), &told).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let believed: Vec<bool> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(believed.len(), cases.len());
    for (case, go) in cases.iter().zip(believed) {
        let verifier = go_rules::tls::verifier(&case.pool, &go_rules::tls::provider()).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(case.at_s));
        let ours = verifier.verify_server_cert(&case.shown, &[], &case.name.try_into().unwrap(), &[], now);
        assert_eq!(ours.is_ok(), go, "{}: {ours:?}", case.what);
    }
}
