//! `longhaul mock …`: one mock server alone, for users who need only this server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};

mod kubeconfig;
mod play;
mod signed;

use crate::descriptors;
use crate::out::out;
use crate::run::Endpoint;
use crate::scenario::{Auth, RateLimit};
use play::{Players, Role};

/// The advice in the error if a server cannot listen on its port.
const PORT_REMEDY: &str =
    "the mock did not start; another program may use its port: stop that one or give another --port";
/// Number of file descriptors for ten thousand watches, some writers, and the program itself.
const DESCRIPTORS: u64 = 10_500;
/// Seed of random network faults of `longhaul mock kube`.
const SEED: u64 = 1;
/// The name of the user in the kubeconfig that the mock API server writes.
const USER: &str = "admin";

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// A Kubernetes API server that kubectl and client libraries can use.
    Kube(Kube),
    /// An OCI registry.
    Registry(Registry),
}

#[derive(clap::Args)]
pub(super) struct Kube {
    /// The port on 127.0.0.1; 0 takes a free port.
    #[arg(long, default_value_t = 6443)]
    port: u16,
    /// Listen on `ADDRESS` (with --port) or `ADDRESS:PORT` instead of 127.0.0.1; a container listens on 0.0.0.0. Any
    /// client that reaches the address and has the token may do everything.
    #[arg(long, value_name = "ADDR", value_parser = place)]
    listen: Option<ListenAddress>,
    /// The file for the kubeconfig, readable by this user only. An existing file that another program wrote is not
    /// overwritten.
    #[arg(long, default_value = "kubeconfig.yaml")]
    kubeconfig: PathBuf,
    /// Overwrite the file of --kubeconfig even if another program wrote it.
    #[arg(long)]
    force: bool,
    /// The token of the kubeconfig's user. Default: a random token.
    #[arg(long)]
    token: Option<String>,
    /// A YAML list of faults, as under `faults:` in a scenario. Times of faults count from the start of the mock. The
    /// faults hit every client.
    #[arg(long)]
    faults: Option<PathBuf>,
    /// The time between two bookmarks of a watch, if the watch asks for bookmarks.
    #[arg(long, default_value = "60s")]
    bookmarks_every: units::Span,
    /// Forget object versions older than this. A watch that resumes from an older version gets status 410.
    #[arg(long, default_value = "5m")]
    compact_after: units::Span,
    /// The users that may call: a CSV file `token,user,uid,"group1,group2"`, as for kube-apiserver's --token-auth-file.
    #[arg(long)]
    tokens: Option<PathBuf>,
    /// Allow every request, or let RBAC rules decide. With either value, requests are recorded, to derive the minimal
    /// Role.
    #[arg(long, value_enum, default_value_t = Authorization::Allow)]
    authorization: Authorization,
    /// Make each workload ready after this time, as a scheduler, kubelets and controllers do. Default: workloads never become ready.
    #[arg(long, value_name = "DURATION")]
    workloads: Option<units::Span>,
    /// The minor release of Kubernetes whose kinds are served.
    #[arg(long, value_name = "RELEASE", default_value = mock_kube::DEFAULT_RELEASE)]
    kubernetes: String,
    /// Number of addresses of the API server, as in a highly available control plane. Each further endpoint takes the next port.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=9))]
    endpoints: u16,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Authorization {
    /// Allow every request.
    Allow,
    /// Roles and bindings decide on each request.
    Rbac,
}

#[derive(clap::Args)]
pub(super) struct Registry {
    /// The port on 127.0.0.1; 0 takes a free port.
    #[arg(long, default_value_t = 5000)]
    port: u16,
    /// Listen on `ADDRESS` (with --port) or `ADDRESS:PORT` instead of 127.0.0.1, such as the address of a bridge that nodes reach. Unless
    /// --auth is given, any client that reaches the address may pull and push.
    #[arg(long, value_name = "ADDR", value_parser = place)]
    listen: Option<ListenAddress>,
    /// Number of images to create at the start.
    #[arg(long, default_value_t = 0)]
    images: usize,
    /// Sign the images with new keys, with valid signatures and with each kind of invalid signature. Creates this
    /// folder with the public keys, a `trusted_root.json`, and a configuration of the service that verifies the images.
    #[arg(long, value_name = "FOLDER", requires = "images")]
    signed: Option<PathBuf>,
    /// The seed of the images' content, and of random choices of faults.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A YAML list of faults (`registry-…`), as under `faults:` in a scenario. Times of faults count from the start of
    /// the mock. The faults hit every client.
    #[arg(long)]
    faults: Option<PathBuf>,
    /// How clients authenticate to pull and push. The mock prints the name and the password.
    #[arg(long, value_enum, default_value_t = Auth::None)]
    auth: Auth,
    /// The rate of requests that the registry accepts, such as 50/s. Requests above this rate get status 429.
    #[arg(long)]
    rate_limit: Option<units::Rate>,
    /// The number of requests that --rate-limit accepts at once (burst).
    #[arg(long, default_value_t = 20, requires = "rate_limit")]
    burst: u32,
}

/// Runs the mock server until Ctrl-C or SIGTERM.
pub(super) async fn mock(command: Command) -> Result<u8> {
    match command {
        Command::Kube(arguments) => kube(arguments).await?,
        Command::Registry(arguments) => serve_registry(arguments).await?,
    }
    Ok(reports::exit::PASS)
}

async fn kube(arguments: Kube) -> Result<()> {
    mock_kube::choose_release(&arguments.kubernetes)?;
    let (faults, schedule) = faults_of(arguments.faults.as_deref(), |family| {
        !family.is_played_anywhere() || family == mock_faults::Family::Network
    })?;
    let of_workloads = |fault: &&mock_faults::Fault| fault.name.row().family == mock_faults::Family::Workloads;
    if let Some(fault) = faults.iter().find(of_workloads).filter(|_| arguments.workloads.is_none()) {
        anyhow::bail!(
            "`{}` needs workloads, which this mock does not run by default: add --workloads 200ms",
            fault.name.as_str()
        );
    }
    let authority = mock_pki::Authority::generate("longhaul")?;
    let mut config = mock_kube::Config::new();
    let namespace = Endpoint::namespace(&faults)?;
    config.names = namespace.iter().map(|namespace| namespace.address().to_string()).collect();
    // If the network has faults, the proxy in front of the server takes the port that clients know.
    let listen = arguments.listen.map_or(loopback(arguments.port), |place| place.on(arguments.port));
    config.listen = if Endpoint::is_needed(&faults) { loopback(0) } else { listen };
    config.epoch = Instant::now();
    let epoch = config.epoch;
    config.bookmarks_every = arguments.bookmarks_every.0;
    config.crds = vec![kind::manifests::package_crd()?];
    config.furnished_namespaces = true;
    config.workloads =
        arguments.workloads.map(|span| mock_kube::Workloads { ready_after: span.0, ..Default::default() });
    config.limits.history_max_age = arguments.compact_after.0;
    config.authorization = match arguments.authorization {
        Authorization::Allow => mock_kube::Authorization::AllowAndRecord,
        Authorization::Rbac => mock_kube::Authorization::Rbac,
    };
    kubeconfig::check(&arguments.kubeconfig, arguments.force)?;
    let token = arguments.token.clone().map_or_else(kubeconfig::token, Ok)?;
    config.users = vec![mock_kube::User::admin(USER, &token)];
    config.users.extend(arguments.tokens.as_deref().map(read_tokens).transpose()?.unwrap_or_default());
    if let Err(error) = descriptors::raise(DESCRIPTORS) {
        crate::out::err!("longhaul: {error}; connections beyond it will wait");
    }
    if faults.iter().any(|fault| fault.name == mock_faults::Name::TokenRotated) {
        let file = std::path::absolute(arguments.kubeconfig.with_extension("token"))?;
        config.token_files.insert(USER.to_owned(), file);
    }
    let everybody: Vec<String> = config.users.iter().map(|user| user.name.clone()).collect();
    let server = mock_kube::Server::start(config, &authority).await.context(PORT_REMEDY)?;
    let mut replicas = Vec::new();
    for number in 1..arguments.endpoints {
        let port = if listen.port() == 0 { 0 } else { listen.port().saturating_add(number) };
        replicas.push(server.replica(SocketAddr::new(listen.ip(), port)).await.context(PORT_REMEDY)?);
    }
    let wanted = Endpoint::is_needed(&faults);
    let endpoint =
        Endpoint::open(wanted, namespace, server.address(), listen, epoch, SEED).await.context(PORT_REMEDY)?;
    let text = server.kubeconfig(USER).context("the server does not know its own user")?;
    kubeconfig::write(&arguments.kubeconfig, &endpoint.direct(&text)?)?;
    if let Some(address) = endpoint.address() {
        out!("mock Kubernetes API server at https://{address}, behind a network with faults");
        out!("without network faults at     {}", server.url());
    } else {
        out!("mock Kubernetes API server at {}", server.url());
    }
    for replica in &replicas {
        out!("another endpoint of it at     {}", replica.url());
    }
    introduce(&arguments, &server, &everybody);
    server.faults().target_users(&everybody);
    server.faults().target_endpoints(0..u32::from(arguments.endpoints));
    let mut signals = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let roles: Vec<Role> = vec![(server.faults(), |family| !family.is_played_anywhere())];
    let mut players = Players { roles, writes: Some(server.faults()) };
    if let Some(network) = endpoint.faults() {
        players.roles.push((network, |family| family == mock_faults::Family::Network));
    }
    tokio::select! {
        () = play::play(&players, &faults, schedule) => {}
        _ = signals.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    endpoint.close().await;
    for replica in replicas {
        replica.shutdown().await;
    }
    server.shutdown().await;
    Ok(())
}

/// Prints the addresses of the API server and commands that use them.
fn introduce(arguments: &Kube, server: &mock_kube::Server, users: &[String]) {
    let kubectl = format!("kubectl --kubeconfig {}", arguments.kubeconfig.display());
    out!(
        "  it answers as Kubernetes {}: {} kinds, plus those of CustomResourceDefinitions",
        mock_kube::release(),
        server.kinds()
    );
    let rights = match arguments.authorization {
        Authorization::Allow => "everything is allowed and recorded",
        Authorization::Rbac => "RBAC rules decide, and requests are recorded",
    };
    out!("  users: {}; {rights}", users.join(", "));
    out!(
        "  versions older than {} are forgotten, bookmarks come every {}",
        arguments.compact_after,
        arguments.bookmarks_every
    );
    if let Some(after) = arguments.workloads {
        out!("  workloads become ready, each after {after}");
    }
    out!("");
    out!("try: {kubectl} get namespaces");
    out!("     {kubectl} get --raw /longhaul/history      writes, commit by commit");
    out!("     {kubectl} get --raw /longhaul/requests     requests, with client and connection");
    out!("     {kubectl} get --raw /longhaul/rbac         the minimal Role of each client");
    out!("     {kubectl} get --raw /longhaul/faults       faults and their hits (also /longhaul/stats, /metrics)");
    out!("Ctrl-C ends it; no state is kept.");
}

fn read_faults(path: &std::path::Path) -> Result<Vec<mock_faults::Fault>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
    serde_saphyr::from_str(&text).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))
}

