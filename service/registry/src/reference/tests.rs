//! Tests of the grammar of image references: with tags, with digests, and invalid references.

use proptest::prelude::*;

use super::*;

#[test]
fn spellings() {
    for (text, expected) in [
        ("nginx", "docker.io/library/nginx:latest"),
        ("nginx:1.25", "docker.io/library/nginx:1.25"),
        ("team/app", "docker.io/team/app:latest"),
        ("index.docker.io/library/nginx", "docker.io/library/nginx:latest"),
        ("localhost/app:v1", "localhost/app:v1"),
        ("Registry/app:v1", "Registry/app:v1"),
        ("127.0.0.1:5000/a/b-c/d__e:V1.0-x", "127.0.0.1:5000/a/b-c/d__e:V1.0-x"),
        ("127.0.0.1:5000/app", "127.0.0.1:5000/app:latest"),
        ("[::1]:5000/app", "[::1]:5000/app:latest"),
        ("[fe80::1]/app", "[fe80::1]/app:latest"),
    ] {
        assert_eq!(Reference::parse(text).unwrap().as_asked(), expected, "{text}");
    }
    for text in ["", "Nginx", "a//b", "a/../b", "nginx:", "nginx:-x", "a__._b", "host.io/", "/a", "a b", "x:y:z"] {
        assert!(Reference::parse(text).is_err(), "{text}");
    }
    assert!(Reference::parse(&"a".repeat(64)).is_err(), "the id of a local image");
}

#[test]
fn only_a_whole_digest_pins() {
    let (sha256, sha512) = (format!("sha256:{}", "a".repeat(64)), format!("sha512:{}", "0".repeat(128)));
    for (text, name) in [
        (format!("nginx@{sha256}"), "index.docker.io/library/nginx"),
        (format!("nginx:1@{sha256}"), "index.docker.io/library/nginx:1"),
        (format!("Host.io:5000/a/b:1@{sha512}"), "host.io:5000/a/b:1"),
        // Found by a fuzzer: in lower case this host would be the beginning of a path.
        (format!("Host/a:1@{sha512}"), "HOST/a:1"),
    ] {
        let image = Image::parse(&text).unwrap();
        let digest = image.digest.clone().unwrap();
        assert_eq!(image.full_name(), format!("{name}@{digest}"), "{text}");
        assert_eq!(Reference::parse(&text), Err(ReferenceError::Pinned), "{text}");
    }
    for digest in [
        String::new(),
        "foo".to_owned(),
        "sha256:".to_owned(),
        format!("sha256:{}", "a".repeat(63)),
        format!("sha256:{}", "a".repeat(128)),
        format!("sha512:{}", "a".repeat(64)),
        format!("sha256:{}", "A".repeat(64)),
        format!("md5:{}", "a".repeat(32)),
        format!("{sha256}@{sha256}"),
        format!("{sha256} "),
    ] {
        let error = Image::parse(&format!("a/b@{digest}")).unwrap_err();
        assert!(matches!(error, ReferenceError::Digest(_)), "{digest}: {error}");
    }
    assert!(Image::parse(&format!("@{sha256}")).is_err(), "a digest without a name");
    assert!(Image::parse(&format!("user:pw@host/x@{sha256}")).is_err(), "a URL's user is no part of a name");
}

#[test]
fn hosts_are_names_or_addresses_with_a_port_that_exists() {
    for host in [
        "host:99999",
        "host:65536",
        "host:0",
        "host:",
        "host:+5",
        "host:5000:1",
        "ho_st:1",
        "-a.io",
        "a-.io",
        "a..io",
        "[::1",
        "[x]:1",
        "[::1]5000",
        ":5000",
        ".",
        "h%41.io",
        "user:pw",
    ] {
        let error = Image::parse(&format!("{host}/x")).unwrap_err();
        assert!(matches!(error, ReferenceError::Host(_)), "{host}: {error}");
    }
    assert!(Image::parse("host:65535/x").is_ok());
}

#[test]
fn lengths_have_their_limits() {
    assert!(Image::parse(&format!("h.io/{}", "a".repeat(250))).is_ok());
    assert_eq!(Image::parse(&format!("h.io/{}", "a".repeat(251))), Err(ReferenceError::NameTooLong));
    assert!(Image::parse(&format!("a:{}", "t".repeat(128))).is_ok());
    let error = Image::parse(&format!("a:{}", "é".repeat(200))).unwrap_err().to_string();
    assert!(error.len() < 300, "a message repeats no more than the beginning: {error}");
    assert_eq!(Image::parse(&"a".repeat(10_000)), Err(ReferenceError::TooLong));
}

proptest! {
    /// No text causes a panic. If a reference is valid, its text for a lookup is valid too and names the same image.
    #[test]
    fn what_is_asked_is_stable(text in "[a-z0-9./:_@A-Z-]{0,40}") {
        if let Ok(reference) = Reference::parse(&text) {
            prop_assert_eq!(Reference::parse(&reference.as_asked()), Ok(reference));
        }
    }

    /// The full name of an image names the same image, whatever components of the reference were left out.
    #[test]
    fn full_names_mean_the_same(text in "([a-z]{1,3}(\\.io)?(:5000)?/)?[a-z]{1,4}(:[a-z]{1,3})?(@sha256:[0-9a-f]{64})?") {
        let image = Image::parse(&text).unwrap();
        let again = Image::parse(&image.full_name()).unwrap();
        prop_assert_eq!(&again.full_name(), &image.full_name());
        prop_assert_eq!(OneName::parse(&again.host), OneName::parse(&image.host));
        prop_assert_eq!((again.repository, again.digest), (image.repository, image.digest));
    }
}

/// All names of one registry give the same full name, so a policy rule for one name applies to all.
#[test]
fn every_name_of_a_registry_is_one_name() {
    for (text, name) in [
        ("registry.corp:443/app", "registry.corp/app:latest"),
        ("registry.corp:0443/app", "registry.corp/app:latest"),
        ("Registry.CORP/app", "registry.corp/app:latest"),
        ("registry.corp:8443/app", "registry.corp:8443/app:latest"),
        ("registry-1.docker.io/team/app:1", "index.docker.io/team/app:1"),
        ("Docker.io/team/app:1", "index.docker.io/team/app:1"),
        ("Index.Docker.io:443/nginx", "index.docker.io/library/nginx:latest"),
        ("[0:0::1]:443/app", "[::1]/app:latest"),
        ("Registry/app", "REGISTRY/app:latest"),
        ("Registry:443/app", "REGISTRY/app:latest"),
    ] {
        assert_eq!(Image::parse(text).unwrap().full_name(), name, "{text}");
        assert_eq!(Reference::parse(text).unwrap().full_name().to_string(), name, "{text}");
    }
}
