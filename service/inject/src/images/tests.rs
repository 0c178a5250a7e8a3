use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use service_seed::catalog::Catalog;
use service_seed::digest::Digest;

use service_registry::config::Resolve;

use super::*;

pub struct Written {
    pub folder: PathBuf,
    listed: Vec<Value>,
}

impl Written {
    pub fn new(folder: &Path) -> Self {
        fs::create_dir_all(folder.join("blobs/sha256")).unwrap();
        fs::write(folder.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        Self { folder: folder.to_owned(), listed: Vec::new() }
    }

    /// Adds a blob to the layout; returns its descriptor.
    pub fn blob(&self, media_type: &str, bytes: &[u8]) -> Value {
        let digest = Digest::of(bytes).to_string();
        fs::write(self.folder.join("blobs/sha256").join(&digest), bytes).unwrap();
        json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": bytes.len()})
    }

    /// Adds an image with these layers to the layout.
    pub fn image(&self, layers: &[&[u8]]) -> Value {
        let config = self.blob("application/vnd.oci.image.config.v1+json", br#"{"os":"linux"}"#);
        let layer = |bytes: &&[u8]| self.blob("application/vnd.oci.image.layer.v1.tar", bytes);
        let layers: Vec<Value> = layers.iter().map(layer).collect();
        let media_type = "application/vnd.oci.image.manifest.v1+json";
        let manifest = json!({"schemaVersion": 2, "mediaType": media_type, "config": config, "layers": layers});
        self.blob(media_type, manifest.to_string().as_bytes())
    }

    pub fn list(&mut self, mut descriptor: Value, name: Option<&str>) {
        if let Some(name) = name {
            descriptor["annotations"] = json!({"org.opencontainers.image.ref.name": name});
        }
        self.listed.push(descriptor);
        self.write();
    }

    /// Adds an annotation to the last entry of the layout, for entries without a name.
    pub fn annotate(&mut self, key: &str, value: &str) {
        self.listed.last_mut().unwrap()["annotations"] = json!({key: value});
        self.write();
    }

    fn write(&self) {
        let index = json!({"schemaVersion": 2, "manifests": self.listed});
        fs::write(self.folder.join("index.json"), index.to_string()).unwrap();
    }
}

fn fetch(folder: &Path) -> Fetch {
    let metrics = service_registry::Metrics::register(&mut prometheus_client::registry::Registry::default());
    let hosts = service_registry::Hosts::new(&Resolve::of("resolve: {}"), service_core::wire::Proxies::none(), metrics)
        .unwrap();
    Fetch::new(service_registry::Registry::new(hosts), folder.to_owned())
}

pub async fn collected(sources: &[String], platform: Option<&str>) -> Result<Images, String> {
    let folder = tempfile::tempdir().unwrap();
    let mut images = Images::default();
    for text in sources {
        let source: Source = text.parse().map_err(|error: ImagesError| error.to_string())?;
        let names = source.collect(&mut images, &fetch(folder.path()), platform).await;
        names.map_err(|error| error.to_string())?;
    }
    Ok(images)
}

fn oci(written: &Written) -> String {
    format!("oci:{}", written.folder.display())
}

#[tokio::test]
async fn images_share_their_blobs_and_keep_their_media_types() {
    let folder = tempfile::tempdir().unwrap();
    let mut written = Written::new(&folder.path().join("layout"));
    let (a, b) = (written.image(&[b"base", b"a"]), written.image(&[b"base", b"b"]));
    let docker = json!({"schemaVersion": 2, "config": written.blob("application/vnd.docker.container.image.v1+json", b"{}"), "layers": []});
    let media_type = "application/vnd.docker.distribution.manifest.v2+json";
    let c = written.blob(media_type, docker.to_string().as_bytes());
    written.list(a.clone(), Some("ghcr.io/team/a:1"));
    written.list(b, Some("library/b:2"));
    written.list(c.clone(), Some("3"));
    let images = collected(&[oci(&written)], None).await.unwrap();
    // Two manifests, one configuration, three layers; the third image has a manifest and a configuration.
    assert_eq!(images.blobs.len(), 8);
    let names: Vec<&String> = images.catalog.repositories.keys().collect();
    assert_eq!(names, ["library/b", "library/layout", "team/a"]);
    let digest = |descriptor: &Value| Digest::from_oci(descriptor["digest"].as_str().unwrap()).unwrap();
    assert_eq!(images.catalog.repositories["team/a"].tags["1"], digest(&a));
    assert_eq!(images.catalog.manifests[&digest(&c)].media_type, media_type);
    assert_eq!(Catalog::parse(&images.catalog.to_text()).unwrap(), images.catalog);
}

#[tokio::test]
async fn an_index_brings_its_images_or_the_one_for_a_platform() {
    let folder = tempfile::tempdir().unwrap();
    let mut written = Written::new(folder.path());
    let image = |layer: &[u8], architecture: &str| {
        let mut image = written.image(&[layer]);
        image["platform"] = json!({"os": "linux", "architecture": architecture});
        image
    };
    let (amd64, arm64) = (image(b"amd64", "amd64"), image(b"arm64", "arm64"));
    let absent = json!({"mediaType": "x/y", "digest": format!("sha256:{}", Digest::of(b"absent")), "size": 6});
    let index = json!({"schemaVersion": 2, "manifests": [amd64, arm64, absent]});
    let index = written.blob("application/vnd.oci.image.index.v1+json", index.to_string().as_bytes());
    written.list(index, Some("a:1"));
    let all = collected(&[oci(&written)], None).await.unwrap();
    assert_eq!((all.catalog.manifests.len(), all.catalog.repositories["library/a"].manifests.len()), (3, 3));
    let one = collected(&[oci(&written)], Some("linux/arm64")).await.unwrap();
    let arm64 = Digest::from_oci(arm64["digest"].as_str().unwrap()).unwrap();
    assert_eq!(one.catalog.repositories["library/a"].tags["1"], arm64);
    assert_eq!(one.catalog.manifests.len(), 1);
    let none = collected(&[oci(&written)], Some("linux/s390x")).await.unwrap_err();
    assert!(none.ends_with("library/a:1 has no image for linux/s390x"), "{none}");
}

#[tokio::test]
async fn signatures_travel_with_what_they_refer_to() {
    let folder = tempfile::tempdir().unwrap();
    let mut written = Written::new(folder.path());
    let image = written.image(&[b"layer"]);
    let config = written.blob("application/vnd.oci.empty.v1+json", b"{}");
    let refers = |subject: &Value| {
        json!({"schemaVersion": 2, "artifactType": "application/vnd.test.signature", "config": config, "layers": [],
               "subject": subject, "annotations": {"k": "v"}})
    };
    let manifest = "application/vnd.oci.image.manifest.v1+json";
    let signature = written.blob(manifest, refers(&image).to_string().as_bytes());
    let other = json!({"mediaType": manifest, "digest": format!("sha256:{}", Digest::of(b"other")), "size": 5});
    let stranger = written.blob(manifest, refers(&other).to_string().as_bytes());
    written.list(image.clone(), Some("a:1"));
    written.list(signature.clone(), None);
    written.list(stranger, None);
    let images = collected(&[oci(&written)], None).await.unwrap();
    let subject = Digest::from_oci(image["digest"].as_str().unwrap()).unwrap();
    assert_eq!(images.referrers.len(), 1);
    let listed = &images.referrers[&subject][0];
    assert_eq!(listed["digest"], signature["digest"]);
    assert_eq!(
        (&listed["artifactType"], &listed["annotations"]["k"]),
        (&"application/vnd.test.signature".into(), &"v".into())
    );
}

/// Signatures at tags do not count as images, in layouts by skopeo, in layouts by cosign, and in layouts with lists of
/// referrers.
#[tokio::test]
async fn signatures_at_tags_travel_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let mut written = Written::new(folder.path());
    let image = written.image(&[b"layer"]);
    let signature = written.image(&[b"payload"]);
    let of = |descriptor: &Value| Digest::from_oci(descriptor["digest"].as_str().unwrap()).unwrap();
    let manifest = "application/vnd.oci.image.manifest.v1+json";
    let config = written.blob("application/vnd.oci.empty.v1+json", b"{}");
    let bundle = json!({"schemaVersion": 2, "config": config, "layers": [], "subject": image});
    let bundle = written.blob(manifest, bundle.to_string().as_bytes());
    let gone = json!({"mediaType": manifest, "digest": format!("sha256:{}", Digest::of(b"gone")), "size": 4});
    let list = json!({"schemaVersion": 2, "manifests": [bundle, gone]});
    let list = written.blob("application/vnd.oci.image.index.v1+json", list.to_string().as_bytes());
    let (tag, other) = (format!("sha256-{}.sig", of(&image)), format!("sha256-{}.sig", Digest::of(b"another")));
    written.list(signature.clone(), Some(&tag));
    written.list(image.clone(), Some("team/a:1"));
    written.list(signature.clone(), Some(&other));
    written.list(list, Some(&format!("sha256-{}", of(&image))));
    let images = collected(&[oci(&written)], None).await.unwrap();
    let repository = &images.catalog.repositories["team/a"];
    assert_eq!(repository.tags, [("1".to_owned(), of(&image)), (tag.clone(), of(&signature))].into());
    assert_eq!((images.catalog.repositories.len(), images.count_beside()), (1, 2));
    assert_eq!(images.referrers[&of(&image)][0]["digest"], bundle["digest"]);
    // An image under two names has its referrers once.
    let twice = [format!("{}=b:1", oci(&written)), oci(&written)];
    let twice = collected(&twice, None).await.unwrap();
    assert_eq!((twice.catalog.repositories.len(), twice.referrers[&of(&image)].len()), (2, 1));
    // The output of `cosign save` has no names.
    let mut saved = Written::new(&folder.path().join("saved"));
    let (image, signature) = (saved.image(&[b"layer"]), saved.image(&[b"payload"]));
    for (descriptor, kind) in [(image.clone(), "image"), (signature.clone(), "sigs"), (signature.clone(), "atts")] {
        saved.list(descriptor, None);
        saved.annotate("kind", &format!("dev.cosignproject.cosign/{kind}"));
    }
    let images = collected(&[format!("{}=ghcr.io/team/a:1", oci(&saved))], None).await.unwrap();
    let attestation = format!("sha256-{}.att", of(&image));
    let wanted = [("1".to_owned(), of(&image)), (tag, of(&signature)), (attestation, of(&signature))];
    assert_eq!(images.catalog.repositories["team/a"].tags, wanted.into());
}

#[tokio::test]
async fn what_is_wrong_with_a_source_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let mut written = Written::new(&folder.path().join("Layout"));
    let image = written.image(&[b"layer"]);
    let says = |sources: Vec<String>| async move { collected(&sources, None).await.unwrap_err() };
    assert!(says(vec!["nginx:1".to_owned()]).await.contains("write oci:FOLDER, oci-archive:FILE"));
    assert!(says(vec!["oci:/x=UPPER".to_owned()]).await.contains("`UPPER`: `UPPER` is not a repository name"));
    assert!(says(vec![oci(&written)]).await.contains("index.json: No such file"));
    written.list(image.clone(), None);
    assert!(says(vec![oci(&written)]).await.contains("none of its images has a name: write =NAME:TAG behind it"));
    assert!(collected(&[format!("{}=app:1", oci(&written))], None).await.is_ok());
    written.list(image, Some("a:2"));
    written.list(written.image(&[b"other"]), Some("b:2"));
    assert!(says(vec![format!("{}=app:1", oci(&written))]).await.contains("it has 2 images"));
    let layer = Digest::of(b"layer").to_string();
    fs::remove_file(written.folder.join("blobs/sha256").join(&layer)).unwrap();
    let missing = says(vec![oci(&written)]).await;
    assert!(missing.ends_with(&format!("sha256:{layer} is missing, which library/a:2 needs")), "{missing}");
    fs::write(written.folder.join("blobs/sha256").join(&layer), "longer than it was").unwrap();
    assert!(says(vec![oci(&written)]).await.contains("differs from its manifest"));
}

