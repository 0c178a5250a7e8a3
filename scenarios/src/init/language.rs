//! The language of a project, and how its program is built and started, from files of package managers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::go::{Flags, Kind};
use super::{Found, java, makefile};

/// Facts from a package file of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Language {
    pub(crate) name: &'static str,
    pub(crate) file: PathBuf,
    /// The library with which the program calls the API server.
    pub(crate) framework: Option<Framework>,
    /// Facts from the source files.
    pub(crate) habits: Habits,
    /// The build command, which must run before the start command.
    pub(crate) build: Option<String>,
    /// The start command; empty if no file contains one.
    pub(crate) command: Vec<String>,
    /// The folder in which the program starts, if this is not the folder of the package file.
    pub(crate) place: Option<PathBuf>,
    /// Further build commands, each with its start command.
    pub(crate) others: Vec<(Option<String>, Vec<String>)>,
}

/// Facts about the behaviour of a program, from its source files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Habits {
    /// The finalizer that the program or its library adds to objects.
    pub(crate) finalizer: Option<String>,
    /// Whether the program writes the observed generation into the status; `None` if this is not known.
    pub(crate) observes: Option<bool>,
    /// The type of the condition with the observed generation.
    pub(crate) condition: Option<String>,
    /// The kinds that the program creates, by the kind of their owner.
    pub(crate) owned: BTreeMap<String, BTreeSet<Kind>>,
    /// The flags of the program, for languages whose flags are searched.
    pub(crate) flags: Option<Flags>,
}

/// Libraries with known behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framework {
    ControllerRuntime,
    JavaOperatorSdk,
    Kopf,
    KubeRs,
    Pepr,
}

impl Framework {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ControllerRuntime => "controller-runtime",
            Self::JavaOperatorSdk => "the Java Operator SDK",
            Self::Kopf => "kopf",
            Self::KubeRs => "kube-rs",
            Self::Pepr => "Pepr",
        }
    }
}

/// Handlers for which kopf adds its finalizer to each object.
const KOPF_HOLDS: [&str; 3] = ["kopf.on.delete", "kopf.timer", "kopf.daemon"];
const KOPF_FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";

/// Maximum number of main packages tried.
const MAINS_MAX: usize = 3;

/// Whether a file of this name may contain facts about the program.
pub(super) fn is_telling(name: &str) -> bool {
    matches!(name, "go.mod" | "Cargo.toml" | "package.json" | "pyproject.toml" | "requirements.txt" | "pom.xml")
        || Path::new(name).extension().is_some_and(|ending| ending == "py" || ending == "csproj")
        || name.starts_with("build.gradle")
}

