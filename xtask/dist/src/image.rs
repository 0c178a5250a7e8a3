//! Makes images without a container engine: programs without a base image, in an OCI image layout.
//!
//! The formats follow the OCI image specification 1.1 (image-layout.md, manifest.md, config.md). The tar also contains
//! a `manifest.json`, which every version of `docker load` reads. Newer container engines read the OCI layout.

use std::path::Path;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use serde_json::{Value, json};

use crate::Program;
use crate::archive::{self, Entry, Sums, gzip, sha256};
use crate::build::Release;
use crate::target::Target;

const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// The user id of programs in the images, which contain no list of users; the manifests of Longhaul use this id too.
const USER: u64 = 65532;
/// The folder of the programs in an image.
const PROGRAMS: &str = "usr/bin";
/// The folder of the licences in an image.
const DOCUMENTS: &str = "usr/share/doc";
/// The path of trusted certificates in Debian, which `longhaul` and `longhaul-service` read first.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";
/// The folders in an image's layer; each comes after its parent.
const FOLDERS: [&str; 7] = ["etc", "etc/ssl", "etc/ssl/certs", "usr", PROGRAMS, "usr/share", DOCUMENTS];
/// The working folder, in the image, of a program that writes files.
const WORK: &str = "work";

/// Writes the image as a folder and as a tar.
pub(crate) fn write(
    program: &Program,
    target: Target,
    files: Vec<Entry>,
    release: &Release,
    out: &Path,
    sums: &mut Sums,
) -> Result<()> {
    let layout = layout(program, target, files, release)?;
    let name = format!("{}-{}-linux-{}.oci", program.name, release.version, target.architecture());
    let folder = out.join(&name);
    for entry in &layout {
        let path = folder.join(&entry.path);
        let parent = path.parent().context("a file without a folder")?;
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, entry.bytes.as_deref().unwrap_or_default()))
            .with_context(|| format!("failed to write {}", path.display()))?;
    }
    sums.add(out, &format!("{name}.tar"), &archive::tar(layout, release.seconds)?)
}

/// The files of an OCI image layout.
fn layout(program: &Program, target: Target, files: Vec<Entry>, release: &Release) -> Result<Vec<Entry>> {
    let layer = archive::tar(root(program, files), release.seconds)?;
    let diff_id = sha256(&layer);
    let created = jiff::Timestamp::from_second(i64::try_from(release.seconds)?)?.to_string();
    let mut blobs = Blobs::default();
    let layer = blobs.add(LAYER_TYPE, gzip(&layer, Compression::best())?);
    let config = blobs.add(CONFIG_TYPE, text(&config(program, target, release, &created, &diff_id))?);
    let docker = json!([{
        "Config": Blobs::path(&config),
        "RepoTags": [format!("{}:{}", program.name, release.version)],
        "Layers": [Blobs::path(&layer)],
    }]);
    let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST_TYPE, "config": config, "layers": [layer]});
    let mut manifest = blobs.add(MANIFEST_TYPE, text(&manifest)?);
    manifest["platform"] = json!({"os": "linux", "architecture": target.architecture()});
    // Otherwise containerd takes the tag for the whole name, and calls the image `import-` and the day. This affects
    // `ctr images import`, and kind, which uses it.
    let called = format!("docker.io/library/{}:{}", program.name, release.version);
    manifest["annotations"] =
        json!({"org.opencontainers.image.ref.name": release.version, "io.containerd.image.name": called});
    let index = json!({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [manifest]});
    let mut files = blobs.0;
    files.push(Entry::file("oci-layout", text(&json!({"imageLayoutVersion": "1.0.0"}))?));
    files.push(Entry::file("index.json", text(&index)?));
    files.push(Entry::file("manifest.json", text(&docker)?));
    Ok(files)
}

/// The files of the only layer: the programs, their licences, and the trusted certificates. A program that writes files
/// also gets a temporary folder and a working folder.
fn root(program: &Program, files: Vec<Entry>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = FOLDERS.iter().map(|path| Entry::folder(&format!("{path}/"), 0o755, 0)).collect();
    let documents = format!("{DOCUMENTS}/{}", program.name);
    entries.push(Entry::folder(&format!("{documents}/"), 0o755, 0));
    if program.writes {
        entries.push(Entry::folder("tmp/", 0o1777, 0));
        entries.push(Entry::folder(&format!("{WORK}/"), 0o755, USER));
    }
    entries.push(Entry::file(AUTHORITIES, authorities().into_bytes()));
    entries.extend(files.into_iter().map(|entry| {
        let folder = if entry.executable { PROGRAMS } else { &documents };
        Entry { path: format!("{folder}/{}", entry.path), ..entry }
    }));
    entries
}

