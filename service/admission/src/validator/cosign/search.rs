//! The search for signatures of one image: which locations are read, in which order, and when the search stops.
//!
//! The search stops as soon as the requirement of the rule is met. Until the requirement is met, the search reads every
//! location, so that an image is never called unsigned because its signatures are in a later location. A location that
//! cannot be read makes the result uncertain, even if no other location has a signature.
//!
//! With the referrers API, a signed image costs at most four requests including its digest: HEAD, referrers, then a
//! bundle's manifest and blob, or the `.sig` manifest and its payload. For an unsigned image, the search costs three
//! requests.

use std::time::Instant;

use bytes::Bytes;
use futures_util::future::join_all;
use parking_lot::Mutex;
use service_verify::oci::{self, ENVELOPE_BYTES_MAX, Layer, Referrer};
use service_verify::{Evidence, Judged, Subject, Trial, UnixTime, Verdict};

use super::knowledge::Form;
use super::words::Searched;
use super::{Engine, words};
use crate::validator::{Answer, Question};
use service_core::share::{NoMemory, Payer, Reserved};
use service_registry::verdicts::{Class, Failure};
use service_registry::{Piece, Wanted};

/// Number of objects that are fetched at one time, after the first object was fetched alone. The limiter of requests to
/// the registry applies too.
const BATCH: usize = 4;
/// Maximum number of objects that are fetched for one image. No honest image has more objects with signatures. If a
/// valid signature comes only after this many objects, the image counts as invalid.
const PIECES_MAX: usize = 40;
/// Maximum number of bytes of all objects that are fetched for one image: four of the largest size, which arrive within
/// a third of a second at 100 MB/s.
const PIECES_BYTES_MAX: u64 = 4 * ENVELOPE_BYTES_MAX;

/// Number of bytes of a manifest that every image may keep without a reservation: enough for some keyless signatures.
const KEPT_FREE_BYTES: usize = 16 << 10;
/// The message about a layer whose blob is missing.
const ABSENT: &str = "the registry has no such blob";

/// Predicate type of a bundle that only signs an image.
const SIGNS_IMAGE: &str = "https://sigstore.dev/cosign/sign/v1";

pub(super) struct Search<'s> {
    engine: &'s Engine,
    question: &'s Question,
    subject: &'s Subject,
    trial: Trial<'s>,
    searched: Searched,
    pieces: usize,
    bytes: Mutex<u64>,
    /// The account under which this image's search waits for memory for signatures.
    payer: Payer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Location {
    Referrers,
    /// The referrers listed under a tag, for registries without the referrers API.
    Fallback,
    Signatures,
    Attestations,
}

/// Why an object is not a signature.
enum Missed {
    Broken(String),
    /// The registry did not deliver the object.
    Unread(String, Failure),
}

/// The bytes of a layer, with the memory reserved for them; the bytes are `None` if the registry lacks the blob.
struct Fetched {
    bytes: Option<Bytes>,
    _memory: Reserved,
}

enum Found {
    /// The object may contain a signature, which must be checked.
    Judge,
    /// The registry does not support the request.
    Unknown,
}

impl<'s> Search<'s> {
    pub fn new(engine: &'s Engine, question: &'s Question, subject: &'s Subject, now: UnixTime) -> Self {
        Self {
            engine,
            question,
            subject,
            trial: Trial::new(subject, &engine.requirement, &engine.trust, now),
            searched: Searched::default(),
            pieces: 0,
            bytes: Mutex::default(),
            payer: Payer::default(),
        }
    }

    /// Searches until the requirement of the rule is met or all locations were read.
    pub async fn run(mut self) -> Answer {
        let known = self.engine.knowledge.of(&self.question.host);
        let with_api = known.may_have_api(Instant::now());
        let mut places = self.places(with_api, known.last);
        places.reverse();
        while let Some(place) = places.pop() {
            match self.look(place).await {
                Ok(Some(verdict)) => {
                    let form = if matches!(place, Location::Referrers | Location::Fallback) {
                        Form::Bundles
                    } else {
                        Form::Tags
                    };
                    self.engine.knowledge.found(&self.question.host, form);
                    return Ok(words::approval(&verdict));
                }
                Ok(None) | Err(Found::Judge) => {}
                Err(Found::Unknown) => {
                    self.engine.knowledge.has_no_api(&self.question.host, Instant::now());
                    // Most such registries hold signatures at tags; the index at a tag is requested last.
                    places.insert(0, Location::Fallback);
                }
            }
        }
        let verdict = self.verdict();
        if verdict.is_verified() {
            return Ok(words::approval(&verdict));
        }
        let demand = (&self.engine.requirement, &*self.engine.trust);
        Err(words::refusal(demand, self.searched, &verdict))
    }