/// The facts in a package file; `None` for most files.
pub(super) fn read(file: &Path, name: &str, text: &str) -> Option<Language> {
    let language = |name, framework, build: Option<&str>, command: &[&str]| {
        let command = command.iter().map(|&word| word.to_owned()).collect();
        let build = build.map(str::to_owned);
        Some(Language {
            name,
            file: file.to_owned(),
            framework,
            habits: Habits::default(),
            build,
            command,
            place: None,
            others: Vec::new(),
        })
    };
    let when = |is: bool, framework| is.then_some(framework);
    match name {
        "go.mod" => {
            let framework = when(text.contains("sigs.k8s.io/controller-runtime"), Framework::ControllerRuntime);
            language("Go", framework, Some("go build -o bin/subject ."), &["./bin/subject"])
        }
        "Cargo.toml" => {
            let package = toml_program(text)?;
            let framework = when(text.contains("\nkube"), Framework::KubeRs);
            language("Rust", framework, Some("cargo build --release"), &[&format!("./target/release/{package}")])
        }
        "package.json" => {
            let package: serde_json::Value = serde_json::from_str(text).ok()?;
            let is_pepr =
                ["/dependencies/pepr", "/devDependencies/pepr"].iter().any(|at| package.pointer(at).is_some());
            let start = package.pointer("/scripts/start").and_then(serde_json::Value::as_str);
            let main = package.pointer("/main").and_then(serde_json::Value::as_str);
            let words: Vec<&str> = match (start, main) {
                (Some(start), _) => start.split_whitespace().collect(),
                (None, Some(main)) => vec!["node", main],
                (None, None) => Vec::new(),
            };
            let build = package.pointer("/scripts/build").is_some().then_some("npm run build");
            language("Node.js", when(is_pepr, Framework::Pepr), build, &words)
        }
        "pyproject.toml" | "requirements.txt" => {
            language("Python", when(text.contains("kopf"), Framework::Kopf), None, &[])
        }
        "pom.xml" => {
            let found =
                language("Java", when(is_operator_sdk(text), Framework::JavaOperatorSdk), Some("mvn package"), &[]);
            let (build, command) = java::start(text).unwrap_or(("mvn package", Vec::new()));
            found.map(|found| Language { build: Some(build.to_owned()), command, ..found })
        }
        _ if name.starts_with("build.gradle") => {
            language("Java", when(is_operator_sdk(text), Framework::JavaOperatorSdk), Some("gradle build"), &[])
        }
        _ if name.ends_with(".csproj") => language(".NET", None, Some("dotnet build"), &[]),
        _ if file.extension().is_some_and(|ending| ending == "py")
            && !is_test(name)
            && (text.contains("import kopf") || text.contains("from kopf")) =>
        {
            let found = language("Python", Some(Framework::Kopf), None, &["kopf", "run", "--all-namespaces", name]);
            let holds = KOPF_HOLDS.iter().any(|handler| text.contains(handler));
            let habits = Habits { finalizer: holds.then(|| KOPF_FINALIZER.to_owned()), ..Habits::default() };
            let is_module = text.lines().any(|line| line.starts_with("from .") || line.starts_with("import ."));
            found
                .map(|found| Language { habits, ..found })
                .map(|found| if is_module { as_module(found) } else { found })
        }
        _ => None,
    }
}

/// Whether a Python file belongs to a test suite.
fn is_test(name: &str) -> bool {
    name == "conftest.py" || name.starts_with("test_") || name.ends_with("_test.py")
}

/// If a Python program imports from its own package, starts it by module name, from the folder above the package.
fn as_module(found: Language) -> Language {
    let module = found.file.with_extension("");
    let parts: Vec<String> = module.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    if parts.len() < 2 || !parts.iter().all(|part| makefile::is_plain(part)) {
        return found;
    }
    let words = ["kopf", "run", "--all-namespaces", "-m", &parts.join(".")];
    Language { command: words.map(str::to_owned).to_vec(), place: Some(PathBuf::new()), ..found }
}

/// Whether a build file names the Java Operator SDK, also as an extension of Quarkus or Spring.
fn is_operator_sdk(text: &str) -> bool {
    ["io.javaoperatorsdk", "quarkus-operator-sdk"].iter().any(|name| text.contains(name))
}

impl Language {
    /// Adds facts from other files: the main package, its build command, and its sources.
    pub(super) fn complete(&mut self, found: &Found) {
        match self.name {
            "Go" => self.complete_go(found),
            "Rust" => {
                let (finalizer, observes) = (found.rust.finalizer(), Some(found.rust.observes));
                self.habits = Habits { finalizer, observes, ..Habits::default() };
            }
            "Java" => {
                let finalizer = found.crd().and_then(|crd| found.java.finalizer(&crd.kind, &crd.name()));
                self.habits = Habits { finalizer, observes: Some(found.java.observes), ..Habits::default() };
                if let Some(class) =
                    found.java.main().filter(|_| self.command.is_empty() && self.file.ends_with("pom.xml"))
                {
                    let (build, command) = java::start_class(class);
                    (self.build, self.command) = (Some(build.to_owned()), command);
                }
            }
            _ => {}
        }
    }

