//! `CustomResourceDefinition`: adds a kind to the API. `catalogue::custom` reads its specification.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Kind, Meaning};
use crate::fields::{self, set};

pub(super) const CUSTOM_RESOURCE_DEFINITION: Kind = Kind {
    short_names: &["crd", "crds"],
    categories: &["api-extensions"],
    status: true,
    messages: &[
        "CustomResourceDefinition 1:metadata:ObjectMeta 2:spec:CustomResourceDefinitionSpec \
         3:status:CustomResourceDefinitionStatus",
        "CustomResourceDefinitionSpec 1:group:s! 3:names:CustomResourceDefinitionNames 4:scope:s! \
         7:versions:[CustomResourceDefinitionVersion]! 9:conversion:CustomResourceConversion \
         10:preserveUnknownFields:b",
        "CustomResourceDefinitionNames 1:plural:s! 2:singular:s 3:shortNames:[s] 4:kind:s! 5:listKind:s \
         6:categories:[s]",
        "CustomResourceDefinitionVersion 1:name:s! 2:served:b! 3:storage:b! 4:schema:CustomResourceValidation \
         5:subresources:CustomResourceSubresources 6:additionalPrinterColumns:[CustomResourceColumnDefinition] \
         7:deprecated:b 8:deprecationWarning:s? 9:selectableFields:[SelectableField]",
        "SelectableField 1:jsonPath:s!",
        "CustomResourceValidation 1:openAPIV3Schema:JSONSchemaProps",
        "CustomResourceSubresources 1:status:CustomResourceSubresourceStatus 2:scale:CustomResourceSubresourceScale",
        "CustomResourceSubresourceStatus",
        "CustomResourceSubresourceScale 1:specReplicasPath:s! 2:statusReplicasPath:s! 3:labelSelectorPath:s?",
        "CustomResourceColumnDefinition 1:name:s! 2:type:s! 3:format:s 4:description:s 5:priority:i 6:jsonPath:s!",
        "CustomResourceConversion 1:strategy:s! 2:webhook:WebhookConversion",
        "WebhookConversion 2:clientConfig:WebhookClientConfig 3:conversionReviewVersions:[s]!",
        "CustomResourceDefinitionStatus 1:conditions:[CustomResourceDefinitionCondition]! \
         2:acceptedNames:CustomResourceDefinitionNames 3:storedVersions:[s]! 4:observedGeneration:i",
        "CustomResourceDefinitionCondition 1:type:s! 2:status:s! 3:lastTransitionTime:T 4:reason:s 5:message:s \
         6:observedGeneration:i",
        "JSONSchemaProps 1:id:s 2:$schema:s 3:$ref:s? 4:description:s 5:type:s 6:format:s 7:title:s 8:default:J? \
         9:maximum:D? 10:exclusiveMaximum:b 11:minimum:D? 12:exclusiveMinimum:b 13:maxLength:i? 14:minLength:i? \
         15:pattern:s 16:maxItems:i? 17:minItems:i? 18:uniqueItems:b 19:multipleOf:D? 20:enum:[J] \
         21:maxProperties:i? 22:minProperties:i? 23:required:[s] 24:items:/JSONSchemaPropsOrArray \
         25:allOf:[JSONSchemaProps] 26:oneOf:[JSONSchemaProps] 27:anyOf:[JSONSchemaProps] 28:not:JSONSchemaProps \
         29:properties:{JSONSchemaProps} 30:additionalProperties:/JSONSchemaPropsOrBool \
         31:patternProperties:{JSONSchemaProps} 32:dependencies:{/JSONSchemaPropsOrStringArray} \
         33:additionalItems:/JSONSchemaPropsOrBool 34:definitions:{JSONSchemaProps} \
         35:externalDocs:ExternalDocumentation 36:example:J? 37:nullable:b \
         38:x-kubernetes-preserve-unknown-fields:b? 39:x-kubernetes-embedded-resource:b \
         40:x-kubernetes-int-or-string:b 41:x-kubernetes-list-map-keys:[s] 42:x-kubernetes-list-type:s? \
         43:x-kubernetes-map-type:s? 44:x-kubernetes-validations:[ValidationRule]",
        "JSONSchemaPropsOrArray 1:schema:JSONSchemaProps 2:several:[JSONSchemaProps]",
        "JSONSchemaPropsOrBool 2:schema:JSONSchemaProps 1:allows:b",
        "JSONSchemaPropsOrStringArray 1:schema:JSONSchemaProps 2:property:[s]",
        "ExternalDocumentation 1:description:s 2:url:s",
        "ValidationRule 1:rule:s! 2:message:s 3:messageExpression:s 4:reason:s? 5:fieldPath:s 6:optionalOldSelf:b?",
    ],
    schema: Some(schema),
    defaults_at: establish,
    follow_status: remember_stored,
    fixed: &["/spec/scope"],
    meaning: Meaning::Definition,
    ..Kind::cluster("apiextensions.k8s.io", &["v1"], "customresourcedefinitions", "CustomResourceDefinition")
};

