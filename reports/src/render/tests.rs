//! Tests of all renderers: their output, the escaping of text from records, and equal bytes for the same record.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::causes;
use crate::example::Example;
use crate::judge::Finding;
use crate::ledger::Outcome;
use crate::record::Step;

/// A text with markup that tests put into every field of a record that the subject can fill.
const HOSTILE: &str = "<script>alert(1)</script>\"'&|`</pre>\n\u{1b}[31m@all";

fn texts(example: &Example) -> (tempfile::TempDir, Record, Judgement) {
    let dir = tempfile::tempdir().unwrap();
    let record = example.open(dir.path());
    let judgement = judge(&record);
    (dir, record, judgement)
}

fn snapshot(name: &str, example: &Example) {
    let (_dir, record, judgement) = texts(example);
    insta::assert_snapshot!(format!("{name}.terminal"), terminal(&record, &judgement, Colour::Never));
    insta::assert_snapshot!(format!("{name}.markdown"), markdown(&record, &judgement));
    insta::assert_snapshot!(format!("{name}.junit"), junit(&record, &judgement).unwrap());
}

#[test]
fn clean() {
    snapshot("clean", &Example::clean());
}

#[test]
fn failing() {
    snapshot("failing", &Example::failing());
}

#[test]
fn killed() {
    snapshot("killed", &Example::killed());
}

#[test]
fn the_first_line_for_a_terminal_is_the_verdict() {
    let (_dir, record, judgement) = texts(&Example::failing());
    assert!(
        terminal(&record, &judgement, Colour::Never)
            .starts_with("FAIL silent-watch: events.missed (2), events.late (4), ")
    );
    assert!(terminal(&record, &judgement, Colour::Always).starts_with("\u{1b}[1;31mFAIL\u{1b}[0m "));
}

fn hostile() -> Example {
    let mut example = Example::failing();
    let text = || HOSTILE.to_owned();
    example.manifest.name = text();
    example.manifest.question = text();
    example.manifest.repeat = text();
    example.manifest.subject.command = vec![text()];
    example.manifest.control_plane = text();
    example.manifest.notes = vec![text()];
    example.manifest.faults[0].name = text();
    example.intervals[9].admission.as_mut().unwrap().timeout = 1;
    example.intervals[9].admission.as_mut().unwrap().examples = vec![text()];
    for row in example.requests.as_mut().unwrap() {
        row.resource = text();
        row.namespace = text();
        row.labels = Some(text());
        row.revision = row.revision.as_ref().map(|_| text());
    }
    for row in &mut example.anomalies {
        row.name = text();
        row.namespace = text();
        row.uid = text();
        row.revision = text();
        row.resource = text();
        row.wire = vec![text()];
        row.delivery = Some(text());
        row.detail = Some(text());
        let steps = row.evidence.iter_mut().flat_map(|evidence| &mut evidence.steps);
        for step in steps {
            match step {
                Step::Committed { revision, .. } | Step::Sent { revision, .. } => *revision = text(),
                Step::Watched { from, .. } => *from = Some(text()),
                _ => {}
            }
        }
        let fault = Step::Withheld { t_ms: 1, revision: text(), watch: 1, fault: text() };
        row.evidence.iter_mut().for_each(|evidence| evidence.steps.push(fault.clone()));
    }
    example
}

#[test]
fn outside_text_stays_text() {
    let (_dir, record, judgement) = texts(&hostile());
    let html = html(&record, &judgement).unwrap();
    assert_eq!(html.matches("<script").count(), 2, "the data and our own script");
    assert_eq!(html.matches("</script").count(), 2);
    assert!(!html.contains("alert(1)</"), "an outside text ended an element");
    assert!(html.contains("&#60;script&#62;alert(1)") || html.contains("&lt;script&gt;alert(1)"));

    let markdown = markdown(&record, &judgement);
    // The command to repeat the run is code, where neither HTML nor mentions work.
    let (code, prose): (Vec<&str>, Vec<&str>) = markdown.lines().partition(|line| line.starts_with("- repeat: "));
    assert!(code[0].starts_with("- repeat: ``<script>") && code[0].ends_with("``"), "{code:?}");
    // A mention is searched in the displayed text: only the separator between its halves prevents it.
    let acts =
        |line: &str| line.contains("<script") || line.replace("@&#8203;", "").contains('@') || line.contains("&#64;");
    assert!(!prose.iter().any(|line| acts(line)), "{markdown}");
    let tables = markdown.lines().filter(|line| line.starts_with('|'));
    for row in tables {
        let cells = row.replace("\\|", "").matches('|').count();
        assert_eq!(cells, 6, "a cell was added: {row}");
    }

    let terminal = terminal(&record, &judgement, Colour::Never);
    assert!(!terminal.contains('\u{1b}'), "an outside text moved the cursor");
    assert!(junit(&record, &judgement).unwrap().contains("&lt;script&gt;"));
}

