//! Tests of the matching of docker configuration keys. The cases of hosts, ports and paths come from the kubelet's
//! tests, such as `TestURLsMatch`, `TestDockerKeyringForGlob` and `TestKeyringHitWithUnqualifiedDockerHub`
//! (`kubernetes/pkg/credentialprovider/keyring_test.go`).

use proptest::prelude::*;

use super::*;

fn ring(keys: &[&str]) -> Keyring {
    let auths: BTreeMap<_, _> =
        keys.iter().map(|key| (*key, serde_json::json!({"username": key, "password": "p"}))).collect();
    Keyring::docker_config(serde_json::json!({ "auths": auths }).to_string().as_bytes(), &"test".into()).unwrap()
}

fn found(ring: &Keyring, image: &str) -> Vec<String> {
    let (host, repository) = image.split_once('/').unwrap();
    let host = Authority::parse(host).unwrap();
    ring.fitting(&host, repository).map(|credential| credential.user.clone()).collect()
}

#[test]
fn what_fits_is_what_the_kubelet_finds() {
    for (key, image, fits) in [
        ("https://hello.kubernetes.io", "hello.kubernetes.io/foo/bar", true),
        ("http://hello.kubernetes.io", "hello.kubernetes.io/foo/bar", true),
        ("*.kubernetes.io", "hello.kubernetes.io/foo/bar", true),
        ("hello.*.io", "hello.kubernetes.io/foo/bar", true),
        ("*.*.*", "hello.kubernetes.io/foo/bar", true),
        ("*kubernetes.io", "hello.kubernetes.io/foo/bar", false),
        ("*.io", "hello.kubernetes.io/foo/bar", false),
        ("*.hello.kubernetes.io", "hello.kubernetes.io/foo/bar", false),
        ("prefix*.kubernetes.io", "hello.kubernetes.io/foo/bar", false),
        ("h?llo.kubernetes.io", "hello.kubernetes.io/foo/bar", true),
        ("h[a-f]llo.kubernetes.io", "hello.kubernetes.io/foo/bar", true),
        ("h[^a-f]llo.kubernetes.io", "hello.kubernetes.io/foo/bar", false),
        ("kubernetes.io/foo", "kubernetes.io/foo/bar", true),
        ("kubernetes.io/foo", "kubernetes.io/bar/foo", false),
        ("*.kubernetes.io/foo", "x.kubernetes.io/foo/bar", true),
        ("kubernetes.io:5000", "kubernetes.io:5000/foo", true),
        ("kubernetes.io:5000", "kubernetes.io/foo", false),
        ("kubernetes.io", "kubernetes.io:5000/foo", false),
        ("*.kubernetes.io:5000/foo", "x.kubernetes.io:5000/foo", true),
        ("https://kubernetes.io/v1/", "kubernetes.io/foo", true),
        ("https://kubernetes.io/v2/foo", "kubernetes.io/foo/bar", true),
        ("https://kubernetes.io/v2/foo", "kubernetes.io/bar", false),
        ("https://index.docker.io/v1/", "docker.io/library/nginx", true),
        ("index.docker.io", "docker.io/library/nginx", true),
        ("docker.io", "docker.io/library/nginx", true),
        ("docker.io/team", "docker.io/library/nginx", false),
        ("*.docker.io", "docker.io/library/nginx", false),
        ("[::1]:5000", "[::1]:5000/x", true),
        ("[ab].corp", "a.corp/x", true),
        ("REG.corp", "reg.CORP/x", true),
    ] {
        assert_eq!(!found(&ring(&[key]), image).is_empty(), fits, "{key} {image}");
    }
    for key in ["", "/", "https://", "a:0/", "a:99999", "user@host"] {
        assert!(ring(&[key]).is_empty(), "{key}");
    }
}

#[test]
fn the_longest_path_comes_first_and_a_name_before_a_glob() {
    let ring = ring(&["*.corp", "reg.corp", "*.corp/team/app", "reg.corp/team", "r[a-f]g.corp", "reg.corp/other"]);
    let best = ["*.corp/team/app", "reg.corp/team", "reg.corp", "r[a-f]g.corp", "*.corp"];
    assert_eq!(found(&ring, "reg.corp/team/app"), best);
    assert_eq!(found(&ring, "reg.corp/x"), best[2..]);
}

#[test]
fn of_equal_keys_the_earlier_ring_comes_first() {
    let of = |user: &str| {
        let text = serde_json::json!({"auths": {"reg.corp": {"username": user, "password": "p"}}}).to_string();
        Keyring::docker_config(text.as_bytes(), &user.into()).unwrap()
    };
    let both = Keyring::united([&of("pod"), &of("account")]);
    assert_eq!(found(&both, "reg.corp/x"), ["pod", "account"]);
    assert_eq!(both.sources(), [&Arc::from("pod"), &Arc::from("account")]);
}

