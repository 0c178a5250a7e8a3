//! Definitions of custom resources (apiextensions.k8s.io).

use super::Row;

pub(super) const TABLE: &[Row] = &[
    (
        "CustomResourceDefinition",
        "1:metadata:ObjectMeta 2:spec:CustomResourceDefinitionSpec 3:status:CustomResourceDefinitionStatus",
    ),
    (
        "CustomResourceDefinitionSpec",
        "1:group:s! 3:names:CustomResourceDefinitionNames 4:scope:s! 7:versions:[CustomResourceDefinitionVersion]! \
         9:conversion:CustomResourceConversion 10:preserveUnknownFields:b",
    ),
    (
        "CustomResourceDefinitionNames",
        "1:plural:s! 2:singular:s 3:shortNames:[s] 4:kind:s! 5:listKind:s 6:categories:[s]",
    ),
    (
        "CustomResourceDefinitionVersion",
        "1:name:s! 2:served:b! 3:storage:b! 4:schema:CustomResourceValidation 5:subresources:CustomResourceSubresources \
         6:additionalPrinterColumns:[CustomResourceColumnDefinition] 7:deprecated:b 8:deprecationWarning:s? \
         9:selectableFields:[SelectableField]",
    ),
    ("SelectableField", "1:jsonPath:s!"),
    ("CustomResourceValidation", "1:openAPIV3Schema:JSONSchemaProps"),
    ("CustomResourceSubresources", "1:status:CustomResourceSubresourceStatus 2:scale:CustomResourceSubresourceScale"),
    ("CustomResourceSubresourceStatus", ""),
    ("CustomResourceSubresourceScale", "1:specReplicasPath:s! 2:statusReplicasPath:s! 3:labelSelectorPath:s?"),
    ("CustomResourceColumnDefinition", "1:name:s! 2:type:s! 3:format:s 4:description:s 5:priority:i 6:jsonPath:s!"),
    ("CustomResourceConversion", "1:strategy:s! 2:webhook:WebhookConversion"),
    ("WebhookConversion", "2:clientConfig:WebhookClientConfig 3:conversionReviewVersions:[s]!"),
    (
        "CustomResourceDefinitionStatus",
        "1:conditions:[CustomResourceDefinitionCondition]! 2:acceptedNames:CustomResourceDefinitionNames \
         3:storedVersions:[s]! 4:observedGeneration:i",
    ),
    (
        "CustomResourceDefinitionCondition",
        "1:type:s! 2:status:s! 3:lastTransitionTime:T 4:reason:s 5:message:s 6:observedGeneration:i",
    ),
    (
        "JSONSchemaProps",
        "1:id:s 2:$schema:s 3:$ref:s? 4:description:s 5:type:s 6:format:s 7:title:s 8:default:J? 9:maximum:D? \
         10:exclusiveMaximum:b 11:minimum:D? 12:exclusiveMinimum:b 13:maxLength:i? 14:minLength:i? 15:pattern:s \
         16:maxItems:i? 17:minItems:i? 18:uniqueItems:b 19:multipleOf:D? 20:enum:[J] 21:maxProperties:i? \
         22:minProperties:i? 23:required:[s] 24:items:/JSONSchemaPropsOrArray 25:allOf:[JSONSchemaProps] \
         26:oneOf:[JSONSchemaProps] 27:anyOf:[JSONSchemaProps] 28:not:JSONSchemaProps 29:properties:{JSONSchemaProps} \
         30:additionalProperties:/JSONSchemaPropsOrBool 31:patternProperties:{JSONSchemaProps} \
         32:dependencies:{/JSONSchemaPropsOrStringArray} 33:additionalItems:/JSONSchemaPropsOrBool \
         34:definitions:{JSONSchemaProps} 35:externalDocs:ExternalDocumentation 36:example:J? 37:nullable:b \
         38:x-kubernetes-preserve-unknown-fields:b? 39:x-kubernetes-embedded-resource:b 40:x-kubernetes-int-or-string:b \
         41:x-kubernetes-list-map-keys:[s] 42:x-kubernetes-list-type:s? 43:x-kubernetes-map-type:s? \
         44:x-kubernetes-validations:[ValidationRule]",
    ),
    ("JSONSchemaPropsOrArray", "1:schema:JSONSchemaProps 2:several:[JSONSchemaProps]"),
    ("JSONSchemaPropsOrBool", "2:schema:JSONSchemaProps 1:allows:b"),
    ("JSONSchemaPropsOrStringArray", "1:schema:JSONSchemaProps 2:property:[s]"),
    ("ExternalDocumentation", "1:description:s 2:url:s"),
    ("ValidationRule", "1:rule:s! 2:message:s 3:messageExpression:s 4:reason:s? 5:fieldPath:s 6:optionalOldSelf:b?"),
];
