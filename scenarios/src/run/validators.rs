//! The subject's validators (the processes that verify signatures).
//!
//! Owns the validators' addresses, and the proxies that can delay their answers. The main task of the run owns the
//! processes.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use mock_faults::Name;
use mock_proxy::Proxy;

use super::ports::free_port;
use crate::scenario::{Other, Scenario};

pub(super) struct Validators {
    others: Vec<Other>,
    /// The proxies in front of the validators, if a fault delays their answers.
    proxies: Vec<Proxy>,
}

impl Validators {
    /// Chooses addresses, and starts proxies for validators whose answers will be delayed.
    pub(super) async fn open(scenario: &Scenario) -> Result<Self> {
        let (mut others, mut proxies) = (Vec::new(), Vec::new());
        for _ in 0..scenario.subject.upkeep().validators {
            let listens = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port(Ipv4Addr::LOCALHOST)?));
            let mut asked = listens;
            if scenario.faults.has(Name::ValidatorDelay) {
                let config = mock_proxy::Config { seed: scenario.seed, ..mock_proxy::Config::new(listens) };
                let proxy = Proxy::start(config).await.context("failed to stand before a validator")?;
                asked = proxy.address();
                proxies.push(proxy);
            }
            others.push(Other { listens, asked });
        }
        Ok(Self { others, proxies })
    }

    /// The listening address and the public address of each validator.
    pub(super) fn others(&self) -> &[Other] {
        &self.others
    }

    /// The proxies in front of the validators; none if no fault delays answers.
    pub(super) fn proxies(&self) -> &[Proxy] {
        &self.proxies
    }
}
