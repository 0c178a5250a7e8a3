//! `forced-pages`: the server pages lists although the client set no limit or a larger limit. A hit is one page that
//! has a next page.

use super::settings::{keys, not_zero};
use super::{Behaviour, Injection, On, PlayedRow, RequestFacts, Row, Scene};

keys! {
    pub struct Keys {
        items "items": u64 = ("1", ""),
    }
}

pub(super) const ROW: PlayedRow =
    Row::requests("forced-pages", "Lists come in small pages although nobody asked for them.")
        .takes::<Keys>()
        .refuses(|fault| not_zero("items", fault.keys::<Keys>().items == Some(0)))
        .on(On::List)
        .sees("lists come in pages although the client sent no `limit`; counts pages with a successor")
        .played(|_| Box::new(ForcedPages));

/// The default number of items in a page.
const ITEMS: u64 = 1;

#[derive(Debug)]
pub(super) struct ForcedPages;

impl Behaviour for ForcedPages {
    fn request(&mut self, _asked: &RequestFacts<'_>, injection: &mut Injection, scene: &mut Scene<'_>) {
        injection.page_items = Some((scene.fault.keys::<Keys>().items.unwrap_or(ITEMS), scene.active.clone()));
    }
}
