//! File descriptors for all connections of a load. If the limit is too low, the load is refused before it starts.

use anyhow::bail;
use loadgen::admission::{Client, Config};

use crate::descriptors;

/// Number of descriptors that are needed in addition to connections: standard streams, log files, event loops, pipes of
/// workers.
const BESIDES: u64 = 64;

/// Raises the limit of this process as far as allowed. Fails if the limit is still too low.
pub(crate) fn provide(config: &Config) -> anyhow::Result<()> {
    let connections = connections(config);
    match descriptors::raise(connections + BESIDES) {
        Err(descriptors::Error::HardLimit { hard, .. }) => bail!("{}", refusal(config.client, connections, hard)),
        raised => Ok(raised?),
    }
}

/// Maximum number of simultaneous connections: with HTTP/1.1, one per call in flight.
fn connections(config: &Config) -> u64 {
    match config.client {
        Client::Http2 => u64::from(config.connections.unwrap_or(1)) * u64::from(config.threads),
        Client::Apiserver | Client::NoReuse => u64::from(config.max_in_flight),
    }
}

/// The text of the error with the remedy. `most` is the highest possible limit of this process.
fn refusal(client: Client, connections: u64, most: u64) -> String {
    let (what, flag) = match client {
        Client::Http2 => ("connections", "--connections"),
        Client::Apiserver | Client::NoReuse => ("calls in flight", "--max-in-flight"),
    };
    let needed = connections + BESIDES;
    let raise = format!("raise the limit with `ulimit -n {needed}` as root");
    let less = match most.saturating_sub(BESIDES) {
        0 => raise,
        fits => format!("write {flag} for {fits} at most, or {raise}"),
    };
    format!("{connections} {what} need {needed} file descriptors, and this process may have {most}: {less}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(more: &serde_json::Value) -> Config {
        let mut config = serde_json::json!({"rate": "1/s"});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(config).unwrap()
    }

    #[test]
    fn calls_of_one_connection_need_one_descriptor() {
        let of = |more: serde_json::Value| connections(&config(&more));
        assert_eq!(of(serde_json::json!({"maxInFlight": 500})), 500);
        assert_eq!(of(serde_json::json!({"maxInFlight": 500, "client": "http2"})), 1);
        assert_eq!(of(serde_json::json!({"client": "http2", "connections": 3, "threads": 4})), 12);
    }

    /// The remedy never names a value that would be refused.
    #[test]
    fn what_is_advised_is_possible() {
        assert_eq!(
            refusal(Client::Apiserver, 500, 100),
            "500 calls in flight need 564 file descriptors, and this process may have 100: write --max-in-flight for 36 at most, or \
             raise the limit with `ulimit -n 564` as root"
        );
        assert_eq!(
            refusal(Client::Http2, 2, 64),
            "2 connections need 66 file descriptors, and this process may have 64: raise the limit with `ulimit -n 66` as root"
        );
    }
}
