//! Starts the mock and the real server that are compared.
//!
//! Both servers start in a comparable state: their only users are administrators, and no history exists before the
//! first sequence.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kind::local::{self, Local};
use mock_kube::{Config, Server, User};
use mock_pki::Authority;

use crate::driver::{self, Endpoint};
use crate::generator::{Kind, special};
use crate::sequence::{Sequence, Step};

const TOKEN: &str = "a-token-for-the-comparison";
/// The API group of the custom resource that both servers have from the start.
const GROUP: &str = "differential.example.com";

/// The folder with the programs of a real server, if `KUBEBUILDER_ASSETS` names one.
pub fn assets() -> Option<PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS");
    if assets.is_none() {
        println!("skipped: needs KUBEBUILDER_ASSETS");
    }
    assets.map(PathBuf::from)
}

pub async fn mock() -> anyhow::Result<(Server, Endpoint)> {
    mock_with(|_| {}).await
}

pub async fn mock_with(adapt: impl FnOnce(&mut Config)) -> anyhow::Result<(Server, Endpoint)> {
    let authority = Authority::generate("differential")?;
    let mut config = Config::new();
    config.users = vec![User::admin("admin", TOKEN)];
    // A real server keeps five minutes; a slow machine must not make a comparison depend on that.
    config.limits.history_max_age = Duration::from_hours(1);
    config.crds = vec![special::definition(GROUP)];
    adapt(&mut config);
    let server = Server::start(config, &authority).await?;
    // A real server's watch cache does not reach back to this either.
    server.compact(server.revision());
    let tls = mock_pki::client_config(authority.ca_pem(), None, &[])?;
    let endpoint = Endpoint { address: server.address(), tls, token: TOKEN.to_owned() };
    Ok((server, endpoint))
}

/// Starts a real server. The additional arguments `arguments` are for kube-apiserver.
pub async fn real(assets: PathBuf, directory: &Path, arguments: &[&str]) -> anyhow::Result<(Local, Endpoint)> {
    let mut config = local::Config::new(assets, directory.join("plane"));
    config.apiserver_arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let server = Local::start(config).await?;
    let tls = mock_pki::client_config(server.access().ca_pem(), None, &[])?;
    let token = server.access().token("admin").unwrap_or_default().to_owned();
    let endpoint = Endpoint { address: server.access().address(), tls, token };
    // The definition is served a moment later, and no sequence should have to wait for that.
    let steps = vec![
        Step::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", special::definition(GROUP)),
        Step::new("UNTIL 200", Kind::Widget.path()),
    ];
    let define = Sequence { name: "the definition of widgets".to_owned(), steps };
    driver::play(&endpoint, &define, "setup").await?;
    Ok((server, endpoint))
}
