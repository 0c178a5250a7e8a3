//! Facts from a Java project: the command that starts the result of Maven, and the finalizer of the Java Operator SDK.
//! Does no I/O.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

static PACKAGE: LazyLock<Regex> = LazyLock::new(|| super::pattern(r"(?m)^\s*package\s+([\w.]+)\s*;"));
static MAIN: LazyLock<Regex> = LazyLock::new(|| super::pattern(r"\bstatic\s+void\s+main\s*\("));
/// `implements Reconciler<Basket>, Cleaner<Basket>`: for a cleaner, the SDK adds its finalizer.
static CLEANER: LazyLock<Regex> = LazyLock::new(|| super::pattern(r"\bCleaner<\s*(\w+)\s*>"));
/// A finalizer in the annotation of a reconciler, which replaces the default.
static NAMED: LazyLock<Regex> = LazyLock::new(|| super::pattern(r#"\bfinalizerName\s*=\s*("(?u:[^"\\\n]+)")?"#));
static OBSERVES: LazyLock<Regex> =
    LazyLock::new(|| super::pattern(r"\bsetObservedGeneration\(|\bObservedGenerationAwareStatus\b"));

#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// The full names of classes with a main method.
    mains: Vec<String>,
    cleaned: std::collections::BTreeSet<String>,
    /// The finalizer that a reconciler sets instead of the default.
    named: Option<String>,
    is_named: bool,
    pub(super) observes: bool,
}

/// Maximum number of names from the sources that are kept; a usual program has fewer.
const NAMES_MAX: usize = 1_000;

pub(super) fn is_telling(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "java")
}

impl Sources {
    pub(super) fn take(&mut self, file: &Path, text: &str) {
        if MAIN.is_match(text) && self.mains.len() < NAMES_MAX {
            let class = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            let package = PACKAGE.captures(text).map(|found| format!("{}.", &found[1])).unwrap_or_default();
            let is_name = class.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$');
            if is_name {
                self.mains.push(format!("{package}{class}"));
            }
        }
        for found in CLEANER.captures_iter(text) {
            if self.cleaned.len() < NAMES_MAX {
                self.cleaned.insert(found[1].to_owned());
            }
        }
        if let Some(found) = NAMED.captures(text) {
            self.is_named = true;
            self.named = found.get(1).map(|name| name.as_str().trim_matches('"').to_owned());
        }
        self.observes |= OBSERVES.is_match(text);
    }

    /// The main class, if there is exactly one.
    pub(super) fn main(&self) -> Option<&str> {
        self.mains.first().filter(|_| self.mains.len() == 1).map(String::as_str)
    }

    /// The finalizer of a kind with this resource name (`baskets.example.com`).
    pub(super) fn finalizer(&self, kind: &str, resource: &str) -> Option<String> {
        if !self.cleaned.contains(kind) {
            return None;
        }
        // If code computes the name, `named` is `None`.
        if self.is_named { self.named.clone() } else { Some(format!("{resource}/finalizer")) }
    }
}

/// The commands that build with Maven and start the result, from the `pom.xml`.
pub(super) fn start(pom: &str) -> Option<(&'static str, Vec<String>)> {
    if pom.contains("quarkus-maven-plugin") {
        return Some(("mvn package", words(&["java", "-jar", "target/quarkus-app/quarkus-run.jar"])));
    }
    let is_whole = ["maven-shade-plugin", "spring-boot-maven-plugin", "maven-assembly-plugin"]
        .iter()
        .any(|plugin| pom.contains(plugin));
    if !is_whole {
        return None;
    }
    let name =
        [text(pom, "finalName"), joined(pom)].into_iter().flatten().find(|name| super::makefile::is_plain(name))?;
    Some(("mvn package", words(&["java", "-jar", &format!("target/{name}.jar")])))
}

/// The commands that build and start a main class whose program is not packed into one file.
pub(super) fn start_class(class: &str) -> (&'static str, Vec<String>) {
    (
        "mvn package dependency:copy-dependencies -DoutputDirectory=target/dependency",
        words(&["java", "-cp", "target/classes:target/dependency/*", class]),
    )
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn joined(pom: &str) -> Option<String> {
    // The project's own names stand outside of `parent`, `dependencies` and `build`.
    let own = without(&without(&without(pom, "parent"), "dependencies"), "build");
    Some(format!("{}-{}", text(&own, "artifactId")?, text(&own, "version")?))
}

fn without(xml: &str, tag: &str) -> String {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    match xml.split_once(&open) {
        Some((before, rest)) => format!("{before}{}", rest.split_once(&close).map_or("", |(_, after)| after)),
        None => xml.to_owned(),
    }
}

fn text(xml: &str, tag: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{tag}>"))?;
    let (text, _) = rest.split_once(&format!("</{tag}>"))?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const POM: &str = "<project><parent><artifactId>p</artifactId><version>9</version></parent>\
        <artifactId>shop</artifactId><version>1.0-SNAPSHOT</version>\
        <dependencies><dependency><groupId>io.javaoperatorsdk</groupId><artifactId>operator-framework</artifactId></dependency></dependencies>";

    #[test]
    fn what_maven_makes_is_started() {
        let of = |more: &str| start(&format!("{POM}<build>{more}</build></project>")).map(|(_, words)| words.join(" "));
        assert_eq!(
            of("<artifactId>maven-shade-plugin</artifactId>").as_deref(),
            Some("java -jar target/shop-1.0-SNAPSHOT.jar")
        );
        assert_eq!(
            of("<finalName>op</finalName><artifactId>maven-shade-plugin</artifactId>").as_deref(),
            Some("java -jar target/op.jar")
        );
        assert_eq!(
            of("<artifactId>quarkus-maven-plugin</artifactId>").as_deref(),
            Some("java -jar target/quarkus-app/quarkus-run.jar")
        );
        assert_eq!(of("<finalName>${x}</finalName><artifactId>jib-maven-plugin</artifactId>"), None);
    }

    #[test]
    fn a_cleaner_means_the_usual_finalizer() {
        let mut sources = Sources::default();
        sources.take(
            Path::new("src/main/java/a/Reconciler.java"),
            "package a;\nclass R implements Reconciler<Basket>, Cleaner<Basket> {}",
        );
        sources.take(
            Path::new("src/main/java/a/Main.java"),
            "package a.b;\nclass Main { public static void main(String[] a) {} }",
        );
        assert_eq!(
            sources.finalizer("Basket", "baskets.example.com").as_deref(),
            Some("baskets.example.com/finalizer")
        );
        assert_eq!((sources.finalizer("Other", "others.example.com"), sources.main()), (None, Some("a.b.Main")));
        sources.take(Path::new("B.java"), "@ControllerConfiguration(finalizerName = \"x/y\")");
        assert_eq!(sources.finalizer("Basket", "baskets.example.com").as_deref(), Some("x/y"));
    }
}
