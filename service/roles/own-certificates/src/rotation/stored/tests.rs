//! Written values are read again, and foreign values do no harm.

use super::*;
use crate::rotation::make;

fn secret(held: &StoredCertificates) -> Value {
    let mut secret = held.object("s");
    secret["metadata"]["resourceVersion"] = "5".into();
    secret
}

#[test]
fn what_is_written_is_read_again_and_what_went_is_taken_away() {
    let now = moment(1_800_000_000);
    let authority = make::authority(now, now + Duration::from_hours(1)).unwrap();
    let leaf = make::leaf(&authority, &["a".into(), "a.b.svc".into()], now, now + Duration::from_mins(1)).unwrap();
    let previous =
        vec![Previous::new(authority.chain[0].clone(), 4), Previous::new(authority.chain[0].clone(), u64::MAX)];
    assert_eq!(previous[1].until, seconds(authority.ends()) + 1, "it ends by itself");
    let (next, confirmed) = (Some(authority.clone()), Some(3));
    let held =
        StoredCertificates { version: None, authority: Some(authority), next, previous, leaf: Some(leaf), confirmed };
    let again = StoredCertificates::read(secret(&held).to_string().as_bytes()).unwrap();
    assert_eq!(again.version.as_deref(), Some("5"));
    assert_eq!((again.confirmed, &again.previous), (confirmed, &held.previous));
    assert_eq!(again.leaf.as_ref().unwrap().chain, held.leaf.as_ref().unwrap().chain);
    assert_eq!(again.leaf.unwrap().facts.names, ["a.b.svc", "a", "a.b.svc"]);
    assert_eq!(again.authority.unwrap().key, held.authority.as_ref().unwrap().key);
    assert_eq!(held.bundle().len(), 1, "each is trusted once");
    let patch = StoredCertificates { version: Some("5".into()), ..StoredCertificates::default() }.patch();
    assert_eq!((&patch["metadata"]["resourceVersion"], &patch["data"]["tls.key"]), (&json!("5"), &Value::Null));
    assert!(patch["data"].as_object().unwrap().contains_key("next.key"), "removed by name");
}

#[test]
fn an_empty_secret_and_rubbish_read_as_nothing() {
    let empty = StoredCertificates::read(br#"{"metadata": {"resourceVersion": "1"}}"#).unwrap();
    assert!(empty.authority.is_none() && empty.leaf.is_none() && empty.previous.is_empty());
    let rubbish = json!({"metadata": {"resourceVersion": "1"}, "data": {
        "tls.crt": "!", "tls.key": 7, "authority.crt": STANDARD.encode("x"), "state.json": STANDARD.encode("{\"confirmed\": -1}")}});
    let read = StoredCertificates::read(rubbish.to_string().as_bytes()).unwrap();
    assert!(read.authority.is_none() && read.leaf.is_none() && read.confirmed.is_none());
    assert!(StoredCertificates::read(b"[]").is_err());
    assert!(moment(u64::MAX) > moment(1), "no clock overflows");
}