    /// The locations of signatures, in the order that needs the fewest requests for the usual format.
    fn places(&self, with_api: bool, last: Form) -> Vec<Location> {
        let requirement = &self.engine.requirement;
        let tags = [
            requirement.image_signature.then_some(Location::Signatures),
            (!requirement.attestations.is_empty()).then_some(Location::Attestations),
        ];
        let tags = tags.into_iter().flatten();
        match (with_api, last) {
            (true, _) => [Location::Referrers].into_iter().chain(tags).collect(),
            (false, Form::Bundles) => [Location::Fallback].into_iter().chain(tags).collect(),
            (false, Form::Tags) => tags.chain([Location::Fallback]).collect(),
        }
    }

    /// Reads one location of signatures; returns the verdict if the requirement is met.
    async fn look(&mut self, place: Location) -> Result<Option<Verdict>, Found> {
        let image = self.subject.digest;
        let (name, tag) = match place {
            Location::Referrers => ("referrers", image.to_string()),
            Location::Fallback => ("referrers at tag", oci::referrers_tag(&image)),
            Location::Signatures => ("signatures at tag", oci::signature_tag(&image)),
            Location::Attestations => ("attestations at tag", oci::attestation_tag(&image)),
        };
        let wanted = if place == Location::Referrers { Wanted::Referrers(&tag) } else { Wanted::Manifest(&tag) };
        let said = if place == Location::Referrers { name.to_owned() } else { format!("{name} {tag}") };
        let bytes = match self.piece(wanted).await {
            Ok(Piece::Found(bytes)) => bytes,
            Ok(Piece::Absent) => {
                self.searched.looked.push(format!("{said} (none)"));
                return Ok(None);
            }
            Ok(Piece::Unknown) => return Err(Found::Unknown),
            Err(failure) => {
                self.missed(&said, failure);
                return Err(Found::Judge);
            }
        };
        if matches!(place, Location::Referrers | Location::Fallback) {
            match oci::referrers(&bytes) {
                Ok(mut referrers) => {
                    self.searched.looked.push(format!("{said} ({} bundles)", referrers.len()));
                    // The index is not trusted; it only decides the order of fetching.
                    let likely = |referrer: &Referrer| {
                        let signs = referrer.predicate_type.as_deref() == Some(SIGNS_IMAGE);
                        signs == self.engine.requirement.image_signature
                    };
                    referrers.sort_by_key(|referrer| !likely(referrer));
                    Ok(self.bundles(referrers).await)
                }
                Err(error) => Ok(self.is_broken(&said, &error)),
            }
        } else {
            let layers = match place {
                Location::Attestations => oci::attestation_layers(&bytes),
                _ => oci::signature_layers(&bytes),
            };
            match layers {
                Ok(oci::Layers { layers, bytes, unusable }) => {
                    self.searched.looked.push(format!("{said} ({} layers)", layers.len() + unusable.len()));
                    for piece in &unusable {
                        let judged = self.judgement(piece);
                        self.trial.take(judged);
                    }
                    match self.kept(bytes).await {
                        Ok(_kept) => Ok(self.layers(layers).await),
                        Err(failure) => {
                            self.missed(&said, failure);
                            Err(Found::Judge)
                        }
                    }
                }
                Err(error) => Ok(self.is_broken(&said, &error)),
            }
        }
    }

    /// Fetches the first bundle alone, because one bundle is nearly always enough; then fetches further bundles in
    /// batches.
    async fn bundles(&mut self, referrers: Vec<Referrer>) -> Option<Verdict> {
        let mut rest = referrers.as_slice();
        let mut size = 1;
        while !rest.is_empty() {
            let (batch, more) = rest.split_at(size.min(rest.len()));
            (rest, size) = (more, BATCH);
            if !self.may_fetch(2 * batch.len()) {
                return None;
            }
            let this = &*self;
            // Each is judged and dropped on arrival: if it were kept until the others arrive, it would hold the memory
            // that they wait for.
            let found = join_all(batch.iter().map(|referrer| this.bundle(referrer))).await;
            if let Some(verdict) = self.taken(found) {
                return Some(verdict);
            }
        }
        None
    }

