//! Kinds that are answered and never stored: reviews of permissions and tokens, and `Binding`.

use super::{Kind, Review};

const WHO: &str = "authentication.k8s.io";
const MAY: &str = "authorization.k8s.io";

pub(super) const BINDING: Kind = Kind::review(
    Review::Binding,
    true,
    ("", "bindings", "Binding"),
    &["Binding 1:metadata:ObjectMeta 2:target:ObjectReference"],
);

pub(super) const TOKEN: Kind = Kind::review(
    Review::Token,
    false,
    (WHO, "tokenreviews", "TokenReview"),
    &[
        "TokenReview 1:metadata:ObjectMeta 2:spec:TokenReviewSpec 3:status:TokenReviewStatus",
        "TokenReviewSpec 1:token:s 2:audiences:[s]",
        "TokenReviewStatus 1:authenticated:b 2:user:UserInfo 3:error:s 4:audiences:[s]",
        "UserInfo 1:username:s 2:uid:s 3:groups:[s] 4:extra:{L}",
    ],
);

pub(super) const MYSELF: Kind = Kind::review(
    Review::Myself,
    false,
    (WHO, "selfsubjectreviews", "SelfSubjectReview"),
    &[
        "SelfSubjectReview 1:metadata:ObjectMeta 2:status:SelfSubjectReviewStatus",
        "SelfSubjectReviewStatus 1:userInfo:UserInfo",
    ],
);

pub(super) const ACCESS: Kind = Kind::review(
    Review::Access,
    false,
    (MAY, "subjectaccessreviews", "SubjectAccessReview"),
    &[
        "SubjectAccessReview 1:metadata:ObjectMeta 2:spec:SubjectAccessReviewSpec 3:status:SubjectAccessReviewStatus",
        "SubjectAccessReviewSpec 1:resourceAttributes:ResourceAttributes \
         2:nonResourceAttributes:NonResourceAttributes 3:user:s 4:groups:[s] 5:extra:{L} 6:uid:s",
        "ResourceAttributes 1:namespace:s 2:verb:s 3:group:s 4:version:s 5:resource:s 6:subresource:s 7:name:s \
         8:fieldSelector:FieldSelectorAttributes 9:labelSelector:LabelSelectorAttributes",
        "FieldSelectorAttributes 1:rawSelector:s 2:requirements:[FieldSelectorRequirement]",
        "FieldSelectorRequirement 1:key:s! 2:operator:s! 3:values:[s]",
        "LabelSelectorAttributes 1:rawSelector:s 2:requirements:[LabelSelectorRequirement]",
        "NonResourceAttributes 1:path:s 2:verb:s",
        "SubjectAccessReviewStatus 1:allowed:b! 2:reason:s 3:evaluationError:s 4:denied:b",
    ],
);

pub(super) const MY_ACCESS: Kind = Kind::review(
    Review::MyAccess,
    false,
    (MAY, "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    &[
        "SelfSubjectAccessReview 1:metadata:ObjectMeta 2:spec:SelfSubjectAccessReviewSpec \
         3:status:SubjectAccessReviewStatus",
        "SelfSubjectAccessReviewSpec 1:resourceAttributes:ResourceAttributes \
         2:nonResourceAttributes:NonResourceAttributes",
    ],
);

pub(super) const MY_RULES: Kind = Kind::review(
    Review::MyRules,
    false,
    (MAY, "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    &[
        "SelfSubjectRulesReview 1:metadata:ObjectMeta 2:spec:SelfSubjectRulesReviewSpec \
         3:status:SubjectRulesReviewStatus",
        "SelfSubjectRulesReviewSpec 1:namespace:s",
        "SubjectRulesReviewStatus 1:resourceRules:[ResourceRule]! 2:nonResourceRules:[NonResourceRule]! \
         3:incomplete:b! 4:evaluationError:s",
        "ResourceRule 1:verbs:[s]! 2:apiGroups:[s] 3:resources:[s] 4:resourceNames:[s]",
        "NonResourceRule 1:verbs:[s]! 2:nonResourceURLs:[s]",
    ],
);

pub(super) const LOCAL_ACCESS: Kind = Kind::review(
    Review::LocalAccess,
    true,
    (MAY, "localsubjectaccessreviews", "LocalSubjectAccessReview"),
    &["LocalSubjectAccessReview 1:metadata:ObjectMeta 2:spec:SubjectAccessReviewSpec \
         3:status:SubjectAccessReviewStatus"],
);
