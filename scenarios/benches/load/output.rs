//! Parses the output of wrk, h2load, hey, ab and oha. The parser of this module does no I/O and is tested on recorded
//! output (`tests/e2e/tools.rs`).

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Ours,
    Wrk,
    H2load,
    Hey,
    Ab,
    Oha,
}

impl Tool {
    pub(crate) const ALL: [Self; 6] = [Self::Ours, Self::Wrk, Self::H2load, Self::Hey, Self::Ab, Self::Oha];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "longhaul",
            Self::Wrk => "wrk",
            Self::H2load => "h2load",
            Self::Hey => "hey",
            Self::Ab => "ab",
            Self::Oha => "oha",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) per_second: f64,
    /// Number of valid answers.
    pub(crate) requests: f64,
    pub(crate) failed: f64,
    /// The 99th percentile, or the closest figure if the tool has no percentiles.
    pub(crate) p99_ms: Option<f64>,
}

/// Parses the tool's stdout. Returns `None` if a figure is missing.
pub(crate) fn parse(tool: Tool, text: &str) -> Option<Parsed> {
    if tool == Tool::Oha {
        return parse_oha(text);
    }
    let behind = |label: &str| {
        let rest = &text[text.find(label)? + label.len()..];
        let number = rest.split_whitespace().next()?;
        number.trim_end_matches(['%', ',', 's']).parse::<f64>().ok()
    };
    Some(match tool {
        Tool::Wrk => {
            let requests = text.lines().find_map(|line| line.trim().split_once(" requests in ")?.0.parse().ok())?;
            let p99 =
                text.lines().find_map(|line| line.trim().strip_prefix("99%").map(str::trim).and_then(duration_ms));
            let failed = behind("Non-2xx or 3xx responses:").unwrap_or(0.0);
            Parsed { per_second: behind("Requests/sec:")?, requests, failed, p99_ms: p99 }
        }
        Tool::H2load => {
            let line = text.lines().find(|line| line.starts_with("finished in"))?;
            let per_second = line.split(", ").nth(1)?.split(' ').next()?.parse().ok()?;
            let counts = text.lines().find(|line| line.starts_with("requests:"))?;
            let count = |label: &str| {
                counts.split(", ").find_map(|part| {
                    part.trim_start_matches("requests: ").strip_suffix(label)?.trim().parse::<f64>().ok()
                })
            };
            let failed = count("failed")? + count("errored")?;
            // It has no percentiles: `max` in the line of request times is the closest figure.
            let times = text.lines().find(|line| line.starts_with("time for request:"))?;
            let p99_ms = times.split_whitespace().nth(4).and_then(duration_ms);
            Parsed { per_second, requests: count("succeeded")?, failed, p99_ms }
        }
        Tool::Hey => {
            let per_second = behind("Requests/sec:")?;
            let requests = per_second * behind("Total:")?;
            let p99 = text
                .lines()
                .find_map(|line| line.trim().strip_prefix("99% in ")?.split(' ').next()?.parse::<f64>().ok());
            let good = text
                .lines()
                .find_map(|line| line.trim().strip_prefix("[200]")?.split_whitespace().next()?.parse::<f64>().ok());
            let requests = good.unwrap_or(requests);
            let failed = if good.is_some() { 0.0 } else { requests };
            Parsed { per_second, requests, failed, p99_ms: p99.map(|s| s * 1e3) }
        }
        Tool::Ab => {
            let p99 = text.lines().find_map(|line| line.trim().strip_prefix("99%")?.trim().parse::<f64>().ok());
            let failed = behind("Non-2xx responses:").unwrap_or(0.0);
            Parsed {
                per_second: behind("Requests per second:")?,
                requests: behind("Complete requests:")?,
                failed,
                p99_ms: p99,
            }
        }
        Tool::Ours | Tool::Oha => return None,
    })
}

/// Parses the JSON of oha (`--output-format json`). The times in oha's JSON are in seconds. oha counts calls that its
/// own end cuts off as errors.
fn parse_oha(text: &str) -> Option<Parsed> {
    const CUT_OFF: &str = "aborted due to deadline";
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let sum = |key: &str, wanted: &dyn Fn(&str) -> bool| -> Option<f64> {
        let counts = value[key].as_object()?.iter().filter(|(name, _)| wanted(name));
        counts.map(|(_, count)| count.as_f64()).sum()
    };
    let good = |status: &str| status == "200";
    let requests = sum("statusCodeDistribution", &good)?;
    let failed =
        sum("statusCodeDistribution", &|status| !good(status))? + sum("errorDistribution", &|why| why != CUT_OFF)?;
    let per_second = requests / value["summary"]["total"].as_f64()?;
    let p99_ms = value["latencyPercentiles"]["p99"].as_f64().map(|s| s * 1e3);
    Some(Parsed { per_second, requests, failed, p99_ms })
}

/// Parses a duration such as `1.23ms`, `250us`, `2.01s`.
fn duration_ms(text: &str) -> Option<f64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let number: f64 = text[..split].parse().ok()?;
    Some(match &text[split..] {
        "us" => number / 1e3,
        "ms" => number,
        "s" => number * 1e3,
        "m" => number * 60e3,
        _ => return None,
    })
}
