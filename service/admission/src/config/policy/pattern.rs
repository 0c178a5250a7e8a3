//! The patterns of policy rules, with Connaisseur's matching and specificity, or with policy-controller's matching.
//!
//! Pure. For Connaisseur `*` is any text, `/` included, and `?` any one character; a `*` is implied at both ends. In
//! the matcher of segments `*` and `?` stay between slashes, `**` crosses them, and nothing is implied. Of several
//! matching patterns the most specific one applies: more parts between slashes, then part by part from the left the
//! longer common beginning with the image, then part by part the longer text. Parts and lengths are those of the
//! pattern as written.

mod segments;

use std::cmp::Ordering;

use serde::Deserialize;

use service_core::authority::OneName;

/// Longest pattern: the longest possible reference.
const PATTERN_BYTES_MAX: usize = 520;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Matcher {
    /// Connaisseur's matching.
    #[default]
    Connaisseur,
    /// policy-controller's matching.
    Segments,
}

/// A pattern, compiled once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    written: String,
    matcher: Matcher,
    /// The pattern with its host in lower case; its parts are counted and compared.
    folded: String,
    /// The text for matching; for Connaisseur with a star at both ends.
    glob: String,
    /// Host and path for matching in rules that admit without a check, each matched alone. `None`: as `glob`.
    anchored: Option<(String, String)>,
}

/// The default host of names without one, and the default folder of names without a path.
const HUB: &str = "index.docker.io";
const OFFICIAL: &str = "library/";

/// Why a text is no pattern, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("is empty: write `*` for every image")]
    Empty,
    #[error("is longer than {PATTERN_BYTES_MAX} bytes, which no image is")]
    TooLong,
    #[error(
        "has `{}`, which no image has: only `*` (any text) and `?` (any character) are special",
        .0.escape_debug()
    )]
    Character(char),
}

impl Pattern {
    /// Checks `written`, a pattern in Connaisseur's syntax.
    pub fn new(written: &str) -> Result<Self, PatternError> {
        Self::with(written, Matcher::Connaisseur)
    }

    /// Checks `written`, which `matcher` matches.
    pub fn with(written: &str, matcher: Matcher) -> Result<Self, PatternError> {
        if written.is_empty() {
            return Err(PatternError::Empty);
        }
        if written.len() > PATTERN_BYTES_MAX {
            return Err(PatternError::TooLong);
        }
        let reference = |char: char| char.is_ascii_alphanumeric() || "*?/.:-_@".contains(char);
        if let Some(other) = written.chars().find(|&char| !reference(char)) {
            return Err(PatternError::Character(other));
        }
        if matcher == Matcher::Segments {
            let folded = fold_host(&segments::full(written));
            return Ok(Self { written: written.to_owned(), matcher, glob: folded.clone(), folded, anchored: None });
        }
        let folded = fold_host(written);
        let mut glob = folded.clone();
        if !glob.starts_with('*') {
            glob.insert(0, '*');
        }
        if !glob.ends_with('*') {
            glob.push('*');
        }
        let anchored = anchored(&folded);
        Ok(Self { written: written.to_owned(), matcher, folded, glob, anchored })
    }

    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// Whether it matches `image`, a full name with its host in lower case.
    pub fn matches(&self, image: &str) -> bool {
        match self.matcher {
            Matcher::Connaisseur => matches(self.glob.as_bytes(), image.as_bytes()),
            Matcher::Segments => segments::matches(&self.glob, image),
        }
    }

    /// Like [`Self::matches`], for a rule that admits its images without a check. A written host then matches only a
    /// host and never a part of a path, and none of its stars crosses the slash: `trusted.corp/*` does not match
    /// `evil.example/trusted.corp/x`.
    pub fn matches_at_its_host(&self, image: &str) -> bool {
        let (Some((host, path)), Some((at, rest))) = (&self.anchored, image.split_once('/')) else {
            return self.matches(image);
        };
        matches(host.as_bytes(), at.as_bytes()) && matches(path.as_bytes(), rest.as_bytes())
    }

    /// Compares the specificity of two patterns that both match `image`; `Greater` if this one is more specific.
    pub fn compare(&self, other: &Self, image: &str) -> Ordering {
        let common = |pattern: &str| -> Vec<usize> {
            let parts = pattern.split('/').zip(image.split('/'));
            parts.map(|(pattern, image)| common_bytes(pattern, image)).collect()
        };
        let (mine, theirs) = (self.folded.as_str(), other.folded.as_str());
        let count = |pattern: &str| pattern.split('/').count();
        let lengths = |pattern: &str| -> Vec<usize> { pattern.split('/').map(str::len).collect() };
        let by_parts = count(mine).cmp(&count(theirs));
        by_parts.then_with(|| common(mine).cmp(&common(theirs))).then_with(|| lengths(mine).cmp(&lengths(theirs)))
    }

