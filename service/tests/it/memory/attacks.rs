//! The reviews, Pods and bundles of the attacks on memory.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rustls_pki_types::ServerName;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

use super::process::Process;
use crate::admission::{pod, review};

/// Time for which the last byte of a body is held back.
const HELD: Duration = Duration::from_secs(2);

/// Sends a review of `bytes` bytes from the address 127.0.0.`last`, and holds back the last byte for a while. Returns
/// the HTTP status of the answer.
pub async fn large_body(process: &Process, last: u8, bytes: usize) -> u16 {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("127.0.0.{last}:0").parse().unwrap()).unwrap();
    let tcp = socket.connect(([127, 0, 0, 1], process.port).into()).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(process.tls()));
    let mut tls = connector.connect(ServerName::try_from("127.0.0.1").unwrap(), tcp).await.unwrap();
    let mut object = pod(&["skip.io/app:1"]);
    let filler = bytes - review("v1", &object).to_string().len() - 100;
    object["metadata"]["annotations"] = json!({ "filler": "x".repeat(filler) });
    let mut body = review("v1", &object).to_string();
    body.push_str(&" ".repeat(bytes - body.len()));
    let head = format!(
        "POST /mutate?timeout=10s HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {bytes}\r\n\r\n"
    );
    let (mut from, mut to) = tokio::io::split(&mut tls);
    let write = async {
        let (most, end) = body.as_bytes().split_at(bytes - 1);
        // A refused client closes the connection before everything was sent.
        let _ = to.write_all(head.as_bytes()).await;
        let _ = to.write_all(most).await;
        tokio::time::sleep(HELD).await;
        let _ = to.write_all(end).await;
        let _ = to.flush().await;
    };
    let mut answer = vec![0; 12];
    let read = async {
        from.read_exact(&mut answer).await.map_or(0, |_| std::str::from_utf8(&answer[9..]).unwrap().parse().unwrap())
    };
    tokio::join!(write, read).1
}

/// A review of a Pod of 500 images that no other Pod has, and for which `host` never answers. All Pods of this attack
/// belong to one tenant.
pub fn pod_of_many(host: &str, number: usize) -> Value {
    let images: Vec<String> = (0..500).map(|image| format!("{host}/hang/team-{number}/app-{image}:1")).collect();
    let mut review = review("v1", &pod(&images.iter().map(String::as_str).collect::<Vec<_>>()));
    review["request"]["namespace"] = "hostile".into();
    review
}

/// A bundle of `bytes` bytes that is expensive to check in one of four ways.
pub fn weighty(number: usize, bytes: usize) -> Vec<u8> {
    let statement = |subject: &str, predicate: &str| {
        let kind = "https://in-toto.io/Statement/v1";
        let predicate_type = "https://sigstore.dev/cosign/sign/v1";
        let text = format!(
            r#"{{"_type":"{kind}","subject":[{subject}],"predicateType":"{predicate_type}","predicate":"{predicate}"}}"#
        );
        BASE64.encode(text)
    };
    let bundle = |payload: &str, signatures: &str, entries: &str| {
        format!(
            r#"{{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{{"publicKey":{{"hint":""}},"tlogEntries":[{entries}]}},"dsseEnvelope":{{"payload":"{payload}","payloadType":"application/vnd.in-toto+json","signatures":[{signatures}]}}}}"#
        )
    };
    let one = r#"{"sig":"AAAA"}"#;
    let room = bytes - 2048;
    let list = |item: &str, bytes: usize| {
        let mut list = format!("{item},").repeat(bytes / (item.len() + 1));
        list.pop();
        list
    };
    let text = match number % 4 {
        // A long statement.
        0 => bundle(&statement("", &"x".repeat(room / 4 * 3)), one, ""),
        // Empty subjects.
        1 => bundle(&statement(&list("{}", room / 4 * 3), ""), one, ""),
        // Empty signatures.
        2 => bundle(&statement("", ""), &list(r#"{"sig":""}"#, room), ""),
        // An empty proof.
        _ => {
            let proof = format!(
                r#"{{"logIndex":"1","rootHash":"AAAA","treeSize":"2","checkpoint":{{"envelope":""}},"hashes":[{}]}}"#,
                list(r#""""#, room)
            );
            let entry = format!(
                r#"{{"logId":{{"keyId":"AAAA"}},"kindVersion":{{"kind":"dsse","version":"0.0.1"}},"canonicalizedBody":"AAAA","inclusionProof":{proof}}}"#
            );
            bundle(&statement("", ""), one, &entry)
        }
    };
    assert!(text.len() <= bytes && text.len() > bytes / 4 * 3, "{number}: {}", text.len());
    let mut text = text.into_bytes();
    text.resize(bytes, b' ');
    text
}