#[test]
fn the_page_fetches_nothing() {
    let (_dir, record, judgement) = texts(&Example::failing());
    let html = html(&record, &judgement).unwrap();
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn the_page_shows_what_was_found() {
    let (_dir, record, judgement) = texts(&Example::failing());
    let html = html(&record, &judgement).unwrap();
    for shown in
        ["events.missed", "admission.wrongVerdicts", "memory.ceiling", "default/package-0", "silent-watch --seed 7"]
    {
        assert!(html.contains(shown), "{shown}");
    }
    for chart in ["admission", "lag", "events", "memory", "descriptors"] {
        assert!(html.contains(&format!("data-chart=\"{chart}\"")), "{chart}");
    }
    for asked in ["The subject's requests", "<td>410</td><td>ended after 2 ms</td>", "requests.staleResume"] {
        assert!(html.contains(asked), "{asked}");
    }
    assert!(html.contains("class=\"mark lost\"") && html.contains("class=\"band\""));
    let data = html.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["lengthMs"], 160_000);
    assert!(data["charts"][0]["curves"][0]["t"].as_array().unwrap().len() > 20);
}

#[test]
fn a_run_with_nothing_in_it_still_has_a_report() {
    let mut example = Example::clean();
    example.intervals.clear();
    example.samples.clear();
    example.faults.clear();
    example.latencies.clear();
    let (_dir, record, judgement) = texts(&example);
    assert_eq!(judgement.verdict, crate::judge::Verdict::Invalid);
    assert!(html(&record, &judgement).unwrap().contains("Nothing was recorded over time."));
}

/// Rendering a record again gives the same bytes, whatever other files are in its directory.
#[test]
fn the_same_record_gives_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    Example::failing().write(dir.path());
    let files = [file::VERDICT, file::HTML, file::MARKDOWN, file::JUNIT];
    let read = |dir: &Path| files.map(|name| fs::read(dir.join(name)).unwrap());
    let first = write_all(dir.path()).unwrap();
    let bytes = read(dir.path());
    assert_eq!(write_all(dir.path()).unwrap(), first);
    assert_eq!(read(dir.path()), bytes);
    let back: Judgement = serde_json::from_slice(&bytes[0]).unwrap();
    assert_eq!(back, first);
}

/// Every file in the directory has a link in the report, and every link leads to a file, also after rendering again.
#[test]
fn every_file_of_the_record_has_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let mut example = Example::failing();
    example.crash(&[70_000]);
    example.tell_metrics(|_| 1 << 20, |_| 1.0);
    example.write(dir.path());
    for name in ["subject.log", "subject.log.1", "story.txt"] {
        fs::write(dir.path().join(name), "a line\n").unwrap();
    }
    fs::create_dir(dir.path().join("control-plane")).unwrap();
    for name in ["kube-apiserver.log", "etcd.log", "what is\"this"] {
        fs::write(dir.path().join("control-plane").join(name), "a line\n").unwrap();
    }
    let mut pages = Vec::new();
    for _ in 0..2 {
        write_all(dir.path()).unwrap();
        pages.push(fs::read_to_string(dir.path().join("report.html")).unwrap());
    }
    assert!(pages[0] == pages[1], "rendering again changes the page");
    let list = pages[0].split("<ul class=\"files\">").nth(1).unwrap().split("</ul>").next().unwrap();
    let linked: std::collections::BTreeSet<&str> =
        list.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    for name in &linked {
        assert!(dir.path().join(name).is_file(), "no {name}");
    }
    for folder in ["", "control-plane/"] {
        for entry in fs::read_dir(dir.path().join(folder)).unwrap().map(Result::unwrap) {
            let name = format!("{folder}{}", entry.file_name().into_string().unwrap());
            let told = linked.contains(name.as_str()) || name == "report.html" || name.contains('"');
            assert!(told || entry.path().is_dir(), "{name} has no link");
        }
    }
    assert!(
        linked.contains("control-plane/etcd.log") && linked.contains("crashes.jsonl") && linked.contains("end.json")
    );
    let record = Record::open(dir.path()).unwrap();
    let live = running_html(&record, &judge(&record)).unwrap();
    assert!(!live.contains("href=\"verdict.json\""), "it is not written yet");
    assert!(!live.contains("fetches nothing") && live.contains("while the run goes on, from the same address"));
}

