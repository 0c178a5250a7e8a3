//! Tests of the distribution specification, endpoint by endpoint.

use std::collections::BTreeSet;
use std::time::Duration;

use http::{Method, StatusCode};
use mock_pki as pki;
use mock_registry::{Config, ImageKind, Kind, Population, RateLimit};

use crate::client::{Client, INDEX, MANIFEST, manifest, registry, registry_with, sha256, with_query};

#[tokio::test]
async fn three_ways_to_push_a_blob_and_one_to_mount_it() {
    let (server, client) = registry().await;
    let kind = ("content-type", "application/octet-stream");
    let two_requests = client.push_blob("a/b", b"two requests").await;

    let digest = sha256(b"one request");
    let once =
        client.send(Method::POST, &format!("/v2/a/b/blobs/uploads/?digest={digest}"), &[kind], "one request").await;
    assert_eq!(once.status, StatusCode::CREATED);
    assert_eq!(once.location(), format!("/v2/a/b/blobs/{digest}"));

    let started = client.send(Method::POST, "/v2/a/b/blobs/uploads/", &[], "").await;
    let mut to = started.location();
    for (range, piece, arrived) in [("0-2", "chu", "0-2"), ("3-5", "nks", "0-5")] {
        let reply = client.send(Method::PATCH, &to, &[kind, ("content-range", range)], piece).await;
        assert_eq!((reply.status, reply.header("range")), (StatusCode::ACCEPTED, arrived));
        to = reply.location();
    }
    let again = client.send(Method::PATCH, &to, &[kind, ("content-range", "3-5")], "nks").await;
    assert_eq!((again.status, again.header("range")), (StatusCode::RANGE_NOT_SATISFIABLE, "0-5"));
    let short = client.send(Method::PATCH, &to, &[kind, ("content-range", "6-9")], "!").await;
    assert_eq!((short.status, short.code()), (StatusCode::BAD_REQUEST, "SIZE_INVALID".to_owned()));
    let status = client.get(&to).await;
    assert_eq!((status.status, status.header("range")), (StatusCode::NO_CONTENT, "0-5"));
    let to = with_query(&to, &format!("digest={}", sha256(b"chunks!")));
    let done = client.send(Method::PUT, &to, &[kind, ("content-range", "6-6")], "!").await;
    assert_eq!(done.status, StatusCode::CREATED);
    assert_eq!(client.get(&format!("/v2/a/b/blobs/{}", sha256(b"chunks!"))).await.body, "chunks!");

    let mount = format!("/v2/c/blobs/uploads/?mount={two_requests}&from=a/b");
    let mounted = client.send(Method::POST, &mount, &[], "").await;
    assert_eq!(mounted.status, StatusCode::CREATED);
    assert_eq!(client.get(&mounted.location()).await.body, "two requests");
    let nowhere = format!("/v2/c/blobs/uploads/?mount={}&from=a/b", sha256(b"absent"));
    assert_eq!(client.send(Method::POST, &nowhere, &[], "").await.status, StatusCode::ACCEPTED);
    assert_eq!(server.requests().count(Kind::UploadChunk), 4);
    server.shutdown().await;
}

#[tokio::test]
async fn a_wrong_digest_is_refused_wherever_it_is_given() {
    let (server, client) = registry().await;
    let wrong = sha256(b"something else");
    let started = client.send(Method::POST, "/v2/a/blobs/uploads/", &[], "").await;
    for (digest, status) in [("nonsense", 400), ("", 400), (wrong.as_str(), 400), (wrong.as_str(), 404)] {
        let to = with_query(&started.location(), &format!("digest={digest}"));
        let reply = client.send(Method::PUT, &to, &[], "content").await;
        assert_eq!(reply.status, status, "{digest}: a wrong digest ends the upload");
    }
    let once = client.send(Method::POST, &format!("/v2/a/blobs/uploads/?digest={wrong}"), &[], "content").await;
    assert_eq!((once.status, once.code()), (StatusCode::BAD_REQUEST, "DIGEST_INVALID".to_owned()));
    let path = format!("/v2/a/manifests/{wrong}");
    let by_digest = client.send(Method::PUT, &path, &[("content-type", MANIFEST)], "{}").await;
    assert_eq!((by_digest.status, by_digest.code()), (StatusCode::BAD_REQUEST, "DIGEST_INVALID".to_owned()));
    assert_eq!(server.used_bytes(), 0, "nothing of it was kept");
    server.shutdown().await;
}

