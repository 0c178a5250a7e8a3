//! An example test: a cache of `ConfigMaps` must contain all `ConfigMaps` although faults disturb its watch.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, Client, Config};
use longhaul_kit::{Error, Fault, Longhaul};

#[tokio::test]
async fn the_mirror_holds_every_config_map() {
    let reset = Fault::named("watch-reset").at(Duration::from_millis(500)).on("configmaps");
    let reset = reset.with("afterEvents", "2").with("count", "1");
    let longhaul = Longhaul::new().chaos(1).fault(reset);
    // In your project: `longhaul.start().unwrap()`.
    let built = std::env::var_os("LONGHAUL_PROGRAMS").map(|folder| PathBuf::from(folder).join("longhaul"));
    let started = built.map_or_else(|| longhaul.clone().start(), |program| longhaul.clone().start_with(&program));
    let plane = match started {
        Ok(plane) => plane,
        Err(error @ Error::NotInstalled) => {
            println!("skipped: needs {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let file = Kubeconfig::read_from(plane.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    let api: Api<ConfigMap> = Api::namespaced(Client::try_from(config).unwrap(), "default");
    let (mirror, writer) = reflector::store();
    let events = reflector(writer, watcher(api.clone(), watcher::Config::default())).default_backoff();
    let watching = tokio::spawn(events.for_each(|_| std::future::ready(())));

    for number in 0..20 {
        let mut one = ConfigMap::default();
        one.metadata.name = Some(format!("mirrored-{number}"));
        api.create(&PostParams::default(), &one).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    let all = async {
        while mirror.len() < 20 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(30), all).await;
    watching.abort();
    assert!(waited.is_ok(), "the mirror holds {} of 20", mirror.len());
}
