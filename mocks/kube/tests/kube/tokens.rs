//! Tests of service account tokens: their content, how they are checked, and when they end.

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa::{self, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_2048_8192_SHA256,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64URL};
use mock_kube::ServiceAccounts;
use serde_json::{Value, json};

use crate::CONFIG_MAPS;
use crate::access::guarded;
use crate::client::{Client, Protocol, World};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// The signed text, header, claims and signature of a JSON web token.
fn opened(token: &str) -> (String, Value, Value, Vec<u8>) {
    let decode = |part: &str| BASE64URL.decode(part).unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let json = |part: &str| serde_json::from_slice(&decode(part)).unwrap();
    (format!("{}.{}", parts[0], parts[1]), json(parts[0]), json(parts[1]), decode(parts[2]))
}

#[tokio::test]
async fn others_can_check_a_token_with_the_published_key() {
    let (world, mut admin, mut guest) = guarded().await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    let (_, account) = admin.post(ACCOUNTS, &account).await;
    let (_, issued) =
        admin.post(&format!("{ACCOUNTS}/robot/token"), &json!({"spec": {"expirationSeconds": 900}})).await;
    assert_eq!(issued["kind"], json!("TokenRequest"));
    assert_eq!(issued["spec"]["audiences"], json!(["https://kubernetes.default.svc.cluster.local"]));
    let token = issued["status"]["token"].as_str().unwrap();
    let (message, header, claims, signature) = opened(token);
    assert_eq!(claims["sub"], json!("system:serviceaccount:default:robot"));
    assert_eq!((&claims["iss"], &claims["aud"]), (&json!(ISSUER), &json!([ISSUER])));
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 900);
    let private =
        json!({"namespace": "default", "serviceaccount": {"name": "robot", "uid": account["metadata"]["uid"]}});
    assert_eq!(claims["kubernetes.io"], private);

    let mut robot = world.bare(Protocol::Http1, None).await.with_token(token);
    let (status, configuration) = robot.get("/.well-known/openid-configuration").await;
    assert_eq!((status, &configuration["issuer"]), (200, &json!(ISSUER)));
    assert_eq!(configuration["jwks_uri"], json!("https://localhost/openid/v1/jwks"));
    assert_eq!(guest.get("/openid/v1/jwks").await.0, 403, "it is for service accounts");
    let (_, keys) = robot.get("/openid/v1/jwks").await;
    let key = &keys["keys"][0];
    assert_eq!((&key["kid"], &key["alg"]), (&header["kid"], &header["alg"]));
    let coordinate = |name: &str| BASE64URL.decode(key[name].as_str().unwrap()).unwrap();
    let point = [vec![4], coordinate("x"), coordinate("y")].concat();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message.as_bytes(), &signature).unwrap();
}