    fn complete_go(&mut self, found: &Found) {
        let base = self.folder().to_owned();
        let mains = found.go.mains(&found.name);
        // A path with a special meaning to a shell is not used.
        let below = |folder: &&Path| {
            folder
                .strip_prefix(&base)
                .ok()
                .and_then(Path::to_str)
                .is_some_and(|path| path.is_empty() || makefile::is_plain(path))
        };
        let fitting: Vec<&Path> = mains.into_iter().filter(below).collect();
        if let Some(chosen) = &found.main {
            return self.chosen(found, &base, chosen);
        }
        let nearest = fitting.first().copied();
        let image = found.image_built.as_ref().filter(|_| base.as_os_str().is_empty());
        self.others =
            image.map(|built| (Some(built.command()), vec![format!("./{}", built.program)])).into_iter().collect();
        for package in fitting.iter().take(MAINS_MAX).filter_map(|folder| folder.strip_prefix(&base).ok()) {
            let package =
                if package.as_os_str().is_empty() { ".".to_owned() } else { format!("./{}", package.display()) };
            let build = format!("go build -o bin/subject {package}");
            self.others.push((Some(build), vec!["./bin/subject".to_owned()]));
        }
        let built = found.makefiles.iter().find(|(folder, _)| *folder == base).map(|(_, built)| built).or(image);
        let main = match (built, nearest) {
            (Some(built), _) => {
                self.build = Some(built.command());
                self.command = vec![format!("./{}", built.program)];
                let of = base.join(built.of.trim_start_matches("./"));
                if of.extension().is_some_and(|ending| ending == "go") {
                    of.parent().map(Path::to_owned).unwrap_or_default()
                } else {
                    plain(&of)
                }
            }
            (None, Some(folder)) => {
                let package = folder.strip_prefix(&base).unwrap_or(folder);
                if !package.as_os_str().is_empty() {
                    self.build = Some(format!("go build -o bin/subject ./{}", package.display()));
                }
                folder.to_owned()
            }
            (None, None) => base,
        };
        self.learn(found, &main);
    }

    /// Uses the main package that the user has chosen.
    fn chosen(&mut self, found: &Found, base: &Path, main: &Path) {
        let package = main.strip_prefix(base).unwrap_or(main);
        self.build = Some(format!("go build -o bin/subject ./{}", package.display()));
        self.command = vec!["./bin/subject".to_owned()];
        self.learn(found, main);
    }

    /// Adds the facts from the sources of a controller-runtime program.
    fn learn(&mut self, found: &Found, main: &Path) {
        if self.framework == Some(Framework::ControllerRuntime) {
            self.habits = Habits {
                finalizer: found.go.finalizer(),
                observes: Some(found.go.observes),
                condition: found.go.condition(),
                owned: found.go.owned.clone(),
                flags: Some(found.go.flags(main)),
            };
        }
    }

    /// The folder, relative to the project, in which the program is built.
    pub(super) fn folder(&self) -> &Path {
        self.place.as_deref().or(self.file.parent()).unwrap_or(Path::new(""))
    }
}

fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != std::path::Component::CurDir).collect()
}

/// The program of a `Cargo.toml`: the default program, or the program named like the package, or else the first
/// program. `None` for a workspace.
fn toml_program(text: &str) -> Option<&str> {
    let package = text.split("[package]").nth(1)?;
    let name = toml_value(package, "name")?;
    let programs: Vec<&str> = text.split("[[bin]]").skip(1).filter_map(|section| toml_value(section, "name")).collect();
    let own = programs.iter().copied().find(|program| *program == name);
    let chosen = toml_value(package, "default-run").or(own).or(programs.first().copied()).unwrap_or(name);
    makefile::is_plain(chosen).then_some(chosen)
}

fn toml_value<'a>(section: &'a str, key: &str) -> Option<&'a str> {
    let lines = section.lines().skip(1).take_while(|line| !line.starts_with('['));
    let mut values = lines.filter_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='));
    values.next()?.split('"').nth(1)
}

