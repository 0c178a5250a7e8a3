//! Versions in CEL expressions (Kubernetes documentation, "Kubernetes Semver library"; Semantic Versioning 2.0.0).
//!
//! Owns parsing and ordering versions. Build metadata does not influence the order.

use std::cmp::Ordering;

/// A version without its build metadata.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Semver {
    /// The numbers major, minor and patch.
    pub numbers: [u64; 3],
    before: Vec<Identifier>,
}

/// One identifier of a version's pre-release. In the order of versions, numbers come before words.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(Box<str>),
}

/// Why a text is not a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("Version string empty")]
    Empty,
    /// The version has fewer than three numbers.
    #[error("No Major.Minor.Patch elements found")]
    Short,
    /// The text has fewer than three numbers before a pre-release or build metadata.
    #[error("short version cannot contain PreRelease/Build meta data")]
    ShortWithMore,
    #[error("{0} is empty")]
    EmptyPart(&'static str),
    #[error("Invalid character(s) found in {of} {text:?}")]
    Letters {
        /// The name of the wrong number in the error message.
        of: &'static str,
        text: String,
    },
    #[error("{of} must not contain leading zeroes {text:?}")]
    Zeroes {
        /// The name of the wrong number in the error message.
        of: &'static str,
        text: String,
    },
    /// The number does not fit into 64 bits.
    #[error("{of} number is too large: {text:?}")]
    TooLarge {
        /// The name of the wrong number in the error message.
        of: &'static str,
        text: String,
    },
}

/// How error messages name one of the three numbers.
struct Named {
    part: &'static str,
    letters: &'static str,
    zeroes: &'static str,
}

const MAJOR: Named = Named { part: "Major", letters: "major number", zeroes: "Major number" };
const MINOR: Named = Named { part: "Minor", letters: "minor number", zeroes: "Minor number" };
const PATCH: Named = Named { part: "Patch", letters: "patch number", zeroes: "Patch number" };

impl PartialOrd for Semver {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Semver {
    fn cmp(&self, other: &Self) -> Ordering {
        // Without identifiers it is the release, which comes after its pre-releases.
        let released = self.before.is_empty().cmp(&other.before.is_empty());
        self.numbers.cmp(&other.numbers).then(released).then_with(|| self.before.cmp(&other.before))
    }
}

impl Semver {
    pub(crate) fn read(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::Empty);
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts[..] else {
            return Err(Error::Short);
        };
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, before) = rest.split_once('-').map_or((rest, None), |(patch, before)| (patch, Some(before)));
        let numbers = [number(&MAJOR, major)?, number(&MINOR, minor)?, number(&PATCH, patch)?];
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            check("Build meta data", part)?;
        }
        let before: Result<_, Error> =
            before.into_iter().flat_map(|before| before.split('.')).map(identifier).collect();
        Ok(Self { numbers, before: before? })
    }

    /// Parses a version that may be short or have a prefix or leading zeros: `v1`, `1.2`, `01.02.03`.
    pub(crate) fn read_loosely(text: &str) -> Result<Self, Error> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
        if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err(Error::ShortWithMore);
        }
        parts.resize(3, "0".to_owned());
        Self::read(&parts.join("."))
    }
}

/// Removes leading zeros from a number.
fn without_zeros(part: &str) -> String {
    let rest = part.trim_start_matches('0');
    match part.len() {
        0 | 1 => part.to_owned(),
        _ if rest.starts_with(|first: char| first.is_ascii_digit()) => rest.to_owned(),
        _ => format!("0{rest}"),
    }
}

fn number(of: &Named, text: &str) -> Result<u64, Error> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Error::Letters { of: of.letters, text: text.to_owned() });
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(Error::Zeroes { of: of.zeroes, text: text.to_owned() });
    }
    text.parse().map_err(|_| Error::TooLarge { of: of.part, text: text.to_owned() })
}

fn identifier(text: &str) -> Result<Identifier, Error> {
    check("PreRelease", text)?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Identifier::Word(text.into()));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(Error::Zeroes { of: "Numeric PreRelease version", text: text.to_owned() });
    }
    text.parse().map(Identifier::Number).map_err(|_| Error::TooLarge { of: "PreRelease", text: text.to_owned() })
}

fn check(of: &'static str, text: &str) -> Result<(), Error> {
    if text.is_empty() {
        return Err(Error::EmptyPart(of));
    }
    if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        Ok(())
    } else {
        Err(Error::Letters { of, text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Versions are ordered as in the specification (§11); the list begins with the lowest.
    #[test]
    fn the_order_of_versions() {
        let sorted = [
            "0.9.9",
            "1.0.0-2",
            "1.0.0-10",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1-x-y.0",
            "1.2.0",
            "1.10.0",
            "18446744073709551615.0.0",
        ];
        for (at, one) in sorted.iter().enumerate() {
            for (other_at, other) in sorted.iter().enumerate() {
                let order = Semver::read(one).unwrap().cmp(&Semver::read(other).unwrap());
                assert_eq!(order, at.cmp(&other_at), "{one} {other}");
            }
        }
        assert_eq!(Semver::read("1.0.0+a.0-1"), Semver::read("1.0.0"));
    }

    #[test]
    fn what_is_a_version() {
        for text in "|1|1.2|v1.2.3|01.2.3|1.02.3|1.2.03|1.2.3-|1.2.3-01|1.2.3-a..b|1.2.3+|1.2.3-é|1.2.x|1..3|-1.2.3|\
            1.2.3 |18446744073709551616.0.0|1.2.3+a_b"
            .split('|')
        {
            assert!(Semver::read(text).is_err(), "{text}");
        }
        for (text, numbers) in [
            ("v1", [1, 0, 0]),
            ("1.2", [1, 2, 0]),
            ("v01.02.03", [1, 2, 3]),
            ("1.0.00", [1, 0, 0]),
            ("1.0.0-a", [1, 0, 0]),
        ] {
            assert_eq!(Semver::read_loosely(text).map(|version| version.numbers), Ok(numbers), "{text}");
        }
        for text in ["", "v", "vv1", "1-a", "1.2+b", "1.2.3.4", "a", " 1"] {
            assert!(Semver::read_loosely(text).is_err(), "{text}");
        }
    }
}