#[test]
fn the_summary_of_a_job_is_appended_to() {
    let (dir, record, judgement) = texts(&Example::clean());
    let path = dir.path().join("summary.md");
    fs::write(&path, "before\n").unwrap();
    append_summary(&path, &record, &judgement).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("before\n## ✅ silent-watch: pass\n"), "{text}");
}

/// Writes the example reports to `$LONGHAUL_EXAMPLE_REPORTS`, if that is set, so that you can open them in a browser.
#[test]
fn every_example_has_its_reports() {
    let kept = std::env::var_os("LONGHAUL_EXAMPLE_REPORTS").map(PathBuf::from);
    let passing = tempfile::tempdir().unwrap();
    let dir = kept.as_deref().unwrap_or(passing.path());
    for (name, example) in [
        ("clean", Example::clean()),
        ("failing", Example::failing()),
        ("killed", Example::killed()),
        ("hostile", hostile()),
    ] {
        let dir = dir.join(name);
        example.write(&dir);
        write_all(&dir).unwrap();
        let page = fs::read_to_string(dir.join("report.html")).unwrap();
        assert!(page.trim_end().ends_with("</html>"), "{name}: the page is cut off");
    }
    let of = |name: &str| Record::open(&dir.join(name)).map(|record| (judge(&record), record)).unwrap();
    let ((good, clean), (bad, failing)) = (of("clean"), of("failing"));
    let both = diff_html(&clean, &failing, &crate::diff::diff((&clean, &good), (&failing, &bad))).unwrap();
    fs::write(dir.join("diff.html"), both).unwrap();
    for (name, times) in [("same", 1.0), ("worse", 1.3)] {
        use crate::gate::simulation::{BUSY, record};
        let gate = record(3, 10, BUSY, times);
        fs::write(dir.join(format!("gate-{name}.html")), gate_html(&gate, &crate::gate::judge(&gate)).unwrap())
            .unwrap();
    }
}

/// The first screen of the report shows the cause of anomalies with the number of anomalies. Below the first screen,
/// each anomaly has the history of its object.
#[test]
fn why_stands_on_the_first_screen() {
    let (_dir, record, judgement) = texts(&Example::failing());
    let html = html(&record, &judgement).unwrap();
    let place = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}"));
    let line = "2 anomalies lost in the client, first default/package-0 (missed): sent on watch 3 at 1 min 1 s, never reported, while 7 \
        later versions were reported, the first at 1 min 1 s";
    assert!(place(line) < place("id=\"crossed-h\"") && place("id=\"requests-h\"") < place("id=\"anomalies-h\""));
    for shown in ["MODIFIED 10412", "10412 sent on watch 3", "watch 3 from 9000: 200", "2 steps in between left out"] {
        place(shown);
    }
    let terminal = terminal(&record, &judgement, Colour::Never);
    assert!(terminal.contains(&format!("\ncause      {line}\n")), "{terminal}");
    assert!(terminal.contains("\nnext       Follow one version"), "{terminal}");
    assert!(markdown(&record, &judgement).contains("- 2 anomalies lost in the client"));
}

