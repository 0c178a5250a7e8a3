//! Callers, and the memory and calls of each.
//!
//! This module owns the accounts: one for each network address and one for each name in a client certificate. A caller
//! is charged on both, so that neither many addresses with one certificate nor many certificates behind one address get
//! more than a share. An account lives as long as a connection of its peer.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::tls::ClientCertificate;

/// Number of accounts at which those without connections are removed; afterwards at each doubling.
const SWEEP_MIN: usize = 64;

/// A network address as a peer. All of an IPv6 /64 counts as one: a host with one address of it has all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address(IpAddr);

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self(IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)))
            }
            address @ IpAddr::V4(_) => Self(address),
        }
    }
}

/// A count whose upper limit each caller passes.
#[derive(Debug, Default)]
pub struct Meter(AtomicUsize);

impl Meter {
    /// Adds `amount` unless the sum would be larger than `max`.
    pub fn try_add(&self, amount: usize, max: usize) -> bool {
        let sum = |now: usize| now.checked_add(amount).filter(|sum| *sum <= max);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).is_ok()
    }

    pub fn sub(&self, amount: usize) {
        self.0.fetch_sub(amount, Ordering::Relaxed);
    }

    pub fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
struct Account {
    in_flight: Meter,
    held_bytes: Meter,
    open_bytes: Meter,
}

/// One caller, as its connection sees it.
#[derive(Debug)]
pub struct Peer {
    accounts: Vec<Arc<Account>>,
    name: Option<Arc<str>>,
    address: IpAddr,
    client: Option<ClientCertificate>,
}

impl Peer {
    /// The first name in its client certificate; absent if no certificate was asked for.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Its certificate, and whether that is still valid; absent if no certificate was asked for.
    pub fn client(&self) -> Option<&ClientCertificate> {
        self.client.as_ref()
    }

    /// Counts a call until the result is dropped; `None` if this peer has `max` calls already.
    pub fn enter(&self, max: usize) -> Option<Entered<'_>> {
        // Not `then_some`: the value that it would make and drop on a refusal takes back a call that was never counted.
        self.charge(|account| &account.in_flight, 1, max).then(|| Entered(self))
    }

    /// Counts `bytes` as held, unless the peer would hold more than `max`.
    pub fn try_hold(&self, bytes: usize, max: usize) -> bool {
        self.charge(|account| &account.held_bytes, bytes, max)
    }

    /// Gives back what [`Self::try_hold`] took.
    pub fn release(&self, bytes: usize) {
        self.accounts.iter().for_each(|account| account.held_bytes.sub(bytes));
    }

    /// Counts `bytes` as held by open calls, unless the peer's open calls would hold more than `max`.
    pub(super) fn try_open(&self, bytes: usize, max: usize) -> bool {
        self.charge(|account| &account.open_bytes, bytes, max)
    }

    /// Gives back what [`Self::try_open`] took.
    pub(super) fn close(&self, bytes: usize) {
        self.accounts.iter().for_each(|account| account.open_bytes.sub(bytes));
    }

    fn charge(&self, meter: fn(&Account) -> &Meter, amount: usize, max: usize) -> bool {
        for (index, account) in self.accounts.iter().enumerate() {
            if !meter(account).try_add(amount, max) {
                self.accounts[..index].iter().for_each(|charged| meter(charged).sub(amount));
                return false;
            }
        }
        true
    }
}

/// A call of a peer under way.
#[derive(Debug)]
pub struct Entered<'a>(&'a Peer);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.accounts.iter().for_each(|account| account.in_flight.sub(1));
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Key {
    Address(Address),
    Name(Arc<str>),
}

/// The accounts of all peers of one listener.
#[derive(Debug, Default)]
pub struct Accounts(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    known: HashMap<Key, Weak<Account>>,
    sweep_at: usize,
}

impl Accounts {
    /// The peer at `address` with the proven name `name`.
    pub fn peer(&self, address: IpAddr, name: Option<Arc<str>>) -> Arc<Peer> {
        self.peer_with(address, name, None)
    }

    pub(super) fn client(&self, address: IpAddr, client: ClientCertificate) -> Arc<Peer> {
        let name = client.facts().names.first().map_or("", String::as_str).into();
        self.peer_with(address, Some(name), Some(client))
    }

    fn peer_with(&self, address: IpAddr, name: Option<Arc<str>>, client: Option<ClientCertificate>) -> Arc<Peer> {
        let mut table = self.0.lock();
        let mut accounts = vec![table.account(Key::Address(address.into()))];
        accounts.extend(name.iter().map(|name| table.account(Key::Name(Arc::clone(name)))));
        drop(table);
        Arc::new(Peer { accounts, name, address, client })
    }
}

impl Table {
    fn account(&mut self, key: Key) -> Arc<Account> {
        if let Some(account) = self.known.get(&key).and_then(Weak::upgrade) {
            return account;
        }
        if self.known.len() >= self.sweep_at.max(SWEEP_MIN) {
            self.known.retain(|_, account| account.strong_count() > 0);
            self.sweep_at = self.known.len() * 2;
        }
        let account = Arc::new(Account::default());
        self.known.insert(key, Arc::downgrade(&account));
        account
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Connections of one address share an account, and a name is one account whatever its address.
    #[test]
    fn a_peer_is_charged_by_address_and_by_name() {
        let accounts = Accounts::default();
        let first = accounts.peer(address("10.0.0.1"), None);
        let second = accounts.peer(address("::ffff:10.0.0.1"), Some("apiserver".into()));
        let third = accounts.peer(address("10.0.0.2"), Some("apiserver".into()));
        assert!(first.try_hold(6, 10));
        assert!(!second.try_hold(6, 10), "the address holds 6 already");
        assert!(third.try_hold(10, 10), "what was refused left no trace on the name");
        assert!(!second.try_hold(1, 10), "the name is full");
        third.release(10);
        assert!(second.try_hold(4, 10));
        let entered = first.enter(1).unwrap();
        assert!(second.enter(1).is_none());
        drop(entered);
        assert!(second.enter(1).is_some());
    }

    #[test]
    fn neighbours_in_an_ipv6_network_are_one_peer() {
        assert_eq!(Address::from(address("2001:db8::1")), Address::from(address("2001:db8::ffff:2")));
        assert_ne!(Address::from(address("2001:db8::1")), Address::from(address("2001:db8:0:1::1")));
    }

    #[test]
    fn accounts_go_with_their_peers() {
        let accounts = Accounts::default();
        for index in 0..10_000_u32 {
            accounts.peer(IpAddr::V4(index.into()), None);
        }
        assert!(accounts.0.lock().known.len() <= SWEEP_MIN + 1);
    }
}