    /// Whether the two surely match the same images, so that one of them is useless.
    pub fn equals(&self, other: &Self) -> bool {
        self.glob == other.glob
    }

    /// Whether an image with no more parts than the patterns can match both while neither is more specific.
    ///
    /// Images with more parts, in which both patterns follow each other, are not considered: nearly all patterns tie
    /// there.
    pub fn ties_with(&self, other: &Self) -> bool {
        let mine: Vec<_> = self.folded.split('/').collect();
        let theirs: Vec<_> = other.folded.split('/').collect();
        if mine.len() != theirs.len() {
            return false;
        }
        let (globs, other_globs) = (self.glob.split('/'), other.glob.split('/'));
        let parts = mine.iter().zip(&theirs).zip(globs.zip(other_globs)).enumerate();
        parts.into_iter().all(|(index, ((mine, theirs), (glob, other_glob)))| {
            if mine == theirs {
                return true;
            }
            // The common beginning of two patterns scores the same for both. Where they differ, a literal character
            // decides, unless a wildcard or the implied star at the front came before it.
            let common = common_bytes(mine, theirs);
            let (next, other_next) = (mine.as_bytes().get(common), theirs.as_bytes().get(common));
            let wild = |byte: Option<&u8>| matches!(byte, Some(b'*' | b'?'));
            let undecided = index == 0 || mine[..common].contains(['*', '?']) || (wild(next) && wild(other_next));
            mine.len() == theirs.len() && undecided && overlap(glob.as_bytes(), other_glob.as_bytes())
        })
    }
}

/// Replaces the host by its one name. `docker.io` stays: a star is implied before it, and its length counts as written.
fn fold_host(text: &str) -> String {
    match text.split_once('/') {
        Some((host, rest)) if is_host(host) => {
            let lower = host.to_ascii_lowercase();
            let stays = lower.contains(['*', '?']) || lower == "docker.io";
            let host = if !stays {
                OneName::parse(host).before_path()
            } else if host.contains(['.', ':']) {
                lower
            } else {
                host.to_ascii_uppercase()
            };
            format!("{host}/{rest}")
        }
        _ => text.to_owned(),
    }
}

/// Whether the first part is a host: it has `.`, `:` or upper case, or is `localhost`.
fn is_host(first: &str) -> bool {
    first.contains(|char: char| char == '.' || char == ':' || char.is_ascii_uppercase()) || first == "localhost"
}

/// Host and path of a folded Connaisseur pattern. `None`: it begins with a written star and has no path, so it matches
/// any host.
fn anchored(folded: &str) -> Option<(String, String)> {
    let (host, path) = match folded.split_once('/') {
        None if folded.starts_with('*') => return None,
        None => (HUB, format!("{OFFICIAL}{folded}")),
        Some(("docker.io", path)) => (HUB, path.to_owned()),
        Some((host, path)) if is_host(host) || host.contains(['*', '?']) => (host, path.to_owned()),
        Some(_) => (HUB, folded.to_owned()),
    };
    Some((host.to_owned(), if path.ends_with('*') { path } else { path + "*" }))
}

fn common_bytes(left: &str, right: &str) -> usize {
    left.bytes().zip(right.bytes()).take_while(|(left, right)| left == right).count()
}

/// Glob matching with one step back for each star: at worst linear in the product of the lengths, without recursion.
pub(super) fn matches(glob: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while read < text.len() {
        match glob.get(at) {
            Some(b'*') => {
                back = Some((at, read));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[read] => {
                at += 1;
                read += 1;
            }
            _ => match &mut back {
                None => return false,
                Some((star, from)) => {
                    *from += 1;
                    (at, read) = (*star + 1, *from);
                }
            },
        }
    }
    glob[at..].iter().all(|&byte| byte == b'*')
}

/// Whether some text matches both globs: computes from the right which ends of the two can match the same text.
fn overlap(left: &[u8], right: &[u8]) -> bool {
    let mut below = vec![false; right.len() + 1];
    for at in (0..=left.len()).rev() {
        let mut row = vec![false; right.len() + 1];
        for other in (0..=right.len()).rev() {
            row[other] = match (left.get(at), right.get(other)) {
                (None, None) => true,
                // A star of one side matches nothing, or the next character of the other side.
                (Some(b'*'), next) if below[other] || (next.is_some() && row[other + 1]) => true,
                (next, Some(b'*')) if row[other + 1] || (next.is_some() && below[other]) => true,
                (Some(b'*') | None, _) | (_, Some(b'*') | None) => false,
                (Some(mine), Some(theirs)) => (mine == theirs || *mine == b'?' || *theirs == b'?') && below[other + 1],
            };
        }
        below = row;
    }
    below[0]
}

#[cfg(test)]
mod tests;
