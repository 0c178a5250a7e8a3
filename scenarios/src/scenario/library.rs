//! The scenarios that come with `longhaul`, by name. One file each under `scenarios/library/`.

/// Name and text of every scenario in the library, in the order of `longhaul list`.
const SCENARIOS: [(&str, &str); 2] = [
    ("smoke", include_str!("../../library/smoke.yaml")),
    ("example-watcher", include_str!("../../library/example-watcher.yaml")),
];

/// The names, in the order of the table.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|(name, _)| *name)
}

/// The text of one.
pub fn text(name: &str) -> Option<&'static str> {
    SCENARIOS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
