//! In what a project is written, and how its program is built and started, by the files that package managers know.

use std::path::{Path, PathBuf};

use crate::witness::Preset;

/// What a project's package file tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Language {
    /// `Go`, `Rust`, …
    pub(crate) name: &'static str,
    /// The file that told.
    pub(crate) file: PathBuf,
    /// The library through which it speaks to the API server.
    pub(crate) framework: Option<Framework>,
    /// The finalizer by which that library holds objects, where this file makes it do so.
    pub(crate) finalizer: Option<&'static str>,
    /// What must be run once before.
    pub(crate) build: Option<String>,
    /// How it is started; empty where nothing tells.
    pub(crate) command: Vec<String>,
}

/// Libraries whose habits are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framework {
    ControllerRuntime,
    Kopf,
    KubeRs,
    Pepr,
}

impl Framework {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ControllerRuntime => "controller-runtime",
            Self::Kopf => "kopf",
            Self::KubeRs => "kube-rs",
            Self::Pepr => "Pepr",
        }
    }

    /// What its log lines are called in `witness: {preset: …}`.
    pub(crate) fn preset(self) -> Preset {
        match self {
            Self::ControllerRuntime => Preset::ControllerRuntime,
            Self::Kopf => Preset::Kopf,
            Self::KubeRs => Preset::KubeRs,
            Self::Pepr => Preset::Pepr,
        }
    }
}

/// Handlers for which kopf holds an object until they are done.
const KOPF_HOLDS: [&str; 3] = ["kopf.on.delete", "kopf.timer", "kopf.daemon"];
/// By which it does, unless its settings name another.
const KOPF_FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";

/// Files from which something can be told.
pub(super) fn is_telling(name: &str) -> bool {
    matches!(
        name,
        "go.mod" | "main.go" | "Cargo.toml" | "package.json" | "pyproject.toml" | "requirements.txt" | "pom.xml"
    ) || Path::new(name).extension().is_some_and(|ending| ending == "py" || ending == "csproj")
        || name.starts_with("build.gradle")
}

/// What a file tells; most tell nothing.
pub(super) fn read(file: &Path, name: &str, text: &str) -> Option<Language> {
    let language = |name, framework, build: Option<&str>, command: &[&str]| {
        let command = command.iter().map(|&word| word.to_owned()).collect();
        let build = build.map(str::to_owned);
        Some(Language { name, file: file.to_owned(), framework, finalizer: None, build, command })
    };
    let when = |is: bool, framework| is.then_some(framework);
    match name {
        "go.mod" => {
            let framework = when(text.contains("sigs.k8s.io/controller-runtime"), Framework::ControllerRuntime);
            language("Go", framework, Some("go build -o bin/subject ."), &["./bin/subject"])
        }
        "Cargo.toml" => {
            let package = toml_name(text)?;
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
        "pom.xml" => language("Java", None, Some("mvn package"), &[]),
        _ if name.starts_with("build.gradle") => language("Java", None, Some("gradle build"), &[]),
        _ if name.ends_with(".csproj") => language(".NET", None, Some("dotnet build"), &[]),
        _ if file.extension().is_some_and(|ending| ending == "py")
            && (text.contains("import kopf") || text.contains("from kopf")) =>
        {
            let path = file.display().to_string();
            let found = language("Python", Some(Framework::Kopf), None, &["kopf", "run", "--all-namespaces", &path]);
            let holds = KOPF_HOLDS.iter().any(|handler| text.contains(handler));
            found.map(|found| Language { finalizer: holds.then_some(KOPF_FINALIZER), ..found })
        }
        _ => None,
    }
}

impl Language {
    /// Where its main package is, which its own file does not tell.
    pub(super) fn place(&mut self, files: &[PathBuf]) {
        if self.name != "Go" {
            return;
        }
        let base = self.file.parent().unwrap_or(Path::new(""));
        let mains = files.iter().filter(|path| path.file_name().is_some_and(|name| name == "main.go"));
        let mut folders: Vec<&Path> = mains.filter_map(|path| path.parent()?.strip_prefix(base).ok()).collect();
        folders.sort_by_key(|folder| folder.components().count());
        if let Some(folder) = folders.first().filter(|folder| !folder.as_os_str().is_empty()) {
            self.build = Some(format!("go build -o bin/subject ./{}", folder.display()));
        }
    }
}

/// The package's name in a `Cargo.toml`; a workspace has none.
fn toml_name(text: &str) -> Option<&str> {
    let package = text.split("[package]").nth(1)?;
    let line =
        package.lines().skip(1).take_while(|line| !line.starts_with('[')).find(|line| line.starts_with("name"))?;
    line.split('"').nth(1)
}

/// What an image starts, by its Dockerfile: the last `ENTRYPOINT`, then the last `CMD`, in the form of a list.
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

    fn told(name: &str, text: &str) -> Language {
        read(Path::new(name), name, text).unwrap()
    }

    #[test]
    fn package_files_tell_framework_and_start() {
        let mut go = told("go.mod", "module x\nrequire sigs.k8s.io/controller-runtime v0.20.0\n");
        assert_eq!(go.framework, Some(Framework::ControllerRuntime));
        go.place(&["internal/deep/main.go".into(), "cmd/main.go".into()]);
        assert_eq!(go.build.as_deref(), Some("go build -o bin/subject ./cmd"));

        let rust = told("Cargo.toml", "[package]\nname = \"op\"\n[dependencies]\nkube = \"3\"\n");
        assert_eq!((rust.framework, rust.command), (Some(Framework::KubeRs), vec!["./target/release/op".to_owned()]));
        assert!(read(Path::new("Cargo.toml"), "Cargo.toml", "[workspace]\n").is_none());

        let node =
            told("package.json", r#"{"scripts": {"start": "node dist/main.js"}, "devDependencies": {"pepr": "1"}}"#);
        assert_eq!((node.framework, node.command.join(" ")), (Some(Framework::Pepr), "node dist/main.js".to_owned()));

        let kopf = told("operator.py", "import kopf\n@kopf.on.create('greetings')\n");
        assert_eq!((kopf.command[3].as_str(), kopf.finalizer), ("operator.py", None));
        let holds = told("operator.py", "import kopf\n@kopf.on.delete('greetings')\n");
        assert_eq!(holds.finalizer, Some("kopf.zalando.org/KopfFinalizerMarker"));
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
