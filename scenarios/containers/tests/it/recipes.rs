//! Runs the examples of `docs/containers.md` with testcontainers for Go, Java, Node and Python. The page leaves out
//! imports and build files; this module adds both and takes versions from the page.

use std::path::Path;
use std::process::Command;

use containers::{Error, Recipe, engine, installed, printed, run, tested};

const PAGE: &str = include_str!("../../../../docs/containers.md");
/// The image in the page, and the image of the program under test.
const RELEASED: &str = "longhaul:0.1.0";
const TESTED: &str = "longhaul-tested:latest";
/// The oldest Node that testcontainers 12 runs with.
const NODE: [u32; 2] = [22, 22];
/// Maximum number of lines of an example.
const LINES_MAX: usize = 30;
const SECTIONS: [(&str, &str); 4] = [("Go", "go"), ("Java", "java"), ("Node", "js"), ("Python", "python")];

const GO: &str = r#"package example

import (
	"context"
	"testing"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
	v1 "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func require(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

"#;

const JAVA: &str = "\
import static org.junit.jupiter.api.Assertions.assertNotNull;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import org.junit.jupiter.api.Test;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;

class MockTest {
";

const POM: &str = "\
<project xmlns=\"http://maven.apache.org/POM/4.0.0\">
  <modelVersion>4.0.0</modelVersion>
  <groupId>dev.example</groupId>
  <artifactId>example</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source>
    <maven.compiler.target>17</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    DEPENDENCIES
  </dependencies>
  <build><plugins><plugin>
    <artifactId>maven-surefire-plugin</artifactId>
    <version>3.2.5</version>
  </plugin></plugins></build>
</project>
";

const JS: &str = "\
import assert from 'node:assert';
import { test } from 'node:test';
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';
import { GenericContainer, Wait } from 'testcontainers';

";

const PYTHON: &str = "\
from kubernetes import client
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy


";

/// An example of the page: its text, and its packages with versions.
struct Example {
    text: String,
    packages: Vec<(String, String)>,
}

fn example(section: &str, language: &str) -> Example {
    let (_, rest) = PAGE.split_once(&format!("\n## {section}\n")).unwrap_or_else(|| panic!("no section {section}"));
    let (needs, rest) = rest.split_once(&format!("```{language}\n")).unwrap_or_else(|| panic!("no {language}"));
    let (text, _) = rest.split_once("```").unwrap_or_else(|| panic!("an open block in {section}"));
    let names = needs.split('`').skip(1).step_by(2).filter_map(|name| name.rsplit_once('@'));
    let packages = names.map(|(name, version)| (name.to_owned(), version.to_owned())).collect();
    Example { text: text.replace(RELEASED, TESTED), packages }
}

#[test]
fn examples_are_short_and_name_their_packages() {
    for (section, language) in SECTIONS {
        let example = example(section, language);
        assert!(example.text.lines().count() <= LINES_MAX, "{section}");
        assert_eq!(example.packages.len(), 2, "{section}");
        assert!(example.text.contains(TESTED), "{section} uses {RELEASED}");
    }
}

/// Makes the image if an engine and a tool of the language are here. Returns whether both are here.
async fn ready(tool: &str) -> Result<bool, Error> {
    let (Some(docker), Some(program)) = (engine().await, tested("longhaul")) else { return Ok(false) };
    if installed(tool).is_none() {
        return Ok(false);
    }
    Recipe { name: "longhaul-tested", programs: &[program], changes: &[] }.make(&docker).await?;
    Ok(true)
}

/// Runs a command that installs packages. Prints a message and returns `false` if that fails.
fn installs(command: &mut Command, folder: &Path, example: &Example) -> Result<bool, Error> {
    let output = command.current_dir(folder).stdin(std::process::Stdio::null()).output()?;
    if !output.status.success() {
        let names: Vec<String> = example.packages.iter().map(|(name, version)| format!("{name} {version}")).collect();
        println!("{}", printed(&output));
        println!("skipped: needs {} from a package registry", names.join(", "));
    }
    Ok(output.status.success())
}

/// Runs the test in a folder. The reaper of testcontainers, an image of its own, is switched off.
fn plays(command: &mut Command, folder: &Path, passed: &str) -> Result<(), Error> {
    let output = run(command.current_dir(folder).env("TESTCONTAINERS_RYUK_DISABLED", "true"))?;
    assert!(printed(&output).contains(passed), "{}", printed(&output));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_in_go_passes() -> Result<(), Error> {
    if !ready("go").await? {
        return Ok(());
    }
    let (folder, example) = (tempfile::tempdir()?, example("Go", "go"));
    std::fs::write(folder.path().join("mock_test.go"), format!("{GO}{}", example.text))?;
    run(Command::new("go").args(["mod", "init", "example"]).current_dir(folder.path()))?;
    let names = example.packages.iter().map(|(name, version)| format!("{name}@{version}"));
    if !installs(Command::new("go").arg("get").args(names), folder.path(), &example)? {
        return Ok(());
    }
    run(Command::new("go").args(["mod", "tidy"]).current_dir(folder.path()))?;
    plays(Command::new("go").args(["test", "-count=1", "-v", "."]), folder.path(), "--- PASS: TestConfigMap")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_in_java_passes() -> Result<(), Error> {
    if !ready("mvn").await? {
        return Ok(());
    }
    let (folder, example) = (tempfile::tempdir()?, example("Java", "java"));
    let sources = folder.path().join("src/test/java");
    std::fs::create_dir_all(&sources)?;
    std::fs::write(sources.join("MockTest.java"), format!("{JAVA}{}}}\n", example.text))?;
    let junit = ("org.junit.jupiter:junit-jupiter".to_owned(), "5.10.2".to_owned());
    let dependencies = example.packages.iter().chain([&junit]).map(|(name, version)| {
        let (group, artifact) = name.split_once(':').unwrap_or_default();
        format!(
            "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>"
        )
    });
    let pom = POM.replace("DEPENDENCIES", &dependencies.collect::<Vec<_>>().join("\n    "));
    std::fs::write(folder.path().join("pom.xml"), pom)?;
    if !installs(Command::new("mvn").args(["-B", "-q", "dependency:resolve"]), folder.path(), &example)? {
        return Ok(());
    }
    plays(Command::new("mvn").args(["-B", "test"]), folder.path(), "Tests run: 1, Failures: 0, Errors: 0")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_in_node_passes() -> Result<(), Error> {
    let version = Command::new("node").arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    let number = |part: &str| part.trim_start_matches('v').parse::<u32>().ok();
    let numbers: Vec<u32> = version.split('.').filter_map(number).collect();
    if numbers < NODE.to_vec() {
        println!("skipped: needs Node {}.{} (found {version})", NODE[0], NODE[1]);
        return Ok(());
    }
    if !ready("npm").await? {
        return Ok(());
    }
    let (folder, example) = (tempfile::tempdir()?, example("Node", "js"));
    std::fs::write(folder.path().join("mock.test.mjs"), format!("{JS}{}", example.text))?;
    std::fs::write(folder.path().join("package.json"), "{}")?;
    let names = example.packages.iter().map(|(name, version)| format!("{name}@{version}"));
    if !installs(Command::new("npm").args(["install", "--no-audit", "--no-fund"]).args(names), folder.path(), &example)?
    {
        return Ok(());
    }
    plays(Command::new("node").args(["--test", "mock.test.mjs"]), folder.path(), "pass 1")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_in_python_passes() -> Result<(), Error> {
    if !ready("python3").await? {
        return Ok(());
    }
    let (folder, example) = (tempfile::tempdir()?, example("Python", "python"));
    let call = "\n\nif __name__ == \"__main__\":\n    test_config_map()\n    print(\"passed\")\n";
    std::fs::write(folder.path().join("test_mock.py"), format!("{PYTHON}{}{call}", example.text))?;
    let names = example.packages.iter().map(|(name, version)| format!("{name}=={version}"));
    if !installs(Command::new("python3").args(["-m", "venv", "venv"]), folder.path(), &example)?
        || !installs(Command::new("venv/bin/pip").args(["install", "--quiet"]).args(names), folder.path(), &example)?
    {
        return Ok(());
    }
    plays(Command::new("venv/bin/python").arg("test_mock.py"), folder.path(), "passed")
}
