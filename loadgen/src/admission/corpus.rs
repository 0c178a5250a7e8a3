//! The corpus: a bounded set of user actions, each already expanded to the reviews that Kubernetes sends for it. Pure.
//!
//! A denied action ends with its denial: when a Deployment is refused there is no `ReplicaSet`. What controllers make
//! from an admitted object carries the pins that the object got, so those reviews are right without a patch.

mod actions;
mod expand;

use std::sync::Arc;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

pub(super) use self::expand::Expand;
use super::image::Image;
use super::mix::{Action, Mix};
use super::oracle::{self, Expected};
use super::review::Template;
use super::truth::Truth;
use crate::Size;
use crate::arrivals::Recorded;

/// Different instances of each action. Enough that no two neighbouring requests look alike.
pub(super) const VARIANTS: usize = 16;
/// Once the corpus has this many bytes, no further variants are made: large sizes get fewer, but each action has one,
/// whatever its size.
const MOST_BYTES: usize = 32 << 20;
/// The bounds of a corpus.
const MOST: Most = Most { variants: VARIANTS, bytes: MOST_BYTES };
/// Image names for webhooks of which nothing is known. The host is reserved for examples (RFC 2606): nothing answers there.
const INVENTED: [&str; 6] = [
    "shop/cart:1.4.2",
    "shop/ledger:7",
    "shop/search:2026-01-05",
    "base/proxy:v3.1",
    "tools/migrate:0.9.0",
    "ml/model:latest",
];

/// Templates, and for each action the sequences of template numbers that its variants send.
#[derive(Debug)]
pub(super) struct Corpus {
    templates: Vec<Template>,
    actions: Vec<(Action, Vec<Vec<u32>>)>,
    truth: Arc<Truth>,
}

#[derive(Debug, Clone, Copy)]
struct Most {
    variants: usize,
    bytes: usize,
}

impl Corpus {
    /// Reviews whose right answers follow from the images.
    pub(super) fn build(mix: &Mix, size: Option<Size>, seed: u64, images: &[Image]) -> Self {
        let digests = oracle::digests(images);
        Self::expanded(mix, MOST, Expand::new(seed, size, images, Some(&digests)))
    }

    /// Reviews of images that nobody knows: any valid answer is right, and whatever was asked for goes on.
    pub(super) fn for_any_webhook(mix: &Mix, size: Option<Size>, seed: u64) -> Self {
        let images: Vec<Image> =
            INVENTED.iter().map(|name| Image::new(format!("registry.example.com/{name}"), None)).collect();
        Self::expanded(mix, MOST, Expand::new(seed, size, &images, None))
    }

    fn expanded(mix: &Mix, most: Most, mut expand: Expand<'_>) -> Self {
        let mut corpus = Self::empty();
        let wanted = mix.weights().into_iter().filter(|&(_, weight)| weight > 0);
        corpus.actions.extend(wanted.map(|(action, _)| (action, Vec::new())));
        let mut bytes = 0;
        for variant in 0..most.variants {
            for (action, variants) in &mut corpus.actions {
                if variant > 0 && bytes > most.bytes {
                    return corpus;
                }
                let mut sequence = Vec::new();
                for review in expand.action(*action, Pick::of(variant)) {
                    let expected = match expand.digests {
                        Some(digests) => oracle::expected(review.kind, review.object.as_ref(), review.known(), digests),
                        None => Expected::Any,
                    };
                    let template = Template::new(&review, expected);
                    bytes += template.bytes().len();
                    sequence.push(u32::try_from(corpus.templates.len()).expect("a few thousand templates at most"));
                    corpus.templates.push(template);
                }
                variants.push(sequence);
            }
        }
        corpus
    }

    /// One template for everything that the mix does.
    pub(super) fn only(mix: &Mix, template: Template) -> Self {
        let wanted = mix.weights().into_iter().filter(|&(_, weight)| weight > 0);
        let actions = wanted.map(|(action, _)| (action, vec![vec![0]])).collect();
        Self { templates: vec![template], actions, truth: Arc::default() }
    }

    /// Reviews of somebody else, beside those of this corpus. Returns the number of the first of them.
    pub(super) fn add(&mut self, recorded: Vec<Recorded>) -> u32 {
        let first = u32::try_from(self.templates.len()).expect("a few thousand templates at most");
        self.templates.extend(recorded.into_iter().map(Template::recorded));
        first
    }

    /// No review at all, for recordings that bring every one.
    pub(super) fn empty() -> Self {
        Self { templates: Vec::new(), actions: Vec::new(), truth: Arc::default() }
    }

    /// What changes about the right answers.
    pub(super) fn truth(&self) -> &Arc<Truth> {
        &self.truth
    }

    pub(super) fn templates(&self) -> &[Template] {
        &self.templates
    }

    pub(super) fn template(&self, number: u32) -> &Template {
        &self.templates[number as usize]
    }

    /// The reviews of one variant of the action, drawn at random.
    pub(super) fn draw(&self, action: Action, rng: &mut ChaCha8Rng) -> &[u32] {
        let Some((_, variants)) = self.actions.iter().find(|(known, _)| *known == action) else { return &[] };
        &variants[rng.random_range(0..variants.len())]
    }

    /// Every action with its variants.
    pub(super) fn actions(&self) -> &[(Action, Vec<Vec<u32>>)] {
        &self.actions
    }
}

/// Which images a variant uses, so that every action is seen both admitted and denied where the images allow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pick {
    /// What may run.
    Existing,
    /// One that must not among them.
    OneMissing,
    Any,
}

impl Pick {
    pub(super) fn of(variant: usize) -> Self {
        match variant {
            0 => Self::Existing,
            1 => Self::OneMissing,
            _ => Self::Any,
        }
    }
}

#[cfg(test)]
pub(in crate::admission) mod tests;
