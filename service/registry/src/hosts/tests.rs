//! Tests of the rules for hosts that a registry names: token services and targets of redirects.

use super::*;

fn registry(host: &str, plain_http: bool, realms: &[&str]) -> config::Registry {
    let realms = realms.iter().map(|realm| Authority::parse(realm).unwrap()).collect();
    let host = Authority::parse(host).unwrap();
    let host = if plain_http { OneName::of_plain(&host) } else { OneName::of(&host) };
    let (mirrors, rewrite) = (Vec::new(), Vec::new());
    let (max_concurrent, max_per_second) = (config::MAX_CONCURRENT, None);
    config::Registry {
        host,
        endpoint: None,
        plain_http,
        ca_file: None,
        login: None,
        mirrors,
        rewrite,
        max_concurrent,
        max_per_second,
        realms,
    }
}

fn named(image: &str) -> FullName {
    crate::Reference::parse(image).unwrap().full_name()
}

fn hosts(registries: &[config::Registry]) -> Hosts {
    let resolve = config::Resolve { registries: registries.to_vec(), ..config::Resolve::of("resolve: {}") };
    Hosts::new(&resolve, Proxies::none(), Arc::default()).unwrap()
}

/// A registry's settings apply to all spellings of its name, even with a default port other than 443.
#[test]
fn an_entry_is_found_in_every_spelling() {
    let configured = [
        registry("registry.corp", false, &[]),
        registry("Docker.io", false, &[]),
        registry("plain.corp", true, &[]),
        registry("ported.corp:443", true, &[]),
    ];
    let hosts = hosts(&configured);
    for (index, spellings) in [
        &["registry.corp", "REGISTRY.corp", "registry.corp:443", "Registry.Corp:0443"][..],
        &["docker.io", "index.docker.io", "registry-1.docker.io", "Registry-1.docker.io:443", "DOCKER.io:443"],
        &["plain.corp", "plain.corp:80", "plain.corp:443", "PLAIN.corp"],
        &["ported.corp", "ported.corp:443"],
    ]
    .into_iter()
    .enumerate()
    {
        for spelled in spellings {
            let upstream = hosts.upstream(spelled).unwrap();
            assert_eq!(upstream.entry.map(|entry| entry.index), Some(index), "{spelled}");
        }
    }
    assert!(hosts.upstream("registry.corp:80").unwrap().entry.is_none(), "another port is another registry");
    let place = |host: &str| place(&Authority::parse(host).unwrap(), None).1.to_string();
    assert_eq!(place("Registry-1.docker.io:443"), "registry-1.docker.io:443");
    assert_eq!(place("INDEX.docker.io"), "registry-1.docker.io");
}

#[test]
fn how_a_host_stands_to_the_registry_that_names_it() {
    let mut mirrored = registry("registry.test", true, &[]);
    mirrored.endpoint = Some(Authority::parse("10.0.0.5:5000").unwrap());
    let configured = [
        registry("reg.corp:443", false, &["auth.corp", "sso.corp:8443"]),
        registry("plain.corp:5000", true, &[]),
        mirrored,
    ];
    let hosts = hosts(&configured);
    for (host, url, expected) in [
        ("reg.corp", "https://reg.corp:443/token", Relation::Own),
        ("REG.corp:443", "https://reg.corp/token", Relation::Own),
        ("reg.corp", "https://reg.corp:8443/token", Relation::Stranger),
        ("reg.corp", "http://reg.corp/token", Relation::Stranger),
        ("reg.corp", "https://auth.corp:1/token", Relation::Named),
        ("reg.corp", "https://sso.corp:8443/token", Relation::Named),
        ("reg.corp", "https://sso.corp/token", Relation::Stranger),
        ("plain.corp:5000", "http://plain.corp:5000/", Relation::Own),
        ("plain.corp:5000", "http://plain.corp:5001/", Relation::Stranger),
        ("registry.test", "http://registry.test/", Relation::Own),
        ("registry.test", "http://10.0.0.5:5000/", Relation::Own),
        ("docker.io", "https://auth.docker.io/token", Relation::Known),
        ("docker.io", "https://registry-1.docker.io/token", Relation::Own),
        ("docker.io", "https://auth.docker.io:444/token", Relation::Stranger),
        ("docker.io", "https://auth.docker.io.evil.com/token", Relation::Stranger),
        ("registry.gitlab.com", "https://gitlab.com/jwt/auth", Relation::Known),
        ("evil.com", "https://auth.docker.io/token", Relation::Stranger),
    ] {
        assert_eq!(hosts.upstream(host).unwrap().relation(&Url::parse(url).unwrap()), expected, "{host} {url}");
    }
}

