//! Images without an engine: a program, nothing below it, written as an OCI image layout.
//!
//! The shapes are those of the OCI image specification 1.1 (image-layout.md, manifest.md, config.md). The tar holds a
//! `manifest.json` beside the layout, which is what `docker load` has always read; newer engines read the layout.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::Program;
use crate::archive::{self, Entry, Sums, gzip, sha256};
use crate::build::Release;
use crate::target::Target;

const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// Nobody in particular: the number that images without users have agreed on, and that our manifests run as.
const USER: u64 = 65532;
/// Where the programs lie.
const PROGRAMS: &str = "usr/bin";
/// Where a program that writes is started.
const WORK: &str = "work";

/// Writes the image as a folder and as a tar.
pub(crate) fn write(
    program: &Program,
    target: Target,
    binaries: Vec<Entry>,
    release: &Release,
    out: &Path,
    sums: &mut Sums,
) -> Result<()> {
    let layout = layout(program, target, binaries, release)?;
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

/// The files of a layout.
fn layout(program: &Program, target: Target, binaries: Vec<Entry>, release: &Release) -> Result<Vec<Entry>> {
    let layer = archive::tar(root(program, binaries), release.seconds)?;
    let diff_id = sha256(&layer);
    let created = jiff::Timestamp::from_second(i64::try_from(release.seconds)?)?.to_string();
    let mut blobs = Blobs::default();
    let layer = blobs.add(LAYER_TYPE, gzip(&layer)?);
    let config = blobs.add(CONFIG_TYPE, text(&config(program, target, release, &created, &diff_id))?);
    let docker = json!([{
        "Config": blobs.path(&config),
        "RepoTags": [format!("{}:{}", program.name, release.version)],
        "Layers": [blobs.path(&layer)],
    }]);
    let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST_TYPE, "config": config, "layers": [layer]});
    let mut manifest = blobs.add(MANIFEST_TYPE, text(&manifest)?);
    manifest["platform"] = json!({"os": "linux", "architecture": target.architecture()});
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": release.version});
    let index = json!({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [manifest]});
    let mut files = blobs.0;
    files.push(Entry::file("oci-layout", text(&json!({"imageLayoutVersion": "1.0.0"}))?));
    files.push(Entry::file("index.json", text(&index)?));
    files.push(Entry::file("manifest.json", text(&docker)?));
    Ok(files)
}

/// The one layer: the programs, and for one that writes a folder for temporary files and one to be started in.
fn root(program: &Program, binaries: Vec<Entry>) -> Vec<Entry> {
    let mut entries = vec![Entry::folder("usr/", 0o755, 0), Entry::folder(&format!("{PROGRAMS}/"), 0o755, 0)];
    if program.writes {
        entries.push(Entry::folder("tmp/", 0o1777, 0));
        entries.push(Entry::folder(&format!("{WORK}/"), 0o755, USER));
    }
    entries.extend(binaries.into_iter().map(|entry| Entry { path: format!("{PROGRAMS}/{}", entry.path), ..entry }));
    entries
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

/// Content by its digest.
#[derive(Default)]
struct Blobs(Vec<Entry>);

impl Blobs {
    /// Adds content and describes it.
    fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let descriptor =
            json!({"mediaType": media_type, "digest": format!("sha256:{}", sha256(&bytes)), "size": bytes.len()});
        let path = self.path(&descriptor);
        self.0.push(Entry::file(&path, bytes));
        descriptor
    }

    /// Where described content lies.
    fn path(&self, descriptor: &Value) -> String {
        format!("blobs/{}", descriptor["digest"].as_str().unwrap_or_default().replace(':', "/"))
    }
}
