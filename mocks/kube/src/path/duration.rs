//! The check of a duration as Go parses it (`time.ParseDuration`), for the deadline of a request.

const UNITS: [&str; 8] = ["ns", "us", "\u{b5}s", "\u{3bc}s", "ms", "s", "m", "h"];

/// Why a text is no duration, in the words of the real library.
pub(super) fn wrong(text: &str) -> Option<String> {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return None;
    }
    if rest.is_empty() {
        return Some(format!("time: invalid duration {text:?}"));
    }
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (digits, after) = rest.split_at(number);
        if !digits.contains(|c: char| c.is_ascii_digit()) || digits.matches('.').count() > 1 {
            return Some(format!("time: invalid duration {text:?}"));
        }
        let (unit, next) = after.split_at(after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len()));
        if unit.is_empty() {
            return Some(format!("time: missing unit in duration {text:?}"));
        }
        if !UNITS.contains(&unit) {
            return Some(format!("time: unknown unit {unit:?} in duration {text:?}"));
        }
        rest = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for fine in ["0", "5s", "1h2m3.5s", "-1ms", ".5h", "+7us"] {
            assert_eq!(wrong(fine), None, "{fine}");
        }
        for (text, why) in [
            ("nonsense", "time: invalid duration \"nonsense\""),
            ("5", "time: missing unit in duration \"5\""),
            ("5 s", "time: unknown unit \" s\" in duration \"5 s\""),
            ("3d", "time: unknown unit \"d\" in duration \"3d\""),
            (".s", "time: invalid duration \".s\""),
            ("-", "time: invalid duration \"-\""),
        ] {
            assert_eq!(wrong(text).as_deref(), Some(why));
        }
    }
}
