//! The translation of Connaisseur's alert receivers.

use serde_json::{Map, Value, json};

/// Alert templates that have the same name in Connaisseur and this service.
const TEMPLATES: [&str; 5] = ["slack", "opsgenie", "keybase", "msteams", "ecs-1-12-0"];
/// Keys of a receiver that mean the same in Connaisseur and this service.
const SAME: [&str; 2] = ["priority", "failIfAlertSendingFails"];

pub fn translate(alerting: &Value, left: &mut Vec<String>) -> Option<Value> {
    let mut alerts = Map::new();
    if let Some(cluster) = alerting.get("clusterIdentifier").and_then(Value::as_str) {
        alerts.insert("cluster".into(), json!(cluster));
    }
    for (theirs, ours) in [("admitRequest", "admit"), ("rejectRequest", "reject")] {
        let receivers = alerting.get(theirs).and_then(|stream| stream.get("receivers")).and_then(Value::as_array);
        let receivers: Vec<Value> = receivers
            .into_iter()
            .flatten()
            .enumerate()
            .filter_map(|(at, one)| receiver(one, &format!("alerting.{theirs}.receivers[{at}]"), left))
            .collect();
        if !receivers.is_empty() {
            alerts.insert(ours.into(), json!({ "receivers": receivers }));
        }
    }
    (alerts.contains_key("admit") || alerts.contains_key("reject")).then(|| alerts.into())
}

fn receiver(theirs: &Value, key: &str, left: &mut Vec<String>) -> Option<Value> {
    let template = theirs.get("template").and_then(Value::as_str).unwrap_or_default();
    let Some(url) = theirs.get("receiverUrl").and_then(Value::as_str) else {
        left.push(format!("{key} was left out: it has no receiverUrl."));
        return None;
    };
    let mut ours = Map::from_iter([("url".to_owned(), json!(url))]);
    if TEMPLATES.contains(&template) {
        ours.insert("template".into(), json!(template));
    } else {
        left.push(format!(
            "{key}.template: put `{template}` beside the configuration as {template}.json; its places are the same."
        ));
        ours.insert("templateFile".into(), json!(format!("{template}.json")));
    }
    for same in SAME {
        ours.extend(theirs.get(same).map(|value| (same.to_owned(), value.clone())));
    }
    let headers = theirs.get("customHeaders").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let headers: Map<String, Value> = headers
        .filter_map(|header| header.split_once(':'))
        .map(|(name, value)| (name.trim().to_owned(), json!(value.trim())))
        .collect();
    if !headers.is_empty() {
        left.push(format!(
            "{key}.customHeaders are written in the configuration; `headerFiles` keeps secrets out of it."
        ));
        ours.insert("headers".into(), headers.into());
    }
    ours.extend(theirs.get("payloadFields").map(|fields| ("payload".to_owned(), fields.clone())));
    Some(ours.into())
}