/// The output of `docker save` becomes an image, in its old and new formats: layers as files, as links, and compressed.
#[tokio::test]
async fn an_archive_of_docker_becomes_an_image() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image.tar");
    let mut builder = tar::Builder::new(File::create(&path).unwrap());
    let mut put = |name: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, bytes).unwrap();
    };
    put("config.json", b"{}");
    put("1/layer.tar", b"base");
    put("2/layer.tar", b"\x1f\x8bcompressed");
    let manifest = json!([{"Config": "config.json", "RepoTags": ["busybox:1", "127.0.0.1:5000/box:2"], "Layers": ["1/layer.tar", "2/layer.tar", "3/layer.tar"]}]);
    put("manifest.json", manifest.to_string().as_bytes());
    let mut link = tar::Header::new_ustar();
    link.set_entry_type(tar::EntryType::Symlink);
    link.set_size(0);
    builder.append_link(&mut link, "3/layer.tar", "../1/layer.tar").unwrap();
    builder.into_inner().unwrap().flush().unwrap();
    let images = collected(&[format!("docker-archive:{}", path.display())], None).await.unwrap();
    assert_eq!(images.blobs.len(), 4, "a manifest, a configuration and two layers");
    let names: Vec<String> = images.catalog.repositories.keys().cloned().collect();
    assert_eq!(names, ["box", "library/busybox"]);
    let digest = images.catalog.repositories["box"].tags["2"];
    let mut bytes = Vec::new();
    images.blobs[&digest].reader().unwrap().read_to_end(&mut bytes).unwrap();
    let manifest: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(manifest["layers"][0]["digest"], manifest["layers"][2]["digest"]);
    assert!(manifest["layers"][1]["mediaType"].as_str().unwrap().ends_with("tar+gzip"));
    let neither = folder.path().join("neither.tar");
    fs::write(&neither, [0; 1024]).unwrap();
    let says = collected(&[format!("oci-archive:{}", neither.display())], None).await.unwrap_err();
    assert!(says.contains("neither an OCI layout"), "{says}");
}
