//! Writes any series of a record as CSV (RFC 4180), for spreadsheets, pandas and `DuckDB`.
//!
//! Owns the names of CSV tables and columns, which are the names of the record's files and fields. A CSV table has a
//! row for each row of its record file. A single series as CSV has two columns: time and value.

use std::collections::HashMap;
use std::io::Write;

use serde::Serialize;
use serde_json::Value;

use crate::outside;
use crate::record::{Record, tag};

/// Maximum number of columns of a table: far more than any row has fields.
const COLUMNS_MAX: usize = 1024;
/// The names of the field that has a row's time; the time of an interval is its end.
const TIMES: [&str; 2] = ["tMs", "endMs"];
/// The fields that become the first columns of a table, in this order.
const FIRST: [&str; 4] = ["tag", "tMs", "startMs", "endMs"];

#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// Neither a table nor a series of the record has this name.
    #[error("there is no series {name:?} in this record: `--csv list` names those that there are")]
    Unknown {
        /// The requested name.
        name: String,
    },
    #[error("write CSV")]
    Write(#[from] csv::Error),
    #[error("write CSV")]
    Flush(#[from] std::io::Error),
    #[error("turn a row into columns")]
    Row(#[from] serde_json::Error),
}

/// The rows of a table, with the columns found while the rows were read.
#[derive(Default)]
struct Table {
    columns: Vec<String>,
    places: HashMap<String, usize>,
    rows: Vec<Vec<(usize, String)>>,
}

/// A table of a record: how its rows are read.
type Read = fn(&Record) -> Result<Table, serde_json::Error>;
const TABLES: [(&str, Read); 8] = [
    ("intervals", |record| Table::of(&record.intervals)),
    ("samples", |record| Table::of(&record.samples)),
    ("metrics", |record| Table::of(&record.metrics)),
    ("latency", latency),
    ("faults", |record| Table::of(&record.faults)),
    ("anomalies", |record| Table::of(&record.anomalies)),
    ("crashes", |record| Table::of(&record.crashes)),
    ("requests", |record| Table::of(&record.requests.rows)),
];

/// Writes a table (`samples`) or a single series (`samples.subject.rssBytes`). The name `list` writes all names of
/// tables and series.
pub fn csv(record: &Record, name: &str, out: impl Write) -> Result<(), CsvError> {
    let mut writer = csv::Writer::from_writer(out);
    if name == "list" {
        writer.write_record(["name", "values"])?;
        for (name, read) in TABLES {
            let table = read(record)?;
            for (column, values) in table.counted() {
                writer.write_record([format!("{name}.{column}"), values.to_string()])?;
            }
        }
        return Ok(writer.flush()?);
    }
    let (first, column) = name.split_once('.').map_or((name, None), |(first, rest)| (first, Some(rest)));
    let unknown = || CsvError::Unknown { name: name.to_owned() };
    let read = TABLES.into_iter().find(|(table, _)| *table == first).map(|(_, read)| read).ok_or_else(unknown)?;
    let table = read(record)?;
    let wanted: Vec<usize> = match column {
        None => {
            let mut all: Vec<usize> = (0..table.columns.len()).collect();
            all.sort_by_key(|place| {
                FIRST.iter().position(|time| *time == table.columns[*place]).unwrap_or(FIRST.len())
            });
            all
        }
        Some(column) => {
            let place = *table.places.get(column).ok_or_else(unknown)?;
            TIMES.iter().filter_map(|time| table.places.get(*time)).take(1).copied().chain([place]).collect()
        }
    };
    writer.write_record(wanted.iter().map(|place| &table.columns[*place]))?;
    for row in &table.rows {
        let cell = |place: &usize| row.iter().find(|(at, _)| at == place).map_or("", |(_, text)| text);
        // A row without the value is not part of its series.
        if column.is_none() || wanted.last().is_some_and(|place| row.iter().any(|(at, _)| at == place)) {
            writer.write_record(wanted.iter().map(cell))?;
        }
    }
    Ok(writer.flush()?)
}

impl Table {
    fn of<T: Serialize>(rows: &[T]) -> Result<Self, serde_json::Error> {
        let mut table = Self::default();
        for row in rows {
            let mut cells = Vec::new();
            table.flatten(String::new(), serde_json::to_value(row)?, &mut cells);
            table.rows.push(cells);
        }
        Ok(table)
    }

    /// Adds one column for each field, with dots between the levels of nested fields. A list is written as JSON in one
    /// cell.
    fn flatten(&mut self, path: String, value: Value, cells: &mut Vec<(usize, String)>) {
        let text = match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let below = if path.is_empty() { name } else { format!("{path}.{name}") };
                    self.flatten(below, value, cells);
                }
                return;
            }
            Value::Null => return,
            // Numbers are no text from outside.
            Value::String(text) => outside::cell(text),
            other => other.to_string(),
        };
        let next = self.columns.len();
        let place = match self.places.get(&path) {
            Some(place) => *place,
            None if next >= COLUMNS_MAX => return,
            None => {
                self.columns.push(outside::cell(path.clone()));
                *self.places.entry(path).or_insert(next)
            }
        };
        cells.push((place, text));
    }

    /// The names of the columns, each with the number of rows that have a value in the column.
    fn counted(&self) -> impl Iterator<Item = (&String, usize)> {
        let mut counts = vec![0; self.columns.len()];
        for (place, _) in self.rows.iter().flatten() {
            counts[*place] += 1;
        }
        self.columns.iter().zip(counts)
    }
}

