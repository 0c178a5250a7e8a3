//! Parses and checks a [`Scenario`]. Errors name the position in the file, the key and a remedy.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_saphyr::DeserializeError;
use units::Span;

use super::reach::{Ground, Reach};
use super::spelling::{nearest, unknown};
use super::validate::{Item, PathPart};
use super::{Scenario, Witness, library, validate};

/// Maximum length of a scenario file, in bytes. Every scenario of the library is smaller than 10 KiB.
const BYTES_MAX: u64 = 1 << 20;

/// Maximum number of objects that the key `with` of `churn` may create in each namespace.
const COMPANIONS_MAX: usize = 50;

/// A scenario with its source text.
#[derive(Debug, Clone)]
pub struct Source {
    pub scenario: Scenario,
    /// The path of the file or the library name, as the user wrote it.
    pub origin: String,
    /// The folder that relative paths in the scenario start from.
    pub directory: PathBuf,
}

/// The reason why a scenario cannot be used. The error is printed as `file:line:column: problem`, with a remedy.
#[derive(Debug)]
pub struct Error {
    origin: String,
    place: Option<(u64, u64)>,
    text: String,
    snippet: Option<String>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.origin)?;
        if let Some((line, column)) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.text)?;
        self.snippet.as_ref().map_or(Ok(()), |snippet| write!(f, "\n{snippet}"))
    }
}

impl std::error::Error for Error {}

impl Error {
    /// An error in command-line options that change a scenario.
    pub(super) fn of_options(origin: &str, text: String) -> Self {
        Self { origin: origin.to_owned(), place: None, text, snippet: None }
    }
}

impl Source {
    /// Reads a scenario by its library name or by the path of a file. The scenario can name only files in its own
    /// folder.
    pub fn read(name_or_path: &str) -> Result<Self, Error> {
        Self::read_within(name_or_path, Reach::Folder)
    }

    /// Reads a scenario that can name files within `reach`.
    pub fn read_within(name_or_path: &str, reach: Reach) -> Result<Self, Error> {
        if let Some(text) = library::text(name_or_path) {
            return Self::parse(text, &library::origin(name_or_path), Path::new("."));
        }
        let path = Path::new(name_or_path);
        let fail = |text: String| Error { origin: name_or_path.to_owned(), place: None, text, snippet: None };
        path.symlink_metadata().map_err(|error| fail(not_readable(name_or_path, &error)))?;
        let ground = Ground::of(path.parent().unwrap_or(Path::new(".")), reach);
        let name = path.file_name().map_or(path, Path::new);
        let text = ground.text(name, BYTES_MAX).map_err(fail)?;
        Self::parse_on(&text.text, name_or_path, &ground)
    }

    /// Parses a text in place of the contents of a scenario file. Relative paths start from the folder of that file.
    pub fn instead(path: &str, text: &str, reach: Reach) -> Result<Self, Error> {
        let folder = Path::new(path).parent().unwrap_or(Path::new("."));
        Self::parse_on(text, path, &Ground::of(folder, reach))
    }

    /// The contents of a scenario file as a mapping, without checks of its keys.
    pub fn raw(path: &str, reach: Reach) -> Result<serde_json::Map<String, serde_json::Value>, Error> {
        let fail = |text: String| Error { origin: path.to_owned(), place: None, text, snippet: None };
        let name = Path::new(path);
        let ground = Ground::of(name.parent().unwrap_or(Path::new(".")), reach);
        let text = ground.text(name.file_name().map_or(name, Path::new), BYTES_MAX).map_err(fail)?;
        serde_saphyr::from_str(&text.text).map_err(|error| explain(&error, path, &text.text))
    }

    /// The library's scenarios of documented bugs, in the order of the catalogue. An error means that a file of the
    /// library is invalid.
    pub fn bugs() -> Result<Vec<Self>, Error> {
        let mut bugs = library::bug_names().map(Self::read).collect::<Result<Vec<_>, _>>()?;
        bugs.sort_by_key(|bug| bug.scenario.repro.as_ref().map(|repro| repro.row.order()));
        Ok(bugs)
    }