#[tokio::test]
async fn manifests_keep_their_bytes_and_their_type() {
    let (server, client) = registry().await;
    let config = client.push_blob("a", b"{}").await;
    // Spaces that no serialiser would write: the digest is that of these bytes.
    let body = manifest((&config, 2), "").replace(',', " ,  ");
    let put = client.send(Method::PUT, "/v2/a/manifests/v1", &[("content-type", MANIFEST)], body.clone()).await;
    assert_eq!(
        (put.status, put.header("docker-content-digest")),
        (StatusCode::CREATED, sha256(body.as_bytes()).as_str())
    );
    for reference in ["v1", &sha256(body.as_bytes())] {
        let got = client.get(&format!("/v2/a/manifests/{reference}")).await;
        assert_eq!((got.header("content-type"), got.body.as_ref()), (MANIFEST, body.as_bytes()));
        let head = client.head(&format!("/v2/a/manifests/{reference}")).await;
        assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
        assert_eq!(head.header("content-length"), body.len().to_string());
        assert_eq!(head.header("docker-content-digest"), sha256(body.as_bytes()));
    }
    let etag = client.get("/v2/a/manifests/v1").await.header("etag").to_owned();
    let same = client.send(Method::GET, "/v2/a/manifests/v1", &[("if-none-match", &etag)], "").await;
    assert_eq!((same.status, same.body.len()), (StatusCode::NOT_MODIFIED, 0));

    let missing = manifest((&sha256(b"absent"), 6), "");
    let refused = client.send(Method::PUT, "/v2/a/manifests/v2", &[("content-type", MANIFEST)], missing).await;
    assert_eq!((refused.status, refused.code()), (StatusCode::BAD_REQUEST, "MANIFEST_BLOB_UNKNOWN".to_owned()));
    let large =
        client.send(Method::PUT, "/v2/a/manifests/v2", &[("content-type", MANIFEST)], vec![b' '; (4 << 20) + 1]).await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);

    assert_eq!(client.delete("/v2/a/manifests/v1").await.status, StatusCode::ACCEPTED);
    assert_eq!(client.get("/v2/a/manifests/v1").await.status, StatusCode::NOT_FOUND, "the tag is gone");
    let by_digest = format!("/v2/a/manifests/{}", sha256(body.as_bytes()));
    assert_eq!(client.get(&by_digest).await.status, StatusCode::OK, "the manifest is not");
    assert_eq!(client.delete(&by_digest).await.status, StatusCode::ACCEPTED);
    assert_eq!(client.get(&by_digest).await.code(), "MANIFEST_UNKNOWN");
    server.shutdown().await;
}

#[tokio::test]
async fn blobs_come_whole_or_in_part() {
    let (server, client) = registry().await;
    let digest = client.push_blob("a", b"0123456789").await;
    let path = format!("/v2/a/blobs/{digest}");
    let part = client.send(Method::GET, &path, &[("range", "bytes=2-4")], "").await;
    assert_eq!((part.status, part.body.as_ref()), (StatusCode::PARTIAL_CONTENT, b"234".as_slice()));
    assert_eq!(part.header("content-range"), "bytes 2-4/10");
    let beyond = client.send(Method::GET, &path, &[("range", "bytes=10-")], "").await;
    assert_eq!((beyond.status, beyond.header("content-range")), (StatusCode::RANGE_NOT_SATISFIABLE, "bytes */10"));
    let head = client.head(&path).await;
    assert_eq!((head.header("content-length"), head.header("accept-ranges")), ("10", "bytes"));
    assert_eq!(client.delete(&path).await.status, StatusCode::ACCEPTED);
    assert_eq!(client.get(&path).await.code(), "BLOB_UNKNOWN");
    server.shutdown().await;
}

