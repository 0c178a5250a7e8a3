//! Runs the mock API server alone until Ctrl-C: `cargo run -p mock-kube --example kube -- out.yaml [port]`.

use mock_kube::{Config, Server, User};
use mock_pki::Authority;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: kube KUBECONFIG [PORT]")?;
    let port = arguments.next().map_or(Ok(0), |port| port.parse())?;
    let mut config = Config::new();
    config.listen.set_port(port);
    config.users = vec![User::admin("admin", "admin-token")];
    let server = Server::start(config, &Authority::generate("longhaul")?).await?;
    std::fs::write(&file, server.kubeconfig("admin").ok_or("no such user")?)?;
    println!("{} (kubeconfig: {file})", server.url());
    tokio::signal::ctrl_c().await?;
    server.shutdown().await;
    Ok(())
}
