//! Makes the archive for test suites, with `kube-apiserver`, `etcd` and `kubectl`, and the index by which
//! `setup-envtest` and controller-runtime find the archive.
//!
//! Archive and index have the layout of controller-tools' `envtest-releases.yaml`. `setup-envtest` and
//! controller-runtime skip links and use only the base names of regular files, so each of the three names is a script
//! that starts `longhaul-envtest`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use flate2::Compression;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha512};

use crate::SUITE;
use crate::archive::{self, Entry, Sums};
use crate::build::Release;
use crate::target::Target;

/// The Kubernetes version that the API server reports.
const KUBERNETES: &str = "1.34.1";
/// The names of the programs that test suites start.
const NAMES: [&str; 3] = ["kube-apiserver", "etcd", "kubectl"];
/// The folder of the programs in archives of controller-tools.
pub(crate) const FOLDER: &str = "controller-tools/envtest";
/// The file name of the index.
const INDEX: &str = "envtest-releases.yaml";

/// The archives of all targets, which the index lists.
#[derive(Debug)]
pub(crate) struct Archives {
    written: BTreeMap<String, Value>,
    level: Compression,
}

impl Archives {
    /// An empty list of archives.
    pub(crate) fn new(level: Compression) -> Self {
        Self { written: BTreeMap::new(), level }
    }

    /// Writes the archive of a target. `others` are the files with licences and the bill of materials.
    pub(crate) fn add(
        &mut self,
        target: Target,
        program: Vec<u8>,
        others: Vec<Entry>,
        release: &Release,
        out: &Path,
        sums: &mut Sums,
    ) -> Result<()> {
        let name = archive(target);
        let mut entries = vec![Entry::program(SUITE, program)];
        entries.extend(NAMES.iter().map(|name| Entry::program(name, script(name).into_bytes())));
        entries.extend(others);
        let packed = archive::tarball(FOLDER, entries, release.seconds, self.level)?;
        self.written.insert(name.clone(), json!({"hash": hex::encode(Sha512::digest(&packed))}));
        sums.add(out, &name, &packed)
    }

    /// Writes the index. The archives in the index will be published at `address`.
    pub(crate) fn index(mut self, address: &str, out: &Path, sums: &mut Sums) -> Result<()> {
        for (name, archive) in &mut self.written {
            archive["selfLink"] = json!(format!("{}/{name}", address.trim_end_matches('/')));
        }
        let index = json!({"releases": {format!("v{KUBERNETES}"): self.written}});
        // JSON is YAML.
        let text = serde_json::to_string_pretty(&index).context("failed to write the index")? + "\n";
        sums.add(out, INDEX, text.as_bytes())
    }
}

/// The file name of a target's archive.
pub(crate) fn archive(target: Target) -> String {
    format!("envtest-v{KUBERNETES}-linux-{}.tar.gz", target.architecture())
}

