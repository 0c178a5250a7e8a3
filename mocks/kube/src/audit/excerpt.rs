//! Excerpts of lines that watches sent: the type of the event, and the text around the object's name and revision.
//!
//! Owns where a long line is cut. An object may have kilobytes before its name (annotations, managed fields), so the
//! beginning of a line does not identify the object.

/// Longest line that is not cut, in characters.
const WHOLE_MAX: usize = 240;
/// Number of characters at the line's beginning that are shown: enough for the type of the event.
const HEAD: usize = 30;
/// Number of characters that are shown before and after the name, and before and after the revision.
const AROUND: usize = 50;

/// Returns a short line unchanged; of a long line, returns the beginning and the text around the object's name, if the
/// line contains it, and revision.
pub(super) fn excerpt(line: &str, name: Option<&str>, revision: u64) -> String {
    let line: Vec<char> = line.trim_end().chars().collect();
    if line.len() <= WHOLE_MAX {
        return line.into_iter().collect();
    }
    let names = name.into_iter().map(|name| format!("\"name\":\"{name}\""));
    let mut pieces = vec![(0, HEAD)];
    for piece in names.chain([format!("\"resourceVersion\":\"{revision}\"")]) {
        let piece: Vec<char> = piece.chars().collect();
        if let Some(at) = line.windows(piece.len()).position(|window| *window == piece[..]) {
            pieces.push((at.saturating_sub(AROUND), (at + piece.len() + AROUND).min(line.len())));
        }
    }
    if pieces.len() == 1 {
        // The line holds another object, such as the Status of an error.
        pieces = vec![(0, WHOLE_MAX)];
    }
    pieces.sort_unstable();
    shown(&line, &pieces)
}

/// The pieces of a line in order, with dots for omitted text.
fn shown(line: &[char], pieces: &[(usize, usize)]) -> String {
    let (mut text, mut end) = (String::new(), 0);
    for &(from, to) in pieces {
        if from > end {
            text.push('…');
        }
        text.extend(&line[from.max(end)..to.max(end)]);
        end = end.max(to);
    }
    if end < line.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An excerpt of a long line shows the object's name and revision, wherever they are in the line, and shows no text
    /// twice.
    #[test]
    fn a_long_line_is_cut_round_the_name_and_the_revision() {
        let fields = "f:x ".repeat(900);
        let line = format!(
            r#"{{"type":"MODIFIED","object":{{"kind":"Pod","metadata":{{"managedFields":"{fields}","name":"web-1","namespace":"default","resourceVersion":"4711","uid":"u"}},"spec":"{fields}"}}}}"#
        );
        let shown = excerpt(&line, Some("web-1"), 4711);
        assert!(shown.starts_with(r#"{"type":"MODIFIED""#), "{shown}");
        assert!(shown.contains(r#""name":"web-1","namespace":"default","resourceVersion":"4711""#), "{shown}");
        assert!(shown.matches('…').count() == 2 && shown.chars().count() < 300, "{shown}");
        assert_eq!(shown.matches("web-1").count(), 1);
        let apart = line.replace(r#""name":"web-1","#, "").replace("\"kind\":\"Pod\"", r#""name":"web-1""#);
        let shown = excerpt(&apart, Some("web-1"), 4711);
        assert!(shown.contains("web-1") && shown.contains("4711"), "{shown}");
    }

    #[test]
    fn a_short_line_is_whole_and_a_strange_one_shows_its_beginning() {
        assert_eq!(excerpt("{\"type\":\"ERROR\"}\n", None, 1), "{\"type\":\"ERROR\"}");
        let strange = "ä".repeat(1000);
        assert_eq!(excerpt(&strange, Some("a"), 1).chars().count(), WHOLE_MAX + 1);
    }
}
