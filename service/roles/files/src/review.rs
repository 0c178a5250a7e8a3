//! Makes a review of an object in a file, in the API server's format, and parses the answer.

use base64::Engine as _;
use serde::Deserialize;
use serde_json::{Value, json};
use service_core::role::Review;
use tokio::time::Instant;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub refused: Option<String>,
    pub warnings: Vec<String>,
    /// The images after the review, by JSON pointer.
    pub images: Vec<(String, String)>,
    /// The facts about images that the review states; each image occurs once.
    pub known: Vec<Known>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Known {
    pub image: String,
    #[serde(default)]
    pub digest: String,
    #[serde(default)]
    pub signers: Vec<String>,
    /// The locations where signatures were found, and the format of the signatures.
    #[serde(default)]
    pub evidence: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
pub struct ReviewedObject<'a> {
    /// The API group and version, `group/version`, or the version alone.
    pub api_version: &'a str,
    pub kind: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    pub json: &'a str,
}

pub async fn ask(review: &dyn Review, asked: ReviewedObject<'_>, deadline: Instant) -> Result<Answer, String> {
    let (group, version) = asked.api_version.split_once('/').unwrap_or(("", asked.api_version));
    let kind = json!({"group": group, "version": version, "kind": asked.kind});
    let resource = json!({"group": group, "version": version, "resource": plural(asked.kind)});
    let (namespace, name) = (Value::from(asked.namespace), Value::from(asked.name));
    let body = format!(
        r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{{"uid":"file","kind":{kind},"resource":{resource},"name":{name},"namespace":{namespace},"operation":"CREATE","userInfo":{{}},"object":{},"oldObject":null,"dryRun":true}}}}"#,
        asked.json
    );
    let answer = review.review(body.into(), deadline).await?;
    read(&answer)
}

/// The resource name of a kind, made by the rule of built-in kinds without a lookup.
fn plural(kind: &str) -> String {
    let kind = kind.to_ascii_lowercase();
    if kind.ends_with('s') { format!("{kind}es") } else { format!("{kind}s") }
}

fn read(answer: &[u8]) -> Result<Answer, String> {
    let unreadable = |what: &str| format!("the answer of the review cannot be read: {what}");
    let answer: Value = serde_json::from_slice(answer).map_err(|error| unreadable(&error.to_string()))?;
    let response = &answer["response"];
    let mut found = Answer::default();
    if response["allowed"] != true {
        found.refused = Some(response["status"]["message"].as_str().unwrap_or("it was refused").to_owned());
    }
    let warnings = response["warnings"].as_array().into_iter().flatten();
    found.warnings = warnings.filter_map(|text| text.as_str().map(str::to_owned)).collect();
    if let Some(patch) = response["patch"].as_str() {
        let patch = base64::engine::general_purpose::STANDARD.decode(patch).map_err(|_| unreadable("its patch"))?;
        let patch: Vec<Value> = serde_json::from_slice(&patch).map_err(|_| unreadable("its patch"))?;
        let replaced = patch.iter().filter(|operation| operation["op"] == "replace");
        let replaced =
            replaced.filter_map(|one| Some((one["path"].as_str()?.to_owned(), one["value"].as_str()?.to_owned())));
        found.images = replaced.collect();
    }
    for key in ["pinned", "verified"] {
        let Some(text) = response["auditAnnotations"][key].as_str() else { continue };
        // A truncated annotation is skipped; nothing depends on it.
        let Ok(entries) = serde_json::from_str::<Vec<Value>>(text) else { continue };
        let entries = entries.into_iter().filter_map(|entry| serde_json::from_value::<Known>(entry).ok());
        for entry in entries.filter(|entry| !entry.digest.is_empty()) {
            match found.known.iter_mut().find(|known| known.image == entry.image) {
                Some(known) if known.signers.is_empty() => *known = entry,
                Some(_) => {}
                None => found.known.push(entry),
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_whole() {
        let patch = r#"[{"op":"test","path":"/a","value":"x"},{"op":"replace","path":"/a","value":"x@sha256:1"}]"#;
        let pinned = r#"[{"image":"x","digest":"sha256:1","rule":"*"},3]"#;
        let verified = r#"[{"image":"x","digest":"sha256:1","signers":["k"],"evidence":["e"]}]"#;
        let answer = json!({"response": {
            "allowed": true, "patch": base64::engine::general_purpose::STANDARD.encode(patch), "warnings": ["w"],
            "auditAnnotations": {"pinned": pinned, "verified": verified},
        }});
        let answer = read(answer.to_string().as_bytes()).unwrap();
        assert_eq!((answer.refused, answer.warnings), (None, vec!["w".to_owned()]));
        assert_eq!(answer.images, [("/a".to_owned(), "x@sha256:1".to_owned())]);
        assert_eq!(answer.known.len(), 1);
        assert_eq!((&answer.known[0].signers[..], &*answer.known[0].digest), (&["k".to_owned()][..], "sha256:1"));
        let refused = read(br#"{"response":{"allowed":false,"status":{"message":"no"}}}"#).unwrap();
        assert_eq!(refused.refused.as_deref(), Some("no"));
        assert!(read(b"{").is_err());
        assert_eq!((plural("Pod"), plural("Ingress")), ("pods".into(), "ingresses".into()));
    }
}