/// A script that starts `longhaul-envtest` under the name `name`. The program replaces the script's shell, so that a
/// test suite signals and watches the program itself.
fn script(name: &str) -> String {
    format!("#!/bin/sh\nexec \"$(dirname \"$0\")/{SUITE}\" {name} \"$@\"\n")
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::root;

    /// The tested version of setup-envtest, for Go's module proxy.
    const SETUP: &str = "sigs.k8s.io/controller-runtime/tools/setup-envtest@release-0.22";

    /// Texts that Go prints if its module proxy cannot be reached.
    const UNREACHABLE: [&str; 3] = ["dial tcp", "no such host", "proxy"];

    /// A Go program that downloads the archive's programs as the environment of a test suite does.
    const ENVIRONMENT: &str = r#"package main

import (
	"fmt"
	"os"

	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

func main() {
	environment := &envtest.Environment{
		DownloadBinaryAssets:         true,
		DownloadBinaryAssetsIndexURL: os.Getenv("INDEX"),
		BinaryAssetsDirectory:        "assets",
	}
	config, err := environment.Start()
	if err != nil {
		panic(err)
	}
	defer environment.Stop()
	version, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerVersion()
	if err != nil {
		panic(err)
	}
	fmt.Println("answers as", version.GitVersion)
}
"#;
    const ENVIRONMENT_MODULE: &str =
        "module example.com/environment\n\ngo 1.26.0\n\nrequire sigs.k8s.io/controller-runtime v0.25.2\n";

    #[test]
    fn the_version_is_that_of_the_api_server() {
        let text = std::fs::read_to_string(root().join("mocks/objects/src/lib.rs")).unwrap();
        assert!(text.contains(&format!("\"v{KUBERNETES}\"")), "mocks/objects/src/lib.rs names another version");
    }

    /// Serves the files of a folder until the test ends; returns the address.
    fn serve(folder: PathBuf) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let name = head.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
                let (status, body) = match std::fs::read(folder.join(&name)) {
                    Ok(body) => ("200 OK", body),
                    Err(_) => ("404 Not Found", Vec::new()),
                };
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
            }
        });
        address
    }

    /// The program `longhaul-envtest` that was built for the tests; `None`, with a message, if it was not built.
    fn program() -> Option<Vec<u8>> {
        let beside = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned();
        let folder = std::env::var_os("LONGHAUL_PROGRAMS").map(PathBuf::from);
        let places = [beside].into_iter().chain(folder);
        let found = places.into_iter().find_map(|folder| std::fs::read(folder.join(SUITE)).ok());
        if found.is_none() {
            println!("skipped: needs {SUITE}");
        }
        found
    }

    /// The real setup-envtest finds the archive through the index, and the programs in its folder work.
    #[test]
    #[ignore = "slow: Go builds setup-envtest the first time"]
    fn setup_envtest_fetches_the_archive_by_the_index() {
        let target = if Target::X86_64.runs_here() { Target::X86_64 } else { Target::Aarch64 };
        let Some(program) = program() else { return };
        let folder = tempfile::tempdir().unwrap();
        let (out, bin, store) = (folder.path().join("out"), folder.path().join("bin"), folder.path().join("store"));
        std::fs::create_dir(&out).unwrap();
        let mut install = Command::new("go");
        install.args(["install", SETUP]).env("GOBIN", &bin).stdin(Stdio::null());
        match install.output() {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(UNREACHABLE.iter().any(|text| said.contains(text)), "{said}");
                return println!("skipped: needs {SETUP} from Go's proxy");
            }
            Err(_) => return println!("skipped: needs a Go toolchain"),
        }
        let address = serve(out.clone());
        let release = Release { version: "0.0.0", revision: "abc".to_owned(), seconds: 1_700_000_000 };
        let (mut archives, mut sums) = (Archives::new(Compression::fast()), Sums::default());
        archives.add(target, program, Vec::new(), &release, &out, &mut sums).unwrap();
        archives.index(&address, &out, &mut sums).unwrap();
        let mut setup = Command::new(bin.join("setup-envtest"));
        setup.args(["use", "--print=path", "--bin-dir"]).arg(&store).arg("--index").arg(format!("{address}/{INDEX}"));
        let output = setup.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let assets = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
        for (name, line) in [("etcd", "--unsafe-no-fsync"), ("kube-apiserver", "--secure-port")] {
            let output = Command::new(assets.join(name)).arg("--help").output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains(line), "{name}: {said}");
        }
        let version = Command::new(assets.join("kube-apiserver")).arg("--version").output().unwrap();
        assert_eq!(String::from_utf8_lossy(&version.stdout).trim(), format!("Kubernetes v{KUBERNETES}"));
        environment(folder.path(), &format!("{address}/{INDEX}"));
    }

    /// Tests controller-runtime's own download, as test suites configure it: the API server starts and answers.
    fn environment(folder: &Path, index: &str) {
        let module = folder.join("environment");
        std::fs::create_dir(&module).unwrap();
        std::fs::write(module.join("main.go"), ENVIRONMENT).unwrap();
        std::fs::write(module.join("go.mod"), ENVIRONMENT_MODULE).unwrap();
        let go = |words: &[&str]| {
            let mut command = Command::new("go");
            command.args(words).current_dir(&module).env("INDEX", index).env("GOFLAGS", "-mod=mod");
            for variable in ["KUBEBUILDER_ASSETS", "TEST_ASSET_KUBE_APISERVER", "TEST_ASSET_ETCD", "TEST_ASSET_KUBECTL"]
            {
                command.env_remove(variable);
            }
            command.stdin(Stdio::null()).output().unwrap()
        };
        if !go(&["mod", "download"]).status.success() {
            return println!("skipped: needs controller-runtime v0.25.2 from Go's proxy");
        }
        let build = go(&["build", "-o", "environment", "."]);
        assert!(build.status.success(), "{}", String::from_utf8_lossy(&build.stderr));
        let run = Command::new(module.join("environment")).env("INDEX", index).current_dir(&module).output().unwrap();
        let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success() && said.contains(&format!("answers as v{KUBERNETES}")), "{said}");
    }
}
