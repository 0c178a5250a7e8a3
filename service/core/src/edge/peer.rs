//! The callers (peers) of a listener, with the memory and the number of calls of each caller.
//!
//! Each network address and each name in a client certificate has an account. Each call counts on the account of the
//! caller's address and on the account of the caller's name. So neither many addresses with one certificate nor many
//! certificates at one address get more than one caller may use. An account exists while its peer has a connection.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::tls::ClientCertificate;

/// Number of accounts at which the table first removes accounts without connections. The next removal follows when the
/// number of accounts has doubled.
const SWEEP_MIN: usize = 64;

/// A network address as a peer. All addresses of an IPv6 /64 network count as one peer, because a host usually owns all
/// of them.
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

/// A counter whose upper limit is an argument of each addition.
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

/// A caller, as seen by one connection.
#[derive(Debug)]
pub struct Peer {
    accounts: Vec<Arc<Account>>,
    name: Option<Arc<str>>,
    address: IpAddr,
    client: Option<ClientCertificate>,
}

impl Peer {
    /// The first name in the client certificate; `None` if the listener demands no certificate.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The client certificate, with a check that it is still valid; `None` if the listener demands no certificate.
    pub fn client(&self) -> Option<&ClientCertificate> {
        self.client.as_ref()
    }

    /// Counts a call until the result is dropped; `None` if this peer has `max` calls already.
    pub fn enter(&self, max: usize) -> Option<Entered<'_>> {
        // Not `then_some`: the value that it would make and drop on a refusal takes back a call that was never counted.
        self.charge(|account| &account.in_flight, 1, max).then(|| Entered(self))
    }

    /// Adds `bytes` to the memory of this peer unless the sum would exceed `max`.
    pub fn try_hold(&self, bytes: usize, max: usize) -> bool {
        self.charge(|account| &account.held_bytes, bytes, max)
    }

    /// Releases bytes that [`Self::try_hold`] added.
    pub fn release(&self, bytes: usize) {
        self.accounts.iter().for_each(|account| account.held_bytes.sub(bytes));
    }

    /// Adds `bytes` to the memory of this peer's open calls unless the sum would exceed `max`.
    pub(super) fn try_open(&self, bytes: usize, max: usize) -> bool {
        self.charge(|account| &account.open_bytes, bytes, max)
    }

    /// Releases bytes that [`Self::try_open`] added.
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

/// A counted call; uncounted on drop.
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

#[derive(Debug, Default)]
pub struct Accounts(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    known: HashMap<Key, Weak<Account>>,
    sweep_at: usize,
}

impl Accounts {
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

    /// Connections of one address count on one account; a certificate name has one account, whatever the address.
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
