//! `cargo xtask kinds`: makes the table of the built-in kinds from a real API server and the Go types of its release.
//!
//! The table consists of compressed lines of text. `mocks/objects/src/builtin.rs` reads this table and explains its
//! lines.

mod go;
mod server;
mod types;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use kind::local::{Config, Local};
use serde_json::Value;

use crate::go::{Modules, published};
use crate::server::Server;
use crate::types::Rows;

/// Write the table of the built-in kinds from a real kube-apiserver.
#[derive(Parser)]
#[command(name = "cargo xtask kinds")]
struct Arguments {
    /// The release of Kubernetes. Its Go modules, such as `k8s.io/api`, must be in the module cache.
    #[arg(long)]
    version: String,
    /// The folder with `kube-apiserver` and `etcd` of that release.
    #[arg(long)]
    assets: PathBuf,
    /// The folder of Go's module cache.
    #[arg(long)]
    modules: PathBuf,
    /// The file to write.
    #[arg(long)]
    out: PathBuf,
}

/// Maximum size of the compressed table in bytes.
const BYTES_MAX: usize = 300_000;
/// Maximum number of names in the path of a field that field selectors accept: `spec.a`, `status.a`,
/// `involvedObject.a`.
const SELECTABLE_DEPTH: usize = 2;
/// Names that field selectors accept, although they are not fields or stand for several fields.
const SELECTABLE: [&str; 2] = ["source", "status.successful"];
/// Types that belong to no resource but occur in API requests or answers: `(apiVersion, kind, type)`.
const OTHERS: &[(&str, &str, &str)] = &[
    ("v1", "Status", "meta.v1.Status"),
    ("v1", "DeleteOptions", "meta.v1.DeleteOptions"),
    ("v1", "ListMeta", "meta.v1.ListMeta"),
    ("meta.k8s.io/v1", "PartialObjectMetadata", "meta.v1.PartialObjectMetadata"),
];

/// Feature gates that turn on more resources: `(gate, API group, API version that the gate needs)`.
const GATED: [(&str, &str, &str); 1] = [("MutatingAdmissionPolicy", "admissionregistration.k8s.io", "v1beta1")];

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let text = runtime.block_on(read(&arguments))?;
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes())?;
    let bytes = encoder.finish()?;
    ensure!(bytes.len() <= BYTES_MAX, "the table takes {} bytes of at most {BYTES_MAX}", bytes.len());
    std::fs::write(&arguments.out, &bytes).with_context(|| format!("failed to write {}", arguments.out.display()))?;
    let resources = text.lines().filter(|line| line.starts_with("R ")).count();
    println!(
        "{}: {resources} resources, {} bytes of text, {} compressed",
        arguments.out.display(),
        text.len(),
        bytes.len()
    );
    Ok(())
}

async fn read(arguments: &Arguments) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let usual = Local::start(Config::new(&arguments.assets, folder.path().join("usual"))).await?;
    let mut config = Config::new(&arguments.assets, folder.path().join("gated"));
    for (gate, group, version) in GATED {
        config.apiserver_arguments.push(format!("--feature-gates={gate}=true"));
        config.apiserver_arguments.push(format!("--runtime-config={group}/{version}=true"));
    }
    let gated = Local::start(config).await?;
    let table = async {
        let mut servers = [connect(&usual).await?, connect(&gated).await?];
        table(&mut servers, &arguments.version, &arguments.modules).await
    }
    .await;
    usual.stop().await;
    gated.stop().await;
    table
}

async fn connect(local: &Local) -> Result<Server> {
    let access = local.access();
    Server::connect(access.address(), access.ca_pem(), access.token("admin").unwrap_or_default()).await
}