/// Reads the faults of a file, and refuses faults that this mock cannot inject.
fn faults_of(
    path: Option<&std::path::Path>,
    plays: fn(mock_faults::Family) -> bool,
) -> Result<(Vec<mock_faults::Fault>, mock_faults::Schedule)> {
    let faults = path.map(read_faults).transpose()?.unwrap_or_default();
    let wrong = |index: usize, error: &dyn std::fmt::Display| {
        anyhow::anyhow!("fault {} (`{}`): {error}", index + 1, faults[index].name.as_str())
    };
    if let Some(index) = faults.iter().position(|fault| !plays(fault.name.row().family)) {
        let other = "the other mock plays it: `longhaul mock registry` plays `registry-…`, `longhaul mock kube` all others; \
                     faults of clocks and of a subject need `longhaul soak`";
        return Err(wrong(index, &other));
    }
    let schedule = mock_faults::Schedule::new(&faults).map_err(|(index, error)| wrong(index, &error))?;
    Ok((faults, schedule))
}

/// Reads users from a static token file, in the format of kube-apiserver. Blank lines and lines that begin with `#` are
/// skipped.
fn read_tokens(path: &std::path::Path) -> Result<Vec<mock_kube::User>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
    parse_tokens(&text).map_err(|(line, problem)| anyhow::anyhow!("{}:{line}: {problem}", path.display()))
}

