//! Fetches whole manifests and blobs for the injector, which copies images.
//!
//! A blob is fetched in parts of limited size. If a connection breaks, only the part that was being fetched is
//! requested again.

use bytes::Bytes;
use http::{Method, Response, StatusCode, header};
use tokio::time::Instant;

use super::exchange::PART_BYTES_MAX;
use super::{ATTEMPTS, Question, Registry};
use crate::Keyring;
use crate::manifest;
use crate::verdicts::{Class, Failure};
use crate::wanted::Wanted;

#[derive(Debug)]
pub struct BlobPart {
    /// The bytes of the blob from the requested offset on.
    pub bytes: Bytes,
    /// Size of the whole blob in bytes.
    pub total: u64,
}

impl Registry {
    /// Fetches a manifest by tag or digest; returns its media type and bytes. The bytes are checked to be a manifest;
    /// the caller must compare the digest.
    pub async fn manifest_bytes(
        &self,
        host: &str,
        repository: &str,
        reference: &str,
        deadline: Instant,
    ) -> Result<(String, Bytes), Failure> {
        let response = self.pulled(host, repository, Wanted::Manifest(reference), deadline).await?;
        let media_type = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = media_type.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_owned();
        manifest::check(Some(&media_type), response.body())
            .map_err(|error| Failure::new(Class::Unavailable, format!("{host} answered with {error}")))?;
        Ok((media_type, response.into_body()))
    }

    pub async fn blob_part(
        &self,
        host: &str,
        repository: &str,
        digest: &str,
        from: u64,
        deadline: Instant,
    ) -> Result<BlobPart, Failure> {
        let response = self.pulled(host, repository, Wanted::Part { digest, from }, deadline).await?;
        let range = response.headers().get(header::CONTENT_RANGE).and_then(|value| value.to_str().ok());
        let total = range.and_then(|range| total(range, from));
        let bytes = response.body().len() as u64;
        match (response.status(), total) {
            (StatusCode::PARTIAL_CONTENT, Some(total)) if bytes > 0 && from.saturating_add(bytes) <= total => {
                Ok(BlobPart { bytes: response.into_body(), total })
            }
            // A registry without ranges sends the whole blob; a large blob exceeds its limit before this point.
            (StatusCode::OK, _) if from == 0 => Ok(BlobPart { bytes: response.into_body(), total: bytes }),
            _ => {
                let what = format!("{host} does not send a blob of more than {PART_BYTES_MAX} bytes in parts");
                Err(Failure::new(Class::Misconfigured, what))
            }
        }
    }

    /// Asks the mirrors and then the registry, until one of them has the object. If none of them has the object, the
    /// last answer counts.
    async fn pulled(
        &self,
        host: &str,
        repository: &str,
        wanted: Wanted<'_>,
        deadline: Instant,
    ) -> Result<Response<Bytes>, Failure> {
        let keyring = Keyring::default();
        let mut stops = self.hosts.route(host, repository)?.into_iter();
        let mut failed = Failure::new(Class::Misconfigured, "there is no place to ask");
        while let Some(stop) = stops.next() {
            let left = deadline.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(stops.len() + 1).unwrap_or(1);
            let question = Question {
                upstream: &self.hosts.upstream_at(stop.host),
                repository: &stop.repository,
                wanted,
                keyring: &keyring,
                deadline: Instant::now() + share,
                attempts: if stops.len() == 0 { ATTEMPTS } else { 1 },
            };
            match self.request(&question, &Method::GET).await {
                Ok(response) if response.status().is_success() => return Ok(response),
                Ok(response) => failed = question.refusal(response.status()),
                Err(failure) => failed = failure,
            }
        }
        Err(failed)
    }
}

/// The total size that a `Content-Range` states, if the range starts at `from` (RFC 9110, section 14.4).
fn total(range: &str, from: u64) -> Option<u64> {
    let (part, total) = range.strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = part.split_once('-')?;
    if first.parse() == Ok(from) { total.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn a_range_says_how_large_the_whole_is() {
        assert_eq!(total("bytes 0-4/10", 0), Some(10));
        assert_eq!(total("bytes 5-9/10", 5), Some(10));
        assert_eq!(total("bytes 0-4/10", 5), None, "another piece than was asked for");
        assert_eq!(total("bytes 0-4/*", 0), None);
        assert_eq!(total("0-4/10", 0), None);
    }
}
