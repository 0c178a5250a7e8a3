//! The HTML report that compares two runs.
//!
//! Owns the choice of values that are shown of both runs. [`crate::diff`] finds the differences; its texts are the same
//! in HTML and in plain text.

use askama::Template;

use super::chart::Chart;
use super::percentiles;
use super::timeline::{Axis, pair};
use super::{Data, data_json};
use crate::diff::Diff;
use crate::record::Record;
use crate::render::{Error, diff as words};

#[derive(Template)]
#[template(path = "diff.html")]
struct Page<'a> {
    name: &'a str,
    diff: &'a Diff,
    tables: [(&'static str, Vec<[String; 4]>); 3],
    axis: Axis,
    charts: Vec<Chart>,
    distributions: Vec<Chart>,
    data: String,
}

/// The HTML report with budgets, figures and series of two compared runs.
pub fn diff_html(a: &Record, b: &Record, diff: &Diff) -> Result<String, Error> {
    let (axis, charts) = pair::charts(a, b);
    let readings = charts.iter().map(Chart::readings).collect();
    let data = data_json(&Data { length_ms: axis.length_ms, unit: None, charts: readings })?;
    let page = Page {
        name: &b.manifest.name,
        diff,
        tables: [
            ("Budgets", diff.budgets.iter().map(words::budget).collect()),
            ("Figures", diff.figures.iter().map(words::figure).collect()),
            ("What differs", diff.differences.iter().map(words::difference).collect()),
        ],
        axis,
        charts,
        distributions: percentiles::pair(a, b),
        data,
    };
    Ok(page.render()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Example;
    use crate::judge::judge;

    /// Both compared runs are in each chart, and text that comes from the records is escaped.
    #[test]
    fn both_runs_are_in_one_page() {
        let dir = tempfile::tempdir().unwrap();
        let open = |example: &Example, name: &str| {
            let dir = dir.path().join(name);
            std::fs::create_dir(&dir).unwrap();
            example.open(&dir)
        };
        let mut bad = Example::failing();
        bad.manifest.run_id = "<script>alert(1)</script>".to_owned();
        let (a, b) = (open(&Example::clean(), "a"), open(&bad, "b"));
        let diff = crate::diff::diff((&a, &judge(&a)), (&b, &judge(&b)));
        let page = diff_html(&a, &b, &diff).unwrap();
        assert!(!page.contains("<script>alert"), "outside text is markup");
        let plots: Vec<&str> = page.split("<div class=\"plot").skip(1).collect();
        assert!(plots.len() >= 10, "{}", plots.len());
        for id in ["response-percentiles", "service-percentiles", "lag-percentiles", "lateness-percentiles"] {
            assert!(page.contains(&format!("class=\"plot tall\" id=\"plot-{id}\"")), "{id}");
        }
        for figure in ["response p99", "service p50", "lateness p50", "lag p50"] {
            assert!(page.contains(&format!("<code>{figure}</code>")), "{figure}");
        }
        for plot in plots {
            let drawn = |curve: u8| plot.contains(&format!("data-curve=\"{curve}\" d=\"M"));
            // A curve by percentile has a faint end of its own.
            assert!(drawn(0) && (drawn(1) || (plot.starts_with(" tall") && drawn(2))), "{plot}");
        }
        assert!(page.contains("<code>events.missed</code>") && page.contains("71 MiB"));
    }
}