/// Makes the table from a server with default settings and a server with all feature gates.
async fn table([server, gated]: &mut [Server; 2], version: &str, cache: &Path) -> Result<String> {
    let is = server.get("/version").await?["gitVersion"].as_str().unwrap_or_default().to_owned();
    ensure!(is == format!("v{version}"), "the server is {is}, not v{version}");
    let modules = Modules::new(cache.to_owned(), version)?;
    let (schemas, kinds) = schemas(gated).await?;
    let mut rows = Rows::new(&modules, schemas);
    let mut text = format!("V {is}\n");
    for (api_version, kind, name) in OTHERS {
        rows.add(name)?;
        writeln!(text, "K {api_version} {kind} {name}")?;
    }
    for root in ["api", "apis"] {
        for group in server.groups(root).await? {
            for line in self::group(server, root, &group, &kinds, &mut rows).await? {
                writeln!(text, "{line}")?;
            }
        }
    }
    for (gate, name, _) in GATED {
        for mut group in gated.groups("apis").await?.into_iter().filter(|group| group["metadata"]["name"] == name) {
            for version in group["versions"].as_array_mut().into_iter().flatten() {
                if let Some(resources) = version["resources"].as_array_mut() {
                    let known = |plural: &Value| {
                        text.contains(&format!("\nR {}\t{name}\t", plural.as_str().unwrap_or_default()))
                    };
                    resources.retain(|resource| !known(&resource["resource"]));
                }
            }
            for line in self::group(gated, "apis", &group, &kinds, &mut rows).await? {
                let mark = if line.starts_with("R ") { format!("\t{gate}") } else { String::new() };
                writeln!(text, "{line}{mark}")?;
            }
        }
    }
    Ok(text + &rows.lines())
}

/// Names of types by `(apiVersion, kind)`.
type Kinds = BTreeMap<(String, String), String>;

/// Returns all published types by their short names, and the names of types by kind.
async fn schemas(server: &mut Server) -> Result<(BTreeMap<String, Value>, Kinds)> {
    let index = server.get("/openapi/v3").await?;
    let (mut schemas, mut kinds) = (BTreeMap::new(), Kinds::new());
    for document in index["paths"].as_object().into_iter().flatten() {
        let Some(url) = document.1["serverRelativeURL"].as_str() else { continue };
        let document = server.get(url).await?;
        for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
            let Some(short) = published(name) else { continue };
            let gvks = schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten();
            for gvk in gvks.filter(|_| !name.ends_with("DeleteOptions") && !name.ends_with("WatchEvent")) {
                let text = |key: &str| gvk[key].as_str().unwrap_or_default().to_owned();
                kinds.insert((api_version(&text("group"), &text("version")), text("kind")), short.clone());
            }
            schemas.insert(short, schema.clone());
        }
    }
    Ok((schemas, kinds))
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Returns the table lines of an API group: its resources, with a line for each version and each subresource.
async fn group(
    server: &mut Server,
    root: &str,
    group: &Value,
    kinds: &Kinds,
    rows: &mut Rows<'_>,
) -> Result<Vec<String>> {
    let name = group["metadata"]["name"].as_str().unwrap_or_default();
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for version in group["versions"].as_array().into_iter().flatten() {
        let version_name = version["version"].as_str().unwrap_or_default();
        let api_version = api_version(name, version_name);
        let classic = server.get(&format!("/{root}/{api_version}")).await?;
        for resource in version["resources"].as_array().into_iter().flatten() {
            let plural = resource["resource"].as_str().unwrap_or_default();
            let place = if let Some(place) = found.iter().position(|(known, _)| known == plural) {
                place
            } else {
                let mut lines = vec![resource_line(name, resource)];
                for one in resource["subresources"].as_array().into_iter().flatten() {
                    let (line, kind) = subresource_line(one, &api_version);
                    lines.push(line);
                    // What the operation of a proxy takes is in its query.
                    if let Some(kind_of) = kinds.get(&kind) {
                        rows.add(kind_of)?;
                        lines.push(format!("K {} {} {kind_of}", kind.0, kind.1));
                    }
                }
                found.push((plural.to_owned(), lines));
                found.len() - 1
            };
            let kind = resource["responseKind"]["kind"].as_str().unwrap_or_default();
            let of_kind = kinds.get(&(api_version.clone(), kind.to_owned()));
            let of_kind = of_kind.with_context(|| format!("{api_version} {kind} has no schema"))?;
            rows.add(of_kind)?;
            let listed = resource["verbs"].as_array().is_some_and(|verbs| verbs.contains(&Value::from("list")));
            let path = format!("/{root}/{api_version}/{plural}");
            let columns = if listed { columns(server, &path).await? } else { String::new() };
            let mut fields = Vec::new();
            if listed && found[place].1.iter().all(|line| !line.starts_with("v ")) {
                let mut candidates = rows.plain_fields(of_kind, SELECTABLE_DEPTH)?;
                candidates.extend(SELECTABLE.map(str::to_owned));
                for field in candidates {
                    if server.selects(&path, &field).await? {
                        fields.push(field);
                    }
                }
            }
            let classic = classic["resources"].as_array().into_iter().flatten().find(|one| one["name"] == plural);
            let hash = classic.and_then(|one| one["storageVersionHash"].as_str()).unwrap_or("-");
            found[place].1.push(format!("v {version_name}\t{of_kind}\t{hash}\t{}\t{columns}", fields.join(",")));
        }
    }
    Ok(found.into_iter().flat_map(|(_, lines)| lines).collect())
}

