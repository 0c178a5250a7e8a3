//! The HTML report of a comparison of subjects: its tables, why each subject that is behind is behind, and all series
//! on one time axis.

use askama::Template;

use super::chart::Chart;
use super::timeline::Axis;
use super::timeline::several::{self, CLASSES};
use super::{Data, data_json};
use crate::compare::{Comparison, Entrant, FigureHead, Group, Row};
use crate::judge::Verdict;
use crate::record::Record;
use crate::render::{Error, compare as words};

#[derive(Template)]
#[template(path = "compare.html")]
struct Page<'a> {
    comparison: &'a Comparison,
    how: String,
    ranks: &'static str,
    subjects: Vec<Subject<'a>>,
    tables: Vec<Table<'a>>,
    intervals: Vec<(&'a str, &'a str)>,
    axis: Axis,
    charts: Vec<Chart>,
    data: String,
}

struct Subject<'a> {
    class: &'static str,
    verdict_class: &'static str,
    verdict: String,
    row: &'a Row,
    lasted: String,
}

/// The table of one group of figures in the comparison.
struct Table<'a> {
    title: &'static str,
    heads: Vec<&'a str>,
    rows: Vec<Line<'a>>,
}

struct Line<'a> {
    class: &'static str,
    name: &'a str,
    cells: Vec<Cell>,
}

struct Cell {
    value: String,
    between: String,
    rank: Option<usize>,
}

pub fn compare_html(comparison: &Comparison, entrants: &[Entrant]) -> Result<String, Error> {
    // The last round of each: one curve a subject.
    let runs: Vec<(&str, Option<&Record>)> =
        entrants.iter().map(|entrant| (entrant.name.as_str(), entrant.runs.last().map(|(record, _)| record))).collect();
    let (axis, charts) = several::charts(&runs);
    let readings = charts.iter().map(Chart::readings).collect();
    let data = data_json(&Data { length_ms: axis.length_ms, unit: None, charts: readings })?;
    let subjects = comparison.rows.iter().zip(CLASSES).map(|(row, class)| Subject {
        class,
        verdict_class: row.verdict.map_or("fail", Verdict::word),
        verdict: words::verdict(row),
        row,
        lasted: words::lasted(row),
    });
    let page = Page {
        comparison,
        how: words::how(comparison),
        ranks: words::RANKS,
        subjects: subjects.collect(),
        tables: Group::ALL.into_iter().map(|group| table(comparison, group)).collect(),
        intervals: comparison
            .figures
            .iter()
            .filter(|figure| figure.ranked)
            .map(|figure| (figure.name.as_str(), figure.interval.as_str()))
            .collect(),
        axis,
        charts,
        data,
    };
    Ok(page.render()?)
}

fn table<'a>(comparison: &'a Comparison, group: Group) -> Table<'a> {
    let figures = || comparison.figures.iter().filter(move |figure| figure.group == group);
    let row = |(row, class): (&'a Row, &'static str)| {
        let cell = |figure: &FigureHead| {
            let Some(cell) = row.figures.get(&figure.key) else {
                return Cell { value: "–".to_owned(), between: String::new(), rank: None };
            };
            let between = words::between(figure, cell).unwrap_or_default();
            Cell { value: figure.unit.words(cell.value), between, rank: cell.rank }
        };
        Line { class, name: &row.name, cells: figures().map(cell).collect() }
    };
    Table {
        title: group.words(),
        heads: figures().map(|figure| figure.name.as_str()).collect(),
        rows: comparison.rows.iter().zip(CLASSES).map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use crate::compare::{About, Entrant, comparison};
    use crate::example::Example;
    use crate::judge::judge;

    /// Every compared subject has a row in each table, and a curve in each chart for which it has values. Text that
    /// comes from the records is escaped.
    #[test]
    fn all_are_in_one_page_and_one_record() {
        let entrant = |name: &str, example: &Example| {
            let record = example.opened();
            let judgement = judge(&record);
            let command = "run <b>it</b> | now".to_owned();
            Entrant {
                name: name.to_owned(),
                command,
                runs: vec![(record, judgement)],
                folders: vec!["a".to_owned()],
                failure: None,
            }
        };
        let mut all =
            vec![entrant("right", &Example::clean()), entrant("<script>alert(1)</script>", &Example::failing())];
        let failure = Some("there is no program `nobody`".to_owned());
        all.push(Entrant {
            name: "absent".to_owned(),
            command: "nobody".to_owned(),
            runs: Vec::new(),
            folders: Vec::new(),
            failure,
        });
        let compared =
            comparison(About { scenario: "smoke".to_owned(), repeat: "again".to_owned(), ..About::default() }, &all);
        let page = super::compare_html(&compared, &all).unwrap();
        assert!(!page.contains("<script>alert") && !page.contains("<b>it"), "outside text is markup");
        let plots: Vec<&str> = page.split("<div class=\"plot").skip(1).collect();
        assert!(plots.len() >= 10, "{}", plots.len());
        for plot in &plots {
            assert!(
                plot.contains("class=\"s1\" data-curve=\"0\" d=\"M")
                    && plot.contains("class=\"s2\" data-curve=\"1\" d=\"M")
            );
        }
        assert_eq!(page.matches("<tr class=\"subject\">").count(), 9, "three tables of three");
        assert!(page.contains("there is no program") && page.contains("class=\"fault\""), "why, and the faults");

        let text = crate::render::compare_markdown(&compared);
        let order = ["## Context", "## Options", "## Measured", "### Why", "## Decision\n\nOpen."];
        let places: Vec<usize> = order.iter().map(|head| text.find(head).expect(head)).collect();
        assert!(places.is_sorted(), "{text}");
        assert!(!text.contains("<script") && text.contains("never began"), "{text}");
        let terminal = crate::render::compare(&compared);
        assert!(terminal.contains("absent: there is no program `nobody`"), "{terminal}");
    }
}
