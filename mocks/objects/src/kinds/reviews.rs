//! Kinds that are answered and never stored: reviews of permissions and tokens, and `Binding`.

use super::{Kind, Review};

pub(super) static ALL: [Kind; 7] = [
    Kind::review("bindings", Review::Binding),
    Kind::review("tokenreviews.authentication.k8s.io", Review::Token),
    Kind::review("selfsubjectreviews.authentication.k8s.io", Review::Myself),
    Kind::review("subjectaccessreviews.authorization.k8s.io", Review::Access),
    Kind::review("selfsubjectaccessreviews.authorization.k8s.io", Review::MyAccess),
    Kind::review("selfsubjectrulesreviews.authorization.k8s.io", Review::MyRules),
    Kind::review("localsubjectaccessreviews.authorization.k8s.io", Review::LocalAccess),
];
