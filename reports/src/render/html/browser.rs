//! Tests of the HTML reports in a browser. These tests check that the browser's console stays empty, that values,
//! zooming, hiding and searching work, and that a report is readable on a phone and in dark mode.
//! `tests/browser/check.js` clicks and types like a reader.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::example::Example;
use crate::gate::Record;
use crate::gate::simulation::{BUSY, record};
use crate::judge::judge;
use crate::record::FaultRow;

const CHECK: [(&str, &str); 2] = [
    ("check.html", include_str!("../../../tests/browser/check.html")),
    ("check.js", include_str!("../../../tests/browser/check.js")),
];
/// The names of Chromium's program on Linux.
const BROWSERS: [&str; 2] = ["chromium", "chromium-browser"];
/// The ratio of contrast between text and background that WCAG 2.2 requires.
const CONTRAST_LEAST: f64 = 4.5;

fn browser() -> Option<&'static str> {
    BROWSERS.into_iter().find(|name| {
        let asked = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    })
}

/// Widths of screens in pixels: a phone, a large phone, a tablet, a small window and a desktop.
const WIDTHS: [u32; 5] = [360, 400, 700, 1000, 1280];

fn start(browser: &str, profile: &Path) -> Command {
    let mut command = Command::new(browser);
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--allow-file-access-from-files",
    ]);
    command.arg(format!("--user-data-dir={}", profile.display()));
    command
}

