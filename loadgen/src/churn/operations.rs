//! The stream of operations of churn: the object, the kind and the time of each. Pure: an iterator over a model of the
//! existing objects.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::config::Mix;
use crate::arrivals::Times;

/// The number of objects may differ from `population` by `population` divided by this number, so that creates and
/// deletes can come in any order.
pub(super) const BAND: u32 = 50;

/// An operation and its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operation {
    pub kind: Kind,
    /// The number of the object; for [`Kind::Collect`], the number of the first object in the group.
    pub object: u64,
    /// A number that decides the contents of a write; each operation has its own. 0 for operations that are not
    /// planned.
    pub revision: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Create,
    Update,
    Label,
    Annotate,
    Status,
    /// The writer of `churn.also` writes the object.
    Also,
    Delete,
    /// All objects of a group are deleted by one request.
    Collect,
    /// An object that the webhooks must refuse is sent, into the namespace of this object.
    Denied,
}

/// Groups of objects that are deleted together: neighbours by number, in one namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Groups {
    pub namespace: u64,
    pub size: u64,
}

impl Groups {
    pub(super) fn of(self, object: u64) -> Range<u64> {
        let namespace = object / self.namespace * self.namespace;
        let first = namespace + (object - namespace) / self.size * self.size;
        first..(first + self.size).min(namespace + self.namespace)
    }
}

/// The stream of operations, with a model of the existing objects. The stream stores one number for each existing
/// object.
#[derive(Debug)]
pub(super) struct Operations {
    pub times: Times,
    pub rng: ChaCha8Rng,
    pub mix: Mix,
    /// The weight of the writer of `churn.also`.
    pub also: u32,
    pub groups: Groups,
    /// The numbers of the existing objects, oldest first.
    pub live: VecDeque<u64>,
    pub next: u64,
    pub fewest: u64,
    pub most: u64,
    pub revision: u64,
}

impl Operations {
    fn kind(&mut self) -> Kind {
        let Mix { create, update, delete, label, annotate, status, delete_collection, denied } = self.mix;
        let at = self.rng.random_range(0..self.mix.total() + u64::from(self.also));
        let mut weights = [
            (Kind::Create, create),
            (Kind::Update, update),
            (Kind::Delete, delete),
            (Kind::Label, label),
            (Kind::Annotate, annotate),
            (Kind::Status, status),
            (Kind::Also, self.also),
            (Kind::Collect, delete_collection),
            (Kind::Denied, denied),
        ]
        .into_iter();
        let mut below = 0;
        let drawn = weights.find(|(_, weight)| {
            below += u64::from(*weight);
            at < below
        });
        let kind = drawn.map_or(Kind::Update, |(kind, _)| kind);
        let live = self.live.len() as u64;
        match kind {
            // A collection takes many at once; later operations replace them.
            _ if live < self.fewest && create > 0 => Kind::Create,
            Kind::Create if live >= self.most => Kind::Delete,
            Kind::Delete | Kind::Collect if live <= self.fewest => Kind::Create,
            Kind::Update | Kind::Label | Kind::Annotate | Kind::Status | Kind::Also | Kind::Denied if live == 0 => {
                Kind::Create
            }
            kind => kind,
        }
    }

    fn object(&mut self, kind: &mut Kind) -> u64 {
        match kind {
            Kind::Create => {
                self.live.push_back(self.next);
                self.next += 1;
                self.next - 1
            }
            Kind::Update | Kind::Label | Kind::Annotate | Kind::Status | Kind::Also | Kind::Denied => {
                self.live[self.rng.random_range(0..self.live.len())]
            }
            // From the oldest quarter: lifetimes differ, yet no object lives so long that its namespace never empties.
            Kind::Delete | Kind::Collect => {
                let at = self.rng.random_range(0..self.live.len().div_ceil(4));
                let group = self.groups.of(self.live[at]);
                // While a group is still being made, a collection could delete objects that are created later.
                if *kind == Kind::Collect && group.end <= self.next {
                    self.live.retain(|object| !group.contains(object));
                    return group.start;
                }
                *kind = Kind::Delete;
                self.live.remove(at).expect("the index was drawn below the length")
            }
        }
    }
}

impl Iterator for Operations {
    type Item = (Duration, Operation);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.times.next()?;
        let mut kind = self.kind();
        let object = self.object(&mut kind);
        self.revision += 1;
        Some((at, Operation { kind, object, revision: self.revision }))
    }
}