    /// Checks the bundle of a referrer; the result is empty if the referrer is no bundle.
    async fn bundle(&self, referrer: &Referrer) -> Vec<Result<Judged, Missed>> {
        match self.bundle_at(referrer).await {
            Ok(judged) => judged.map(Ok).into_iter().collect(),
            Err(missed) => vec![Err(missed)],
        }
    }

    async fn bundle_at(&self, referrer: &Referrer) -> Result<Option<Judged>, Missed> {
        let digest = referrer.descriptor.digest.to_string();
        let what = format!("referrer {digest}");
        let unread = |failure| Missed::Unread(what.clone(), failure);
        let Piece::Found(manifest) = self.piece(Wanted::Manifest(&digest)).await.map_err(unread)? else {
            return Err(Missed::Broken(format!("{what} is not there")));
        };
        let layer = oci::bundle_layer(referrer, &manifest);
        drop(manifest);
        let Some(layer) = layer.map_err(|error| Missed::Broken(format!("{what}: {error}")))? else { return Ok(None) };
        let fetched = self.blob(&layer).await.map_err(unread)?;
        Ok(Some(self.judgement(&match fetched.bytes {
            Some(bytes) => layer.evidence(bytes.into()),
            None => layer.missing(ABSENT),
        })))
    }

    /// Checks the layers of a manifest at a tag. Several signatures of one payload share the payload's blob.
    async fn layers(&mut self, layers: Vec<Layer>) -> Option<Verdict> {
        let mut groups: Vec<Vec<Layer>> = Vec::new();
        for layer in layers {
            let same = |group: &&mut Vec<Layer>| group[0].descriptor.digest == layer.descriptor.digest;
            match groups.iter_mut().find(same) {
                Some(group) => group.push(layer),
                None => groups.push(vec![layer]),
            }
        }
        let mut size = 1;
        while !groups.is_empty() {
            let batch: Vec<_> = groups.drain(..size.min(groups.len())).collect();
            size = BATCH;
            let asked = batch.iter().filter(|group| group.iter().all(|layer| layer.data.is_none())).count();
            if !self.may_fetch(asked) {
                return None;
            }
            let this = &*self;
            let found = join_all(batch.into_iter().map(|group| this.layer(group))).await;
            if let Some(verdict) = self.taken(found) {
                return Some(verdict);
            }
        }
        None
    }

    /// Checks layers with the same payload.
    async fn layer(&self, group: Vec<Layer>) -> Vec<Result<Judged, Missed>> {
        let Some(any) = group.iter().find(|layer| layer.data.is_some()).or(group.first()) else { return Vec::new() };
        let fetched = match self.blob(any).await {
            Ok(fetched) => fetched,
            Err(failure) => return vec![Err(Missed::Unread(format!("layer {}", any.descriptor.digest), failure))],
        };
        // Each layer takes the bytes over from the one before: one copy per layer would exceed the reserved memory.
        let mut bytes = fetched.bytes.map(Vec::from).ok_or_else(|| ABSENT.to_owned());
        let mut judged = Vec::with_capacity(group.len());
        for layer in group {
            let piece = match bytes {
                Ok(bytes) => layer.evidence(bytes),
                Err(cause) => layer.missing(&cause),
            };
            judged.push(Ok(self.judgement(&piece)));
            bytes = piece.into_bytes().map_err(|rejected| rejected.cause);
        }
        judged
    }

