//! `cargo xtask calibrate`: checks the judges. Each planted bug must be caught by the judge for this bug and by no
//! other, and runs without bugs must pass.
//!
//! Modules: `plants` (table of planted bugs), `play` (order of runs), `gate` (bugs that only a comparison of two builds
//! finds), `synthetic` (judge of growth on generated series), `result`, `render`. No module of the calibration judges a
//! run; the modules only read verdicts.

use std::path::Path;

mod gate;
mod plants;
mod play;
mod render;
mod result;
mod synthetic;

pub use plants::{CANARY, Expected, PLANTS, Plant};
pub use play::{Choice, Error, estimate, play, rows};
pub use render::{html, markdown, plain};
pub use result::{Alarms, Calibration, Expectation, Found, Gated, Judge, Play, Row, SCHEMA, Share, State};

const PAGES: [&str; 3] = ["calibration.json", "calibration.md", "calibration.html"];

/// Starts a calibration: judges `runs` generated series of each kind and speed, and adds `rows`, which have no runs
/// yet.
pub fn begin(runs: u64, rows: Vec<Row>) -> Calibration {
    Calibration {
        schema: SCHEMA.to_owned(),
        date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        longhaul: env!("CARGO_PKG_VERSION").to_owned(),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        synthetic_canary: synthetic::canary(),
        synthetic: synthetic::table(runs),
        rows,
    }
}

pub fn write(calibration: &Calibration, folder: &Path) -> Result<(), Error> {
    let problem = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Write { path, source }
    };
    std::fs::create_dir_all(folder).map_err(problem(folder))?;
    let json = serde_json::to_string_pretty(calibration).expect("a calibration has only texts and numbers") + "\n";
    let texts = [json, markdown(calibration), html(calibration)?];
    for (name, text) in PAGES.into_iter().zip(texts) {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(problem(&path))?;
    }
    Ok(())
}