#[test]
fn a_realm_without_tls_is_for_plain_registries_only() {
    let hosts = hosts(&[registry("plain.corp:5000", true, &[])]);
    let realm = Url::parse("http://auth.io/token").unwrap();
    assert!(hosts.upstream("plain.corp:5000").unwrap().realm(&realm).is_ok_and(|target| !target.trusted));
    let refused = hosts.upstream("reg.io").unwrap().realm(&realm).err().unwrap();
    assert_eq!(refused.class, Class::Misconfigured);
}

/// If a registry on this machine names a token service without TLS on another machine, no login is sent to the token
/// service.
#[test]
fn a_login_never_goes_in_clear_to_a_realm_on_another_machine() {
    let mut hub = registry("docker.io", true, &[]);
    hub.endpoint = Some(Authority::parse("127.0.0.1:5001").unwrap());
    let hosts = hosts(&[registry("localhost:5000", true, &["auth.io", "127.0.0.1"]), hub]);
    for (host, realm, expected) in [
        ("localhost:5000", "http://auth.io/token", false),
        ("localhost:5000", "https://auth.io/token", true),
        ("localhost:5000", "http://127.0.0.1/token", true),
        ("docker.io", "http://auth.docker.io:443/token", false),
        ("docker.io", "https://auth.docker.io/token", true),
    ] {
        let target = hosts.upstream(host).unwrap().realm(&Url::parse(realm).unwrap()).unwrap();
        assert_eq!(target.trusted, expected, "{host} {realm}");
    }
}

#[test]
fn credentials_are_kept_from_a_registry_without_tls_on_another_machine() {
    let at = |host: &str, endpoint: &str| config::Registry {
        endpoint: Some(Authority::parse(endpoint).unwrap()),
        ..registry(host, true, &[])
    };
    let hosts = hosts(&[
        registry("plain.corp:5000", true, &[]),
        registry("localhost:5000", true, &[]),
        registry("reg.corp", false, &[]),
        at("near.corp", "127.0.0.1:5000"),
        at("127.0.0.2:5000", "10.0.0.5:5000"),
    ]);
    for (host, expected) in [
        ("plain.corp:5000", false),
        ("localhost:5000", true),
        ("reg.corp", true),
        ("near.corp", true),
        ("127.0.0.2:5000", false),
        ("no-entry.corp", true),
    ] {
        assert_eq!(hosts.upstream(host).unwrap().keeps_secrets(), expected, "{host}");
    }
}

#[test]
fn a_port_that_is_none_is_no_host() {
    let hosts = hosts(&[]);
    for host in ["reg.io:0", "reg.io:65536", "reg.io:99999", "reg.io:"] {
        assert_eq!(hosts.upstream(host).err().map(|failure| failure.class), Some(Class::Misconfigured), "{host}");
    }
}

#[test]
fn clients_are_bounded_and_the_one_in_use_stays() {
    let hosts = hosts(&[]);
    let good = hosts.upstream("good.io").unwrap().client;
    for index in 0..200 {
        hosts.upstream(&format!("h{index}.io")).unwrap();
        assert!(Arc::ptr_eq(&hosts.upstream("good.io").unwrap().client, &good), "{index}");
    }
}

#[test]
fn new_authorities_make_new_clients_and_bad_ones_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.crt");
    let pem = |name: &str| rcgen::generate_simple_self_signed([name.to_owned()]).unwrap().cert.pem();
    std::fs::write(&path, pem("first")).unwrap();
    let mut with_file = registry("reg.corp", false, &["auth.corp"]);
    with_file.ca_file = Some(path.clone());
    let hosts = hosts(&[with_file, registry("other.corp", false, &[])]);
    let realm = Url::parse("https://auth.corp/token").unwrap();
    let clients = || {
        let upstream = hosts.upstream("reg.corp").unwrap();
        let realm = upstream.realm(&realm).unwrap().client;
        (upstream.client, realm, hosts.upstream("other.corp").unwrap().client)
    };
    let before = clients();
    std::fs::write(&path, "half").unwrap();
    hosts.look_at_files();
    let same = clients();
    assert!(Arc::ptr_eq(&before.0, &same.0) && Arc::ptr_eq(&before.1, &same.1));
    std::fs::write(&path, pem("second")).unwrap();
    hosts.look_at_files();
    let after = clients();
    assert!(!Arc::ptr_eq(&before.0, &after.0) && !Arc::ptr_eq(&before.1, &after.1) && Arc::ptr_eq(&before.2, &after.2));
    let trust = |client: &Client| Arc::clone(client.origin().tls.as_ref().unwrap());
    assert!(!Arc::ptr_eq(&trust(&before.0), &trust(&after.0)) && Arc::ptr_eq(&trust(&after.0), &trust(&after.1)));
}

