//! Sources on the command line: `oci:FOLDER`, `oci-archive:FILE`, `docker-archive:FILE`, `docker://IMAGE`. An optional
//! `=NAME:TAG` gives the image another name. skopeo uses the same prefixes.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::archive::Archive;
use super::fetch::Fetch;
use super::layout::Layout;
use super::manifest::{Descriptor, REF_NAME};
use super::{Images, ImagesError, Shelf, Taken, beside};

/// containerd's annotation with the full name of an image.
const CONTAINERD_NAME: &str = "io.containerd.image.name";

#[derive(Debug, Clone)]
pub struct Source {
    text: String,
    kind: Kind,
    /// The name that the image gets; `None` keeps the image's own name.
    name: Option<Taken>,
}

#[derive(Debug, Clone)]
enum Kind {
    Layout(PathBuf),
    Archive(PathBuf),
    Registry(String),
}

impl FromStr for Source {
    type Err = ImagesError;

    fn from_str(text: &str) -> Result<Self, ImagesError> {
        let wrong = |what: &str| ImagesError::Source { text: text.to_owned(), what: what.to_owned() };
        let (source, name) = match text.rsplit_once('=') {
            Some((source, name)) => (source, Some(Taken::parse(name)?)),
            None => (text, None),
        };
        let kind = match source.split_once(':') {
            Some(("oci", path)) if !path.is_empty() => Kind::Layout(path.into()),
            Some(("oci-archive" | "docker-archive", path)) if !path.is_empty() => Kind::Archive(path.into()),
            Some(("docker", image)) if image.starts_with("//") => Kind::Registry(image[2..].to_owned()),
            _ => {
                return Err(wrong(
                    "write oci:FOLDER, oci-archive:FILE, docker-archive:FILE or docker://IMAGE, and =NAME:TAG behind it to call it so",
                ));
            }
        };
        Ok(Self { text: text.to_owned(), kind, name })
    }
}

impl Source {
    /// Adds all images of this source to `images`; returns the added images.
    pub async fn collect(
        &self,
        images: &mut Images,
        fetch: &Fetch,
        platform: Option<&str>,
    ) -> Result<Vec<Taken>, ImagesError> {
        match &self.kind {
            Kind::Layout(folder) => self.take(images, &Layout::open(folder)?, platform),
            Kind::Archive(file) => self.take(images, &Archive::open(file)?, platform),
            Kind::Registry(image) => {
                let (shelf, mut taken) = fetch.fetch(image, platform).await?;
                if let Some(renamed) = &self.name {
                    taken.name = renamed.name.clone();
                }
                let top = shelf.listed().first().cloned().unwrap_or_default();
                images.put(&shelf, &top, &taken.name, platform)?;
                Ok(vec![taken])
            }
        }
    }

    fn take(&self, images: &mut Images, shelf: &dyn Shelf, platform: Option<&str>) -> Result<Vec<Taken>, ImagesError> {
        let wrong = |what: String| ImagesError::Source { text: self.text.clone(), what };
        let is_image = |one: &&Descriptor| beside::tag_of(one, shelf.listed()).is_none();
        let named: Vec<(Option<Taken>, &Descriptor)> =
            shelf.listed().iter().filter(is_image).map(|one| (name_of(one, shelf.path()), one)).collect();
        let mut all = Vec::new();
        if let Some(taken) = &self.name {
            let [(_, descriptor)] = candidates(&named)[..] else {
                let count = candidates(&named).len();
                return Err(wrong(format!(
                    "it has {count} images, so it cannot get one name: leave `={}` out",
                    taken.name
                )));
            };
            images.put(shelf, descriptor, &taken.name, platform)?;
            all.push(taken.clone());
        } else {
            for (taken, descriptor) in &named {
                let Some(taken) = taken else { continue };
                images.put(shelf, descriptor, &taken.name, platform)?;
                all.push(taken.clone());
            }
            if all.is_empty() {
                return Err(wrong("none of its images has a name: write =NAME:TAG behind it".to_owned()));
            }
        }
        Ok(all)
    }
}

/// The images to which `=NAME:TAG` can apply: the images with a name, or all images if none has a name.
fn candidates<'n>(named: &'n [(Option<Taken>, &'n Descriptor)]) -> Vec<(&'n Option<Taken>, &'n Descriptor)> {
    let with: Vec<_> = named.iter().filter(|(name, _)| name.is_some()).map(|(name, one)| (name, *one)).collect();
    if with.is_empty() { named.iter().map(|(name, one)| (name, *one)).collect() } else { with }
}

/// The name of an image in a layout. If the layout states only a tag, the folder's name is the repository.
fn name_of(descriptor: &Descriptor, path: &Path) -> Option<Taken> {
    let text = descriptor.annotations.get(CONTAINERD_NAME).or_else(|| descriptor.annotations.get(REF_NAME))?;
    let tag_alone = !text.contains(['/', ':']) && service_seed::catalog::is_tag(text);
    if tag_alone {
        let stem = path.file_stem()?.to_str()?;
        return Taken::parse(&format!("{stem}:{text}")).ok();
    }
    Taken::parse(text).ok()
}