#[tokio::test]
async fn lists_are_paged_by_links_that_lead_on() {
    let (server, client) = registry().await;
    let config = client.push_blob("a", b"{}").await;
    let mut expected: Vec<String> = (0..7).map(|n| format!("v{n}")).collect();
    expected.push("V9".to_owned());
    for tag in &expected {
        client.push_manifest("a", tag, (&config, 2), "").await;
    }
    expected.sort();
    for (start, key) in [("/v2/a/tags/list?n=3", "tags"), ("/v2/a/tags/list", "tags")] {
        let (mut next, mut seen) = (start.to_owned(), Vec::new());
        while !next.is_empty() {
            let page = client.get(&next).await;
            seen.extend(page.json()[key].as_array().unwrap().iter().map(|tag| tag.as_str().unwrap().to_owned()));
            next = page.header("link").split_once('>').map_or(String::new(), |(target, rest)| {
                assert_eq!(rest, "; rel=\"next\"");
                target[1..].to_owned()
            });
        }
        assert_eq!(seen, expected);
    }
    assert_eq!(client.get("/v2/a/tags/list?n=0").await.json()["tags"].as_array().unwrap().len(), 0);
    assert_eq!(client.get("/v2/a/tags/list?n=x").await.code(), "PAGINATION_NUMBER_INVALID");
    assert_eq!(client.get("/v2/b/tags/list").await.code(), "NAME_UNKNOWN");
    client.push_blob("b/c", b"{}").await;
    let catalog = client.get("/v2/_catalog?n=1").await;
    assert_eq!(catalog.json()["repositories"][0], "a");
    let next = catalog.header("link").split_once('>').unwrap().0[1..].to_owned();
    assert_eq!(client.get(&next).await.json()["repositories"][0], "b/c");
    server.shutdown().await;
}

#[tokio::test]
async fn referrers_are_listed() {
    let (server, client) = registry_with(Config::new()).await;
    let config = client.push_blob("a", b"{}").await;
    let subject = client.push_manifest("a", "v1", (&config, 2), "").await;
    let attached = manifest(
        (&config, 2),
        &format!(
            r#","artifactType":"application/x.sbom","annotations":{{"k":"v"}},"subject":{{"mediaType":"{MANIFEST}","digest":"{subject}","size":1}}"#
        ),
    );
    let path = format!("/v2/a/manifests/{}", sha256(attached.as_bytes()));
    let put = client.send(Method::PUT, &path, &[("content-type", MANIFEST)], attached.clone()).await;
    assert_eq!(put.status, StatusCode::CREATED);
    let listed = client.get(&format!("/v2/a/referrers/{subject}")).await;
    assert_eq!(put.header("oci-subject"), subject);
    assert_eq!((listed.status, listed.header("content-type")), (StatusCode::OK, INDEX));
    let entry = &listed.json()["manifests"][0];
    assert_eq!(entry["artifactType"], "application/x.sbom");
    assert_eq!((&entry["size"], &entry["annotations"]["k"]), (&attached.len().into(), &"v".into()));
    let other = client.get(&format!("/v2/a/referrers/{subject}?artifactType=other")).await;
    assert_eq!(other.header("oci-filters-applied"), "artifactType");
    assert!(other.json()["manifests"].as_array().unwrap().is_empty());
    let none = client.get(&format!("/v2/nowhere/referrers/{subject}")).await;
    assert_eq!(none.status, StatusCode::OK, "the specification forbids 404 here");
    server.shutdown().await;
}