/// Of four causes, the first screen of the report shows the three commonest, each with its number of anomalies, the
/// commonest first.
#[test]
fn the_first_screen_has_three_causes() {
    let mut example = Example::clean();
    example.anomalies.clear();
    example.miss(10, 61_000);
    for (index, row) in example.anomalies.iter_mut().enumerate() {
        match index {
            0..4 => {}
            4..7 => row.outcome = Outcome::IdentitySwap,
            7..9 => row.outcome = Outcome::Phantom,
            _ => row.outcome = Outcome::Regressed,
        }
    }
    let (_dir, record, judgement) = texts(&example);
    assert_eq!(causes::summary(&record).groups.len(), 4);
    let expected = [
        "4 anomalies lost in the client,",
        "3 anomalies because a new object was treated as an update,",
        "2 anomalies ",
    ];
    let html = html(&record, &judgement).unwrap();
    let first = html.split(r#"<section id="causes""#).nth(1).unwrap().split("</section>").next().unwrap();
    let terminal = terminal(&record, &judgement, Colour::Never);
    let markdown = markdown(&record, &judgement);
    for lines in [
        first
            .lines()
            .filter_map(|line| line.split("\">").nth(1))
            .filter(|line| line.contains("anomal"))
            .collect::<Vec<_>>(),
        terminal.lines().filter_map(|line| line.strip_prefix("cause      ")).collect(),
        markdown.lines().filter_map(|line| line.strip_prefix("- ")).filter(|line| line.contains(" anomal")).collect(),
    ] {
        assert_eq!(lines.len(), 3, "{lines:#?}");
        assert!(lines.iter().zip(expected).all(|(line, begin)| line.starts_with(begin)), "{lines:#?}");
    }
}

/// If the record has a `story.txt`, the run's report shows it as escaped text.
#[test]
fn a_story_that_was_told_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    Example::failing().write(dir.path());
    assert!(Record::open(dir.path()).unwrap().story.is_empty());
    let told = ["    3.00 s  fault begins: watch-end".to_owned(), HOSTILE.replace('\n', " ")];
    record::tell_story(dir.path(), &told).unwrap();
    let record = Record::open(dir.path()).unwrap();
    let html = html(&record, &judge(&record)).unwrap();
    assert!(html.contains("What happened") && html.contains("3.00 s  fault begins: watch-end"));
    assert_eq!(html.matches("<script").count(), 2, "a story is no markup");
}

/// The report on a run without anomalies shows no cause.
#[test]
fn a_clean_run_has_no_causes() {
    let mut example = Example::clean();
    example.anomalies.clear();
    let (_dir, record, judgement) = texts(&example);
    assert!(!html(&record, &judgement).unwrap().contains("id=\"causes\""));
    assert!(!terminal(&record, &judgement, Colour::Never).contains("\ncause "));
}

/// The report on an older record without histories shows the facts that the record has.
#[test]
fn an_older_record_is_shown_as_before() {
    let mut example = Example::failing();
    example.anomalies.iter_mut().for_each(|row| row.evidence = None);
    let (_dir, record, judgement) = texts(&example);
    let html = html(&record, &judgement).unwrap();
    assert!(html.contains("sent on watch 3 at 61.01 s, 0 bytes acknowledged, never reported"));
    assert!(!html.contains("class=\"log steps\""));
}

/// The summary on the terminal and the budgets use the same names for the same counts.
#[test]
fn a_deletion_that_went_unnoticed_is_no_missed_version() {
    let mut example = Example::clean();
    let last = example.intervals.last_mut().unwrap();
    last.events.ghost = 250;
    let (_dir, record, judgement) = texts(&example);
    let text = terminal(&record, &judgement, Colour::Never);
    assert!(text.contains("0 missed, 250 deletions unnoticed; lag"), "{text}");
}

/// Rounding never moves the used percentage of a limit across 100 %.
#[test]
fn what_was_used_of_a_limit_is_told() {
    let (_dir, record, judgement) = texts(&Example::failing());
    let used = |budget: &str| judgement.findings.iter().find(|finding| finding.budget == budget).unwrap().used_pct;
    assert_eq!((used("memory.ceiling"), used("requests.openWatches")), (Some(111), Some(100)));
    assert_eq!(used("events.missed"), None, "nothing is a share of nought");
    let page = html(&record, &judgement).unwrap();
    assert!(page.contains("111 %</td>") && page.contains("width:100%"), "the bar ends where its room does");
}