    /// Parses and checks the text of a scenario. Errors use `origin` as the name of the file.
    pub fn parse(text: &str, origin: &str, directory: &Path) -> Result<Self, Error> {
        Self::parse_on(text, origin, &Ground::of(directory, Reach::Folder))
    }

    fn parse_on(text: &str, origin: &str, ground: &Ground) -> Result<Self, Error> {
        let mut scenario: Scenario = serde_saphyr::from_str(text).map_err(|error| explain(&error, origin, text))?;
        read_files(&mut scenario, ground).map_err(|(section, problem)| Error {
            origin: origin.to_owned(),
            place: place_of(text, section, None),
            text: problem,
            snippet: None,
        })?;
        let rate = scenario.clock_rate();
        scenario.by_real_clock(rate);
        hold_to_promises(&mut scenario);
        validate::drawn(&mut scenario).and_then(|()| validate::validate(&scenario)).map_err(|problem| Error {
            origin: origin.to_owned(),
            place: problem.section.and_then(|section| place_of(text, section, problem.part)),
            text: problem.text,
            snippet: None,
        })?;
        Ok(Self { scenario, origin: origin.to_owned(), directory: ground.folder().to_owned() })
    }

    /// Sets another total length of the run. Warm-up and drain keep their lengths; the steady phase gets the rest.
    /// Fails if nothing is left for the steady phase, or if faults or script steps of the file no longer fit into the
    /// run.
    pub fn last(&mut self, length: Span) -> Result<(), Error> {
        let fail = |text: String| Error { origin: format!("--for {length}"), place: None, text, snippet: None };
        let rate = self.scenario.clock_rate();
        self.scenario
            .phases
            .last(length, rate)
            .map_err(|around| fail(format!("warm-up and drain alone take {around} in {}", self.origin)))?;
        self.scenario.draw().map_err(|error| match error {
            mock_faults::random::Error::NoRoom { every, short, .. } => fail(format!(
                "no drawn fault fits: warm-up, drain and the time to heal leave less than the {every} in which one strikes; write at least \
                 `--for {}`",
                Span(length.0 + short.0)
            )),
            other => fail(other.to_string()),
        })?;
        validate::validate(&self.scenario).map_err(|problem| fail(problem.text))
    }

    /// Sets `controlPlane.compress` and the subject's `clockRate` from the command line.
    pub fn hurry(&mut self, compress: Option<u32>, clock_rate: Option<u32>) -> Result<(), Error> {
        self.scenario.control_plane.compress = compress.or(self.scenario.control_plane.compress);
        if let Some(rate) = clock_rate {
            self.scenario.subject.kind_mut().hurry(rate);
        }
        let said = [("--compress", compress), ("--clock-rate", clock_rate)];
        let said = said.into_iter().filter_map(|(option, value)| Some(format!("{option} {}", value?)));
        let origin = said.collect::<Vec<_>>().join(" ");
        if origin.is_empty() {
            return Ok(());
        }
        let rate = self.scenario.clock_rate();
        self.scenario.by_real_clock(rate);
        if self.scenario.phases.own_steady().is_some() {
            self.draw(&origin)?;
        }
        validate::validate(&self.scenario).map_err(|problem| Error {
            origin,
            place: None,
            text: problem.text,
            snippet: None,
        })
    }

    /// Adds these series of the subject's metrics page to the series that the run records.
    pub fn follow(&mut self, series: &[String]) -> Result<(), Error> {
        if series.is_empty() {
            return Ok(());
        }
        let metrics = self.scenario.subject.metrics.get_or_insert_default();
        metrics.series.extend(series.iter().cloned());
        let origin = format!("--metrics-series {}", series.join(" "));
        validate::validate(&self.scenario).map_err(|problem| Error {
            origin,
            place: None,
            text: problem.text,
            snippet: None,
        })
    }