    /// Fetches the bytes of a layer after memory for them was reserved.
    async fn blob(&self, layer: &Layer) -> Result<Fetched, Failure> {
        let size = layer.descriptor.size.min(ENVELOPE_BYTES_MAX);
        self.may_read(size)?;
        let bytes_max = usize::try_from(size).unwrap_or(usize::MAX);
        let memory = self.engine.share.piece(&self.payer, bytes_max, self.question.deadline).await;
        let memory = memory.map_err(no_memory)?;
        if let Some(data) = &layer.data {
            return Ok(Fetched { bytes: Some(data.clone().into()), _memory: memory });
        }
        let digest = layer.descriptor.digest.to_string();
        let bytes = match self.piece(Wanted::Blob { digest: &digest, bytes_max }).await? {
            Piece::Found(bytes) => Some(bytes),
            Piece::Absent | Piece::Unknown => None,
        };
        Ok(Fetched { bytes, _memory: memory })
    }

    /// Reserves memory for the bytes of a manifest that are kept. A small number of bytes needs no reservation.
    async fn kept(&self, bytes: usize) -> Result<Option<Reserved>, Failure> {
        if bytes <= KEPT_FREE_BYTES {
            return Ok(None);
        }
        self.engine.share.kept(&self.payer, bytes, self.question.deadline).await.map(Some).map_err(no_memory)
    }

    async fn piece(&self, wanted: Wanted<'_>) -> Result<Piece, Failure> {
        self.engine.pieces.piece(self.question, wanted).await
    }

    fn may_fetch(&mut self, pieces: usize) -> bool {
        self.pieces += pieces;
        let may = self.pieces <= PIECES_MAX;
        if !may {
            let what = format!("there are more than {PIECES_MAX} pieces of signatures; the others were not looked at");
            self.doubts(Failure::new(Class::TooMuchEvidence, what));
        }
        may
    }

    /// Counts `size` bytes against the limit of bytes to fetch for the image. After a large object was refused, a small
    /// object may still be within the limit.
    fn may_read(&self, size: u64) -> Result<(), Failure> {
        let mut read = self.bytes.lock();
        let all = read.saturating_add(size);
        if all > PIECES_BYTES_MAX {
            let most = PIECES_BYTES_MAX >> 20;
            let what = format!("its signatures have more than {most} MiB; the others were not looked at");
            return Err(Failure::new(Class::TooMuchEvidence, what));
        }
        *read = all;
        Ok(())
    }

    /// Checks the signature in an object; the object may be dropped afterwards.
    fn judgement(&self, evidence: &Evidence) -> Judged {
        self.trial.judgement(evidence)
    }

    /// Adds a batch of checked objects to the result of the search; returns the verdict if the requirement is met.
    fn taken(&mut self, found: Vec<Vec<Result<Judged, Missed>>>) -> Option<Verdict> {
        for outcome in found.into_iter().flatten() {
            match outcome {
                Ok(judged) => self.trial.take(judged),
                Err(Missed::Broken(what)) => self.searched.broken.push(what),
                Err(Missed::Unread(what, failure)) => self.missed(&what, failure),
            }
        }
        Some(self.verdict()).filter(Verdict::is_verified)
    }

    fn verdict(&self) -> Verdict {
        self.trial.verdict()
    }

    fn is_broken(&mut self, said: &str, error: &oci::OciError) -> Option<Verdict> {
        self.searched.looked.push(format!("{said} (unreadable)"));
        self.searched.broken.push(format!("{said}: {error}"));
        None
    }

    /// Records an object that could not be read. If the failure is definite, the object itself is invalid; any other
    /// failure makes the result uncertain.
    fn missed(&mut self, said: &str, failure: Failure) {
        if failure.class == Class::Invalid {
            self.searched.broken.push(format!("{said}: {}", failure.cause));
            return;
        }
        self.searched.looked.push(format!("{said} ({})", failure.class));
        self.doubts(failure);
    }

    /// Stores the first failure that makes the result uncertain. A failure by a limit of this program replaces the
    /// stored failure of an unavailable registry, because a rule may admit images of unavailable registries.
    fn doubts(&mut self, failure: Failure) {
        let doubt = &mut self.searched.doubt;
        if doubt.as_ref().is_none_or(|known| failure.class.is_own_limit() && !known.class.is_own_limit()) {
            *doubt = Some(failure);
        }
    }
}

fn no_memory(error: NoMemory) -> Failure {
    let class = match error {
        NoMemory::TooLarge { .. } => Class::TooMuchEvidence,
        NoMemory::Late => Class::Busy,
    };
    Failure::new(class, format!("{error} (admission.maxHeldBytes)"))
}

#[cfg(test)]
mod tests;