/// The first chart of the report is that of the finding that decided, and no chart appears twice.
#[test]
fn the_first_picture_is_that_of_the_verdict() {
    let first = |example: &Example| {
        let (_dir, record, judgement) = texts(example);
        let page = html(&record, &judgement).unwrap();
        let ids: Vec<String> =
            page.split("id=\"plot-").skip(1).map(|rest| rest[..rest.find('"').unwrap()].to_owned()).collect();
        let different: std::collections::BTreeSet<&String> = ids.iter().collect();
        assert_eq!(different.len(), ids.len(), "{ids:?}");
        ids[0].clone()
    };
    assert_eq!(first(&Example::failing()), "events");
    let mut large = Example::clean();
    large.samples[100].subject.as_mut().unwrap().rss_bytes = 1 << 30;
    assert_eq!(first(&large), "memory");
    let mut grows = Example::clean();
    grows.manifest.budgets = serde_json::from_str(r#"{"memory": {"growth": "100MiB/h"}}"#).unwrap();
    grows.samples.iter_mut().for_each(|sample| {
        let wobble = sample.t_ms * 7919 % 13 * 4096;
        sample.subject.as_mut().unwrap().rss_bytes = (40 << 20) + sample.t_ms * 200 + wobble;
    });
    assert_eq!(first(&grows), "memory-growth");
}

/// Each of thousands of faults is a band, although not every fault has a label.
#[test]
fn all_faults_are_bands_and_their_hits_are_marks() {
    let mut example = Example::clean();
    let (planned, rows) = (example.manifest.faults[0].clone(), example.faults.clone());
    let many = 2000;
    example.manifest.faults.clear();
    example.faults.clear();
    for number in 0..many {
        let mut fault = planned.clone();
        (fault.id, fault.at_ms, fault.for_ms) = (number.to_string(), number * 80, Some(20));
        example.manifest.faults.push(fault);
        for row in &rows {
            let mut row = row.clone();
            row.id = number.to_string();
            row.t_ms = number * 80;
            example.faults.push(row);
        }
    }
    let (_dir, record, judgement) = texts(&example);
    let page = html(&record, &judgement).unwrap();
    let bands = page.split("id=\"bands\" d=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(bands, "M0 0h100v100h-100z", "they are so near to each other that they are one band");
    // Below the chart of the verdict, and once more above all charts.
    assert!(page.matches("class=\"fault\"").count() <= 2 * 200);
    let hits = page.matches("class=\"hit\"").count() / 2;
    assert!((50..=241).contains(&hits), "several hits in one place are one mark: {hits}");
    assert!(page.contains("2,000 of them had an effect"), "planned and happened");
}

/// In no chart is an effect of a fault drawn before the fault: not as a step, as a cell of the heat map, or as a mark.
#[test]
fn nothing_is_drawn_before_its_fault() {
    let mut example = Example::failing();
    // In the middle of an interval, with an immediate effect.
    let fault_ms = 63_000;
    for row in &mut example.faults {
        row.t_ms = row.t_ms.saturating_sub(crate::example::FAULT_AT_MS) + fault_ms;
    }
    example.anomalies.iter_mut().for_each(|row| row.committed_ms = Some(fault_ms + 1));
    let (_dir, record, judgement) = texts(&example);
    let page = html(&record, &judgement).unwrap();
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let mut held = 0;
    for chart in data["charts"].as_array().unwrap() {
        for curve in chart["curves"].as_array().unwrap() {
            let Some(ends) = curve["e"].as_array() else { continue };
            for (from, until) in curve["t"].as_array().unwrap().iter().zip(ends) {
                let (from, until) = (from.as_u64().unwrap(), until.as_u64().unwrap());
                assert!(from >= fault_ms || until <= fault_ms, "{}: {from} to {until}", chart["id"]);
                held += u32::from(from == fault_ms);
            }
        }
    }
    assert!(held >= 8, "commits, observations, reviews and latencies: {held}");
    let x = |ms: u64| ms as f64 / record.length_ms() as f64 * 100.0;
    let cells = page.split("id=\"plot-heat\"").nth(1).unwrap().split("</figure>").next().unwrap();
    let lefts = cells.split('M').skip(1).filter_map(|cell| cell.split(' ').next()?.parse::<f64>().ok());
    assert!(lefts.clone().all(|left| left <= x(60_000) - 1.0 || left >= x(fault_ms) - 0.01), "{cells}");
    assert!(lefts.filter(|left| (left - x(fault_ms)).abs() < 0.01).count() > 3, "{cells}");
    for mark in ["class=\"mark lost\" style=\"left:", "class=\"hit\" style=\"left:"] {
        let places = page.split(mark).skip(1).map(|rest| rest.split('%').next().unwrap().parse::<f64>().unwrap());
        assert!(places.clone().count() > 0 && places.into_iter().all(|left| left >= x(fault_ms) - 0.01), "{mark}");
    }
}

/// The text of an HTML report without tags, styles and scripts. One space separates two words of this text.
fn words(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some(open) = rest.find('<') {
        text.push_str(&rest[..open]);
        text.push(' ');
        let end = ["style", "script"].iter().find(|name| rest[open + 1..].starts_with(**name));
        let close = end.map_or_else(|| ">".to_owned(), |name| format!("</{name}>"));
        let Some(at) = rest[open..].find(&close) else { break };
        rest = &rest[open + at + close.len()..];
    }
    text.push_str(rest);
    let plain = text.replace("&#39;", "'").replace("&#34;", "\"").replace("&#60;", "<").replace("&#62;", ">");
    plain.replace("&#38;", "&").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The report has the reason once, and the text of each finding once.
#[test]
fn nothing_is_told_twice() {
    for example in [Example::clean(), Example::failing(), Example::killed()] {
        let (_dir, record, judgement) = texts(&example);
        let text = words(&html(&record, &judgement).unwrap());
        assert_eq!(text.matches(&judgement.reason).count(), 1, "{}: {text}", judgement.reason);
        for finding in &judgement.findings {
            let (told, same) = (text.matches(&finding.text).count(), |other: &&Finding| other.text == finding.text);
            let findings = judgement.findings.iter().filter(same).count();
            assert_eq!(told, findings, "{}", finding.text);
        }
    }
}

/// The report shows the facts of a run in charts that are not empty. The latency chart has four curves.
#[test]
fn each_side_of_the_run_has_its_chart() {
    let (_dir, record, judgement) = texts(&Example::clean());
    let page = html(&record, &judgement).unwrap();
    let curves = |id: &str| -> Vec<String> {
        let plot = page.split(&format!("id=\"plot-{id}\"")).nth(1).unwrap_or_else(|| panic!("no {id}"));
        let paths = plot.split("</figure>").next().unwrap().split("data-curve=").skip(1);
        paths.map(|path| path.split(" d=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()).collect()
    };
    for (id, least) in [
        ("admission", 3),
        ("reviews", 4),
        ("lag", 3),
        ("events", 2),
        ("memory", 2),
        ("descriptors", 1),
        ("threads", 1),
        ("processor", 1),
        ("pressure", 1),
        ("distribution", 4),
    ] {
        let drawn = curves(id).into_iter().filter(|path| path.starts_with('M') && path.len() > 12).count();
        assert!(drawn >= least, "{id}: {drawn} curves");
    }
    let legend = page.split("id=\"percentiles\"").nth(1).unwrap().split("</ul>").next().unwrap();
    for curve in
        ["admission, from the planned start", "admission, from the real start", "event lag", "generator's own lateness"]
    {
        assert!(legend.replace("&#39;", "'").contains(curve), "{curve}: {legend}");
    }
}

/// Each sample is in one cell of the heat map, and the fullest cells are the darkest.
#[test]
fn a_heat_map_holds_all_samples() {
    let (_dir, record, judgement) = texts(&Example::clean());
    let slices = record.latency.slices(record::tag::RESPONSE);
    let total: u64 = slices.iter().flat_map(|slice| slice.bands).map(u64::from).sum();
    assert_eq!(total, slices.iter().map(|slice| slice.quantiles.count).sum::<u64>());
    let page = html(&record, &judgement).unwrap();
    assert!(page.contains("class=\"fill h5\"") && page.contains("id=\"plot-heat\""));
}