fn parse_tokens(text: &str) -> Result<Vec<mock_kube::User>, (usize, &'static str)> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|(index, line)| {
            let mut parts = line.splitn(4, ',').map(str::trim);
            match (parts.next(), parts.next(), parts.next(), parts.next()) {
                (Some(token), Some(name), Some(_uid), groups) if !token.is_empty() && !name.is_empty() => {
                    let groups = groups.unwrap_or_default().trim_matches('"').split(',').map(str::trim);
                    let groups = groups.filter(|group| !group.is_empty()).map(str::to_owned).collect();
                    Ok(mock_kube::User { name: name.to_owned(), groups, token: token.to_owned() })
                }
                _ => Err((index + 1, "write `token,user,uid` and optionally `,\"group1,group2\"`")),
            }
        })
        .collect()
}

async fn serve_registry(arguments: Registry) -> Result<()> {
    let (faults, schedule) = faults_of(arguments.faults.as_deref(), |family| family == mock_faults::Family::Registry)?;
    let mut config = mock_registry::Config::new();
    config.listen = arguments.listen.map_or(loopback(arguments.port), |place| place.on(arguments.port));
    config.seed = arguments.seed;
    config.rate_limit = arguments.rate_limit.map(|rate| RateLimit { rate, burst: arguments.burst }.limit());
    let password = password()?;
    config.auth = arguments.auth.of(USER, &password, true);
    let server = mock_registry::Server::start(config).await.context(PORT_REMEDY)?;
    out!("mock OCI registry at http://{}", server.address());
    if arguments.auth != Auth::None {
        out!("user {USER}, password {password}");
    }
    let login = (arguments.auth != Auth::None).then_some((USER, password.as_str()));
    let signed = arguments.signed.is_some();
    let population = mock_registry::Population { count: arguments.images, seed: arguments.seed, signed };
    let images = match &arguments.signed {
        Some(folder) => signed::seed(&server, &population, folder, login)?,
        None => server.seed(&population)?,
    };
    for image in images {
        let digest = image.digest.as_deref().unwrap_or("(does not exist)");
        let signing = image.signing.map(|signing| format!(" {signing:?}")).unwrap_or_default();
        out!("{} {digest}{signing}", image.reference);
    }
    let mut signals = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let players =
        Players { roles: vec![(server.faults(), |family| family == mock_faults::Family::Registry)], writes: None };
    tokio::select! {
        () = play::play(&players, &faults, schedule) => {}
        _ = signals.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    server.shutdown().await;
    Ok(())
}

fn password() -> Result<String> {
    let mut bytes = [0; 12];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| anyhow::anyhow!("the system gave no random numbers"))?;
    Ok(hex::encode(bytes))
}

