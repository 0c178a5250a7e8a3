//! The releases of Kubernetes that have a table, and the choice of one.
//!
//! Owns the choice, which holds for the whole process: types and resources of the table are shared by all servers. The
//! build script lists the files `*.kinds` of this folder, so another file adds a release without code.

use std::io::Read as _;
use std::sync::OnceLock;

use flate2::read::ZlibDecoder;

use super::Table;

include!(concat!(env!("OUT_DIR"), "/packed.rs"));

/// The release whose table is read if no other release is chosen.
pub const DEFAULT: &str = "1.34";

/// The tables of this program.
pub(super) static RELEASES: Releases = Releases::of(PACKED);

/// Why a release cannot be served.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReleaseError {
    #[error("Kubernetes {release} has no table; choose one of: {known}")]
    Unknown { release: String, known: String },
    /// A server of this process uses the table of another release already.
    #[error("Kubernetes {release} cannot be served beside {other} in one process")]
    Other { release: String, other: &'static str },
}

/// Tables by the minor release, such as `1.34`, and the table that is read.
#[derive(Debug)]
pub(super) struct Releases {
    packed: &'static [(&'static str, &'static [u8])],
    chosen: OnceLock<&'static str>,
    table: OnceLock<Table>,
}

/// Chooses the table of a minor release, such as `1.34`, for this process.
pub fn choose(release: &str) -> Result<(), ReleaseError> {
    RELEASES.choose(release)
}

impl Releases {
    pub(super) const fn of(packed: &'static [(&'static str, &'static [u8])]) -> Self {
        Self { packed, chosen: OnceLock::new(), table: OnceLock::new() }
    }

    pub(super) fn choose(&self, release: &str) -> Result<(), ReleaseError> {
        let Some((known, _)) = self.packed.iter().find(|(known, _)| *known == release) else {
            let known: Vec<&str> = self.packed.iter().map(|(known, _)| *known).collect();
            return Err(ReleaseError::Unknown { release: release.to_owned(), known: known.join(", ") });
        };
        match *self.chosen.get_or_init(|| known) {
            other if other != release => Err(ReleaseError::Other { release: release.to_owned(), other }),
            _ => Ok(()),
        }
    }

    /// Returns the chosen table. If no release is chosen, this call chooses [`DEFAULT`].
    pub(super) fn table(&self) -> &Table {
        self.table.get_or_init(|| {
            let chosen = *self.chosen.get_or_init(|| DEFAULT);
            let found = self.packed.iter().find(|(known, _)| *known == chosen);
            let (_, packed) = found.expect("the default and each choice have a table");
            let mut text = String::new();
            ZlibDecoder::new(*packed).read_to_string(&mut text).expect("the table is what the generator wrote");
            // The text is never freed: resources and types borrow their names from it.
            Table::read(text.leak())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    const SMALL: &str = "V v9.8.7\n\
        R gadgets\texample.com\tGadget\tgadget\tNamespaced\tcreate,get\tgd\tall\n\
        S status\t\t\tget,update\n\
        v v2\texample.v2.Gadget\t-\tspec.size\tName:string:name:0\n\
        T example.v2.Gadget 1:spec:example.v2.GadgetSpec\n\
        T example.v2.GadgetSpec 1:size:i;d=3\n";

    /// The default table and a second one, as if the folder contained a second file.
    fn two() -> Releases {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(SMALL.as_bytes()).unwrap();
        let small: &'static [u8] = encoder.finish().unwrap().leak();
        let tables = [*PACKED.iter().find(|(release, _)| *release == DEFAULT).unwrap(), ("9.8", small)];
        Releases::of(Box::leak(Box::new(tables)))
    }

    #[test]
    fn another_table_has_its_own_release_resources_and_types() {
        let releases = two();
        releases.choose("9.8").unwrap();
        let table = releases.table();
        assert_eq!(table.version, "v9.8.7");
        let [gadgets] = &table.resources[..] else { panic!("{:?}", table.resources) };
        assert_eq!((gadgets.full_name().as_str(), gadgets.has("status")), ("gadgets.example.com", true));
        assert_eq!(gadgets.versions[0].columns, [("Name", "string", "name", 0)]);
        assert!(table.types.contains_key("example.v2.GadgetSpec"));
        let other = ReleaseError::Other { release: DEFAULT.to_owned(), other: "9.8" };
        assert_eq!(releases.choose(DEFAULT), Err(other), "types of two releases would mix");
        assert_eq!(releases.choose("9.8"), Ok(()));
    }

    #[test]
    fn the_default_is_read_without_a_choice_and_an_unknown_release_is_refused_with_the_list() {
        let releases = two();
        let refused = releases.choose("1.20").unwrap_err().to_string();
        assert_eq!(refused, "Kubernetes 1.20 has no table; choose one of: 1.34, 9.8");
        assert_eq!(releases.table().version, crate::VERSION);
        assert!(releases.choose("9.8").is_err(), "the default was read");
    }

    /// The build script found every table of the folder.
    #[test]
    fn every_table_of_the_folder_is_a_release() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/builtin");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let tables = files.filter(|path| path.extension().is_some_and(|kind| kind == "kinds"));
        assert_eq!(tables.count(), PACKED.len());
    }
}
