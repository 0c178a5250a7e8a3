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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Source;

    /// Every scenario of the library is valid, is named like its file, and begins with its question.
    #[test]
    fn the_library_is_valid() {
        for name in names() {
            let source = Source::read(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(source.scenario.name, name);
            let first = text(name).unwrap_or_default().lines().next().unwrap_or_default();
            assert!(first.starts_with("# ") && first.ends_with('?'), "{name} begins with its question: {first}");
        }
    }

    /// Every file in the folder is in the table: a forgotten one could not be run by name.
    #[test]
    fn no_file_is_forgotten() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/library");
        let files = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
        for file in files.filter(|path| path.extension().is_some_and(|extension| extension == "yaml")) {
            let name = file.file_stem().unwrap().to_string_lossy().into_owned();
            assert!(names().any(|known| known == name), "{name} is missing in library.rs");
        }
    }
}