/// A table of the time slices of `latency.hlog` that charts show: a row for each slice and tag, with quantiles in
/// microseconds.
fn latency(record: &Record) -> Result<Table, serde_json::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Row<'a> {
        tag: &'a str,
        start_ms: u64,
        end_ms: u64,
        #[serde(flatten)]
        quantiles: &'a record::Quantiles,
    }
    let tags = [
        tag::RESPONSE,
        tag::RESPONSE_ALLOWED,
        tag::RESPONSE_DENIED,
        tag::RESPONSE_ERROR,
        tag::SERVICE,
        tag::LATENESS,
        tag::CHURN_LATENESS,
        tag::LAG,
        tag::LAG_FAULTED,
        tag::HEAL,
    ];
    let rows: Vec<Row<'_>> = tags
        .iter()
        .flat_map(|tag| record.latency.slices(tag).iter().map(move |slice| (tag, slice)))
        .map(|(tag, slice)| Row { tag, start_ms: slice.start_ms, end_ms: slice.end_ms, quantiles: &slice.quantiles })
        .collect();
    Table::of(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Example;

    fn text(example: &Example, name: &str) -> Result<String, CsvError> {
        let dir = tempfile::tempdir().unwrap();
        let mut out = Vec::new();
        csv(&example.open(dir.path()), name, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    /// A series as CSV has the values of its record file, and a table as CSV has all columns of all rows.
    #[test]
    fn a_series_and_a_table_are_those_of_the_record() {
        let example = Example::clean();
        let series = text(&example, "samples.subject.rssBytes").unwrap();
        let rows: Vec<&str> = series.lines().collect();
        let first = example.samples[0].subject.unwrap().rss_bytes;
        assert_eq!((rows[0], rows[1]), ("tMs,subject.rssBytes", &*format!("0,{first}")));
        assert_eq!(rows.len(), 1 + example.samples.len());
        let table = text(&example, "intervals").unwrap();
        assert_eq!(table.lines().count(), 1 + example.intervals.len());
        let columns = table.lines().next().unwrap().split(',').count();
        assert!(columns > 20 && table.lines().next().unwrap().starts_with("startMs,endMs,"), "{columns}");
        assert!(text(&example, "latency").unwrap().starts_with("tag,startMs,endMs,count,"));
    }

    /// A spreadsheet that opens the CSV file takes no text of the subject for a formula, and numbers remain numbers.
    #[test]
    fn outside_text_is_no_formula() {
        let mut example = Example::failing();
        example.faults[0].detail = Some("=HYPERLINK(\"http://evil.example\",A1)".to_owned());
        example.anomalies[0].name = "@SUM(1)".to_owned();
        let told = text(&example, "faults.detail").unwrap();
        assert!(told.contains("\n0,\"'=HYPERLINK(") || told.contains(",\"'=HYPERLINK("), "{told}");
        assert!(text(&example, "anomalies.name").unwrap().contains(",'@SUM(1)\n"));
        assert!(text(&example, "anomalies.committedMs").unwrap().contains(",61000\n"));
    }

    /// Quoted text in CSV is read back without changes. For an unknown name, the error says how to find the names.
    #[test]
    fn outside_text_is_quoted_and_unknown_names_are_refused() {
        let mut example = Example::clean();
        example.faults[0].detail = Some("a \"quoted\", detail\nin two lines".to_owned());
        let told = text(&example, "faults.detail").unwrap();
        assert!(told.contains("\"a \"\"quoted\"\", detail\nin two lines\""), "{told}");
        let listed = text(&example, "list").unwrap();
        assert!(listed.contains("\nsamples.subject.rssBytes,160\n"), "{listed}");
        for name in ["nothing", "samples.nothing", ""] {
            assert!(text(&example, name).unwrap_err().to_string().contains("`--csv list`"), "{name}");
        }
    }
}
