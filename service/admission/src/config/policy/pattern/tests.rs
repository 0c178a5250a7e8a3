//! Tests of patterns: Connaisseur's order of specificity, and properties of the matchers.

use proptest::prelude::*;

use super::*;

fn pattern(text: &str) -> Pattern {
    Pattern::new(text).unwrap()
}

/// The pattern that applies to `image`: the most specific pattern, or the last of several equally specific patterns.
fn best<'a>(patterns: &[&'a str], image: &str) -> Option<&'a str> {
    let matching = patterns.iter().copied().filter(|text| pattern(text).matches(image));
    matching.max_by(|left, right| pattern(left).compare(&pattern(right), image))
}

#[test]
fn stars_cross_slashes_and_are_thought_at_both_ends() {
    let image = "index.docker.io/library/nginx:1.25";
    for text in ["*", "*:*", "docker.io/*", "docker.io/library/nginx", "index.docker.io", "nginx", "d*nginx:1", "ng?nx"]
    {
        assert!(pattern(text).matches(image), "{text}");
    }
    for text in ["library/ngin?x", "quay.io/*", "nginx:1.26", "q*nginx"] {
        assert!(!pattern(text).matches(image), "{text}");
    }
    assert!(pattern("GHCR.io/Team").matches("ghcr.io/Team/app:1"), "hosts are compared without case");
}

#[test]
fn the_most_specific_pattern_counts_in_the_order_of_connaisseurs_code() {
    let image = "myregistry.io/team/app/web:v1";
    for (patterns, expected) in [
        // More parts win, however short they are.
        (&["myregistry.io/team/app*", "*/*/*/*"][..], "*/*/*/*"),
        // Then the longer common beginning, part by part from the left.
        (&["myregistry.io/*", "*/team"], "myregistry.io/*"),
        (&["*/tea*", "*/team"], "*/team"),
        (&["my*/team", "myreg*/t*"], "myreg*/t*"),
        // Then the longer part, from the left.
        (&["*/*", "*istry.io/*"], "*istry.io/*"),
        (&["*", "*:*"], "*:*"),
    ] {
        assert_eq!(best(patterns, image), Some(expected));
        let reversed: Vec<_> = patterns.iter().rev().copied().collect();
        assert_eq!(best(&reversed, image), Some(expected), "the order in the file decides nothing");
    }
    // Docker Hub's images are matched as index.docker.io, so that `docker.io` at the front has nothing in common with them.
    let hub = "index.docker.io/library/nginx:1";
    assert_eq!(best(&["docker.io/library/*:*", "*/library/nginx"], hub), Some("*/library/nginx"));
}

#[test]
fn ties_are_seen_and_neighbours_are_none() {
    for (left, right) in [("nginx", "redis"), ("*a*/x", "*b*/x"), ("h.io/a*b", "h.io/a*c"), ("*", "?")] {
        assert!(pattern(left).ties_with(&pattern(right)), "{left} {right}");
    }
    for (left, right) in [
        ("ghcr.io/a", "quay.io/b"),
        ("docker.io/library/nginx", "docker.io/library/redis"),
        ("h.io/ab*", "h.io/a*b"),
        ("*", "*:*"),
        ("a/b", "a/b/c"),
        ("*-x/a", "*-y/a"),
    ] {
        assert!(!pattern(left).ties_with(&pattern(right)), "{left} {right}");
    }
}

#[test]
fn what_is_no_pattern_is_refused_with_what_to_write() {
    for (text, what) in
        [("", "is empty"), ("a[bc]", "has `[`"), ("a{b,c}", "has `{`"), ("a b", "has ` `"), ("a\n", "has `\\n`")]
    {
        assert!(Pattern::new(text).unwrap_err().to_string().starts_with(what), "{text}");
    }
    assert!(Pattern::new(&"a".repeat(600)).is_err());
}

