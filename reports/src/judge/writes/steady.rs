//! `writes.steady`: objects that the subject writes again and again although no other client writes them.
//!
//! A typical cause: the subject writes a status in each reconcile, and each such write triggers the next reconcile.
//! Late writes for earlier changes happen only once and do not count. Therefore only objects count that are written
//! from the first to the last third of the quiet time (while no other client writes).

use units::Rate;

use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{Quiet, Record, Rewritten};
use crate::words::{count, counted, millis, three_digits};

/// The default limit, six writes per minute. A kubelet writes the heartbeat of a node once in ten seconds
/// (`nodeStatusUpdateFrequency`), which is the highest rate of intended writes without a change.
const HEARTBEAT: Rate = Rate::per_minute(6);
const FIELDS_NAMED: usize = 3;

pub(super) struct Steady;

impl Rule for Steady {
    const WORD: Option<Word> = Some(Word::WriteLoop);
    const DEFAULT: Option<Rate> = Some(HEARTBEAT);

    fn judge(_: &Record, quiet: &&Quiet, limit: &Rate, findings: &mut Findings) {
        let (verdict, rate, text) = judge(quiet, *limit);
        let observed = format!("{}/s", three_digits(rate));
        findings.push(Name::of::<Self>(), verdict, observed, limit.to_string(), text).used(rate, limit.as_per_second());
    }
}

fn judge(quiet: &Quiet, limit: Rate) -> (Verdict, f64, String) {
    let length_ms = quiet.to_ms.saturating_sub(quiet.from_ms).max(1);
    let rate = |row: &Rewritten| row.writes as f64 * 1000.0 / length_ms as f64;
    let lasting = |row: &&Rewritten| row.thirds.iter().all(|writes| *writes > 0);
    let restless: Vec<&Rewritten> =
        quiet.worst.iter().filter(lasting).filter(|row| rate(row) > limit.as_per_second()).collect();
    let most = quiet.worst.iter().filter(lasting).map(rate).fold(0.0, f64::max);
    let Some(worst) = restless.iter().max_by(|a, b| a.writes.cmp(&b.writes).then_with(|| b.object.cmp(&a.object)))
    else {
        let wrote = match quiet.writes {
            0 => "the subject wrote nothing".to_owned(),
            writes => format!(
                "the subject wrote {} in {}, and {}",
                counted(quiet.objects, "object"),
                counted(writes, "version"),
                if most > 0.0 { "went on no faster than it may" } else { "none from beginning to end" }
            ),
        };
        let text = format!(
            "in the {} from {} on, without any other writer, {wrote}.",
            millis(length_ms),
            millis(quiet.from_ms)
        );
        return (Verdict::Pass, most, text);
    };
    // The table has only the worst objects: if all of these count, the total count applies.
    let all = if restless.len() == quiet.worst.len() { quiet.lasting } else { restless.len() as u64 };
    let text = format!(
        "from {} on no other client wrote, and the subject kept writing {}: {} {} {} in {} ({}/s), {}{}.",
        millis(quiet.from_ms),
        counted(all.max(restless.len() as u64), "object"),
        worst.resource,
        worst.object,
        counted(worst.writes, "time"),
        millis(length_ms),
        three_digits(rate(worst)),
        fields(worst),
        by(worst)
    );
    (Verdict::Fail, rate(worst), text)
}

/// The names of the fields that changed with each write, as text.
fn fields(row: &Rewritten) -> String {
    if row.fields.is_empty() {
        return "creating it again each time".to_owned();
    }
    let named: Vec<&str> = row.fields.iter().take(FIELDS_NAMED).map(|flip| flip.field.as_str()).collect();
    let more = match row.fields.len().saturating_sub(FIELDS_NAMED) {
        0 => String::new(),
        more => format!(" and {} more", count(more as u64)),
    };
    format!("changing {}{more}", named.join(", "))
}

fn by(row: &Rewritten) -> String {
    let manager = row.manager.as_ref().map(|manager| format!(" as field manager `{manager}`"));
    let agent = row.user_agent.as_ref().map(|agent| format!(" ({agent})"));
    format!("{}{}", manager.unwrap_or_default(), agent.unwrap_or_default())
}
