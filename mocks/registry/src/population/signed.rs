//! The signatures of seeded images, stored at tags (cosign 2) and as referrers (cosign 3).
//!
//! Owns the choice of signers and of signing errors. The number of an image alone decides how the image is signed, so
//! computing the list of images needs no keys. Keys and signatures are made anew for each run.

mod attach;

use std::time::{SystemTime, UNIX_EPOCH};

use mock_pki::Signer;
use mock_sigstore::{CertificateRecipe, Identity, Sigstore};

use super::Error;
use crate::digest::Digest;
use crate::store::Store;
use attach::{By, Holder, at_tag, in_bundle};

/// Of every three existing images, a verifier must accept the first two and refuse the third.
const BAD_EVERY: usize = 3;
/// The first segment of the repository names of images that need two signatures.
const TWO: &str = "two";
/// The first segment of the repository names of images that need a signature with a certificate (keyless).
const KEYLESS: &str = "keyless";
/// The first segment of the repository names of all other images.
const SEEDED: &str = "seeded";
/// The identity whose keyless signatures are trusted.
pub const HOLDER: Identity<'static> = Identity { issuer: "https://issuer.example.com", subject: "release@example.com" };
/// Another identity of the same issuer.
const MALLORY: Identity<'static> = Identity { issuer: HOLDER.issuer, subject: "mallory@example.com" };

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signing {
    /// Signed by [`Keys::release`]; the signature is attached as `Form` says.
    Release(Form),
    /// Signed by [`Keys::second`] alone.
    Second(Form),
    /// Signed by `release` and by `second`, in a repository whose name begins with `two`.
    Both,
    /// Signed by [`Keys::successor`], which replaces `second` when keys change.
    Successor(Form),
    /// Not signed at all.
    Unsigned,
    /// Signed by an untrusted key.
    Stranger(Form),
    /// The attached signature, by `release`, is made for another image.
    OtherDigest(Form),
    /// The tag was signed and then moved: its present image is not signed.
    Moved,
    /// Signed twice by `release`, in a repository whose name begins with `two`, which needs two different signers.
    SameTwice,
    /// An index without a signature, whose first image is signed by `release`.
    Member,
    /// Signed with a certificate of [`HOLDER`]. The repository names of this and the next four variants begin with
    /// `keyless`.
    Keyless(Form),
    /// Signed by another identity, with a certificate of the same authority.
    OtherHolder(Form),
    /// Signed by [`HOLDER`] after the certificate had expired.
    Expired(Form),
    /// Signed by [`HOLDER`], with a certificate of an untrusted authority.
    StrangeAuthority(Form),
    /// Signed by [`HOLDER`], but no transparency log contains the signature.
    NotLogged(Form),
    /// Not signed, with twenty bundles of 8 MiB that sign nothing.
    Heavy,
}

/// How a signature is attached to its image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// As a layer of the image at the tag `sha256-….sig` (cosign 1 and 2).
    Tag,
    /// As a bundle that refers to the image (cosign 3).
    Bundle,
}

/// The signings of images that must be accepted; each such image takes the next signing of the list.
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
/// The signings of images that must be refused; each such image takes the next signing of the list.
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

/// The keys that sign a population. Each run makes new keys, as it makes new certificates.
#[derive(Debug)]
pub struct Keys {
    /// The key that signs most images.
    pub release: Signer,
    /// The key of the second signer, which signs some images.
    pub second: Signer,
    /// The key that replaces `second` during a run.
    pub successor: Signer,
    stranger: Signer,
    /// The certificate authority of keyless signers. Boxed, because the sigstore is large and a run's futures contain
    /// the keys.
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

    /// The file `trusted_root.json` of the sigstore that certifies [`HOLDER`].
    pub fn trusted_root(&self) -> Result<String, Error> {
        Ok(format!("{:#}\n", self.sigstore.trusted_root()?))
    }

    fn certificate(&self, identity: Identity<'_>) -> Result<CertificateRecipe, Error> {
        Ok(CertificateRecipe::new(identity, self.sigstore.now())?)
    }
}

impl Signing {
    /// The signing of the `n`-th existing image.
    pub(super) fn of(n: usize) -> Self {
        let round = n / BAD_EVERY;
        match n % BAD_EVERY {
            at if at == BAD_EVERY - 1 => BAD[round % BAD.len()],
            at => GOOD[(round * (BAD_EVERY - 1) + at) % GOOD.len()],
        }
    }

    /// The first segment of the repository name of images that are signed like this: policies match images by this
    /// segment.
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

pub(super) struct Target<'a> {
    pub(super) name: &'a str,
    /// `host:port/name`
    pub(super) reference: &'a str,
    pub(super) digest: &'a Digest,
    /// The digest of another image of the repository: the tag's earlier image, or a member of the index.
    pub(super) other: &'a Digest,
}

/// Stores the signatures of an image.
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
