//! `admission.errors`: reviews without a valid answer.

use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{AdmissionRow, Record};
use crate::words::{count, counted};

pub(super) struct Errors;

impl Rule for Errors {
    const WORD: Option<Word> = Some(Word::NoAnswer);

    fn judge(_: &Record, rows: &Vec<&AdmissionRow>, limit: &u64, findings: &mut Findings) {
        judge(rows, *limit, findings);
    }
}

fn judge(rows: &[&AdmissionRow], limit: u64, findings: &mut Findings) {
    let sum = |field: fn(&AdmissionRow) -> u64| rows.iter().map(|row| field(row)).sum::<u64>();
    let sent = sum(|row| row.sent);
    let classes = [
        ("timeout", sum(|row| row.timeout)),
        ("HTTP error", sum(|row| row.http_error)),
        ("connect", sum(|row| row.connect)),
        ("TLS", sum(|row| row.tls)),
        ("invalid response", sum(|row| row.invalid_response)),
    ];
    let errors: u64 = classes.iter().map(|(_, number)| number).sum();
    let (verdict, text) = match () {
        () if errors > limit => {
            let parts: Vec<String> = classes
                .iter()
                .filter(|(_, number)| *number > 0)
                .map(|(name, number)| format!("{name} {}", count(*number)))
                .collect();
            let example = example(rows, &classes).map_or_else(String::new, |text| format!("; for example: {text}"));
            let text = format!(
                "{} of {} reviews had no valid answer ({}){example}.",
                count(errors),
                count(sent),
                parts.join(", ")
            );
            (Verdict::Fail, text)
        }
        () if sent == 0 => (Verdict::Inconclusive, "no review was sent.".to_owned()),
        () => (Verdict::Pass, format!("{} of {} had no valid answer.", count(errors), counted(sent, "review"))),
    };
    findings.push(Name::of::<Errors>(), verdict, count(errors), count(limit), text).used(errors as f64, limit as f64);
}

/// An example of the commonest class of errors: an example text that begins with the name of the class. If no example
/// belongs to that class, the first example of any class.
fn example<'a>(rows: &[&'a AdmissionRow], classes: &[(&str, u64)]) -> Option<&'a String> {
    let (name, _) = classes.iter().max_by_key(|(_, number)| *number)?;
    let begin = format!("{}:", name.to_lowercase());
    let mut examples = rows.iter().flat_map(|row| &row.examples);
    examples.clone().find(|text| text.starts_with(&begin)).or_else(|| examples.next())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in the finding belongs to the class with the most errors, which the user should examine first.
    #[test]
    fn the_example_is_of_the_commonest_class() {
        let examples = ["http error: reset", "invalid response: another uid"].map(str::to_owned).to_vec();
        let row = AdmissionRow { examples, ..AdmissionRow::default() };
        let example = |http, invalid| {
            let classes = [("HTTP error", http), ("invalid response", invalid)];
            example(&[&row], &classes).cloned().unwrap_or_default()
        };
        assert_eq!(example(1, 9), "invalid response: another uid");
        assert_eq!(example(9, 1), "http error: reset");
        assert_eq!(super::example(&[&row], &[("timeout", 3)]).unwrap(), "http error: reset");
    }
}
