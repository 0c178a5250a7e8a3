//! The review of a new object, read in one pass: its images are found while the review is.
//!
//! Pure, and only a shorter way. Whatever is unusual about a review ends it with an error that nobody sees, and the review is read
//! again in the usual way, which says what is wrong. What goes through here means the same there.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Ask, Kind, User};
use crate::admission::patch::Site;
use crate::admission::walk::Walk;

/// A review whose object was walked; the same fields as [`super::Review`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Created<'a> {
    #[serde(borrow)]
    pub api_version: Cow<'a, str>,
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    pub request: Request<'a>,
}

/// Its request, with [`Ask::sites`] instead of [`Ask::object`].
pub(super) struct Request<'a>(pub Ask<'a>);

/// Text that is not copied unless it has escapes; serde borrows a `Cow` only as a field.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Key {
    Uid,
    Operation,
    Kind,
    Namespace,
    Name,
    SubResource,
    UserInfo,
    Object,
    OldObject,
    #[serde(other)]
    Other,
}

struct Requests;

impl<'de: 'a, 'a> Deserialize<'de> for Request<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Requests).map(Request)
    }
}

impl<'de> Visitor<'de> for Requests {
    type Value = Ask<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the request of a review")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ask<'de>, A::Error> {
        let (mut uid, mut operation, mut sites) = (None, None, None);
        let (mut kind, mut namespace, mut name, mut sub_resource) = (None, None, None, None);
        let mut user_info = None;
        while let Some(key) = map.next_key()? {
            match key {
                Key::Uid => once(&mut uid, map.next_value::<Text<'de>>()?)?,
                Key::Operation => once(&mut operation, map.next_value::<Text<'de>>()?)?,
                Key::Kind => once(&mut kind, map.next_value::<Option<Kind<'de>>>()?)?,
                Key::Namespace => once(&mut namespace, map.next_value::<Option<Text<'de>>>()?)?,
                Key::Name => once(&mut name, map.next_value::<Option<Text<'de>>>()?)?,
                Key::SubResource => once(&mut sub_resource, map.next_value::<Option<Text<'de>>>()?)?,
                Key::UserInfo => once(&mut user_info, map.next_value::<Option<User<'de>>>()?)?,
                Key::Object => {
                    // kube-apiserver writes the operation first.
                    if operation.as_ref().is_none_or(|Text(operation)| operation != "CREATE") {
                        return Err(A::Error::custom("not a new object"));
                    }
                    let mut found = Vec::new();
                    let visit = &mut |seen: crate::admission::walk::Seen<'_>| {
                        if found.len() == Site::MAX {
                            return Err("too many images".to_owned());
                        }
                        let (pointer, image) = (seen.pointer.to_owned(), seen.image.to_owned());
                        found.push(Site { pointer, image, mutable: true });
                        Ok(())
                    };
                    let outline = map.next_value_seed(Walk(visit))?;
                    once(&mut sites, (found, outline.pullers))?;
                }
                Key::OldObject => {
                    if map.next_value::<Option<&'de RawValue>>()?.is_some() {
                        return Err(A::Error::custom("not a new object"));
                    }
                }
                Key::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let text = |text: Option<Option<Text<'de>>>| text.flatten().map(|Text(text)| text);
        let (sites, pullers) = sites.ok_or_else(|| A::Error::missing_field("object"))?;
        Ok(Ask {
            uid: uid.ok_or_else(|| A::Error::missing_field("uid"))?.0,
            operation: operation.ok_or_else(|| A::Error::missing_field("operation"))?.0,
            kind: kind.flatten(),
            user_info: user_info.flatten(),
            namespace: text(namespace),
            name: text(name),
            sub_resource: text(sub_resource),
            object: None,
            old_object: None,
            sites: Some(sites),
            pullers,
        })
    }
}

/// A key that is there twice is for the usual way to refuse.
fn once<T, E: Error>(place: &mut Option<T>, value: T) -> Result<(), E> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::custom("twice")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use crate::admission::bench::{pod, review};
    use crate::admission::patch::Site;
    use crate::admission::review::{Ask, Review, parse};
    use crate::admission::walk::{self, Pullers};

    /// What is read of a review, and whether it took the short way.
    type Read = (String, String, Option<Vec<Site>>, [Option<String>; 4], Pullers);

    fn told(ask: &Ask<'_>, sites: Option<Vec<Site>>, pullers: Pullers) -> Read {
        let text = |text: &Option<std::borrow::Cow<'_, str>>| text.as_deref().map(str::to_owned);
        let kind = ask.kind.as_ref().map(|kind| format!("{}/{}", kind.group, kind.kind));
        let kind = kind.map(|kind| {
            let user = ask.user_info.as_ref().map_or("", |user| &*user.username);
            format!("{kind} by {user}")
        });
        let rest = [text(&ask.namespace), text(&ask.name), text(&ask.sub_resource), kind];
        (ask.uid.to_string(), ask.operation.to_string(), sites, rest, pullers)
    }

    /// Read in the usual way, and walked.
    fn usual(body: &[u8]) -> Option<Read> {
        let ask = serde_json::from_slice::<Review<'_>>(body).ok()?.request?;
        let (mut sites, mut pullers) = (Vec::new(), Pullers::default());
        if let Some(object) = ask.object {
            pullers = walk::walk(object.get(), &mut |seen| {
                sites.push(Site { pointer: seen.pointer.into(), image: seen.image.into(), mutable: true });
                Ok(())
            })
            .ok()?
            .pullers;
        }
        Some(told(&ask, Some(sites), pullers))
    }

    fn short(body: &[u8]) -> Option<Read> {
        let (_, ask) = parse(body).ok()?;
        ask.sites.clone().map(|sites| told(&ask, Some(sites), ask.pullers.clone()))
    }

    #[test]
    fn a_new_object_takes_the_short_way_and_an_unusual_review_the_usual_one() {
        let body = String::from_utf8(review(&pod(8)).to_vec()).unwrap();
        assert_eq!(short(body.as_bytes()).map(|read| read.2.map(|sites| sites.len())), Some(Some(8)));
        for (what, unusual) in [
            ("an update", body.replace("CREATE", "UPDATE")),
            ("an old object", body.replace(r#""oldObject":null"#, r#""oldObject":{}"#)),
            ("a key twice", body.replace(r#""dryRun":false"#, r#""operation":"CREATE""#)),
            ("an operation after the object", {
                let later = body.replace(r#""operation":"CREATE","#, "");
                later.replace(r#""dryRun":false"#, r#""operation":"CREATE""#)
            }),
            ("an image twice", body.replace(r#""imagePullPolicy""#, r#""image":"x","imagePullPolicy""#)),
            ("cut off", body[..body.len() - 1].to_owned()),
        ] {
            assert_ne!(unusual, body, "{what}");
            assert_eq!(short(unusual.as_bytes()), None, "{what}");
        }
        let mut bytes = body.into_bytes();
        let at = bytes.windows(4).position(|window| window == b"info").unwrap();
        bytes[at] = 0xff;
        assert!(parse(&bytes).is_err(), "what is not UTF-8 is refused, also where nobody reads it");
        let many = json!({"spec": {"containers": vec![json!({"image": "a"}); Site::MAX + 1]}});
        assert_eq!(short(&review(&many)), None, "more images than are judged");
    }

    proptest! {
        /// Whatever byte of a review is changed: what the short way reads, the usual way reads as well, and the same.
        #[test]
        fn both_ways_read_the_same(at in any::<prop::sample::Index>(), byte in any::<u8>(), images in 0usize..4) {
            let mut body = review(&pod(images)).to_vec();
            let at = at.index(body.len());
            body[at] = byte;
            if let Some(read) = short(&body) {
                prop_assert_eq!(Some(read), usual(&body));
            }
        }
    }
}
