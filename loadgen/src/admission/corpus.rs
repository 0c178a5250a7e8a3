//! The corpus: a bounded set of user actions, each with the reviews that Kubernetes sends for it. Pure: no I/O.
//!
//! A denied action ends with its denial: if a Deployment is denied, no `ReplicaSet` follows. Controllers copy the
//! pinned images of an admitted object into their objects, so the right answer to a review of such an object needs no
//! patch.

mod actions;
mod expand;

use std::sync::{Arc, OnceLock};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

pub(super) use self::expand::Expand;
use super::answers::Answers;
use super::expected::Expected;
use super::image::Image;
use super::mix::{Action, Mix};
use super::oracle;
use super::own::{self, Own, Reviews};
use super::review::Template;
use super::truth::Truth;
use crate::Size;
use crate::arrivals::Recorded;

/// Number of variants of each action, enough that two neighbouring requests always look different.
pub(super) const VARIANTS: usize = 16;
/// The size of the corpus in bytes after which no further variants are made. Large reviews have fewer variants, but
/// each action has at least one, whatever its size.
const MOST_BYTES: usize = 32 << 20;
const MOST: Most = Most { variants: VARIANTS, bytes: MOST_BYTES };
/// Image names in the load for unknown webhooks. The host in these names is reserved for examples (RFC 2606), so no
/// registry answers.
const INVENTED: [&str; 6] = [
    "shop/cart:1.4.2",
    "shop/ledger:7",
    "shop/search:2026-01-05",
    "base/proxy:v3.1",
    "tools/migrate:0.9.0",
    "ml/model:latest",
];

/// All templates of reviews, and for each variant of an action the numbers of the templates that it sends, in order.
#[derive(Debug)]
pub(super) struct Corpus {
    templates: Vec<Template>,
    actions: Vec<(Action, Vec<Vec<u32>>)>,
    /// For a project's own objects, instead of actions: sequences of template numbers, with weights.
    own: Vec<(u32, Vec<Vec<u32>>)>,
    /// The webhook paths to which templates are sent; the first path is that of the load's target.
    paths: Vec<String>,
    truth: Arc<Truth>,
    /// The observer that gets every answer, if one is set.
    answers: Arc<OnceLock<Arc<dyn Answers>>>,
}

#[derive(Debug, Clone, Copy)]
struct Most {
    variants: usize,
    bytes: usize,
}

impl Corpus {
    /// Makes a corpus whose right answers follow from the images.
    pub(super) fn build(mix: &Mix, size: Option<Size>, seed: u64, images: &[Image]) -> Self {
        let digests = oracle::digests(images);
        Self::expanded(mix, MOST, Expand::new(seed, size, images, Some(&digests)))
    }

    /// Makes a corpus for unknown images: any valid answer is right, and the action always continues.
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

    /// Makes a corpus in which one template serves all actions of the mix.
    pub(super) fn only(mix: &Mix, template: Template) -> Self {
        let wanted = mix.weights().into_iter().filter(|&(_, weight)| weight > 0);
        let actions = wanted.map(|(action, _)| (action, vec![vec![0]])).collect();
        Self { templates: vec![template], actions, ..Self::empty() }
    }

    /// Makes a corpus with reviews of a project's own objects.
    pub(super) fn own(objects: &[Own], seed: u64) -> Self {
        let Reviews { templates, paths, sequences } = own::reviews(objects, seed);
        Self { templates, paths, own: sequences, ..Self::empty() }
    }

    /// A copy of the corpus with some templates replaced.
    pub(super) fn with(&self, changed: Vec<(u32, Template)>) -> Self {
        let mut templates: Vec<Template> = self.templates.iter().map(Template::again).collect();
        for (number, template) in changed {
            templates[number as usize] = template;
        }
        let (own, paths) = (self.own.clone(), self.paths.clone());
        let (truth, answers) = (Arc::clone(&self.truth), Arc::clone(&self.answers));
        Self { templates, actions: self.actions.clone(), own, paths, truth, answers }
    }

    pub(super) fn paths(&self) -> &[String] {
        &self.paths
    }

    /// The sequences of template numbers for a project's own objects.
    pub(super) fn sequences(&self) -> impl Iterator<Item = &[u32]> {
        self.own.iter().flat_map(|(_, sequences)| sequences.iter().map(Vec::as_slice))
    }

    /// A random sequence for a project's own objects; `None` if the corpus has actions instead.
    pub(super) fn draw_own(&self, rng: &mut ChaCha8Rng) -> Option<&[u32]> {
        let total: u32 = self.own.iter().map(|(weight, _)| weight).sum();
        if total == 0 {
            return None;
        }
        let mut at = rng.random_range(0..total);
        for (weight, sequences) in &self.own {
            if at < *weight {
                return sequences.get(rng.random_range(0..sequences.len())).map(Vec::as_slice);
            }
            at -= weight;
        }
        None
    }

    /// Adds reviews from a recording; returns the template number of the first one.
    pub(super) fn add(&mut self, recorded: Vec<Recorded>) -> u32 {
        let first = u32::try_from(self.templates.len()).expect("a few thousand templates at most");
        self.templates.extend(recorded.into_iter().map(Template::recorded));
        first
    }

    /// A corpus without reviews, for a recording that contains all reviews.
    pub(super) fn empty() -> Self {
        let (templates, actions, own) = (Vec::new(), Vec::new(), Vec::new());
        Self { templates, actions, own, paths: vec![String::new()], truth: Arc::default(), answers: Arc::default() }
    }

    /// The facts that change right answers during the load.
    pub(super) fn truth(&self) -> &Arc<Truth> {
        &self.truth
    }

    pub(super) fn answers(&self) -> &OnceLock<Arc<dyn Answers>> {
        &self.answers
    }

    pub(super) fn templates(&self) -> &[Template] {
        &self.templates
    }

    pub(super) fn template(&self, number: u32) -> &Template {
        &self.templates[number as usize]
    }

    /// The template numbers of a random variant of the action.
    pub(super) fn draw(&self, action: Action, rng: &mut ChaCha8Rng) -> &[u32] {
        let Some((_, variants)) = self.actions.iter().find(|(known, _)| *known == action) else { return &[] };
        &variants[rng.random_range(0..variants.len())]
    }

    pub(super) fn actions(&self) -> &[(Action, Vec<Vec<u32>>)] {
        &self.actions
    }
}

/// The choice of images for a variant. If the images allow that, every action has variants that are admitted and
/// variants that are denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pick {
    /// Only images that may run.
    Existing,
    /// Images of which exactly one must not run.
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