/// An address to listen on, with or without a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListenAddress {
    Address(IpAddr),
    Whole(SocketAddr),
}

impl ListenAddress {
    fn on(self, port: u16) -> SocketAddr {
        match self {
            Self::Address(address) => SocketAddr::new(address, port),
            Self::Whole(whole) => whole,
        }
    }
}

fn place(text: &str) -> Result<ListenAddress, String> {
    let whole = text.parse().map(ListenAddress::Whole);
    let place = whole.or_else(|_| text.trim_matches(['[', ']']).parse().map(ListenAddress::Address));
    place.map_err(|_| {
        "write an address of this machine, such as 172.18.0.1, or with its port, 172.18.0.1:5000".to_owned()
    })
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_to_listen_has_an_address_and_perhaps_a_port() {
        for (text, where_) in [
            ("172.18.0.1", "172.18.0.1:7"),
            ("172.18.0.1:5000", "172.18.0.1:5000"),
            ("::1", "[::1]:7"),
            ("[::1]", "[::1]:7"),
            ("[::1]:5000", "[::1]:5000"),
        ] {
            assert_eq!(place(text).unwrap().on(7), where_.parse().unwrap(), "{text}");
        }
        assert!(place("localhost:5000").unwrap_err().contains("172.18.0.1:5000"));
    }

    #[test]
    fn token_files_are_those_of_kube_apiserver() {
        let users = parse_tokens("# comment\n\nt1,alice,1\nt2, bob, 2,\"devs, ops\"\n").unwrap();
        assert_eq!((users[0].name.as_str(), users[0].groups.len()), ("alice", 0));
        assert_eq!((users[1].token.as_str(), users[1].groups.join("+")), ("t2", "devs+ops".to_owned()));
        assert_eq!(parse_tokens("t1,alice,1\nbroken\n").unwrap_err().0, 2);
    }
}
