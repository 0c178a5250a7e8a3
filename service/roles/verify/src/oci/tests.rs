use super::*;

const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn manifest(layers: &str) -> Vec<u8> {
    format!(r#"{{"schemaVersion":2,"layers":[{layers}]}}"#).into_bytes()
}

#[test]
fn tags_are_made_of_the_digest() {
    let digest: Digest = DIGEST.parse().unwrap();
    let hex = &DIGEST[7..];
    assert_eq!(signature_tag(&digest), format!("sha256-{hex}.sig"));
    assert_eq!(attestation_tag(&digest), format!("sha256-{hex}.att"));
    assert_eq!(referrers_tag(&digest), format!("sha256-{hex}"));
}

#[test]
fn an_enormous_layer_is_reported_and_its_neighbour_is_fetched() {
    let good = format!(r#"{{"mediaType":"a","digest":"{DIGEST}","size":0}}"#);
    let big = format!(r#"{{"mediaType":"a","digest":"{DIGEST}","size":99999999999}}"#);
    let found = signature_layers(&manifest(&format!("{good},{big}"))).unwrap();
    assert_eq!((found.layers.len(), found.unusable.len()), (1, 1));
    assert_eq!(found.layers[0].source, "signature 1 of 2");
    let Evidence::Unusable(refused) = &found.unusable[0] else { panic!("{found:?}") };
    assert_eq!((refused.source.as_str(), refused.class), ("signature 2 of 2", Class::Invalid));
    assert!(refused.cause.contains("99999999999"), "{refused:?}");
}

#[test]
fn of_many_layers_and_referrers_the_newest_are_looked_at() {
    let one = format!(r#"{{"mediaType":"a","digest":"{DIGEST}","size":0}}"#);
    let found = signature_layers(&manifest(&vec![one; 80].join(","))).unwrap();
    assert_eq!(found.layers.len(), LAYERS_MAX);
    assert_eq!(found.layers[0].source, "signature 80 of 80");
    let referrer = |number: usize, kind: &str| {
        format!(
            r#"{{"mediaType":"m","digest":"sha256:{number:064}","size":1,"artifactType":"{kind}","annotations":{{"org.opencontainers.image.created":"2026-01-{:02}T00:00:00Z"}}}}"#,
            number % 28 + 1
        )
    };
    let mut all: Vec<String> = (0..500).map(|number| referrer(number, "application/spdx+json")).collect();
    all.extend((0..60).map(|number| referrer(number, "application/vnd.dev.sigstore.bundle.v0.3+json")));
    all.push(referrer(61, EMPTY_TYPE));
    let index = format!(r#"{{"schemaVersion":2,"manifests":[{}]}}"#, all.join(","));
    let found = referrers(index.as_bytes()).unwrap();
    assert_eq!(found.len(), REFERRERS_MAX);
    assert!(found[0].descriptor.digest.hex().ends_with("55"), "{:?}", found[0]);
}

#[test]
fn bytes_that_were_not_asked_for_are_evidence_of_nothing() {
    let one = format!(r#"{{"mediaType":"a","digest":"{DIGEST}","size":0}}"#);
    let layer = signature_layers(&manifest(&one)).unwrap().layers.remove(0);
    assert!(matches!(layer.clone().evidence(Vec::new()), Evidence::Signature(_)));
    assert!(matches!(layer.evidence(b"x".to_vec()), Evidence::Unusable(refused) if refused.cause.contains("digest")));
    let referrer = Referrer {
        descriptor: Descriptor { media_type: "m".to_owned(), digest: DIGEST.parse().unwrap(), size: 0 },
        predicate_type: None,
    };
    assert!(matches!(bundle_layer(&referrer, b"{}"), Err(OciError::Digest { .. })));
}

#[test]
fn a_referrer_that_is_no_bundle_is_passed_over() {
    let manifest = br#"{"schemaVersion":2,"artifactType":"application/spdx+json","layers":[]}"#;
    let descriptor = Descriptor { media_type: "m".to_owned(), digest: Digest::of(manifest), size: 0 };
    assert_eq!(bundle_layer(&Referrer { descriptor, predicate_type: None }, manifest), Ok(None));
}

#[test]
fn what_is_no_manifest_of_evidence_is_said_to_be_none() {
    let layer = format!(r#"{{"mediaType":"a","digest":"{DIGEST}","size":0}}"#);
    let old = String::from_utf8(manifest(&layer)).unwrap().replace(":2", ":1");
    assert!(signature_layers(old.as_bytes()).unwrap_err().to_string().contains("schemaVersion is not 2"));
    assert!(signature_layers(b"[]").is_err());
    assert!(matches!(signature_layers(&vec![b' '; MANIFEST_BYTES_MAX + 1]), Err(OciError::TooLarge { .. })));
    let kind = "application/vnd.dev.sigstore.bundle.v0.3+json";
    let two = format!(r#"{{"schemaVersion":2,"artifactType":"{kind}","layers":[{layer},{layer}]}}"#).into_bytes();
    let descriptor = Descriptor { media_type: "m".to_owned(), digest: Digest::of(&two), size: two.len() as u64 };
    let referrer = Referrer { descriptor, predicate_type: None };
    assert!(bundle_layer(&referrer, &two).unwrap_err().to_string().contains("2 layers, a bundle is one"));
}

/// Embedded bytes save a request if they match the descriptor, and are ignored otherwise.
#[test]
fn embedded_bytes_are_those_of_the_digest() {
    let layer = |data: &str| format!(r#"{{"mediaType":"a","digest":"{DIGEST}","size":0,"data":"{data}"}}"#);
    let embedded = |data: &str| signature_layers(&manifest(&layer(data))).unwrap().layers.remove(0).data;
    assert_eq!(embedded(""), Some(Vec::new()));
    assert_eq!(embedded(&STANDARD.encode("other")), None);
}