/// Runs `check.js` in the browser, checks that the console is empty, and returns the script's findings.
fn look(browser: &str, folder: &Path, dark: bool) -> Value {
    let profile = tempfile::tempdir().unwrap();
    let mut command = start(browser, profile.path());
    command.args(["--enable-logging=stderr", "--virtual-time-budget=60000", "--window-size=1400,1000", "--dump-dom"]);
    command.arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!dark)));
    let widths = WIDTHS.map(|width| width.to_string()).join(",");
    command.arg(format!("file://{}/check.html?widths={widths}", folder.display()));
    let output = command.output().unwrap();
    let (page, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // The one frame without scripts reports that it has none.
    let printed: Vec<&str> =
        said.lines().filter(|line| line.contains("CONSOLE") && !line.contains("Blocked script execution")).collect();
    assert!(printed.is_empty(), "the console says {printed:?}");
    let seen = page.split_once("<pre id=\"seen\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (seen, _) = seen.unwrap_or_else(|| panic!("nothing was seen: {page}\n{said}"));
    serde_json::from_str(&seen.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
        .unwrap_or_else(|error| panic!("{error}: {seen}\n{said}"))
}

/// Checks the properties that a report has on every screen.
fn check(seen: &Value, dark: bool, charts: i64) {
    let number = |name: &str| seen[name].as_i64().unwrap_or_else(|| panic!("no {name} in {seen}"));
    assert!(number("sideways") <= 0 && number("opened") <= 0, "it scrolls sideways: {seen}");
    assert_eq!(seen["beyond"], serde_json::json!([]), "something is cut off: {seen}");
    assert_eq!(seen["faults"]["over"], 0, "labels of faults cover each other: {seen}");
    assert!(number("plots") >= charts && number("drawn") == number("plots"), "{seen}");
    assert!(number("hover") >= number("plots") - 2, "values of all charts at one time: {seen}");
    assert_eq!((number("left"), number("back"), number("zoomed")), (0, 100, 400), "{seen}");
    assert!(number("keyboard") > 0 && number("closer") == 200, "{seen}");
    for told in ["otherTicks", "sameTicks", "offered"] {
        assert_eq!(seen[told], true, "{told}: {seen}");
    }
    assert_eq!(seen["hidden"][0], "false", "{seen}");
    assert!(seen["hidden"][1].as_u64().unwrap() >= 1, "{seen}");
    assert_eq!(number("unnamed"), 0, "{seen}");
    assert_eq!(seen["dark"], dark, "{seen}");
    let contrast = &seen["contrast"];
    assert!(contrast["ratio"].as_f64().unwrap() >= CONTRAST_LEAST, "contrast, dark {dark}: {contrast} in {seen}");
}

/// Without scripts, a report lacks only the features that need a script.
fn check_without_scripts(seen: &Value, words: &[String]) {
    assert_eq!(seen["scripts"], 0, "a script ran: {seen}");
    assert_eq!(seen["gone"], serde_json::json!([]), "{seen}");
    let only_scripts = ["zoomed", "hint", "cursor", "selection", "filter", "copy"];
    for hidden in seen["hidden"].as_array().unwrap() {
        assert!(only_scripts.contains(&hidden.as_str().unwrap()), "{hidden} is hidden without scripts");
    }
    assert!(seen["plots"].as_u64().unwrap() >= 8, "{seen}");
    let text = seen["words"].as_str().unwrap().to_lowercase();
    for word in words {
        assert!(text.contains(&word.to_lowercase()), "{word} cannot be read without scripts: {text}");
    }
}

/// The record of a gate on a busy machine, with names and digests like those of a real gate.
fn gate() -> Record {
    let mut record = record(3, 10, BUSY, 1.3);
    for (build, letter) in [(&mut record.header.a, "a"), (&mut record.header.b, "b")] {
        build.command = format!("target/gate/release-of-{letter}/longhaul-service");
        build.digest = Some(letter.repeat(64));
    }
    record
}

/// A run with anomalies, and with many faults that follow quickly one after another until its end.
fn troubled() -> Example {
    let mut example = Example::failing();
    let (planned, rows) = (example.manifest.faults[0].clone(), example.faults.clone());
    for number in 1..12 {
        let mut fault = planned.clone();
        fault.id = (number + 1).to_string();
        fault.name = if number % 2 == 0 { "watch-end-without-status" } else { "certificate-rotation" }.to_owned();
        fault.at_ms = 20_000 + number * 12_500;
        for row in &rows {
            let t_ms = row.t_ms.saturating_sub(planned.at_ms) + fault.at_ms;
            example.faults.push(FaultRow { id: fault.id.clone(), name: fault.name.clone(), t_ms, ..row.clone() });
        }
        example.manifest.faults.push(fault);
    }
    example
}

#[test]
#[ignore = "slow"]
fn a_reader_finds_their_way() {
    let Some(browser) = browser() else {
        println!("skipped: needs chromium");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let open = |example: &Example, name: &str| {
        let folder = folder.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        example.open(&folder)
    };
    let (clean, failing) = (open(&Example::clean(), "clean"), open(&troubled(), "failing"));
    let (good, bad) = (judge(&clean), judge(&failing));
    let both = super::diff_html(&clean, &failing, &crate::diff::diff((&clean, &good), (&failing, &bad)));
    let gate = gate();
    let judged = crate::gate::judge(&gate);
    // Texts that must be readable without scripts: the reason, every figure of the table, and the contents of closed
    // details.
    let told = |judgement: &crate::judge::Judgement| -> Vec<String> {
        let budgets = judgement.findings.iter().flat_map(|finding| [finding.budget.clone(), finding.observed.clone()]);
        budgets.chain([judgement.reason.clone(), judgement.verdict.word().to_owned()]).collect()
    };
    let failing_words =
        [told(&bad), ["sent on watch 3", "0000-1", "lists and watches"].map(str::to_owned).into()].concat();
    let gate_words = judged.rows.iter().map(|row| row.shown(row.change)).chain(["b".repeat(64), judged.reason.clone()]);
    let suite_words =
        ["1 of 24 tests failed", "expected 1 child, found 2", "failed again in 2 of 3 plays", "kind: Role"];
    let pages = [
        ("clean", super::html(&clean, &good), false, 7, told(&good)),
        ("failing", super::html(&failing, &bad), true, 7, failing_words),
        ("diff", both, false, 7, vec!["events.missed".into(), "service p99".into()]),
        ("gate", super::gate_html(&gate, &judged), false, 4, gate_words.collect()),
        ("suite", super::suite_html(&super::suite::example()), false, 2, suite_words.map(str::to_owned).to_vec()),
    ];
    for (name, text) in CHECK {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    for (name, page, anomalies, charts, words) in pages {
        std::fs::write(folder.path().join("report.html"), page.unwrap()).unwrap();
        for dark in [false, true] {
            println!("{name}, dark {dark}");
            let all = look(browser, folder.path(), dark);
            assert_eq!(all["seen"].as_array().unwrap().len(), WIDTHS.len());
            for seen in all["seen"].as_array().unwrap() {
                check(seen, dark, charts);
                assert_eq!(seen["anomalies"].as_u64().unwrap() > 0, anomalies, "{seen}");
                if anomalies {
                    assert_eq!(seen["filtered"], 0, "{seen}");
                    assert!(seen["moment"].as_u64().unwrap() > 100 && seen["history"].as_u64().unwrap() > 1, "{seen}");
                    let (wide, faults) = (seen["width"].as_u64().unwrap() > 820, &seen["faults"]);
                    assert_eq!(faults["labels"].as_u64().unwrap() >= 6, wide, "{seen}");
                    assert_eq!(faults["narrow"], 0, "{seen}");
                }
            }
            check_without_scripts(&all["without"], &words);
        }
    }
}

/// In print all sections of a report are open, and controls that work only on a screen are hidden.
#[test]
fn all_of_it_is_printed() {
    let Some(browser) = browser() else {
        println!("skipped: needs chromium");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let record = troubled().open(&folder.path().join("record"));
    let page = super::html(&record, &judge(&record)).unwrap();
    std::fs::write(folder.path().join("report.html"), page).unwrap();
    let pdf = folder.path().join("report.pdf");
    let mut command = start(browser, &folder.path().join("profile"));
    command.args(["--no-pdf-header-footer".to_owned(), format!("--print-to-pdf={}", pdf.display())]);
    command.arg(format!("file://{}/report.html", folder.path().display()));
    assert!(command.output().unwrap().status.success());
    assert!(std::fs::read(&pdf).unwrap().starts_with(b"%PDF-"));
    let read = Command::new("pdftotext").arg("-layout").arg(&pdf).arg("-").output();
    let Ok(read) = read else {
        println!("skipped: needs pdftotext");
        return;
    };
    let text = String::from_utf8_lossy(&read.stdout);
    for printed in ["MODIFIED 10412", "sent on watch 3", "ended after 2 ms", "events.missed", "silent-watch --seed 7"] {
        assert!(text.contains(printed), "{printed} is not printed: {text}");
    }
    for only_on_a_screen in ["Move over a chart", "Show this moment", "all outcomes"] {
        assert!(!text.contains(only_on_a_screen), "{only_on_a_screen} is printed: {text}");
    }
}