    /// Sets another seed of the run, and draws the random faults again.
    pub fn sow(&mut self, seed: u64) -> Result<(), Error> {
        self.scenario.seed = seed;
        self.draw(&format!("--seed {seed}"))
    }

    /// Draws the random faults again after a change of the scenario. The error message names the change by the text
    /// `why`.
    pub fn draw(&mut self, why: &str) -> Result<(), Error> {
        let fail = |text: String| Error { origin: why.to_owned(), place: None, text, snippet: None };
        validate::drawn(&mut self.scenario).map_err(|problem| fail(problem.text))
    }
}

/// Adds budgets for the API's promises to watchers, if the subject has a witness and the scenario file does not set
/// such budgets. Without these budgets a run in which the subject observes nothing would pass.
fn hold_to_promises(scenario: &mut Scenario) {
    let is_written = !scenario.churn.is_empty() || scenario.script.is_some();
    if is_written && !matches!(scenario.subject.witness, Witness::None(_)) {
        scenario.budgets.events.get_or_insert_default();
    }
}

fn not_readable(name: &str, error: &std::io::Error) -> String {
    if error.kind() != std::io::ErrorKind::NotFound {
        return format!("cannot be read: {error}");
    }
    let names = library::names().collect::<Vec<_>>();
    let known: Vec<&str> = names.iter().copied().chain(library::bug_names()).collect();
    let near = nearest(name, &known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let names = names.join(", ");
    format!(
        "no such file, and no scenario of that name in the library ({names}, and those of `longhaul show library`){near}"
    )
}

/// Replaces error messages of serde that do not help users, and adds the lines of the scenario file to the message.
fn explain(error: &DeserializeError, origin: &str, source: &str) -> Error {
    if let Some((key, instead)) = super::subject::rewritten(source) {
        let text = format!(
            "`{key}` stands in the wrong place: a subject is named by its kind, which has the keys of that kind. Write\n\n{instead}"
        );
        let place = place_of(source, "subject", Some(PathPart::Key(&key)));
        return Error { origin: origin.to_owned(), place, text, snippet: None };
    }
    if let Some((section, key, text)) = super::moved::refused(source) {
        let place = place_of(source, section, Some(PathPart::Key(key)));
        return Error { origin: origin.to_owned(), place, text, snippet: None };
    }
    let bare = error.without_snippet();
    let place = bare.location().map(|location| (location.line(), location.column()));
    let text = match bare {
        DeserializeError::SerdeUnknownField { field, expected, .. } => unknown("key", field, expected),
        DeserializeError::SerdeUnknownVariant { variant, expected, .. } => unknown("value", variant, expected),
        DeserializeError::SerdeMissingField { field, .. } => {
            format!("the key `{field}` is missing in the mapping that starts here")
        }
        DeserializeError::MultipleDocuments { .. } => "a scenario file holds one document: remove the `---`".to_owned(),
        DeserializeError::DuplicateMappingKey { key, .. } => {
            format!("the key `{}` stands here a second time: keep one", key.as_deref().unwrap_or("?"))
        }
        DeserializeError::Eof { .. } => "the file is empty or ends too early".to_owned(),
        other => {
            let text = other.to_string();
            text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text).to_owned()
        }
    };
    let snippet = place.and_then(|(line, column)| snippet(source, line, column));
    Error { origin: origin.to_owned(), place, text, snippet }
}

/// The line of the file that has the error, with a mark below the column.
fn snippet(source: &str, line: u64, column: u64) -> Option<String> {
    let text = source.lines().nth(usize::try_from(line.checked_sub(1)?).ok()?)?;
    let number = line.to_string();
    let pad = usize::try_from(column.saturating_sub(1)).ok()?;
    Some(format!("  {number} | {text}\n  {:width$} | {:pad$}^", "", "", width = number.len()))
}

