//! Patterns of policy rules, which match as in Connaisseur or as in policy-controller.
//!
//! In Connaisseur's syntax, `*` is any text including `/`, `?` is any character, and a `*` is implied at both ends. In
//! policy-controller's syntax (`segments`), `*` and `?` do not match `/`, `**` matches everything, and no `*` is
//! implied. Of several matching patterns, the most specific pattern applies. A pattern with more components between
//! slashes is more specific. Patterns with equally many components are compared component by component from the left:
//! first by the length of the common beginning with the image, then by the length of the component. Components and
//! lengths are those of the written pattern, without an implied `*`.

mod segments;

use std::cmp::Ordering;

use serde::Deserialize;

use service_core::authority::OneName;

/// Longest pattern, in bytes: the length of the longest image reference.
const PATTERN_BYTES_MAX: usize = 520;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Matcher {
    /// Patterns match by Connaisseur's rules.
    #[default]
    Connaisseur,
    /// Patterns match by policy-controller's rules.
    Segments,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    written: String,
    matcher: Matcher,
    /// The pattern with its host in lower case, for counts and comparisons of components.
    folded: String,
    /// The glob that images must match; in Connaisseur's syntax with a `*` at both ends.
    glob: String,
    /// Host and path of the pattern, each matched separately, for rules that admit images without a check. If
    /// `anchored` is `None`, `glob` is matched.
    anchored: Option<(String, String)>,
}

/// The host of image names that are written without a host.
const HUB: &str = "index.docker.io";
const OFFICIAL: &str = "library/";

/// Why a text is not a pattern, and what to write instead.
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

    /// Checks `written`, a pattern in the syntax that `matcher` selects.
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

    /// Whether the pattern matches `image`, a full name with its host in lower case.
    pub fn matches(&self, image: &str) -> bool {
        match self.matcher {
            Matcher::Connaisseur => matches(self.glob.as_bytes(), image.as_bytes()),
            Matcher::Segments => segments::matches(&self.glob, image),
        }
    }

    /// Like [`Self::matches`], for a rule that admits images without a check. The host of the pattern then matches only
    /// a host and never a path, and no `*` of the pattern matches `/`: `trusted.corp/*` does not match
    /// `evil.example/trusted.corp/x`.
    pub fn matches_at_its_host(&self, image: &str) -> bool {
        let (Some((host, path)), Some((at, rest))) = (&self.anchored, image.split_once('/')) else {
            return self.matches(image);
        };
        matches(host.as_bytes(), at.as_bytes()) && matches(path.as_bytes(), rest.as_bytes())
    }

    /// Compares the specificity of two patterns that both match `image`; `Greater` if `self` is more specific.
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

    /// Whether two patterns certainly match the same images, so that one of the two is useless.
    pub fn equals(&self, other: &Self) -> bool {
        self.glob == other.glob
    }

    /// Whether some image with no more components than the patterns matches both, and neither pattern is more specific.
    ///
    /// Images with more components are not considered, because nearly all patterns are equally specific for them.
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

/// Replaces the host with the registry's canonical name. The host `docker.io` stays: in Connaisseur's syntax, the
/// implied `*` before it matches `index.`, and its length counts as written.
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

/// Whether the first component of a name is a host: it contains `.`, `:` or upper case, or is `localhost`.
fn is_host(first: &str) -> bool {
    first.contains(|char: char| char == '.' || char == ':' || char.is_ascii_uppercase()) || first == "localhost"
}

/// Host and path of a Connaisseur pattern in lower case. The result is `None` if the pattern starts with `*` and has no
/// path, so that it matches any host.
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

/// Glob matching without recursion: after a mismatch, the search returns to the last star. The time is at most linear
/// in the product of the lengths of glob and text.
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

/// Whether some text matches both globs. The function computes from the right which suffixes of the two globs can match
/// the same text.
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
