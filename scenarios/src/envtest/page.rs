//! The ledger as a page: one file of HTML, without scripts. Pure.

use std::fmt::{Display, Write as _};

use super::ledger::Ledger;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1b1f24;background:#fff}\
    table{border-collapse:collapse;width:100%;margin:.5rem 0 1.5rem}th,td{text-align:left;padding:.25rem .6rem;border-bottom:1px solid #d8dee4;\
    vertical-align:top;overflow-wrap:anywhere}td.n{text-align:right}tr.bad td{background:#fff1f0}code,pre{font:13px ui-monospace,monospace}\
    @media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}th,td{border-color:#30363d}tr.bad td{background:#3d1a1a}}";

/// The whole page.
pub(super) fn html(ledger: &Ledger, command: &[String], seed: u64) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Suite</title><style>{STYLE}</style><h1>A suite against Longhaul's API \
         server</h1><p><code>{}</code>, seed {seed}</p><p>{}</p>",
        text(crate::secrets::arguments(command).join(" ")),
        text(ledger.line()),
    );
    let notable = ledger.notable();
    if !notable.is_empty() {
        page += "<ul>";
        for line in notable {
            let _ = write!(page, "<li>{}</li>", text(line));
        }
        page += "</ul>";
    }
    tests(&mut page, ledger);
    let count = |(what, times): (&String, &u64)| (what.clone(), times.to_string());
    table(&mut page, "Refused by roles", ledger.denied.iter().map(count));
    table(
        &mut page,
        "Hot loops (most within a second)",
        ledger.hot.iter().map(|(what, most)| (what.clone(), most.to_string())),
    );
    table(&mut page, "Conflicts", ledger.conflicts.iter().map(count));
    table(&mut page, "Other refusals", ledger.refused.iter().map(count));
    table(&mut page, "Watches open at the end", ledger.watches_left.iter().map(count));
    table(
        &mut page,
        "Faults, as they hit",
        ledger.fault_hits.iter().map(|hit| (hit.detail.clone(), hit.fault.clone())),
    );
    page += "<h2>The least roles</h2>";
    for roles in &ledger.roles {
        let _ = write!(page, "<pre>{}</pre>", text(roles));
    }
    page + "</html>\n"
}

fn tests(page: &mut String, ledger: &Ledger) {
    if ledger.tests.is_empty() {
        return;
    }
    *page += "<h2>Tests</h2><table><tr><th>test<th>ms<th>requests<th>objects<th>conflicts<th>faults meanwhile</tr>";
    for test in &ledger.tests {
        let class = if test.failed { " class=\"bad\"" } else { "" };
        let _ = write!(
            page,
            "<tr{class}><td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td>{}</tr>",
            text(&test.name),
            test.took_ms,
            test.requests,
            test.objects,
            test.conflicts,
            text(test.hits.join("; ")),
        );
    }
    *page += "</table>";
}

fn table(page: &mut String, title: &str, rows: impl Iterator<Item = (String, String)>) {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return;
    }
    let _ = write!(page, "<h2>{}</h2><table>", text(title));
    for (what, value) in rows {
        let _ = write!(page, "<tr><td>{}<td class=n>{}</tr>", text(what), text(value));
    }
    *page += "</table>";
}

fn text(plain: impl Display) -> String {
    plain.to_string().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests_of_it {
    use super::*;

    /// What a suite names its objects is no markup.
    #[test]
    fn outside_texts_are_shown_as_text() {
        let mut ledger = Ledger::default();
        ledger.denied.insert("<script>".to_owned(), 1);
        let page = html(&ledger, &["make".to_owned()], 3);
        assert!(page.contains("&lt;script&gt;") && !page.contains("<script>"));
    }
}