/// Line and column of a top-level section, of a key in the section, or of an item of a list (the section itself, or a
/// key of it). If the key or item is not on a line of its own, returns the position of the section.
fn place_of(text: &str, section: &str, part: Option<PathPart<'_>>) -> Option<(u64, u64)> {
    let has_key = |line: &str, key: &str| line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':'));
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.iter().position(|line| has_key(line, section))?;
    let place = |index: usize, column: usize| (index as u64 + 1, column as u64 + 1);
    let column = |line: &str| line.len() - line.trim_start().len();
    let belongs = |line: &&&str| line.is_empty() || line.starts_with([' ', '#', '-']);
    let end = start + 1 + lines[start + 1..].iter().take_while(belongs).count();
    let is_text = |line: &str| !line.trim_start().is_empty() && !line.trim_start().starts_with('#');
    let outermost = lines[start + 1..end].iter().find(|line| is_text(line)).map(|line| column(line));
    let is_key = |line: &str, key: &str| Some(column(line)) == outermost && has_key(line.trim_start(), key);
    let key_at = |key: &str| (start + 1..end).find(|index| is_key(lines[*index], key));
    let item_at = |Item { list, index }: Item| {
        let first = list.map_or(Some(start), key_at)? + 1;
        let is_item = |line: &str| line.trim_start().starts_with("- ");
        let indent = lines[first..end].iter().find(|line| is_item(line)).map(|line| column(line))?;
        (first..end).filter(|at| is_item(lines[*at]) && column(lines[*at]) == indent).nth(index)
    };
    let found = match part {
        None => None,
        // The keys of a subject's kind stand one level deeper.
        Some(PathPart::Key(key)) if section == "subject" => {
            key_at(key).or_else(|| (start + 1..end).find(|index| has_key(lines[*index].trim_start(), key)))
        }
        Some(PathPart::Key(key)) => key_at(key),
        Some(PathPart::Item(item)) => item_at(item),
        Some(PathPart::Text(text)) => {
            (start..end).find(|index| is_text(lines[*index]) && lines[*index].contains(&text))
        }
    };
    let found = found.map(|index| place(index, column(lines[index])));
    found.or(Some(place(start, 0)))
}

/// Reads the other files of the scenario: manifests, and the template of churn. Also checks that the files which the
/// run reads later exist. The error names the section.
fn read_files(scenario: &mut Scenario, ground: &Ground) -> Result<(), (&'static str, String)> {
    if let Some(command) = scenario.subject.command_mut() {
        super::given::in_files(command).map_err(|problem| ("subject", problem))?;
    }
    let subject = &scenario.subject;
    super::files::list(ground, subject.profile().build).map_err(|problem| ("subject", problem))?;
    for (key, path) in subject.profile().files {
        ground.allows(path).map_err(|why| ("subject", format!("`{key}`: {}: {why}", path.display())))?;
    }
    for path in subject.profile().manifests {
        super::subject::look_at_manifests(ground, path).map_err(|why| ("subject", why))?;
    }
    let mut webhooks = Vec::new();
    if let Some(super::Install::Webhooks(file)) = &mut scenario.subject.install {
        webhooks = super::webhook::read(ground, file).map_err(|problem| ("subject", problem))?;
        *file = ground.folder().join(&*file);
    }
    if let Some(file) = scenario.admission.as_mut().and_then(|admission| admission.replay.as_mut()) {
        ground.allows(file).map_err(|why| ("admission", format!("`replay`: {}: {why}", file.display())))?;
        *file = ground.folder().join(&*file);
    }
    let plane = &mut scenario.control_plane;
    let manifests = super::manifests::read(ground, &plane.manifests).map_err(|problem| ("controlPlane", problem))?;
    for path in &mut plane.manifests {
        *path = ground.folder().join(&*path);
    }
    for churn in scenario.churn.iter_mut() {
        read_template("churn", &mut churn.template, ground)?;
        for sample in &mut churn.templates {
            read_sample(sample, ground)?;
        }
        read_companions("churn", &mut churn.with, ground)?;
        if let Some(tree) = &mut churn.tree {
            read_template("churn", &mut tree.template, ground)?;
        }
        super::manifests::complete(churn, &manifests).map_err(|problem| ("churn", problem))?;
    }
    if let Some(script) = &mut scenario.script {
        read_template("script", &mut script.template, ground)?;
        read_companions("script", &mut script.with, ground)?;
        super::manifests::complete_script(script, &manifests).map_err(|problem| ("script", problem))?;
    }
    let found = super::objects::of(scenario, &manifests, &webhooks);
    if let Some(admission) = scenario.admission.as_mut().filter(|config| config.is_left_to_webhooks()) {
        admission.objects = found;
    }
    Ok(())
}