/// A lock file in a mounted `ConfigMap` is read again after a change. An invalid lock file is reported, and the former
/// stays in use. The kubelet mounts the file as a link through `..data` and replaces `..data` by a link to another
/// folder.
#[test]
fn a_lock_of_a_config_map_is_followed_and_what_is_none_is_said_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let entry = |digest: &str| format!("- {{image: 'nginx:1', digest: '{digest}', resolved: x, registry: r}}\n");
    let digest = |digit: &str| format!("sha256:{}", digit.repeat(64));
    let mount = |version: u32, text: &str| {
        let data = format!("..{version}");
        std::fs::create_dir(at(&data)).unwrap();
        std::fs::write(at(&data).join("images.lock"), text).unwrap();
        std::os::unix::fs::symlink(&data, at("..fresh")).unwrap();
        std::fs::rename(at("..fresh"), at("..data")).unwrap();
    };
    mount(1, &format!("version: 1\nimages:\n{}", entry(&digest("1"))));
    std::os::unix::fs::symlink("..data/images.lock", at("images.lock")).unwrap();
    let resolve = config::Resolve { lock: Some(at("images.lock")), ..config::Resolve::of("{}") };
    let hosts = Hosts::new(&resolve, Proxies::none(), Arc::default()).unwrap();
    let locked = || hosts.locked(&named("nginx:1"));
    let bad = [
        (
            format!("version: 1\nimages:\n{}{}", entry(&digest("2")), entry(&digest("3"))),
            "delete the entry that is wrong",
        ),
        ("version: 7\nimages: []\n".to_owned(), "it has version 7; this program reads version 1: write it anew"),
        (format!("version: 1\nimages:\n{}", entry("sha256:2")), "the digest of `nginx:1` is none"),
        ("images\n".to_owned(), "it is no lock file"),
    ];
    for (version, (text, why)) in (2..).zip(&bad) {
        mount(version, text);
        hosts.look_at_files();
        assert_eq!(locked(), Some(digest("1")), "{why}");
        let refused = Hosts::new(&resolve, Proxies::none(), Arc::default()).err().unwrap().to_string();
        assert!(
            refused.starts_with("resolve.lock: ") && refused.contains("images.lock") && refused.contains(why),
            "{refused}"
        );
        assert!(refused.contains("pin --lock") || refused.contains("delete the entry"), "a remedy: {refused}");
    }
    mount(9, &format!("version: 1\nimages:\n{}", entry(&digest("4"))));
    hosts.look_at_files();
    assert_eq!(locked(), Some(digest("4")));
}

#[test]
fn a_lock_is_followed_and_a_bad_one_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("images.lock");
    let write = |digit: &str| {
        let digest = digit.repeat(64);
        let entry = format!("- {{image: 'nginx:1', digest: 'sha256:{digest}', resolved: x, registry: r}}\n");
        std::fs::write(&path, format!("version: 1\nimages:\n{entry}")).unwrap();
    };
    write("1");
    let resolve = config::Resolve { lock: Some(path.clone()), ..config::Resolve::of("{}") };
    let hosts = Hosts::new(&resolve, Proxies::none(), Arc::default()).unwrap();
    let locked = || hosts.locked(&named("nginx:1")).map(|digest| digest[7..10].to_owned());
    assert_eq!(locked().as_deref(), Some("111"));
    assert_eq!(hosts.locked(&named("nginx:2")), None);
    std::fs::write(&path, "version: 2\n").unwrap();
    hosts.look_at_files();
    assert_eq!(locked().as_deref(), Some("111"));
    write("2");
    hosts.look_at_files();
    assert_eq!(locked().as_deref(), Some("222"));
    std::fs::write(&path, "version: 2\n").unwrap();
    let refused = Hosts::new(&resolve, Proxies::none(), Arc::default()).err().unwrap();
    assert!(
        refused.to_string().starts_with("resolve.lock: ") && refused.to_string().contains("version 2"),
        "{refused}"
    );
}
