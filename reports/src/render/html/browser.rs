//! The page in a browser: nothing is printed to its console, values, looking closer, hiding and searching work, it can be read on a phone and
//! in the dark. `tests/browser/check.js` does what a reader does.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::example::Example;
use crate::judge::judge;

const CHECK: [(&str, &str); 2] = [
    ("check.html", include_str!("../../../tests/browser/check.html")),
    ("check.js", include_str!("../../../tests/browser/check.js")),
];
/// The programs that are such a browser.
const BROWSERS: [&str; 2] = ["chromium", "chromium-browser"];
/// Contrast of text that WCAG 2.2 asks for.
const CONTRAST_LEAST: f64 = 4.5;

fn browser() -> Option<&'static str> {
    BROWSERS.into_iter().find(|name| {
        let asked = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    })
}

/// What `check.js` saw, after the browser had nothing to say.
fn look(browser: &str, folder: &Path, width: u32, dark: bool) -> Value {
    let profile = tempfile::tempdir().unwrap();
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
        "--enable-logging=stderr",
        "--virtual-time-budget=20000",
        "--window-size=1400,1000",
        "--dump-dom",
    ]);
    command.arg(format!("--user-data-dir={}", profile.path().display()));
    command.arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!dark)));
    command.arg(format!("file://{}/check.html?width={width}", folder.display()));
    let output = command.output().unwrap();
    let (page, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let printed: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(printed.is_empty(), "the console says {printed:?}");
    let seen = page.split_once("<pre id=\"seen\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (seen, _) = seen.unwrap_or_else(|| panic!("nothing was seen: {page}\n{said}"));
    serde_json::from_str(&seen.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
        .unwrap_or_else(|error| panic!("{error}: {seen}\n{said}"))
}

/// What must hold on every screen.
fn check(seen: &Value, width: u32, dark: bool) {
    let number = |name: &str| seen[name].as_i64().unwrap_or_else(|| panic!("no {name} in {seen}"));
    assert!(number("sideways") <= 0 && number("opened") <= 0, "it scrolls sideways at {width}: {seen}");
    assert!(number("plots") >= 7 && number("drawn") == number("plots"), "{seen}");
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
    assert!(contrast["ratio"].as_f64().unwrap() >= CONTRAST_LEAST, "contrast at {width}, dark {dark}: {contrast}");
}

#[test]
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
    let (clean, failing) = (open(&Example::clean(), "clean"), open(&Example::failing(), "failing"));
    let (good, bad) = (judge(&clean), judge(&failing));
    let both = super::diff_html(&clean, &failing, &crate::diff::diff((&clean, &good), (&failing, &bad)));
    let pages = [(super::html(&clean, &good), false), (super::html(&failing, &bad), true), (both, false)];
    for (name, text) in CHECK {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    for (page, anomalies) in pages {
        std::fs::write(folder.path().join("report.html"), page.unwrap()).unwrap();
        for (width, dark) in [(360, false), (1280, true)] {
            let seen = look(browser, folder.path(), width, dark);
            check(&seen, width, dark);
            assert_eq!(seen["anomalies"].as_u64().unwrap() > 0, anomalies, "{seen}");
            if anomalies {
                assert_eq!(seen["filtered"], 0, "{seen}");
                assert!(seen["moment"].as_u64().unwrap() > 100 && seen["history"].as_u64().unwrap() > 1, "{seen}");
            }
        }
    }
}
