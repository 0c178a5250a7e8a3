//! The project's own test suite, if the suite starts its own control plane. Does no I/O.
//!
//! Owns the known test kits, and the text in files by which each test kit is recognized.

use std::path::{Path, PathBuf};

/// A suite that `longhaul envtest` can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Suite {
    /// The test kit that starts the control planes.
    pub(crate) kit: &'static str,
    /// The file in which the test kit was found.
    pub(crate) file: PathBuf,
    pub(crate) command: &'static str,
    /// Whether the file names the test kit itself, or only a framework that includes it.
    is_named: bool,
}

/// The suite that a file shows; `None` for most files.
pub(super) fn read(file: &Path, name: &str, text: &str) -> Option<Suite> {
    let suite = |kit, command, is_named| Some(Suite { kit, file: file.to_owned(), command, is_named });
    let names = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match name {
        "Makefile" if names(&["setup-envtest", "KUBEBUILDER_ASSETS"]) && has_rule(text, "test") => {
            suite("envtest", "make test", true)
        }
        "go.mod" if names(&["sigs.k8s.io/controller-runtime "]) => suite("envtest", "go test ./...", false),
        "pom.xml" if names(&["kube-api-test"]) => suite("fabric8's kube-api-test", "mvn test", true),
        "Cargo.toml" if text.lines().any(is_envtest) => suite("kube-rs' envtest", "cargo test", true),
        "pyproject.toml" | "requirements.txt" if names(&["kubernetes_lite", "kubernetes-lite"]) => {
            suite("kubernetes_lite", "pytest", true)
        }
        _ if name.starts_with("build.gradle") && names(&["kube-api-test"]) => {
            suite("fabric8's kube-api-test", "gradle test", true)
        }
        _ => None,
    }
}

/// The suite to propose: a suite whose file is in the highest folder, preferably with a file that names the test kit.
pub(super) fn first(suites: &[Suite]) -> Option<&Suite> {
    suites.iter().min_by_key(|suite| (suite.file.components().count(), !suite.is_named, &suite.file))
}

fn has_rule(makefile: &str, target: &str) -> bool {
    makefile.lines().any(|line| line.strip_prefix(target).is_some_and(|rest| rest.trim_start().starts_with(':')))
}

/// Matches `envtest = "0.3"` or `[dev-dependencies.envtest]`.
fn is_envtest(line: &str) -> bool {
    let line = line.trim();
    line.strip_prefix("envtest").is_some_and(|rest| rest.trim_start().starts_with(['=', '.']))
        || line.strip_suffix(".envtest]").is_some_and(|table| table.ends_with("dependencies"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(files: &[(&str, &str)]) -> Option<&'static str> {
        let read = |(file, text): &(&str, &str)| {
            let path = Path::new(file);
            read(path, path.file_name()?.to_str()?, text)
        };
        first(&files.iter().filter_map(read).collect::<Vec<_>>()).map(|suite| suite.command)
    }

    #[test]
    fn a_kit_is_known_by_its_name() {
        let module = ("go.mod", "require sigs.k8s.io/controller-runtime v0.22.0\n");
        let makefile = "test: manifests\n\tKUBEBUILDER_ASSETS=\"$(shell setup-envtest use -p path)\" go test ./...\n";
        assert_eq!(command(&[module, ("Makefile", makefile)]), Some("make test"));
        assert_eq!(command(&[module, ("Makefile", "test-e2e:\n\tsetup-envtest\n")]), Some("go test ./..."));
        assert_eq!(command(&[("pom.xml", "<artifactId>kube-api-test-client-inject</artifactId>")]), Some("mvn test"));
        assert_eq!(command(&[("pom.xml", "<artifactId>operator-framework</artifactId>")]), None);
        assert_eq!(
            command(&[("a/build.gradle.kts", "testImplementation(\"io.fabric8:kube-api-test:7.5.2\")")]),
            Some("gradle test")
        );
        assert_eq!(command(&[("Cargo.toml", "[dev-dependencies]\nenvtest = \"0.3\"\n")]), Some("cargo test"));
        assert_eq!(command(&[("Cargo.toml", "[dev-dependencies.envtest]\nversion = \"0.3\"\n")]), Some("cargo test"));
        assert_eq!(command(&[("Cargo.toml", "[dependencies]\nmock-envtest = \"1\"\nenvtest-x = \"1\"\n")]), None);
        assert_eq!(command(&[("requirements.txt", "kubernetes-lite==0.1.0\n")]), Some("pytest"));
    }
}
