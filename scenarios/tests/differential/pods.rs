//! Compares how both servers complete or refuse Pods, and Pod templates in all kinds that create Pods.
//!
//! The Pods and templates are drawn at random from the types that the real server publishes. All requests are dry runs,
//! so the servers store nothing.
//!
//! | Variable | Meaning |
//! |---|---|
//! | `LONGHAUL_DIFFERENTIAL_PODS` | number of compared objects, default 600 |
//! | `LONGHAUL_DIFFERENTIAL_PODS_SEED` | the seed of the first object, default 1 |
//! | `LONGHAUL_DIFFERENTIAL_PODS_RECORD` | a file for the real server's answers, as lines of JSON |

pub mod dice;
pub mod draw;
pub mod schema;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::driver::{self, Endpoint, Raw};
use crate::sequence::{Sequence, Step};
use crate::{namespace, number, servers};
use draw::Drawn;
use schema::Types;

const OBJECTS: usize = 600;
/// Number of objects that are sent over one connection.
const AT_ONCE: usize = 50;
/// Maximum number of kinds of differences that a comparison shrinks and prints.
const SHOWN_MAX: usize = 30;
/// Maximum number of values that are removed while one object is shrunk.
const CUTS_MAX: usize = 400;

/// The compared parts of a server's answer.
#[derive(Debug, Clone, PartialEq)]
enum Said {
    /// The server would store this object.
    Object(Value),
    /// The request was refused with this status code, this reason, and these `details.causes` entries, each as a text
    /// with reason and field.
    Refused(u64, String, BTreeSet<String>),
}

fn answer(raw: &Raw) -> (Said, String) {
    let Raw::Answer { status, body, .. } = raw else {
        return (Said::Refused(0, "no answer".to_owned(), BTreeSet::new()), String::new());
    };
    let mut value: Value = serde_json::from_slice(body).unwrap_or_default();
    let message = value["message"].as_str().unwrap_or_default().to_owned();
    if *status >= 300 {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let cause = |cause: &Value| ordered(&format!("{} {}", text(&cause["reason"]), text(&cause["field"])));
        let causes = value["details"]["causes"].as_array().into_iter().flatten().map(cause).collect();
        return (Said::Refused(u64::from(*status), text(&value["reason"]), causes), message);
    }
    let uid = value["metadata"]["uid"].as_str().unwrap_or("no uid").to_owned();
    let since = value["metadata"]["creationTimestamp"].as_str().unwrap_or("no time").to_owned();
    if let Some(metadata) = value["metadata"].as_object_mut() {
        for key in ["uid", "creationTimestamp", "managedFields", "namespace", "resourceVersion"] {
            metadata.remove(key);
        }
    }
    let text = value.to_string().replace(&uid, "UID").replace(&since, "SINCE");
    (Said::Object(serde_json::from_str(&text).unwrap()), message)
}