/// Replaces the file name of a template by the content of the file.
pub(super) fn read_template(
    section: &'static str,
    template: &mut Option<serde_json::Value>,
    ground: &Ground,
) -> Result<(), (&'static str, String)> {
    let Some(serde_json::Value::String(file)) = template else { return Ok(()) };
    let read = object_in(section, file, ground, "template")?;
    *template = Some(read);
    Ok(())
}

/// Replaces file names in the key `with` of `churn` by the objects in the files.
fn read_companions(
    section: &'static str,
    with: &mut Vec<serde_json::Value>,
    ground: &Ground,
) -> Result<(), (&'static str, String)> {
    let mut all = Vec::new();
    for one in with.drain(..) {
        let serde_json::Value::String(file) = &one else {
            all.push(one);
            continue;
        };
        let fail = |why: String| (section, format!("`with: {file}`: {why}"));
        let text = ground.text(Path::new(file), BYTES_MAX).map_err(fail)?;
        let objects: Vec<serde_json::Value> =
            serde_saphyr::from_multiple(&text.text).map_err(|error| fail(text.problem(&error)))?;
        let objects: Vec<serde_json::Value> = objects.into_iter().filter(|object| !object.is_null()).collect();
        if objects.is_empty() {
            return Err(fail("there is no object in it".to_owned()));
        }
        all.extend(objects);
    }
    if all.len() > COMPANIONS_MAX {
        let problem = format!(
            "`with`: there are {}; at most {COMPANIONS_MAX}: the rest goes into `controlPlane.manifests`",
            all.len()
        );
        return Err((section, problem));
    }
    *with = all;
    Ok(())
}

/// Replaces the file name of one churn sample by the content of the file.
fn read_sample(sample: &mut loadgen::churn::Sample, ground: &Ground) -> Result<(), (&'static str, String)> {
    match (&sample.file, &sample.object) {
        (Some(file), None) => sample.object = Some(object_in("churn", file, ground, "templates")?),
        (None, Some(_)) => {}
        (None, None) => return Err(("churn", "`templates`: an item has neither `file` nor `object`".to_owned())),
        (Some(file), Some(_)) => {
            return Err(("churn", format!("`templates`: `{file}` has both `file` and `object`: keep one")));
        }
    }
    Ok(())
}

/// The objects in the file of a template.
fn object_in(
    section: &'static str,
    file: &str,
    ground: &Ground,
    key: &str,
) -> Result<serde_json::Value, (&'static str, String)> {
    let fail = |why: String| (section, format!("`{key}: {file}`: {why}"));
    let text = ground.text(Path::new(file), BYTES_MAX).map_err(fail)?;
    serde_saphyr::from_str(&text.text).map_err(|error| fail(text.problem(&error)))
}

#[cfg(test)]
mod tests {
    use record::budgets::Events;

    use super::*;

