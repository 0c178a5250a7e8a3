//! Tests of the configuration: valid files, and the exact error messages for invalid files.

use std::path::Path;
use std::time::Duration;

use service_admission::config::{Action, Admission, Images, Mode, NoMatch, Policy, Recheck, Resources, Validator};
use service_core::config::{Environment, Health, Kubernetes, Level, Log, LogFormat, Shutdown};
use service_core::kube::Transport;
use service_packages::config::Packages;
use service_registry::config::Resolve;
use service_replicas::config::{Bucket, Replicas};
use service_watch::QueueKey;
use service_watch::config::Watch;

struct Config {
    admission: Option<Admission>,
    replicas: Option<Replicas>,
    health: Option<Health>,
    resolve: Resolve,
    validators: Vec<Validator>,
    policy: Policy,
    kubernetes: Kubernetes,
    watch: Watch,
    packages: Packages,
    shutdown: Shutdown,
}

impl Config {
    fn parse(text: &str, path: &Path) -> Result<Self, super::Error> {
        let config = super::parse(text, path)?;
        let Images { validators, policy, .. } = config.of::<Images>().clone();
        Ok(Self {
            admission: config.find().cloned(),
            replicas: config.find().cloned(),
            health: config.find().cloned(),
            resolve: config.of::<Resolve>().clone(),
            validators,
            policy,
            kubernetes: config.of::<Kubernetes>().clone(),
            watch: config.of::<Watch>().clone(),
            packages: config.of::<Packages>().clone(),
            shutdown: config.of::<Shutdown>().clone(),
        })
    }
}

const FULL: &str = r#"
admission: {listen: "127.0.0.1:8443", certificate: tls.crt, key: /abs/tls.key, maxBodyBytes: 2MiB, maxInFlight: 7, clientCA: ca.crt, clientNames: [a], maxInFlightPerPeer: 3, maxConnections: 40, maxConnectionsPerPeer: 9}
health: {listen: "127.0.0.1:9090"}
resolve:
  skipPrefixes: ["localhost:5000/"]
  timeout: 4s
  cache: {ttl: 10s, maxBytes: 1MiB}
  keychain: {dockerConfig: docker.json, pullSecrets: true}
  registries: [{host: "127.0.0.1:5000", plainHttp: true, username: u, passwordFile: pw, realms: ["auth.corp", "10.0.0.5:5001"], mirrors: ["m:5000/hub"], rewrite: {team/: other.corp/t}, maxConcurrent: 3, maxPerSecond: 9}]
policy:
  onFailure: {unavailable: error}
  rules:
    - {pattern: "ghcr.io/team/*", recheck: always, onFailure: {not-found: allow, auth: error, misconfigured: deny, internal: deny}}
    - {pattern: "*/new/*", mode: detect}
    - {pattern: "quay.io/", mode: skip}
kubernetes: {kubeconfig: kube.yaml}
watch:
  transport: http2
  resource: packages
  relistInterval: 1m
  serverTimeout: 20s
  silenceLimit: 25s
  backoff: {initial: 100ms, max: 5s}
packages:
  queue: kindNs
  workers: 2
  retries: [1s]
  lease: {enabled: true, name: l, namespace: ns, duration: 20s, renew: 15s, retry: 1s}
log: {format: json, level: debug}
shutdown: {drain: 3s}
"#;

fn refused(text: &str) -> String {
    super::parse(text, Path::new("/etc/service.yaml")).expect_err("the text must be refused").to_string()
}

#[test]
fn a_configuration_has_a_version() {
    for text in ["", "version: 1\n"] {
        assert!(Config::parse(text, Path::new("/etc/service.yaml")).is_ok(), "{text}");
    }
    assert_eq!(refused("version: 7\n"), "/etc/service.yaml: version: 7 is not known to this program: it knows 1");
}

#[test]
fn renamed_keys_are_refused_with_the_new_spelling() {
    for (text, remedy) in [
        ("reconcile: {workers: 2}\n", "unknown key `reconcile`; it is now `packages`"),
        ("alerts: {cluster: x}\n", "unknown key `alerts`; it is now `alerting`"),
        ("alerting: {listen: \"[::]:1\", certificate: c, key: k}\n", "unknown key `listen`; did you mean `listener`?"),
    ] {
        assert!(refused(text).contains(remedy), "{}", refused(text));
    }
}

