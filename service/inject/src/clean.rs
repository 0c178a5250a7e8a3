//! The clean-up of an injection: deletes all its objects, even of a failed injection, and checks that they are gone.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::cluster::{Cluster, Error};
use super::metadata::Metadata;

/// Time limit until all objects are gone: the Pod has a grace period, and a slow control plane needs some time for a
/// thousand chunks.
const GONE: Duration = Duration::from_mins(3);
/// Time between two checks whether the objects are gone.
const LOOK: Duration = Duration::from_millis(500);
/// The resources of an injection, in the order in which they are deleted. The index is deleted last, because it owns
/// all other objects; so an interrupted clean-up can be repeated.
const RESOURCES: [&str; 3] = ["pods", "services", "configmaps"];

/// Deletes all objects of the injection and waits until they are gone; returns their number.
pub async fn clean(cluster: &Cluster) -> Result<usize, Error> {
    let names = &cluster.names;
    let (mut found, mut strangers) = (0, false);
    for resource in RESOURCES {
        for metadata in labelled(cluster, resource).await? {
            if !names.owns(&metadata) {
                eprintln!(
                    "{resource}/{} has the labels of this injection, but does not belong to it: it is kept",
                    metadata.name
                );
                strangers |= resource == "configmaps";
                continue;
            }
            found += 1;
            if resource != "configmaps" || metadata.name == names.binary() {
                cluster.delete(&names.path(resource, &metadata.name)).await?;
            }
        }
    }
    let until = Instant::now() + GONE;
    loop {
        let chunks = chunks(cluster).await?;
        if chunks.is_empty() {
            break;
        }
        if strangers {
            for name in &chunks {
                cluster.delete(&names.path("configmaps", name)).await?;
            }
        } else {
            cluster.delete(&format!("{}?{}", names.path("configmaps", ""), names.payload_selector())).await?;
        }
        late(cluster, until).await?;
    }
    loop {
        if listed(cluster, "configmaps").await?.contains(&names.index()) {
            cluster.delete(&names.path("configmaps", &names.index())).await?;
        }
        let mut left = 0;
        for resource in RESOURCES {
            left += listed(cluster, resource).await?.len();
        }
        if left == 0 {
            return Ok(found);
        }
        late(cluster, until).await?;
    }
}

/// The names of the injection's objects.
async fn listed(cluster: &Cluster, resource: &str) -> Result<Vec<String>, Error> {
    let labelled = labelled(cluster, resource).await?.into_iter();
    Ok(labelled.filter(|metadata| cluster.names.owns(metadata)).map(|metadata| metadata.name).collect())
}

/// All objects with the labels of this injection, even if another program set the labels.
async fn labelled(cluster: &Cluster, resource: &str) -> Result<Vec<Metadata>, Error> {
    cluster.metadata(&format!("{}?{}", cluster.names.path(resource, ""), cluster.names.selector())).await
}

async fn chunks(cluster: &Cluster) -> Result<Vec<String>, Error> {
    let path = format!("{}?{}", cluster.names.path("configmaps", ""), cluster.names.payload_selector());
    let labelled = cluster.metadata(&path).await?.into_iter();
    Ok(labelled.filter(|metadata| cluster.names.owns(metadata)).map(|metadata| metadata.name).collect())
}

/// Waits for the next check; after the time limit, the error names the remaining objects.
async fn late(cluster: &Cluster, until: Instant) -> Result<(), Error> {
    if Instant::now() < until {
        sleep(LOOK).await;
        return Ok(());
    }
    let mut left = Vec::new();
    for resource in RESOURCES {
        left.extend(listed(cluster, resource).await?.into_iter().map(|name| format!("{resource}/{name}")));
    }
    left.truncate(5);
    let what = format!(
        "after {} s there still are {}: do they have finalizers, or is the Pod's node away?",
        GONE.as_secs(),
        left.join(", ")
    );
    Err(Error::Refused(what))
}