/// Mozilla's certificate authorities as a PEM file. Without this file a program in the image trusts no public registry.
fn authorities() -> String {
    let mut text = String::new();
    for certificate in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = STANDARD.encode(certificate);
        let mut rest = encoded.as_str();
        // RFC 7468, section 2: lines of 64 characters.
        while let Some((line, more)) = rest.split_at_checked(64) {
            text.push_str(line);
            text.push('\n');
            rest = more;
        }
        if !rest.is_empty() {
            text.push_str(rest);
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

fn config(program: &Program, target: Target, release: &Release, created: &str, diff_id: &str) -> Value {
    let path = format!("/{PROGRAMS}/{}", program.name);
    json!({
        "created": created,
        "architecture": target.architecture(),
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Entrypoint": [path],
            "Env": [format!("PATH=/{PROGRAMS}")],
            "WorkingDir": if program.writes { format!("/{WORK}") } else { "/".to_owned() },
            "Labels": {
                "org.opencontainers.image.title": program.title,
                "org.opencontainers.image.description": program.says,
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.revision": release.revision,
                "org.opencontainers.image.created": created,
                "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{diff_id}")]},
        "history": [{"created": created, "created_by": "cargo xtask dist"}],
    })
}

fn text(value: &Value) -> Result<Vec<u8>> {
    serde_json::to_vec(value).context("failed to write JSON")
}

/// The blobs of an OCI image layout, named by their digests.
#[derive(Default)]
struct Blobs(Vec<Entry>);

impl Blobs {
    /// Adds a blob and returns its descriptor.
    fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let descriptor =
            json!({"mediaType": media_type, "digest": format!("sha256:{}", sha256(&bytes)), "size": bytes.len()});
        let path = Self::path(&descriptor);
        self.0.push(Entry::file(&path, bytes));
        descriptor
    }

    /// The path, in the layout, of the blob that a descriptor names.
    fn path(descriptor: &Value) -> String {
        format!("blobs/{}", descriptor["digest"].as_str().unwrap_or_default().replace(':', "/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(program: &Program) -> Vec<Entry> {
        let files = vec![Entry::program(program.name, b"run".to_vec()), Entry::file("LICENSE", b"terms".to_vec())];
        let release = Release { version: "1.2.3", revision: "abc".to_owned(), seconds: 1_700_000_000 };
        layout(program, Target::X86_64, files, &release).unwrap()
    }

    fn json(files: &[Entry], path: &str) -> Value {
        let file = files.iter().find(|file| file.path == path).unwrap_or_else(|| panic!("no {path}"));
        serde_json::from_slice(file.bytes.as_ref().unwrap()).unwrap()
    }

    fn blob(descriptor: &Value) -> String {
        Blobs::path(descriptor)
    }

    #[test]
    fn every_digest_and_size_is_that_of_its_blob() {
        let files = made(&crate::PROGRAMS[0]);
        for file in files.iter().filter(|file| file.path.starts_with("blobs/")) {
            assert_eq!(file.path, format!("blobs/sha256/{}", sha256(file.bytes.as_ref().unwrap())));
        }
        let index = json(&files, "index.json");
        let manifest = json(&files, &blob(&index["manifests"][0]));
        for descriptor in [&index["manifests"][0], &manifest["config"], &manifest["layers"][0]] {
            let file = files.iter().find(|file| file.path == blob(descriptor)).unwrap();
            assert_eq!(descriptor["size"], file.bytes.as_ref().unwrap().len());
        }
        let docker = json(&files, "manifest.json");
        assert_eq!(docker[0]["Layers"][0], blob(&manifest["layers"][0]));
    }

    #[test]
    fn an_image_runs_as_nobody_and_only_longhaul_may_write() {
        for (program, folders) in crate::PROGRAMS.iter().zip([vec!["tmp/", "work/"], vec![]]) {
            let files = made(program);
            let manifest = json(&files, &blob(&json(&files, "index.json")["manifests"][0]));
            let config = json(&files, &blob(&manifest["config"]));
            assert_eq!(config["config"]["User"], "65532:65532");
            assert_eq!(config["config"]["Entrypoint"][0], format!("/usr/bin/{}", program.name));
            let packed = files.iter().find(|file| file.path == blob(&manifest["layers"][0])).unwrap();
            let mut layer = Vec::new();
            let mut reader = flate2::read::GzDecoder::new(packed.bytes.as_deref().unwrap());
            std::io::Read::read_to_end(&mut reader, &mut layer).unwrap();
            assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", sha256(&layer)));
            let mut archive = tar::Archive::new(layer.as_slice());
            let writable = archive.entries().unwrap().filter_map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                let may = header.uid().unwrap() == USER || header.mode().unwrap() & 0o002 != 0;
                may.then(|| entry.path().unwrap().display().to_string())
            });
            assert_eq!(writable.collect::<Vec<_>>(), folders);
        }
    }

    #[test]
    fn the_authorities_are_text_that_others_read() {
        let text = authorities();
        assert!(text.lines().all(|line| line.len() <= 64));
        assert_eq!(text.matches("BEGIN CERTIFICATE").count(), webpki_root_certs::TLS_SERVER_ROOT_CERTS.len());
        assert!(text.matches("BEGIN CERTIFICATE").count() > 50);
    }
}