/// Sets the condition `Established` of a definition at once; a real server waits for other components.
fn establish(crd: &mut Value, now: Timestamp) {
    let names = &crd["spec"]["names"];
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    set(crd, &["spec", "names"], "singular", json!(kind.to_lowercase()));
    set(crd, &["spec", "names"], "listKind", json!(format!("{kind}List")));
    set(crd, &["spec"], "conversion", json!({"strategy": "None"}));
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": "True", "reason": reason, "message": message,
               "lastTransitionTime": fields::seconds(now)})
    };
    let established = crd["status"]["conditions"].clone();
    let conditions = if established.is_array() {
        established
    } else {
        json!([
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ])
    };
    let stored = crd["status"]["storedVersions"].clone();
    crd["status"] = json!({"acceptedNames": crd["spec"]["names"], "conditions": conditions, "storedVersions": stored});
    remember_stored(crd);
}

/// Adds the storage version to `status.storedVersions`, the versions in which objects may be stored.
fn remember_stored(crd: &mut Value) {
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let marked = versions.filter(|version| version["storage"] == Value::Bool(true));
    let marked: Vec<Value> = marked.map(|version| version["name"].clone()).collect();
    let mut stored = crd["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    for version in marked {
        if !stored.contains(&version) {
            stored.push(version);
        }
    }
    crd["status"]["storedVersions"] = Value::Array(stored);
}

/// The schema of a definition without the schemas in it, which are checked when they are compiled.
fn schema() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let flag = |about: &str| json!({"type": "boolean", "description": about});
    let names = json!({
        "type": "object", "description": "What the kind and its collection are called.", "required": ["kind", "plural"],
        "properties": {
            "kind": text("The name of the kind, with capitals."),
            "listKind": text("The name of a list of them; the kind and List when absent."),
            "plural": text("The name of the collection in paths."),
            "singular": text("The name of one of them in commands."),
            "shortNames": {"type": "array", "items": {"type": "string"}, "description": "Shorter names in commands."},
            "categories": {"type": "array", "items": {"type": "string"}, "description": "Groups such as all."},
        },
    });
    let version = json!({
        "type": "object", "required": ["name", "served", "storage"],
        "properties": {
            "name": text("The name of the version: v1, v1beta1."),
            "served": flag("Whether the version can be asked for."),
            "storage": flag("Whether objects are stored in this version; true for exactly one."),
            "deprecated": flag("Whether a warning goes with every answer."),
            "schema": {
                "type": "object", "description": "What objects look like.",
                "properties": {"openAPIV3Schema": {"type": "object", "description": "The structural schema."}},
            },
            "subresources": {"type": "object", "description": "Whether status and scale are written apart."},
            "additionalPrinterColumns": {
                "type": "array", "items": {"type": "object"}, "description": "The columns of tables.",
            },
            "selectableFields": {
                "type": "array", "items": {"type": "object"}, "description": "What field selectors may name.",
            },
        },
    });
    let spec = json!({
        "type": "object", "description": "What is wanted.", "required": ["group", "names", "scope", "versions"],
        "properties": {
            "group": text("The group of the API, a domain."),
            "names": names,
            "scope": text("Namespaced or Cluster."),
            "versions": {"type": "array", "items": version, "description": "The versions of the kind."},
            "conversion": {"type": "object", "description": "How versions turn into each other."},
            "preserveUnknownFields": flag("Must be false."),
        },
    });
    json!({
        "type": "object", "description": "Makes a kind of objects that the API did not have.",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"spec": spec, "status": {"type": "object", "description": "What is. The system writes it."}},
    })
}
