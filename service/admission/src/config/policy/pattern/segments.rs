//! Pattern matching by the rules of sigstore's policy-controller.
//!
//! `*` is any text without `/`, `?` is any character except `/`, and `**` is any text. A pattern without tag and digest
//! matches the name with any tag and digest.

/// The default host of image names without a host, as Go tools write it.
const HUB: &str = "index.docker.io/";
const OFFICIAL: &str = "library/";

/// The pattern with its implied host: for `nginx`, the host of Docker Hub.
pub fn full(written: &str) -> String {
    let written = written.strip_prefix("docker.io/").map_or_else(|| written.to_owned(), |rest| format!("{HUB}{rest}"));
    match written.split_once('/') {
        // A star in the tag does not affect the host.
        None if written.split([':', '@']).next().is_some_and(|name| name.contains('*')) => written,
        None => format!("{HUB}{OFFICIAL}{written}"),
        Some((host, _))
            if host.contains(|char: char| ".:*?".contains(char) || char.is_ascii_uppercase())
                || host == "localhost" =>
        {
            written
        }
        Some(_) => format!("{HUB}{written}"),
    }
}

/// Whether `glob` matches `image`, a full name, with or without its tag and digest.
pub fn matches(glob: &str, image: &str) -> bool {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    let path = name.rfind('/').map_or(0, |slash| slash + 1);
    let bare = name[path..].find(':').map_or(name, |colon| &name[..path + colon]);
    [image, name, bare].into_iter().any(|text| whole(glob.as_bytes(), text.as_bytes()))
}

/// Computes the reachable positions in the glob after each byte of the text. The time is linear in the product of the
/// lengths of glob and text.
fn whole(glob: &[u8], text: &[u8]) -> bool {
    let mut at = vec![false; glob.len() + 1];
    at[0] = true;
    pass_stars(glob, &mut at);
    for &byte in text {
        let mut next = vec![false; glob.len() + 1];
        for place in (0..glob.len()).filter(|&place| at[place]) {
            match glob[place] {
                b'*' if crosses(glob, place) || byte != b'/' => next[place] = true,
                b'*' => {}
                b'?' => next[place + 1] |= byte != b'/',
                other => next[place + 1] |= other == byte,
            }
        }
        pass_stars(glob, &mut next);
        at = next;
    }
    at[glob.len()]
}

/// Marks the position after each reachable star as reachable, because a star may match the empty text.
fn pass_stars(glob: &[u8], at: &mut [bool]) {
    for place in 0..glob.len() {
        if at[place] && glob[place] == b'*' {
            at[place + 1] = true;
        }
    }
}

/// Whether the star at index `place` stands next to another star.
fn crosses(glob: &[u8], place: usize) -> bool {
    glob.get(place + 1) == Some(&b'*') || place > 0 && glob[place - 1] == b'*'
}

#[cfg(test)]
mod tests {
    use super::super::{Matcher, Pattern};

    #[test]
    fn stars_stay_between_slashes_and_double_stars_do_not() {
        let hub = "index.docker.io/library/nginx:1.25";
        for (pattern, image, expected) in [
            ("nginx", hub, true),
            ("nginx:1.25", hub, true),
            ("nginx:1.*", hub, true),
            ("docker.io/library/*", hub, true),
            ("library/nginx", hub, true),
            ("**", hub, true),
            ("*/nginx", hub, false),
            ("**/nginx", hub, true),
            ("index.docker.io/*", hub, false),
            ("index.docker.io/**", hub, true),
            ("ghcr.io/team/*", "ghcr.io/team/app:1", true),
            ("ghcr.io/team/*", "ghcr.io/team/app/web:1", false),
            ("ghcr.io/team/**", "ghcr.io/team/app/web:1", true),
            ("ghcr.io/team/a?p", "ghcr.io/team/app@sha256:00", true),
            ("ghcr.io/team", "ghcr.io/team/app:1", false),
            ("h:5000/a", "h:5000/a:1", true),
            ("GHCR.io/team/*", "ghcr.io/team/app:1", true),
        ] {
            let compiled = Pattern::with(pattern, Matcher::Segments).unwrap();
            assert_eq!(compiled.matches(image), expected, "{pattern} {image}");
        }
    }
}