#[tokio::test]
async fn limits_are_kept_and_named() {
    let small = Config { max_bytes: 2_000, max_uploads: 1, max_upload_bytes: 1_000, ..Config::new() };
    let (server, client) = registry_with(small).await;
    let digest = sha256(&[7; 1_001]);
    let path = format!("/v2/a/blobs/uploads/?digest={digest}");
    let large = client.send(Method::POST, &path, &[], vec![7; 1_001]).await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
    client.push_blob("a", &[1; 900]).await;
    let second = sha256(&[2; 900]);
    let full = client.send(Method::POST, &format!("/v2/a/blobs/uploads/?digest={second}"), &[], vec![2; 900]).await;
    assert_eq!((full.status, full.code()), (StatusCode::FORBIDDEN, "DENIED".to_owned()));
    assert!(full.json()["errors"][0]["message"].as_str().unwrap().contains("of at most 2000 bytes"));
    assert_eq!(client.send(Method::POST, "/v2/a/blobs/uploads/", &[], "").await.status, StatusCode::ACCEPTED);
    let too_many = client.send(Method::POST, "/v2/a/blobs/uploads/", &[], "").await;
    assert_eq!((too_many.status, too_many.header("retry-after")), (StatusCode::TOO_MANY_REQUESTS, "1"));
    server.shutdown().await;

    let limited = Config { rate_limit: Some(RateLimit { per_second: 0.01, burst: 2 }), ..Config::new() };
    let (server, client) = registry_with(limited).await;
    let statuses = [client.get("/v2/").await, client.get("/v2/").await, client.get("/v2/").await];
    assert_eq!(statuses.each_ref().map(|reply| reply.status.as_u16()), [200, 200, 429]);
    assert_eq!((statuses[2].code(), statuses[2].header("retry-after")), ("TOOMANYREQUESTS".to_owned(), "100"));
    server.shutdown().await;
}

#[tokio::test]
async fn https_speaks_http2_and_the_population_can_be_pulled() {
    let authority = pki::Authority::generate("registry test").unwrap();
    let pair = authority.server(&["127.0.0.1"]).unwrap();
    let (server, _) = registry_with(Config { tls: Some(pair), ..Config::new() }).await;
    let tls = pki::client_config(authority.ca_pem(), None, &["h2"]).unwrap();
    let client = Client::secure(server.address(), tls);
    let images = server.seed(&Population { count: 20, seed: 7, signed: false }).unwrap();
    let mut kinds = BTreeSet::new();
    for image in &images {
        kinds.insert(format!("{:?}", image.kind));
        let (name, tag) = image.reference.split_once('/').unwrap().1.split_once(':').unwrap();
        let path = format!("/v2/{name}/manifests/{tag}");
        let head = client.head(&path).await;
        // For an HTTP/2 client a body would be a broken connection.
        assert!(head.complete && head.body.is_empty(), "{head:?}");
        assert_eq!(head.header("content-length"), client.get(&path).await.header("content-length"), "{path}");
        if image.kind == ImageKind::Missing {
            assert_eq!(head.status, StatusCode::NOT_FOUND);
            continue;
        }
        assert_eq!(Some(head.header("docker-content-digest")), image.digest.as_deref());
        assert_eq!(sha256(&client.get(&path).await.body), image.digest.clone().unwrap());
        let moved = server.move_tag(&image.reference).unwrap();
        assert_eq!(client.head(&path).await.header("docker-content-digest"), moved);
        let old = format!("/v2/{name}/manifests/{}", image.digest.as_ref().unwrap());
        assert_eq!(client.head(&old).await.status, StatusCode::OK, "the old digest stays");
    }
    assert_eq!(kinds.len(), 3);
    assert!(server.move_tag("nowhere/at/all:v1").is_err());
    server.shutdown().await;
}