/// The start command of the image that a Dockerfile builds: the last `ENTRYPOINT`, then the last `CMD`, both in list
/// form.
pub(super) fn image_command(text: &str) -> Vec<String> {
    let last = |word: &str| {
        let line = text.lines().rev().find_map(|line| line.trim().strip_prefix(word))?;
        serde_json::from_str::<Vec<String>>(line.trim()).ok()
    };
    last("ENTRYPOINT").into_iter().chain(last("CMD")).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language(name: &str, text: &str) -> Language {
        read(Path::new(name), name, text).unwrap()
    }

    #[test]
    fn package_files_tell_framework_and_start() {
        let mut go = language("go.mod", "module x\nrequire sigs.k8s.io/controller-runtime v0.20.0\n");
        assert_eq!(go.framework, Some(Framework::ControllerRuntime));
        let mut found = Found::default();
        found.go.take(Path::new("internal/deep/main.go"), "package main\n");
        found.go.take(Path::new("cmd/main.go"), "package main\n");
        go.complete(&found);
        assert_eq!(go.build.as_deref(), Some("go build -o bin/subject ./cmd"));
        let built = makefile::built("build:\n\tgo build -o bin/manager cmd/main.go\n").unwrap();
        found.makefiles.push((PathBuf::new(), built));
        go.complete(&found);
        assert_eq!(go.build.as_deref(), Some("go build -o bin/manager cmd/main.go"));
        assert_eq!(go.command, ["./bin/manager"]);

        let rust = language("Cargo.toml", "[package]\nname = \"op\"\n[dependencies]\nkube = \"3\"\n");
        assert_eq!((rust.framework, rust.command), (Some(Framework::KubeRs), vec!["./target/release/op".to_owned()]));
        assert!(read(Path::new("Cargo.toml"), "Cargo.toml", "[workspace]\n").is_none());
        let two = "[package]\nname = \"op\"\ndefault-run = \"controller\"\n[[bin]]\nname = \"crdgen\"\n[[bin]]\nname = \"controller\"\n";
        assert_eq!(toml_program(two), Some("controller"));
        assert_eq!(toml_program(&two.replace("default-run", "edition")), Some("crdgen"));

        let node = language(
            "package.json",
            r#"{"scripts": {"start": "node dist/main.js"}, "devDependencies": {"pepr": "1"}}"#,
        );
        assert_eq!((node.framework, node.command.join(" ")), (Some(Framework::Pepr), "node dist/main.js".to_owned()));

        assert!(read(Path::new("conftest.py"), "conftest.py", "import kopf\n").is_none());
        let deep = Path::new("shop/operator/main.py");
        let module = read(deep, "main.py", "import kopf\nfrom . import shop\n").unwrap();
        assert_eq!(
            (module.command[3..].join(" "), module.folder()),
            ("-m shop.operator.main".to_owned(), Path::new(""))
        );
        let kopf = language("operator.py", "import kopf\n@kopf.on.create('greetings')\n");
        assert_eq!((kopf.command[3].as_str(), kopf.habits.finalizer), ("operator.py", None));
        let holds = language("operator.py", "import kopf\n@kopf.on.delete('greetings')\n");
        assert_eq!(holds.habits.finalizer.as_deref(), Some("kopf.zalando.org/KopfFinalizerMarker"));
        assert!(read(Path::new("setup.py"), "setup.py", "import os").is_none());
    }

    #[test]
    fn an_image_starts_its_entrypoint_with_its_command() {
        assert_eq!(
            image_command("FROM x\nCMD [\"a\"]\nFROM y\nENTRYPOINT [\"/m\"]\nCMD [\"--leader-elect\"]\n"),
            ["/m", "--leader-elect"]
        );
        assert!(image_command("ENTRYPOINT sh -c x").is_empty());
    }
}
