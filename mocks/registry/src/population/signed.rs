//! Signatures of seeded images, as cosign 2 leaves them at tags and cosign 3 as referrers; and which image has which.
//!
//! Owns who signed, and what is wrong with it. Which image is signed how follows from its place alone, so that a plan can be made
//! without keys; the signatures themselves are as fresh as the keys are.

mod attach;

use std::time::{SystemTime, UNIX_EPOCH};

use mock_pki::Signer;
use mock_sigstore::{CertificateRecipe, Identity, Sigstore};

use super::Error;
use crate::digest::Digest;
use crate::store::Store;
use attach::{By, Holder, at_tag, in_bundle};

/// Of so many images that exist the last is one that must not run, as long as there are good ones enough for workloads of three.
const BAD_EVERY: usize = 3;
/// The folder of images that two must have signed.
const TWO: &str = "two";
/// The folder of images that somebody must have signed whom an authority vouches for.
const KEYLESS: &str = "keyless";
/// The folder of all others.
const SEEDED: &str = "seeded";
/// Whose signatures without a key count.
pub const HOLDER: Identity<'static> = Identity { issuer: "https://issuer.example.com", subject: "release@example.com" };
/// Somebody else whom the same issuer knows.
const MALLORY: Identity<'static> = Identity { issuer: HOLDER.issuer, subject: "mallory@example.com" };

/// How an image is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signing {
    /// By [`Keys::release`], in this form.
    Release(Form),
    /// By [`Keys::second`] alone.
    Second(Form),
    /// By both of them, in the folder `two`.
    Both,
    /// By [`Keys::successor`], which takes the place of `second` when keys change.
    Successor(Form),
    /// Not at all.
    Unsigned,
    /// By a key that nobody trusts.
    Stranger(Form),
    /// What is attached is a signature by `release` of another image.
    OtherDigest(Form),
    /// The tag was signed and moved afterwards: what it points to now is not signed.
    Moved,
    /// Twice by `release`, in the folder `two`.
    SameTwice,
    /// An index that is not signed; its first image is, by `release`.
    Member,
    /// Without a key, by [`HOLDER`], in the folder `keyless`, as all that follow.
    Keyless(Form),
    /// By somebody else whom the same authority vouches for.
    OtherHolder(Form),
    /// By [`HOLDER`], when the certificate was over.
    Expired(Form),
    /// By [`HOLDER`], as an authority says that nobody trusts.
    StrangeAuthority(Form),
    /// By [`HOLDER`], and no log has it.
    NotLogged(Form),
    /// By nobody, with twenty bundles of 8 MiB.
    Heavy,
}

/// Where a signature lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// At the tag `sha256-….sig` (cosign 1 and 2).
    Tag,
    /// In a bundle that refers to the image (cosign 3).
    Bundle,
}

/// Good images, in turn.
const GOOD: [Signing; 8] = [
    Signing::Release(Form::Tag),
    Signing::Release(Form::Bundle),
    Signing::Keyless(Form::Tag),
    Signing::Second(Form::Tag),
    Signing::Release(Form::Bundle),
    Signing::Both,
    Signing::Keyless(Form::Bundle),
    Signing::Second(Form::Bundle),
];
/// Images that must not run, in turn.
const BAD: [Signing; 14] = [
    Signing::Unsigned,
    Signing::Stranger(Form::Tag),
    Signing::OtherDigest(Form::Tag),
    Signing::SameTwice,
    Signing::OtherHolder(Form::Bundle),
    Signing::Stranger(Form::Bundle),
    Signing::OtherDigest(Form::Bundle),
    Signing::Moved,
    Signing::Expired(Form::Tag),
    Signing::Member,
    Signing::Successor(Form::Tag),
    Signing::StrangeAuthority(Form::Bundle),
    Signing::Successor(Form::Bundle),
    Signing::NotLogged(Form::Tag),
];

/// The keys of a population. Made afresh for each run, as certificates are.
#[derive(Debug)]
pub struct Keys {
    /// Signs most images.
    pub release: Signer,
    /// Signs some.
    pub second: Signer,
    /// What `second` is replaced by.
    pub successor: Signer,
    stranger: Signer,
    /// Vouches for who signs without a key. Boxed, because it is large and a run's futures hold the keys.
    sigstore: Box<Sigstore>,
}

