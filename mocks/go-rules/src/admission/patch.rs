//! Reads the patch of an answer.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use json_patch::Patch;
use serde_json::Value;

use super::{Refusal, ReviewRequest, Version};

/// Base64 like Go's `base64.StdEncoding`: padding is required, and the unused bits of the last character may have any
/// value.
pub(crate) const BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Removes line breaks, which Go ignores in base64.
pub(crate) fn without_breaks(text: &str) -> Cow<'_, str> {
    if text.contains(['\r', '\n']) { text.replace(['\r', '\n'], "").into() } else { text.into() }
}

/// Reads the changes in an answer; `None` for a denial and for a patch without operations.
pub(crate) fn read(
    patch: Option<&str>,
    kind: Option<&str>,
    allowed: bool,
    asked: ReviewRequest<'_>,
) -> Result<Option<Patch>, Refusal> {
    // An answer whose patch is not base64 cannot be decoded, whatever its other fields are.
    let raw = patch.map(|text| BASE64.decode(without_breaks(text).as_bytes())).transpose();
    let raw = raw.map_err(|error| Refusal::NoPatch(format!("response.patch is not base64: {error}")))?;
    let raw = raw.filter(|raw| !raw.is_empty());
    let kind = match (asked.version, &raw, kind) {
        // The older form needs no patch type, and a patch of a validating webhook is ignored.
        (Version::V1Beta1, _, _) if !asked.mutating => return Ok(None),
        (Version::V1Beta1, _, _) => "JSONPatch",
        (Version::V1, Some(_), _) if !asked.mutating => return Err(Refusal::Validating("patch")),
        (Version::V1, None, Some(_)) if !asked.mutating => return Err(Refusal::Validating("patchType")),
        (Version::V1, Some(_), None) => return Err(Refusal::Half { has: "patch", lacks: "patchType" }),
        (Version::V1, None, Some(_)) => return Err(Refusal::Half { has: "patchType", lacks: "patch" }),
        (Version::V1, Some(_), Some("")) => return Err(Refusal::PatchType(String::new())),
        (Version::V1, None, None) => return Ok(None),
        (Version::V1, Some(_), Some(kind)) => kind,
    };
    let Some(raw) = raw.filter(|_| allowed) else { return Ok(None) };
    match serde_json::from_slice::<Patch>(&raw) {
        Ok(patch) if patch.0.is_empty() => Ok(None),
        Ok(_) if kind != "JSONPatch" => Err(Refusal::Patch(kind.to_owned())),
        Ok(patch) => Ok(Some(patch)),
        // For Go null is a list without operations.
        Err(_) if serde_json::from_slice::<Value>(&raw).is_ok_and(|value| value.is_null()) => Ok(None),
        Err(error) => Err(Refusal::NoPatch(error.to_string())),
    }
}