/// The text of a `details.causes` entry, without the index of a volume. In a `StatefulSet`, a real server puts the
/// volumes of claims in random order before the volumes of the template, so indices differ.
fn ordered(cause: &str) -> String {
    match cause.split_once(" spec.template.spec.volumes[") {
        Some((reason, rest)) => {
            format!("{reason} spec.template.spec.volumes{}", rest.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        None => cause.to_owned(),
    }
}

/// The answers of a server to these objects, each with the server's message.
async fn ask(endpoint: &Endpoint, drawn: &[Drawn]) -> anyhow::Result<Vec<(Said, String)>> {
    let steps = drawn.iter().map(|one| Step::post(format!("{}?dryRun=All", one.path), one.object.clone())).collect();
    let sequence = Sequence { name: "pods".to_owned(), steps };
    Ok(driver::play(endpoint, &sequence, &namespace()).await?.iter().map(answer).collect())
}

/// Records the real server's answers to the objects that are drawn from these seeds.
async fn record(real: &Endpoint, types: &Types, seeds: Vec<u64>, file: &Path) -> anyhow::Result<()> {
    let mut lines = String::new();
    for seeds in seeds.chunks(AT_ONCE) {
        let drawn: Vec<Drawn> = seeds.iter().map(|seed| draw::draw(types, *seed)).collect();
        for (one, (said, message)) in drawn.iter().zip(ask(real, &drawn).await?) {
            let said = match said {
                Said::Object(object) => json!({"stored": object}),
                Said::Refused(status, reason, causes) => {
                    json!({"status": status, "reason": reason, "causes": causes, "message": message})
                }
            };
            let _ = writeln!(lines, "{}", json!({"path": one.path, "object": one.object, "said": said}));
        }
    }
    Ok(std::fs::write(file, lines)?)
}

/// The differences between the two servers' answers to one object. Indices are removed from the paths of fields.
fn differences(real: &Said, mock: &Said) -> Vec<String> {
    let mut found = Vec::new();
    match (real, mock) {
        (Said::Object(real), Said::Object(mock)) => walk("", Some(real), Some(mock), &mut found),
        (Said::Refused(real, one, wrong), Said::Refused(mock, other, also)) if (real, one) == (mock, other) => {
            found.extend(wrong.difference(also).map(|cause| format!("only the real server: {}", unnumbered(cause))));
            found.extend(also.difference(wrong).map(|cause| format!("only the mock: {}", unnumbered(cause))));
        }
        _ => {
            let status = |said: &Said| match said {
                Said::Object(_) => 201,
                Said::Refused(status, ..) => *status,
            };
            found.push(format!("status: real {}, mock {}", status(real), status(mock)));
            for (name, said) in [("real", real), ("mock", mock)] {
                if let Said::Refused(_, _, causes) = said {
                    found.extend(causes.iter().map(|cause| format!("refused by the {name}: {}", unnumbered(cause))));
                }
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

fn unnumbered(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        let character = if character.is_ascii_digit() { '0' } else { character };
        if !(character == '0' && out.ends_with('0')) {
            out.push(character);
        }
    }
    out
}

fn walk(at: &str, real: Option<&Value>, mock: Option<&Value>, found: &mut Vec<String>) {
    match (real, mock) {
        (Some(real), Some(mock)) if real == mock => {}
        (Some(Value::Object(real)), Some(Value::Object(mock))) => {
            for key in real.keys().chain(mock.keys()) {
                walk(&format!("{at}/{key}"), real.get(key), mock.get(key), found);
            }
        }
        (Some(Value::Array(real)), Some(Value::Array(mock))) if real.len() == mock.len() => {
            for (index, (real, mock)) in real.iter().zip(mock).enumerate() {
                walk(&format!("{at}/{index}"), Some(real), Some(mock), found);
            }
        }
        _ => {
            let show = |value: Option<&Value>| value.map_or_else(|| "absent".to_owned(), ToString::to_string);
            found.push(unnumbered(&format!("{at}: real {}, mock {}", show(real), show(mock))));
        }
    }
}

/// Removes all values from a drawn object that are not needed for the difference between the servers.
async fn shrink(real: &Endpoint, mock: &Endpoint, mut drawn: Drawn, wanted: &str) -> anyhow::Result<Drawn> {
    let mut cuts = 0;
    loop {
        let mut places = Vec::new();
        draw::list_places(&drawn.object, String::new(), &mut places);
        // Large values first.
        places.sort_by_key(|place| place.matches('/').count());
        let mut smaller = Vec::new();
        for place in places {
            let mut object = drawn.object.clone();
            let Some((above, last)) = place.rsplit_once('/') else { continue };
            if ["/kind", "/apiVersion", "/metadata", "/metadata/name"].contains(&place.as_str()) {
                continue;
            }
            match object.pointer_mut(above) {
                Some(Value::Object(fields)) => {
                    fields.remove(&last.replace("~1", "/").replace("~0", "~"));
                }
                Some(Value::Array(items)) => {
                    items.remove(last.parse().unwrap());
                }
                _ => continue,
            }
            draw::unbroken(&mut object);
            smaller.push(Drawn { path: drawn.path, object });
        }
        let mut found = None;
        while !smaller.is_empty() && found.is_none() && cuts < CUTS_MAX {
            let rest = smaller.split_off(smaller.len().min(AT_ONCE));
            let tried = std::mem::replace(&mut smaller, rest);
            cuts += tried.len();
            let (real, mock) = tokio::try_join!(ask(real, &tried), ask(mock, &tried))?;
            let same = real
                .iter()
                .zip(&mock)
                .position(|(real, mock)| differences(&real.0, &mock.0).iter().any(|one| one == wanted));
            found = same.and_then(|index| tried.into_iter().nth(index));
        }
        match found {
            Some(found) => drawn = found,
            None => return Ok(drawn),
        }
    }
}

/// The differences between the two servers for all drawn objects, each with its frequency and the first seed that shows
/// it.
async fn compare(
    real: &Endpoint,
    mock: &Endpoint,
    types: &Types,
    first: u64,
    count: usize,
) -> anyhow::Result<Vec<String>> {
    let mut found: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    let (mut taken, mut refused) = (0, 0);
    let seeds: Vec<u64> = (first..).take(count).collect();
    for seeds in seeds.chunks(AT_ONCE) {
        let drawn: Vec<Drawn> = seeds.iter().map(|seed| draw::draw(types, *seed)).collect();
        let (real, mock) = tokio::try_join!(ask(real, &drawn), ask(mock, &drawn))?;
        for (seed, (real, mock)) in seeds.iter().zip(real.iter().zip(&mock)) {
            *(if matches!(real.0, Said::Object(_)) { &mut taken } else { &mut refused }) += 1;
            for difference in differences(&real.0, &mock.0) {
                found.entry(difference).or_insert((0, *seed)).0 += 1;
            }
        }
    }
    println!("{taken} objects were taken and {refused} refused by the real server");
    // If all drawn objects are refused, or all are accepted, only half is compared.
    anyhow::ensure!(taken * 10 >= count && refused * 10 >= count, "{taken} taken and {refused} refused");
    let mut order: Vec<_> = found.into_iter().collect();
    order.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    let mut printed = Vec::new();
    for (difference, (count, seed)) in order {
        let mut text = format!("\n== {count} times: {difference} (first with seed {seed})\n");
        if printed.len() < SHOWN_MAX {
            let small = shrink(real, mock, draw::draw(types, seed), &difference).await?;
            let both =
                tokio::try_join!(ask(real, std::slice::from_ref(&small)), ask(mock, std::slice::from_ref(&small)))?;
            let _ = writeln!(text, "   {} {}", small.path, small.object);
            for (name, answer) in [("real", &both.0[0]), ("mock", &both.1[0])] {
                let _ = writeln!(text, "   {name}: {}", if answer.1.is_empty() { "taken" } else { &answer.1 });
            }
        }
        printed.push(text);
    }
    Ok(printed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow"]
async fn pods_are_completed_and_refused_as_by_a_real_server() {
    let Some(assets) = servers::assets() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (local, real) = servers::real(assets, directory.path(), &[]).await.unwrap();
    let (server, mock) = servers::mock().await.unwrap();
    let first = number("LONGHAUL_DIFFERENTIAL_PODS_SEED").unwrap_or(1) as u64;
    let count = number("LONGHAUL_DIFFERENTIAL_PODS").unwrap_or(OBJECTS);
    println!("comparing {count} objects from seed {first} with {}", local.access().version());
    let compared = async {
        let types = Types::of(&real).await?;
        if let Some(file) = std::env::var_os("LONGHAUL_DIFFERENTIAL_PODS_RECORD") {
            record(&real, &types, (first..).take(count).collect(), Path::new(&file)).await?;
        }
        compare(&real, &mock, &types, first, count).await
    };
    let printed = compared.await;
    server.shutdown().await;
    local.stop().await;
    let printed = printed.unwrap();
    let repeat = format!("LONGHAUL_DIFFERENTIAL_PODS_SEED={first} LONGHAUL_DIFFERENTIAL_PODS={count} draws the same");
    assert!(printed.is_empty(), "{} kinds of differences; {repeat}:\n{}", printed.len(), printed.concat());
}

/// The comparison reports answers that differ. A comparison that reports no difference therefore proves that the
/// answers are equal.
#[test]
fn answers_that_differ_are_noticed() {
    let object = |number: i64| Said::Object(json!({"spec": {"list": [{"a": number}]}}));
    let refused = |cause: &str| Said::Refused(422, "Invalid".to_owned(), BTreeSet::from([cause.to_owned()]));
    assert_eq!(differences(&object(1), &object(1)), Vec::<String>::new());
    assert_eq!(differences(&object(7), &object(1)), ["/spec/list/0/a: real 0, mock 0"]);
    let causes = differences(&refused("FieldValueInvalid a[0].b"), &refused("FieldValueInvalid a[1].c"));
    assert_eq!(causes, ["only the mock: FieldValueInvalid a[0].c", "only the real server: FieldValueInvalid a[0].b"]);
    assert_eq!(differences(&object(1), &refused("FieldValueInvalid a"))[1], "status: real 201, mock 422");
}