    /// `--for` changes only the steady phase. If faults or script steps no longer fit into the steady phase, the length
    /// is refused.
    #[test]
    fn another_length_is_that_of_the_whole() {
        let mut source = Source::read("soak-10m").unwrap();
        source.last(Span::from_secs(90)).unwrap();
        assert_eq!(
            (source.scenario.phases.total().as_secs(), source.scenario.phases.steady),
            (90, Span::from_secs(30))
        );
        let error = source.last(Span::from_secs(60)).unwrap_err().to_string();
        assert!(error.starts_with("--for 1m: warm-up and drain alone take 1m in "), "{error}");
        let mut smoke = Source::read("smoke").unwrap();
        let error = smoke.last(Span::from_secs(30)).unwrap_err().to_string();
        assert!(error.starts_with("--for 30s: ") && error.contains("fault"), "{error}");
    }

    #[test]
    fn a_witness_is_judged_although_no_budget_asks() {
        let parsed = |text: &str| Source::parse(text, "test", Path::new(".")).unwrap().scenario.budgets.events;
        let smoke = library::text("smoke").unwrap();
        let (before, budgets) = smoke.split_once("budgets:\n").unwrap();
        let without: Vec<&str> = budgets.lines().filter(|line| !line.starts_with("  events")).collect();
        assert!(parsed(smoke).is_some_and(|events| events != Events::default()), "smoke says more");
        assert_eq!(parsed(&format!("{before}budgets:\n{}\n", without.join("\n"))), Some(Events::default()));
    }

    #[test]
    fn what_goes_with_churned_objects_is_read_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\n";
        std::fs::write(folder.path().join("with.yaml"), format!("{secret}---\n{}", secret.replace("login", "other")))
            .unwrap();
        std::fs::write(folder.path().join("nameless.yaml"), "apiVersion: v1\nkind: Secret\n").unwrap();
        let read = |with: &str| {
            let text = format!(
                "apiVersion: longhaul/v1\nname: a\ndescription: b\nseed: 1\nphases: {{warmUp: 1s, steady: 20s, drain: 15s}}\nsubject: {{command: [a], witness: \
                 {{kind: status}}}}\nchurn: {{resource: configmaps/v1, population: 5, rate: 1/s, with: {with}}}\n"
            );
            Source::parse(&text, "a.yaml", folder.path())
                .map(|source| source.scenario.churn.iter().next().unwrap().with.len())
        };
        assert_eq!(read("[with.yaml, {apiVersion: v1, kind: Secret, metadata: {name: a}}]").unwrap(), 3);
        let why = read("[nameless.yaml]").unwrap_err().to_string();
        assert!(why.contains("no `metadata.name`"), "{why}");
        assert!(read("[gone.yaml]").unwrap_err().to_string().contains("`with: gone.yaml`"));
    }

    #[test]
    fn the_place_of_an_item_is_its_own_line() {
        let text = "name: x\nfaults:\n  - {name: a}\n  # why\n  - name: b\n    list:\n      - 1\n  - {name: c}\n\nscript:\n  \
            objects: [a]\n  steps:\n    - {at: 1s}\n    - {at: 2s}\nbudgets: {}\n";
        let item = |list, index| Some(PathPart::Item(Item { list, index }));
        assert_eq!(place_of(text, "faults", item(None, 2)), Some((8, 3)));
        assert_eq!(place_of(text, "script", item(Some("steps"), 1)), Some((14, 5)));
        assert_eq!(place_of(text, "script", item(Some("steps"), 7)), Some((10, 1)), "the section when it is not found");
        assert_eq!(place_of("faults: [{name: a}, {name: b}]\n", "faults", item(None, 1)), Some((1, 1)));
        assert_eq!(place_of(text, "script", Some(PathPart::Key("steps"))), Some((12, 3)));
        assert_eq!(
            place_of(text, "script", Some(PathPart::Key("rate"))),
            Some((10, 1)),
            "the section when it is not found"
        );
        let nested = "admission:\n  # how\n  shape:\n    rate: 1/s\n  rate: 2/s\n";
        assert_eq!(place_of(nested, "admission", Some(PathPart::Key("rate"))), Some((5, 3)), "not the one deeper in");
        assert_eq!(place_of(text, "churn", None), None);
    }
}
