//! The output of `helm template` for the project's chart, if helm is installed.
//!
//! Owns the choice of the chart. Downloads nothing, and reads no file outside the project, although helm follows
//! symbolic links. A chart with missing dependencies is not rendered.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::{kustomize, manifests};

/// Timeout of helm, which only reads files.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum number of files and folders of a chart that are checked for links.
const ENTRIES_MAX: usize = 10_000;

#[derive(Debug, PartialEq)]
pub(crate) enum Charted {
    None,
    /// The chart was not rendered, with the reason.
    Left(String),
    Rendered {
        chart: PathBuf,
        objects: Vec<Value>,
    },
}

pub(crate) async fn render(root: &Path, charts: &[PathBuf], helm: Option<&Path>) -> Charted {
    let Some(chart) = charts.first() else { return Charted::None };
    let left = |why: &str| Charted::Left(format!("{}: {why}", chart.display()));
    let Some(helm) = helm else { return left("a chart, and without helm it is not rendered") };
    if !stays_inside(root, chart).unwrap_or(false) {
        return left("a link of it leads out of the project, or it has too many files, so it is not rendered");
    }
    let place = root.join(chart);
    let words = [OsStr::new("template"), OsStr::new("shop"), place.as_os_str(), OsStr::new("--include-crds")];
    let text = match tokio::time::timeout(PATIENCE, kustomize::printed(helm, &words)).await {
        Ok(Ok(text)) => text,
        Ok(Err(why)) => return left(&format!("`helm template` does not render it ({why})")),
        Err(_) => return left(&format!("`helm template` takes longer than {} s", PATIENCE.as_secs())),
    };
    match serde_saphyr::from_multiple::<Value>(&text) {
        Ok(objects) => Charted::Rendered { chart: chart.clone(), objects },
        Err(error) => left(&format!("what helm prints cannot be read ({})", manifests::first_line(&error.to_string()))),
    }
}

/// Whether no symbolic link in a chart leads out of the project. If links form a circle, the check ends at the limit of
/// entries.
fn stays_inside(root: &Path, chart: &Path) -> std::io::Result<bool> {
    let whole = root.canonicalize()?;
    let (mut open, mut entries) = (vec![root.join(chart)], 0);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            entries += 1;
            if entries > ENTRIES_MAX || !path.canonicalize()?.starts_with(&whole) {
                return Ok(false);
            }
            if path.is_dir() {
                open.push(path);
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[tokio::test]
    async fn a_chart_is_rendered_where_helm_is_at_hand() {
        let folder = tempfile::tempdir().unwrap();
        let helm = folder.path().join("helm");
        std::fs::write(
            &helm,
            "#!/bin/sh\ntest \"$1\" = template || exit 9\nprintf 'kind: Deployment\\n---\\nkind: Service\\n'\n",
        )
        .unwrap();
        std::fs::set_permissions(&helm, std::fs::Permissions::from_mode(0o755)).unwrap();
        let charts = [PathBuf::from("charts/shop")];
        let templates = folder.path().join("charts/shop/templates");
        std::fs::create_dir_all(&templates).unwrap();
        std::fs::write(folder.path().join("charts/a.yaml"), "").unwrap();
        symlink("../../a.yaml", templates.join("inside.yaml")).unwrap();
        let Charted::Rendered { objects, .. } = render(folder.path(), &charts, Some(&helm)).await else { panic!() };
        assert_eq!(objects.len(), 2);
        assert_eq!(render(folder.path(), &[], Some(&helm)).await, Charted::None);
        let Charted::Left(why) = render(folder.path(), &charts, None).await else { panic!() };
        assert!(why.contains("without helm"), "{why}");
        symlink("/etc/hosts", templates.join("outside.yaml")).unwrap();
        let Charted::Left(why) = render(folder.path(), &charts, Some(&helm)).await else { panic!() };
        assert!(why.contains("leads out of the project"), "{why}");
    }
}