fn words(value: &Value) -> String {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
}

fn resource_line(group: &str, resource: &Value) -> String {
    let text = |key: &str| resource[key].as_str().unwrap_or_default();
    let kind = resource["responseKind"]["kind"].as_str().unwrap_or_default();
    let (singular, scope) = (text("singularResource"), text("scope"));
    let (verbs, shorts, categories) = (&resource["verbs"], &resource["shortNames"], &resource["categories"]);
    let lists = [words(verbs), words(shorts), words(categories)].join("\t");
    format!("R {}\t{group}\t{kind}\t{singular}\t{scope}\t{lists}", text("resource"))
}

/// Returns the table line of a subresource, and `(apiVersion, kind)` of its objects.
fn subresource_line(one: &Value, own: &str) -> (String, (String, String)) {
    let text = |key: &str| one["responseKind"][key].as_str().unwrap_or_default();
    let own_kind = text("version").is_empty();
    let api_version = if own_kind { own.to_owned() } else { api_version(text("group"), text("version")) };
    let shown = if own_kind { "" } else { &api_version };
    let name = one["subresource"].as_str().unwrap_or_default();
    let line = format!("S {name}\t{shown}\t{}\t{}", text("kind"), words(&one["verbs"]));
    (line, (api_version, text("kind").to_owned()))
}

/// Returns the columns of a collection, `Name:type:format:priority`, joined by `|`.
async fn columns(server: &mut Server, path: &str) -> Result<String> {
    let columns = server.columns(path).await?;
    let one = |column: &Value| {
        let text = |key: &str| column[key].as_str().unwrap_or_default();
        format!("{}:{}:{}:{}", text("name"), text("type"), text("format"), column["priority"].as_i64().unwrap_or(0))
    };
    Ok(columns.iter().map(one).collect::<Vec<_>>().join("|"))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::ZlibDecoder;

    use super::*;

    /// The table in the repository equals a new table from a server of the same Kubernetes release.
    #[test]
    fn the_table_is_what_a_server_tells() {
        let folder = |name| std::env::var_os(name).map(PathBuf::from);
        let (Some(assets), Some(modules)) = (folder("KUBEBUILDER_ASSETS"), folder("GOMODCACHE")) else {
            return println!("skipped: needs KUBEBUILDER_ASSETS and GOMODCACHE");
        };
        let packed = include_bytes!("../../../mocks/objects/src/builtin/1.34.kinds");
        let mut committed = String::new();
        ZlibDecoder::new(&packed[..]).read_to_string(&mut committed).unwrap();
        let version = committed.lines().next().and_then(|line| line.strip_prefix("V v")).unwrap().to_owned();
        let arguments = Arguments { version, assets, modules, out: PathBuf::new() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let told = runtime.block_on(read(&arguments)).unwrap();
        let differs = committed.lines().zip(told.lines()).find(|(one, other)| one != other);
        assert_eq!(differs, None, "write it again: cargo xtask kinds");
        assert_eq!(committed.len(), told.len());
    }
}
