//! The order in which mirrors and registry are asked about an image.
//!
//! The image keeps its name, whichever mirror or registry answers.

use crate::config;
use service_core::authority::Authority;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// The mirror or registry to ask.
    pub host: Authority,
    /// The image's repository at `host`.
    pub repository: String,
}

/// The mirrors of `registry` in order, then the registry itself or the location that replaces it. The list is never
/// empty.
pub fn route(host: &Authority, repository: &str, registry: Option<&config::Registry>) -> Vec<Stop> {
    let itself = || Stop { host: host.clone(), repository: repository.to_owned() };
    let Some(registry) = registry else { return vec![itself()] };
    let below = |place: &config::Location, rest: &str| {
        let parts = [&*place.path, rest];
        let repository = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        (!repository.is_empty()).then(|| Stop { host: place.host.clone(), repository })
    };
    let mirrors = registry.mirrors.iter().filter_map(|place| below(place, repository));
    let rewritten = registry.rewrite.iter().filter_map(|rewrite| {
        let rest = rest(repository, &rewrite.from)?;
        Some((rewrite.from.len(), below(&rewrite.to, rest)?))
    });
    let last = rewritten.max_by_key(|(length, _)| *length).map_or_else(itself, |(_, stop)| stop);
    mirrors.chain([last]).collect()
}

/// The end of `repository` after the prefix `path`; `None` if `path` is no prefix in whole path components.
fn rest<'r>(repository: &'r str, path: &str) -> Option<&'r str> {
    let rest = repository.strip_prefix(path)?;
    if path.is_empty() || rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(more: &str, repository: &str) -> Vec<String> {
        let text = format!("resolve: {{registries: [{{host: reg.corp{more}}}]}}\n");
        let registry = &config::Resolve::of(&text).registries[0];
        let host = Authority::parse("reg.corp").unwrap();
        let stops = route(&host, repository, Some(registry));
        stops.into_iter().map(|stop| format!("{} {}", stop.host, stop.repository)).collect()
    }

    #[test]
    fn mirrors_come_first_and_the_longest_rewrite_counts() {
        assert_eq!(ways("", "a/b"), ["reg.corp a/b"]);
        let mirrors = ", mirrors: [\"m:5000\", \"harbor.corp/proxy/reg/\"]";
        assert_eq!(ways(mirrors, "a/b"), ["m:5000 a/b", "harbor.corp proxy/reg/a/b", "reg.corp a/b"]);
        let rewrite = ", rewrite: {a: h.corp/x, a/b: h.corp/y/z, c/: i.corp, \"d\": h.corp/d}";
        for (repository, way) in [
            ("a/q", "h.corp x/q"),
            ("a", "h.corp x"),
            ("ab/q", "reg.corp ab/q"),
            ("a/b", "h.corp y/z"),
            ("a/b/c", "h.corp y/z/c"),
            ("a/bc", "h.corp x/bc"),
            ("c/q", "i.corp q"),
            ("c", "reg.corp c"),
        ] {
            assert_eq!(ways(rewrite, repository), [way], "{repository}");
        }
        assert_eq!(ways(", mirrors: [m.corp], rewrite: {\"\": h.corp/all}", "q"), ["m.corp q", "h.corp all/q"]);
    }
}