#[test]
fn both_files_and_every_spelling_of_a_login() {
    let source: Arc<str> = "pull secret a/b".into();
    let host = Authority::parse("h:5000").unwrap();
    let only = |ring: &Keyring| {
        let credential = Arc::clone(ring.fitting(&host, "r").next().unwrap());
        let (Proof::Password(text) | Proof::IdentityToken(text)) = &credential.proof;
        (credential.user.clone(), text.clone(), credential.basic().is_some())
    };
    let password = ("u".to_owned(), "p:w".to_owned(), true);
    for entry in [
        r#"{"username":"u","password":"p:w","email":"e"}"#,
        r#"{"auth":"dTpwOnc="}"#,
        r#"{"auth":"dTpwOnc"}"#,
        r#"{"auth":" dTpwOncAAA== ","username":"x","password":"y"}"#,
    ] {
        let config = format!(r#"{{"auths":{{"h:5000":{entry},"x":{{"auth":"!"}},"y":{{}}}},"credsStore":"z"}}"#);
        assert_eq!(only(&Keyring::docker_config(config.as_bytes(), &source).unwrap()), password, "{entry}");
        let older = format!(r#"{{"http://h:5000":{entry}}}"#);
        assert_eq!(only(&Keyring::dockercfg(older.as_bytes(), &source).unwrap()), password, "{entry}");
    }
    for (entry, user) in [
        (r#"{"auth":"dTpw","identitytoken":"t"}"#, "u"),
        (r#"{"identitytoken":"t"}"#, "<token>"),
        (r#"{"username":"<token>","password":"t"}"#, "<token>"),
    ] {
        let config = format!(r#"{{"auths":{{"h:5000":{entry}}}}}"#);
        let ring = Keyring::docker_config(config.as_bytes(), &source).unwrap();
        assert_eq!(only(&ring), (user.to_owned(), "t".to_owned(), false), "{entry}");
        assert_eq!(format!("{:?}", ring.keys[0].1), "Credential(pull secret a/b)");
    }
    for wrong in ["", "[]", r#"{"auths":[]}"#, r#"{"auths":{"h":7}}"#] {
        assert_eq!(Keyring::docker_config(wrong.as_bytes(), &source).unwrap_err(), KeyringError::Shape, "{wrong}");
    }
}

#[test]
fn what_is_too_large_is_refused() {
    let many: BTreeMap<_, _> = (0..=ENTRIES_MAX).map(|n| (format!("h{n}"), serde_json::json!({}))).collect();
    let many = serde_json::json!({ "auths": many }).to_string();
    let error = |text: &[u8]| Keyring::docker_config(text, &"x".into()).unwrap_err();
    assert_eq!(error(many.as_bytes()), KeyringError::TooMany);
    assert_eq!(error(&vec![b' '; TEXT_BYTES_MAX + 1]), KeyringError::TooLong);
    let long = serde_json::json!({"auths": {"h": {"username": "u", "password": "p".repeat(SECRET_BYTES_MAX + 1)}}});
    assert!(Keyring::docker_config(long.to_string().as_bytes(), &"x".into()).unwrap().is_empty());
}

/// The fingerprint of a keyring that is narrowed to one image depends only on credentials that match the image, not on
/// other credentials or on sources.
#[test]
fn a_fingerprint_is_of_what_fits_and_not_of_where_it_is_from() {
    let of = |host: &str, password: &str, source: &str| {
        let text = serde_json::json!({"auths": {host: {"username": "u", "password": password}}}).to_string();
        Keyring::docker_config(text.as_bytes(), &source.into()).unwrap()
    };
    let place = [(Authority::parse("a.corp").unwrap(), "x".to_owned())];
    let print = |ring: &Keyring| ring.narrowed(&place).fingerprint();
    let (one, two, other) = (of("a.corp", "p", "s"), of("a.corp", "p", "t"), of("a.corp", "q", "s"));
    let elsewhere = of("b.corp", "p", "s");
    assert!(print(&one).is_some() && print(&one) == print(&two) && print(&one) != print(&other));
    assert_eq!(print(&elsewhere), None);
    assert_eq!(print(&Keyring::united([&elsewhere, &one])), print(&one));
    assert_ne!(print(&Keyring::united([&other, &one])), print(&Keyring::united([&one, &other])));
}

proptest! {
    /// A glob without special characters matches only its own text. No glob causes a panic or takes long to match.
    #[test]
    fn globs_end(glob in "[a-c*?\\[\\]^-]{0,40}", text in "[a-c]{0,60}") {
        let fit = fits(glob.as_bytes(), text.as_bytes());
        if !glob.contains(['*', '?', '[']) {
            prop_assert_eq!(fit, glob == text);
        }
    }

    /// Arbitrary bytes as a Secret are parsed or refused, and matching against their keys ends.
    #[test]
    fn noise_is_refused(text in prop::collection::vec(any::<u8>(), 0..200), key in ".{0,40}") {
        let _ = Keyring::docker_config(&text, &"x".into());
        let _ = Keyring::dockercfg(&text, &"x".into());
        let _ = found(&ring(&[&key]), "a.b:1/c");
    }
}

/// A keyring that is sent to another process matches the same credentials in that process, in the same order.
#[test]
fn a_ring_survives_being_written_down() {
    let text = r#"{"auths": {
        "https://index.docker.io/v1/": {"username": "a", "password": "b"}, "*.corp:5000": {"username": "c", "password": "d"},
        "[::1]:5000/team": {"username": "e", "password": "f"}, "ghcr.io/team": {"identitytoken": "t"}
    }}"#;
    let ring = Keyring::docker_config(text.as_bytes(), &"here".into()).unwrap();
    let proof = |proof: &Proof| match proof {
        Proof::Password(text) => Proof::Password(text.clone()),
        Proof::IdentityToken(text) => Proof::IdentityToken(text.clone()),
    };
    let keys = ring.keys().map(|(key, credential)| (key, credential.user.clone(), proof(&credential.proof)));
    let again = Keyring::of_keys(keys.collect::<Vec<_>>(), &"there".into()).unwrap();
    assert_eq!(again.keys().count(), 4);
    assert_eq!(again.fingerprint(), ring.fingerprint());
}
