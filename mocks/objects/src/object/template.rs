//! The generation of a `DaemonSet`'s template, which its pods are compared by.

use serde_json::{Value, json};

use super::metadata;

/// Where the generation of a `DaemonSet`'s template is kept since its field is gone.
pub const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Counts the generation of a `DaemonSet`'s template up when an update changes it.
pub(super) fn count_template(value: &mut Value, old: &Value) {
    let before = old["metadata"]["annotations"][TEMPLATE_GENERATION].as_str().and_then(|text| text.parse::<i64>().ok());
    let changed = value.pointer("/spec/template") != old.pointer("/spec/template");
    let now = (before.unwrap_or(1) + i64::from(changed)).to_string();
    let annotations = metadata(value).entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), Value::from(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_template_counts_for_a_daemon_set() {
        let set = |image: &str, generation: &str| json!({"metadata": {"annotations": {TEMPLATE_GENERATION: generation}}, "spec": {"template": {"image": image}}});
        for (image, expected) in [("a", "3"), ("b", "4")] {
            let mut new = set(image, "7");
            count_template(&mut new, &set("a", "3"));
            count_template(&mut new, &set("a", "3"));
            assert_eq!(new["metadata"]["annotations"][TEMPLATE_GENERATION], expected, "{image}");
        }
    }
}