#[tokio::test]
async fn what_is_no_endpoint_is_refused_in_the_specifications_words() {
    let (server, client) = registry().await;
    for (method, path, status, code) in [
        (Method::GET, "/", 404, "UNSUPPORTED"),
        (Method::GET, "/v2/UPPER/tags/list", 404, "NAME_INVALID"),
        (Method::GET, "/v2/a/manifests/.bad", 404, "NAME_INVALID"),
        (Method::GET, "/v2/a/blobs/sha256:short", 400, "DIGEST_INVALID"),
        (Method::POST, "/v2/a/tags/list", 405, "UNSUPPORTED"),
        (Method::GET, "/v2/a/blobs/uploads/", 405, "UNSUPPORTED"),
        (Method::GET, "/v2/a/blobs/uploads/unknown", 404, "BLOB_UPLOAD_UNKNOWN"),
        (Method::GET, "/token", 404, "UNSUPPORTED"),
    ] {
        let reply = client.send(method.clone(), path, &[], "").await;
        assert_eq!((reply.status.as_u16(), reply.code().as_str()), (status, code), "{method} {path}");
    }
    let (recent, counted) = (server.recent(), server.requests());
    assert_eq!(recent.len() as u64, counted.total());
    assert_eq!(recent[1].path, "/v2/UPPER/tags/list");
    assert_eq!(counted.by_status_class[&4], 8);
    server.shutdown().await;
}

#[tokio::test]
async fn shutdown_frees_the_address_and_a_taken_one_is_named() {
    let (server, client) = registry().await;
    let taken = mock_registry::Server::start(Config { listen: server.address(), ..Config::new() }).await.unwrap_err();
    assert_eq!(taken.to_string(), format!("failed to listen on {} for the registry", server.address()));
    let address = server.address();
    server.shutdown().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    let (again, _) = registry_with(Config { listen: address, ..Config::new() }).await;
    assert_eq!(client.get("/v2/").await.status, StatusCode::OK);
    again.shutdown().await;
}

#[tokio::test]
async fn shutdown_does_not_wait_for_a_client_that_stopped_sending() {
    use tokio::io::AsyncWriteExt as _;

    let (server, client) = registry().await;
    let started = client.send(Method::POST, "/v2/a/blobs/uploads/", &[], "").await;
    let mut stream = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    let head = format!("PATCH {} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nonly this", started.location());
    stream.write_all(head.as_bytes()).await.unwrap();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while server.used_bytes() == 0 {
        assert!(tokio::time::Instant::now() < deadline, "the first bytes never arrived");
        tokio::task::yield_now().await;
    }
    tokio::time::timeout(Duration::from_secs(10), server.shutdown()).await.expect("shutdown is bounded");
}

#[tokio::test]
async fn an_upload_goes_on_where_a_broken_connection_left_it() {
    use tokio::io::AsyncWriteExt as _;

    let (server, client) = registry().await;
    let to = client.send(Method::POST, "/v2/a/blobs/uploads/", &[], "").await.location();
    let mut stream = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    let head = format!("PATCH {to} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nfirst, ");
    stream.write_all(head.as_bytes()).await.unwrap();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while server.used_bytes() == 0 {
        assert!(tokio::time::Instant::now() < deadline, "the first bytes never arrived");
        tokio::task::yield_now().await;
    }
    let busy = client.send(Method::PATCH, &to, &[], "second").await;
    assert_eq!(busy.status, StatusCode::RANGE_NOT_SATISFIABLE, "one writer at a time");
    drop(stream);
    let resumed = loop {
        let reply = client.send(Method::PATCH, &to, &[("content-range", "7-12")], "second").await;
        if reply.status == StatusCode::ACCEPTED {
            break reply;
        }
        assert!(tokio::time::Instant::now() < deadline, "the broken connection still holds the upload");
    };
    assert_eq!(resumed.header("range"), "0-12");
    let done = with_query(&to, &format!("digest={}", sha256(b"first, second")));
    assert_eq!(client.send(Method::PUT, &done, &[], "").await.status, StatusCode::CREATED);
    server.shutdown().await;
}