impl Keys {
    /// Four fresh keys and a fresh sigstore.
    pub fn generate() -> Result<Self, Error> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs().cast_signed());
        Ok(Self {
            release: Signer::generate("release")?,
            second: Signer::generate("second")?,
            successor: Signer::generate("successor")?,
            stranger: Signer::generate("stranger")?,
            sigstore: Box::new(Sigstore::new(now)?),
        })
    }

    /// The file `trusted_root.json` of the sigstore that vouches for [`HOLDER`].
    pub fn trusted_root(&self) -> Result<String, Error> {
        Ok(format!("{:#}\n", self.sigstore.trusted_root()?))
    }

    /// `identity` as this sigstore certifies it.
    fn certificate(&self, identity: Identity<'_>) -> Result<CertificateRecipe, Error> {
        Ok(CertificateRecipe::new(identity, self.sigstore.now())?)
    }
}

impl Signing {
    /// That of the `n`-th image which exists.
    pub(super) fn of(n: usize) -> Self {
        let round = n / BAD_EVERY;
        match n % BAD_EVERY {
            at if at == BAD_EVERY - 1 => BAD[round % BAD.len()],
            at => GOOD[(round * (BAD_EVERY - 1) + at) % GOOD.len()],
        }
    }

    /// The folder of images that are signed so: what is demanded of an image goes by that.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::Both | Self::SameTwice => TWO,
            Self::Keyless(_)
            | Self::OtherHolder(_)
            | Self::Expired(_)
            | Self::StrangeAuthority(_)
            | Self::NotLogged(_) => KEYLESS,
            Self::Heavy => super::heavy::FOLDER,
            _ => SEEDED,
        }
    }
}

/// An image that is to be signed.
pub(super) struct Target<'a> {
    pub(super) name: &'a str,
    /// `host:port/name`
    pub(super) reference: &'a str,
    pub(super) digest: &'a Digest,
    /// Another image of the repository: what its tag pointed to before, or a member of the index.
    pub(super) other: &'a Digest,
}

/// Stores what belongs to an image that is signed so.
pub(super) fn sign(store: &mut Store, target: &Target<'_>, signing: Signing, keys: &Keys) -> Result<(), Error> {
    let mut in_form = |form, about: &Digest, by: By<'_>| match form {
        Form::Tag => at_tag(store, target, about, &[by]),
        Form::Bundle => in_bundle(store, target, about, &by),
    };
    let holder = |certificate| By::Holder(Holder { sigstore: &keys.sigstore, certificate, is_logged: true });
    let certificate = |identity| keys.certificate(identity);
    let (release, second) = (&keys.release, &keys.second);
    match signing {
        Signing::Release(form) => in_form(form, target.digest, By::Key(release)),
        Signing::Second(form) => in_form(form, target.digest, By::Key(second)),
        Signing::Successor(form) => in_form(form, target.digest, By::Key(&keys.successor)),
        Signing::Stranger(form) => in_form(form, target.digest, By::Key(&keys.stranger)),
        Signing::OtherDigest(form) => in_form(form, target.other, By::Key(release)),
        Signing::Both => at_tag(store, target, target.digest, &[By::Key(release), By::Key(second)]),
        Signing::SameTwice => at_tag(store, target, target.digest, &[By::Key(release), By::Key(release)]),
        Signing::Moved | Signing::Member => {
            let other = Target { digest: target.other, ..*target };
            at_tag(store, &other, other.digest, &[By::Key(release)])
        }
        Signing::Keyless(form) => in_form(form, target.digest, holder(certificate(HOLDER)?)),
        Signing::OtherHolder(form) => in_form(form, target.digest, holder(certificate(MALLORY)?)),
        Signing::Expired(form) => {
            let not_after = keys.sigstore.now() - 1;
            in_form(form, target.digest, holder(CertificateRecipe { not_after, ..certificate(HOLDER)? }))
        }
        Signing::StrangeAuthority(form) => {
            in_form(form, target.digest, holder(CertificateRecipe { by_stranger: true, ..certificate(HOLDER)? }))
        }
        Signing::Heavy => super::heavy::attach(store, target.name, target.digest),
        Signing::NotLogged(form) => {
            let holder = Holder { sigstore: &keys.sigstore, certificate: certificate(HOLDER)?, is_logged: false };
            in_form(form, target.digest, By::Holder(holder))
        }
        Signing::Unsigned => Ok(()),
    }
}