#[tokio::test]
async fn a_token_is_for_its_audience_and_ends_with_what_it_was_made_for() {
    let (world, mut admin, _) = guarded().await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    admin.post(ACCOUNTS, &account).await;
    let path = format!("{ACCOUNTS}/robot/token");
    let (status, refused) = admin.post(&path, &json!({"spec": {"expirationSeconds": 60}})).await;
    assert_eq!((status, &refused["details"]["causes"][0]["field"]), (422, &json!("spec.expirationSeconds")));
    let (_, issued) = admin.post(&path, &json!({"spec": {"audiences": ["vault", "other"]}})).await;
    let vault = issued["status"]["token"].as_str().unwrap().to_owned();
    assert_eq!(world.bare(Protocol::Http1, None).await.with_token(&vault).get(CONFIG_MAPS).await.0, 401);
    let review = async |admin: &mut Client, token: &str, audiences: Value| {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
                            "spec": {"token": token, "audiences": audiences}});
        let (status, review) = admin.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await;
        assert_eq!(status, 201, "{review}");
        review["status"].clone()
    };
    let known = review(&mut admin, &vault, json!(["vault", "third"])).await;
    assert_eq!((&known["authenticated"], &known["audiences"]), (&json!(true), &json!(["vault"])));
    let stranger = review(&mut admin, &vault, json!([])).await;
    assert_eq!(stranger.get("authenticated"), None, "{stranger}");
    assert!(stranger["error"].as_str().unwrap().contains("is invalid for the target audiences"), "{stranger}");

    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
        "serviceAccountName": "robot", "containers": [{"name": "a", "image": "i"}],
    }});
    let (_, pod) = admin.post("/api/v1/namespaces/default/pods", &pod).await;
    let bound =
        |kind: &str, name: &str| json!({"spec": {"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name}}});
    assert_eq!(admin.post(&path, &bound("Pod", "q")).await.0, 404);
    assert_eq!(admin.post(&path, &bound("ConfigMap", "p")).await.0, 400);
    let (_, issued) = admin.post(&path, &bound("Pod", "p")).await;
    let token = issued["status"]["token"].as_str().unwrap();
    assert_eq!(opened(token).2["kubernetes.io"]["pod"]["uid"], pod["metadata"]["uid"]);
    let user = review(&mut admin, token, json!([])).await["user"].clone();
    assert_eq!(user["extra"]["authentication.kubernetes.io/pod-name"], json!(["p"]));
    let mut robot = world.bare(Protocol::Http1, None).await.with_token(token);
    assert_eq!(robot.get(CONFIG_MAPS).await.0, 403, "known, with no rights");
    admin.delete("/api/v1/namespaces/default/pods/p?gracePeriodSeconds=0").await;
    assert_eq!(robot.get(CONFIG_MAPS).await.0, 401, "the pod is gone");

    let (_, issued) = admin.post(&path, &json!({"spec": {}})).await;
    let token = issued["status"]["token"].as_str().unwrap();
    let mut robot = world.bare(Protocol::Http1, None).await.with_token(token);
    assert_eq!(robot.get(CONFIG_MAPS).await.0, 403);
    admin.delete(&format!("{ACCOUNTS}/robot")).await;
    admin.post(ACCOUNTS, &account).await;
    assert_eq!(robot.get(CONFIG_MAPS).await.0, 401, "the account of the same name is another one");
}

/// Tokens are signed with a configured key and issuer, as with kube-apiserver's `--service-account-signing-key-file`
/// and `--service-account-issuer`. fabric8 writes the key as PKCS#1, envtest as PKCS#8.
#[tokio::test]
async fn tokens_are_signed_with_the_key_that_is_given() {
    let rsa = rsa::KeyPair::generate(KeySize::Rsa2048).unwrap();
    let der: Pkcs8V1Der<'_> = rsa.as_der().unwrap();
    let pem = |der: &[u8]| {
        let lines = STANDARD.encode(der);
        format!("-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----\n")
    };
    let curve = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let keys = [("RS256", pem(der.as_ref())), ("ES256", pem(curve.to_pkcs8v1().unwrap().as_ref()))];
    for (algorithm, key_pem) in keys {
        let world = World::with(|config| {
            config.service_accounts =
                ServiceAccounts { issuer: Some("https://issuer.test".to_owned()), key_pem: Some(key_pem) };
        });
        let world = world.await;
        let mut admin = world.client(Protocol::Http1, "harness").await;
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
        admin.post(ACCOUNTS, &account).await;
        let (_, issued) = admin.post(&format!("{ACCOUNTS}/robot/token"), &json!({"spec": {}})).await;
        let token = issued["status"]["token"].as_str().unwrap();
        let (message, header, claims, signature) = opened(token);
        assert_eq!((&header["alg"], &claims["iss"]), (&json!(algorithm), &json!("https://issuer.test")));
        assert_eq!(claims["aud"], json!(["https://issuer.test"]));
        if algorithm == "RS256" {
            UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, rsa.public_key().as_ref())
                .verify(message.as_bytes(), &signature)
                .unwrap();
            let (_, published) = admin.get("/openid/v1/jwks").await;
            let number = |name: &str| BASE64URL.decode(published["keys"][0][name].as_str().unwrap()).unwrap();
            let parts = RsaPublicKeyComponents { n: number("n"), e: number("e") };
            parts.verify(&RSA_PKCS1_2048_8192_SHA256, message.as_bytes(), &signature).unwrap();
        } else {
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, curve.public_key().as_ref())
                .verify(message.as_bytes(), &signature)
                .unwrap();
        }
        let mut robot = world.bare(Protocol::Http1, None).await.with_token(token);
        assert_eq!(robot.get(CONFIG_MAPS).await.0, 200, "its own tokens are known");
    }
}