#[test]
fn hosts_are_compared_by_their_one_name() {
    for (text, image) in [
        ("registry.corp:443/*", "registry.corp/app:1"),
        ("registry-1.docker.io/team/*", "index.docker.io/team/app:1"),
        ("Docker.io/team/*", "index.docker.io/team/app:1"),
        ("Registry/*", "REGISTRY/app:1"),
        ("Registry:443/*", "REGISTRY/app:1"),
    ] {
        assert!(pattern(text).matches(image) && pattern(text).matches_at_its_host(image), "{text}");
    }
}

/// A rule that admits images without a check matches only the host that the pattern names.
#[test]
fn a_host_that_is_written_is_no_part_of_a_path() {
    for (text, at_its_host, elsewhere) in [
        ("trusted.corp/*", "trusted.corp/x:1", "evil.example/trusted.corp/x:1"),
        ("trusted.corp", "index.docker.io/library/trusted.corp:1", "trusted.corp.evil.example/x:1"),
        ("docker.io/library/*", "index.docker.io/library/nginx:1", "evil.example/docker.io/library/x:1"),
        ("library/nginx", "index.docker.io/library/nginx:1", "evil.example/library/nginx:1"),
        ("team/app", "index.docker.io/team/app:1", "evil.example/team/app:1"),
        ("*.trusted.corp/*", "a.trusted.corp/x:1", "evil.example/a.trusted.corp/x:1"),
        ("nginx", "index.docker.io/library/nginx:1", "evil.example/nginx:1"),
    ] {
        assert!(pattern(text).matches_at_its_host(at_its_host), "{text}");
        assert!(!pattern(text).matches_at_its_host(elsewhere), "{text}");
    }
    for any in ["*", "*:*", "*/*"] {
        assert!(pattern(any).matches_at_its_host("ghcr.io/team/app:1"), "{any}: whoever writes that means every host");
    }
}

/// A simple glob matcher for comparison, whose time is exponential in the number of stars.
fn matches_plainly(glob: &[u8], text: &[u8]) -> bool {
    match (glob.first(), text.first()) {
        (None, None) => true,
        (Some(b'*'), _) => matches_plainly(&glob[1..], text) || !text.is_empty() && matches_plainly(glob, &text[1..]),
        (Some(byte), Some(read)) => (*byte == b'?' || byte == read) && matches_plainly(&glob[1..], &text[1..]),
        _ => false,
    }
}

proptest! {
    /// The glob matcher of policies agrees with the simple matcher of this test.
    #[test]
    fn the_matcher_is_right(glob in "[ab*?]{0,8}", text in "[ab]{0,8}") {
        prop_assert_eq!(matches(glob.as_bytes(), text.as_bytes()), matches_plainly(glob.as_bytes(), text.as_bytes()));
    }

    /// If one text matches two globs, `overlap` is true for the two globs.
    #[test]
    fn overlap_is_seen(left in "[ab*?]{0,6}", right in "[ab*?]{0,6}", text in "[ab]{0,6}") {
        if matches(left.as_bytes(), text.as_bytes()) && matches(right.as_bytes(), text.as_bytes()) {
            prop_assert!(overlap(left.as_bytes(), right.as_bytes()));
        }
    }

    /// If `ties_with` is false for two patterns, one of the two is more specific for each image with as many
    /// components.
    #[test]
    fn what_does_not_tie_is_decided(left in "[ab*]{1,3}/[ab*]{1,3}", right in "[ab*]{1,3}/[ab*]{1,3}", image in "[ab]{1,4}/[ab]{1,4}") {
        let (left, right) = (pattern(&left), pattern(&right));
        if left != right && !left.ties_with(&right) && left.matches(&image) && right.matches(&image) {
            // `ties_with` does not consider a star that matched a slash.
            let whole = |pattern: &Pattern| {
                let parts = pattern.glob.split('/').zip(image.split('/'));
                parts.into_iter().all(|(glob, text)| matches(glob.as_bytes(), text.as_bytes()))
            };
            if whole(&left) && whole(&right) {
                prop_assert_ne!(left.compare(&right, &image), Ordering::Equal);
            }
        }
    }
}