#[test]
fn the_section_of_the_api_over_deployments_reaches_its_values() {
    let text = "replicas: {listen: \"[::1]:1\", certificate: c, key: /k, clientCA: [a, b], crl: [l], crlRequired: true, \
                cipherSuites: [TLS_AES_128_GCM_SHA256], maxCertificateLifetime: 24h, allow: {read: [\"a/*\"], scale: []}, \
                rate: {client: {perSecond: 3}, all: {perSecond: 9, burst: 10}}, images: true, maxBodyBytes: 1KiB, timeout: 2s, \
                maxConnections: 9, maxInFlight: 8}\n";
    let replicas = Config::parse(text, Path::new("/etc/service.yaml")).unwrap().replicas.unwrap();
    assert_eq!((&*replicas.certificate, &*replicas.key), (Path::new("/etc/c"), Path::new("/k")));
    assert_eq!(replicas.client_ca, [Path::new("/etc/a"), Path::new("/etc/b")]);
    assert_eq!((replicas.crl.len(), replicas.crl_required, replicas.images), (1, true, true));
    assert_eq!(replicas.cipher_suites[0].suite(), rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
    assert_eq!(replicas.max_certificate_lifetime, Some(Duration::from_hours(24)));
    let allow = &replicas.allow;
    assert_eq!(
        (allow.read.as_deref(), allow.scale.as_deref(), &allow.image),
        (Some(&["a/*".to_owned()][..]), Some(&[][..]), &None)
    );
    let bucket = |bucket: Bucket| (bucket.per_second.get(), bucket.burst.get());
    assert_eq!((bucket(replicas.rate.client), bucket(replicas.rate.all)), ((3, 6), (9, 10)));
    assert_eq!((replicas.max_body_bytes, replicas.timeout), (1024, Duration::from_secs(2)));
    assert_eq!((replicas.max_connections, replicas.max_in_flight), (9, 8));

    let with = |more: &str| {
        refused(&format!("replicas: {{listen: \"[::1]:1\", certificate: c, key: k, clientCA: [a]{more}}}\n"))
    };
    for (more, what) in [
        (", crlRequired: true", "replicas.crl: needs at least one file"),
        (", cipherSuites: [TLS_X]", "replicas.cipherSuites: `TLS_X` is none of TLS 1.3: use TLS_"),
        (", allow: {scale: [\"a*b\"]}", "replicas.allow.scale: `a*b`: a name is written whole"),
        (", allow: {write: []}", "unknown key `write`"),
        (", rate: {client: {perSecond: 0}}", "replicas.rate.client.perSecond: 0 is out of range"),
        (", maxInFlight: 0", "replicas.maxInFlight: 0 is out of range"),
        (", timeout: 0s", "replicas.timeout: must be longer than zero"),
    ] {
        assert!(with(more).contains(what), "{more}: {}", with(more));
    }
    let none = refused("replicas: {listen: \"[::1]:1\", certificate: c, key: k, clientCA: []}\n");
    assert!(none.contains("replicas.clientCA: needs at least one file"), "{none}");
}

#[test]
fn every_key_reaches_its_value() {
    let config = Config::parse(FULL, Path::new("/etc/service.yaml")).unwrap();
    let admission = config.admission.unwrap();
    assert_eq!(admission.certificate, Path::new("/etc/tls.crt"));
    assert_eq!(admission.key, Path::new("/abs/tls.key"));
    assert_eq!((admission.max_body_bytes, admission.max_in_flight), (2 << 20, 7));
    assert_eq!((admission.max_in_flight_per_peer, admission.max_connections), (3, 40));
    assert_eq!(admission.max_connections_per_peer, 9);
    assert_eq!(admission.client_ca.as_deref(), Some(Path::new("/etc/ca.crt")));
    assert_eq!(admission.client_names, ["a"]);
    assert_eq!(config.health.unwrap().listen.port(), 9090);
    assert_eq!(config.resolve.timeout, Duration::from_secs(4));
    assert_eq!(config.resolve.cache_max_bytes, 1 << 20);
    assert_eq!(config.resolve.registries[0].login, Some(("u".into(), "/etc/pw".into())));
    assert_eq!(config.resolve.registries[0].mirrors[0].path, "hub");
    let limits = (config.resolve.registries[0].max_concurrent, config.resolve.registries[0].max_per_second);
    assert_eq!(limits, (3, Some(9)));
    let rewrite = &config.resolve.registries[0].rewrite[0];
    assert_eq!((&*rewrite.from, &*rewrite.to.host.host, &*rewrite.to.path), ("team", "other.corp", "t"));
    assert_eq!(config.resolve.keychain.docker_config.as_deref(), Some(Path::new("/etc/docker.json")));
    assert!(config.resolve.keychain.pull_secrets);
    assert_eq!(config.policy.on_failure.unavailable, Some(Action::Error));
    let [team, new, quay] = &config.policy.rules[..] else { panic!("three rules") };
    assert_eq!((team.pattern.as_str(), team.mode, team.recheck), ("ghcr.io/team/*", Mode::Resolve, Recheck::Always));
    let actions = team.on_failure;
    assert_eq!((actions.not_found, actions.auth), (Some(Action::Allow), Some(Action::Error)));
    assert_eq!((actions.misconfigured, actions.internal), (Some(Action::Deny), Some(Action::Deny)));
    assert_eq!(actions.unavailable, None);
    assert_eq!((new.mode, quay.mode, quay.recheck), (Mode::Detect, Mode::Skip, Recheck::Changed));
    assert_eq!(config.resolve.registries[0].realms[1].port, Some(5001));
    assert_eq!(config.kubernetes.kubeconfig.as_deref(), Some(Path::new("/etc/kube.yaml")));
    assert_eq!(config.watch.transport, Transport::Http2);
    assert_eq!(config.watch.backoff_max, Duration::from_secs(5));
    assert_eq!(config.packages.queue, QueueKey::KindNs);
    assert_eq!(config.packages.retries, [Duration::from_secs(1)]);
    let lease = config.packages.lease;
    assert_eq!((lease.enabled, &*lease.name, lease.namespace.as_deref()), (Some(true), "l", Some("ns")));
    let seconds = [lease.duration, lease.renew, lease.retry].map(|span| span.as_secs());
    assert_eq!(seconds, [20, 15, 1]);
    assert_eq!(config.shutdown.drain, Duration::from_secs(3));
}

#[test]
fn an_empty_file_is_all_defaults() {
    let config = Config::parse("# nothing\n", Path::new("x.yaml")).unwrap();
    assert!(config.admission.is_none() && config.health.is_none());
    assert_eq!(config.watch.server_timeout, Duration::from_secs(45));
    assert_eq!(config.packages.workers, 8);
}

#[test]
fn the_example_says_the_defaults() {
    let path = Path::new("/etc/service.yaml");
    let example = super::parse(include_str!("../../example.yaml"), path).unwrap();
    let needed = "admission: {listen: \"0.0.0.0:8443\", certificate: tls.crt, key: tls.key}\n\
                  replicas: {listen: \"0.0.0.0:8444\", certificate: replicas.crt, key: replicas.key, clientCA: [clients-ca.crt]}\n\
                  health: {listen: \"0.0.0.0:9090\"}\n";
    assert_eq!(example.differences(&super::parse(needed, path).unwrap()), Vec::<&str>::new());
}

#[test]
fn an_unknown_key_is_refused_with_place_and_nearest_key() {
    assert_eq!(
        refused("watch:\n  silenceLimit: 5s\n  serverTimeot: 45s\n"),
        "/etc/service.yaml:3:3: unknown key `serverTimeot`; did you mean `serverTimeout`?"
    );
    let said = "/etc/service.yaml:1:1: unknown key `zebra`; the keys here are version, health, admission, resolve, ";
    let refused = refused("zebra: 1\n");
    assert!(refused.starts_with(said), "{refused}");
}

#[test]
fn a_wrong_value_is_refused_with_place_and_remedy() {
    assert_eq!(refused("resolve:\n  timeout: 5\n"), "/etc/service.yaml:2:12: `5` has no unit: write for example `5s`");
    assert_eq!(
        refused("watch: {transport: http3}\n"),
        "/etc/service.yaml:1:20: unknown value `http3`; use one of http1, http2"
    );
    assert!(refused("health: {}\n").contains("the key `listen` is missing"));
}

#[test]
fn values_that_contradict_each_other_are_refused_with_their_key() {
    assert_eq!(
        refused("watch: {backoff: {initial: 9s, max: 1s}}\n"),
        "/etc/service.yaml: watch.backoff.initial: is longer than watch.backoff.max"
    );
    assert_eq!(
        refused("resolve: {registries: [{host: h, username: u}]}\n"),
        "/etc/service.yaml: resolve.registries[0].passwordFile: is needed beside username"
    );
    assert_eq!(
        refused("resolve: {registries: [{host: Docker.io}, {host: \"index.docker.io:443\"}]}\n"),
        "/etc/service.yaml: resolve.registries[1].host: is the host of resolve.registries[0] already: one host has one entry"
    );
    assert_eq!(
        refused("resolve: {registries: [{host: h, realms: [\"a:99999\"]}]}\n"),
        "/etc/service.yaml: resolve.registries[0].realms[0]: `a:99999`: the port is not a number from 1 to 65535; \
         write host or host:port, without scheme and path"
    );
    let of_registry = |keys: &str| refused(&format!("resolve: {{registries: [{{host: h, {keys}}}]}}\n"));
    assert_eq!(
        of_registry("mirrors: [\"http://m\"]"),
        "/etc/service.yaml: resolve.registries[0].mirrors[0]: `http://m`: the port is not a number from 1 to 65535; \
         write host, host:port or host:port/path"
    );
    let login = "plainHttp: true, username: u, passwordFile: p";
    assert_eq!(
        of_registry(login),
        "/etc/service.yaml: resolve.registries[0].plainHttp: would show the password to everybody on the way to h: remove \
         it, or username and passwordFile"
    );
    // What counts is where requests go.
    let elsewhere =
        refused(&format!("resolve: {{registries: [{{host: localhost, endpoint: \"10.0.0.5:5000\", {login}}}]}}\n"));
    assert!(elsewhere.contains("on the way to 10.0.0.5: "), "{elsewhere}");
    let here = format!("resolve: {{registries: [{{host: h, endpoint: \"[::1]:5000\", {login}}}]}}\n");
    super::parse(&here, Path::new("/etc/service.yaml")).unwrap();
    assert!(of_registry("maxConcurrent: 65").contains("maxConcurrent: 65 is out of range: 1 to 64"));
    assert!(of_registry("maxPerSecond: 0").contains("maxPerSecond: would let no question through"));
    assert!(of_registry("mirrors: [\"h:443\"]").contains("mirrors[0]: is the registry itself"));
    assert!(of_registry("mirrors: [a, b, c, d, e]").contains("mirrors: are too many: at most 4"));
    assert!(of_registry("rewrite: {Team: m}").contains("rewrite.`Team`: is not the beginning of a repository's name"));
    assert!(of_registry("rewrite: {t: m/../x}").contains("rewrite.`t`: `m/../x`: what follows the host"));
    assert!(of_registry("rewrite: {t: m, t/: n}").contains("says two things about `t`"));
    assert_eq!(
        refused("admission: {listen: \"[::]:1\", certificate: c, key: k, clientNames: [a]}\n"),
        "/etc/service.yaml: admission.clientCA: is needed beside clientNames"
    );
    assert_eq!(
        refused("admission: {listen: \"[::]:1\", certificate: c, key: k, maxInFlight: 5, maxInFlightPerPeer: 6}\n"),
        "/etc/service.yaml: admission.maxInFlightPerPeer: 6 is out of range: 1 to 5"
    );
    assert_eq!(
        refused("packages: {lease: {duration: 10s}}\n"),
        "/etc/service.yaml: packages.lease.renew: must be shorter than packages.lease.duration"
    );
    assert!(refused("packages: {lease: {duration: 1500ms}}\n").contains("whole seconds"));
    assert!(refused("packages: {lease: {retry: 9s}}\n").contains("packages.lease.retry: must fit"));
    assert!(refused("packages: {lease: {namespace: ../x}}\n").contains("is no name"));
    assert_eq!(refused("packages: {workers: 0}\n"), "/etc/service.yaml: packages.workers: 0 is out of range: 1 to 256");
}

#[test]
fn rules_of_which_one_could_never_count_are_refused() {
    let rules = |rules: &str| refused(&format!("policy: {{rules: [{rules}]}}\n"));
    assert_eq!(
        rules("{pattern: a/b}, {pattern: \"*a/b*\"}"),
        "/etc/service.yaml: policy.rules[1].pattern: matches the same images as policy.rules[0] (`a/b`): keep one of them"
    );
    assert_eq!(
        rules("{pattern: nginx}, {pattern: a/b}, {pattern: redis}"),
        "/etc/service.yaml: policy.rules[2].pattern: is as specific as policy.rules[0] (`nginx`) for images that match \
         both: write more of the name before or after one of them"
    );
    assert_eq!(
        rules("{pattern: \"a[b]\"}"),
        "/etc/service.yaml: policy.rules[0].pattern: has `[`, which no image has: only `*` (any text) and `?` (any \
         character) are special"
    );
    assert_eq!(
        rules("{pattern: a, mode: skip, recheck: always}"),
        "/etc/service.yaml: policy.rules[0].mode: neither recheck nor onFailure has an effect with `mode: skip`: remove them"
    );
    assert!(refused("policy: {onFailure: {notfound: deny}}\n").contains("did you mean `not-found`?"));
    assert!(rules("{pattern: a, onFailure: {auth: ignore}}").contains("use one of deny, allow, error"));
}

#[test]
fn the_policys_own_keys_reach_their_values() {
    let config = Config::parse(
        "policy: {noMatch: warn, detection: true, resources: podsOnly, recheck: always, namespaces: {validate: [a]}, \
         cache: {ttl: 5m, maxBytes: 1MiB}, onFailure: {unsigned: allow, invalid: deny, mismatch: error}, rules: [{pattern: a}]}",
        Path::new("x.yaml"),
    );
    let policy = config.unwrap().policy;
    assert_eq!((policy.no_match, policy.detection, policy.resources), (NoMatch::Warn, true, Resources::PodsOnly));
    assert_eq!(
        (policy.rules[0].recheck, policy.namespaces.out("b")),
        (Recheck::Always, Some("policy.namespaces.validate"))
    );
    assert_eq!((policy.verdicts.ttl, policy.verdicts.max_bytes), (Duration::from_mins(5), 1 << 20));
    let actions = policy.on_failure;
    assert_eq!((actions.unsigned, actions.invalid), (Some(Action::Allow), Some(Action::Deny)));
    assert_eq!(actions.mismatch, Some(Action::Error));
    for (text, what) in [
        ("policy: {namespaces: {ignore: [Kube]}}", "policy.namespaces.ignore: `Kube` is no name of a namespace"),
        ("resolve: {skipPrefixes: [registry.corp]}", "write `registry.corp/`"),
        (
            "policy: {resources: podsOnly, automaticChildApproval: true}",
            "policy.automaticChildApproval: goes around `resources: podsOnly`",
        ),
        ("policy: {matcher: regex}", "use one of connaisseur, segments"),
        ("policy: {noMatch: refuse}", "use one of resolve, allow, warn, deny"),
        ("policy: {documents: [/nowhere/at/all]}", "failed to read the configuration /nowhere/at/all"),
    ] {
        assert!(refused(text).contains(what), "{}", refused(text));
    }
}

#[test]
fn validators_that_are_not_built_in_say_so() {
    for (text, what) in [
        (
            "{name: a, type: notation}",
            "validators[0].type: `notation` is not built in: use cosign, static, remote or externalData",
        ),
        ("{name: a, type: notaryv1}", "validators[0].type: `notaryv1` is not built in: use cosign, static"),
        ("{name: a, type: static}", "validators[0].approve: is needed beside `type: static`"),
        ("{name: '', type: static, approve: true}", "validators[0].name: is empty"),
        (
            "{name: a, type: static, approve: true}, {name: a, type: static, approve: true}",
            "is the name of validators[0] already",
        ),
        ("{name: a, type: static, approve: true, host: {fulcioCert: x}}", "static trusts nobody"),
        ("{name: a, type: remote}", "validators[0].remote: is missing"),
        ("{name: a, type: static, approve: true, remote: {instances: []}}", "validators[0].remote: has an effect with"),
        ("{name: a, type: remote, approve: true, remote: {instances: []}}", "asks somebody else, who has the trust"),
        ("{name: a, type: cosigned}", "use one of static, cosign, remote, externalData, notation, notaryv1"),
    ] {
        let said = refused(&format!("validators: [{text}]"));
        assert!(said.contains(what), "{said}");
    }
    let said = refused("policy: {rules: [{pattern: a, validator: deny}]}");
    assert!(said.contains("policy.rules[0].validator: there is no validator `deny`; there are none"), "{said}");
    let text = "{validators: [{name: deny, type: static, approve: false}], policy: {rules: [{pattern: a, validator: deny, with: {threshold: 1}}]}}";
    assert!(refused(text).contains("policy.rules[0].with: has no effect with the static validator `deny`"));
}

#[cfg(not(feature = "verify"))]
#[test]
fn cosign_says_that_it_is_not_built_in() {
    let said = refused("validators: [{name: a, type: cosign, trustRoots: [{name: default, keyFile: k}]}]");
    assert!(said.contains("validators[0].type: `cosign` is not built in"), "{said}");
}

#[cfg(feature = "verify")]
mod signatures;

fn overruled(values: &[(&str, &str)]) -> Result<super::Config, super::Error> {
    let text = "policy: {rules: [{pattern: a}, {pattern: b/c, mode: skip}]}";
    laid_over(text, values)
}

fn laid_over(text: &str, values: &[(&str, &str)]) -> Result<super::Config, super::Error> {
    let find = |name: &str| values.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    super::Config::overruled(text, Path::new("x.yaml"), &super::KINDS, &Environment(&find))
}

/// Every setting that an environment variable can replace: variable and value, section, and the same setting as YAML.
const BOTH_WAYS: [(&str, &str, &str, &str); 12] = [
    ("LONGHAUL_AUTOMATIC_CHILD_APPROVAL", "true", "policy", "automaticChildApproval: true"),
    ("LONGHAUL_AUTOMATIC_CHILD_APPROVAL", "false", "policy", "automaticChildApproval: false"),
    ("LONGHAUL_AUTOMATIC_UNCHANGED_APPROVAL", "true", "policy", "recheck: changed"),
    ("LONGHAUL_AUTOMATIC_UNCHANGED_APPROVAL", "false", "policy", "recheck: always"),
    ("LONGHAUL_DETECTION_MODE", "true", "policy", "detection: true"),
    ("LONGHAUL_DETECTION_MODE", "false", "policy", "detection: false"),
    ("LONGHAUL_RESOURCE_VALIDATION_MODE", "all", "policy", "resources: all"),
    ("LONGHAUL_RESOURCE_VALIDATION_MODE", "podsOnly", "policy", "resources: podsOnly"),
    ("LONGHAUL_CACHE_EXPIRY_SECONDS", "0", "policy", "cache: {ttl: 0s}"),
    ("LONGHAUL_CACHE_EXPIRY_SECONDS", "7", "policy", "cache: {ttl: 7s}"),
    ("LONGHAUL_LOG_LEVEL", "debug", "log", "level: debug"),
    ("LONGHAUL_LOG_FORMAT", "json", "log", "format: json"),
];

/// Environment variables cannot bypass a check: any two settings give the same configuration or refusal, whether they
/// come from the file or the environment.
#[test]
fn the_environment_and_the_file_are_refused_alike() {
    let config = |of_file: &[(&str, &str)], environment: &[(&str, &str)]| {
        let section = |wanted: &str| -> String {
            let keys = of_file.iter().filter(|(section, _)| *section == wanted);
            keys.flat_map(|(_, key)| [*key, ", "]).collect()
        };
        let rules = "rules: [{pattern: a}, {pattern: b/c, mode: skip}, {pattern: d/e/f, mode: detect}]";
        laid_over(&format!("policy: {{{}{rules}}}\nlog: {{{}}}\n", section("policy"), section("log")), environment)
    };
    let mut refused = 0;
    for one in BOTH_WAYS {
        for two in BOTH_WAYS.into_iter().filter(|two| two.0 != one.0) {
            let of_file = |row: (_, _, &'static str, &'static str)| (row.2, row.3);
            let of_environment = |row: (&'static str, &'static str, _, _)| (row.0, row.1);
            let written = config(&[of_file(one), of_file(two)], &[]);
            refused += usize::from(written.is_err());
            for other in [
                config(&[of_file(one)], &[of_environment(two)]),
                config(&[of_file(two)], &[of_environment(one)]),
                config(&[], &[of_environment(one), of_environment(two)]),
            ] {
                match (&written, other) {
                    (Ok(written), Ok(other)) => {
                        assert_eq!(written.differences(&other), <[&str; 0]>::default(), "{one:?} {two:?}");
                    }
                    (Err(written), Err(other)) => assert_eq!(written.to_string(), other.to_string()),
                    (written, other) => panic!("{one:?} {two:?}: {written:?} in the file, else {other:?}"),
                }
            }
        }
    }
    assert_eq!(refused, 2, "automaticChildApproval and podsOnly, in either order");
}

/// The table `BOTH_WAYS` has every variable that the service reads from the environment.
#[test]
fn every_name_of_the_environment_is_in_the_table() {
    let asked = std::cell::RefCell::new(std::collections::BTreeSet::new());
    let find = |name: &str| {
        asked.borrow_mut().insert(name.to_owned());
        None
    };
    super::Config::overruled("", Path::new("x.yaml"), &super::KINDS, &Environment(&find)).unwrap();
    let table: std::collections::BTreeSet<_> = BOTH_WAYS.iter().map(|row| row.0.to_owned()).collect();
    assert_eq!(asked.into_inner(), table);
}

#[test]
fn the_environment_overrules_the_file() {
    let config = overruled(&[
        ("LONGHAUL_AUTOMATIC_CHILD_APPROVAL", "true"),
        ("LONGHAUL_AUTOMATIC_UNCHANGED_APPROVAL", "false"),
        ("LONGHAUL_DETECTION_MODE", "1"),
        ("LONGHAUL_RESOURCE_VALIDATION_MODE", "all"),
        ("LONGHAUL_CACHE_EXPIRY_SECONDS", "7"),
        ("LONGHAUL_LOG_LEVEL", "debug"),
        ("LONGHAUL_LOG_FORMAT", "json"),
    ]);
    let config = config.unwrap();
    let policy = &config.of::<Images>().policy;
    assert!(policy.child_approval && policy.detection);
    assert_eq!((policy.rules[0].recheck, policy.rules[1].recheck), (Recheck::Always, Recheck::Changed));
    assert_eq!((policy.resources, policy.verdicts.ttl.as_secs()), (Resources::All, 7));
    let pods_only = overruled(&[("LONGHAUL_RESOURCE_VALIDATION_MODE", "podsOnly")]).unwrap();
    assert_eq!(pods_only.of::<Images>().policy.resources, Resources::PodsOnly);
    assert_eq!(config.of::<Log>(), &Log { level: Level::Debug, format: LogFormat::Json });
    let same = overruled(&[("LOG_LEVEL", "debug"), ("LONGHAUL_LOG_LEVEL", "")]).unwrap();
    assert_eq!(same.of::<Log>().level, Level::Info, "an empty variable is an unset one, and others' are not ours");
}

#[test]
fn a_value_of_the_environment_that_means_nothing_is_refused() {
    let error = overruled(&[("LONGHAUL_DETECTION_MODE", "yes")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the environment: LONGHAUL_DETECTION_MODE: unknown value `yes`; use one of true, false"
    );
}
