//! The fast parser for reviews as kube-apiserver writes them: one pass parses the review and finds the images of a new
//! object.
//!
//! For an unusual review, this parser returns an error, and the general parser parses the review again and reports
//! errors. Both parsers give the same result for every review that the fast parser accepts.

use std::borrow::Cow;

use super::{Ask, Kind, Review, User};
use crate::json::{self, Cursor};
use crate::site::Site;
use crate::walk::{self, FoundImage, Pullers};

/// The error about an unusual review, which the general parser must parse or refuse.
#[derive(Debug)]
pub(super) struct Unusual;

impl From<json::Error> for Unusual {
    fn from(_: json::Error) -> Self {
        Self
    }
}

impl From<walk::Error> for Unusual {
    fn from(_: walk::Error) -> Self {
        Self
    }
}

pub(super) fn read(text: &str) -> Result<Review<'_>, Unusual> {
    let mut json = Cursor::new(text);
    let (mut api_version, mut kind, mut request) = (None, None, None);
    let mut inside = json.enter(b'{')?;
    while let Some(key) = json.key(&mut inside)? {
        match &*key {
            "apiVersion" => once(&mut api_version, json.string()?)?,
            "kind" => once(&mut kind, json.string()?)?,
            "request" => once(&mut request, ask(&mut json)?)?,
            _ => json.skip()?,
        }
    }
    json.end()?;
    let (api_version, kind) = (api_version.ok_or(Unusual)?, kind.ok_or(Unusual)?);
    Ok(Review { api_version, kind, request: Some(request.ok_or(Unusual)?) })
}

fn ask<'a>(json: &mut Cursor<'a>) -> Result<Ask<'a>, Unusual> {
    let (mut uid, mut operation, mut object, mut old_object) = (None, None::<Cow<'a, str>>, None, None);
    let (mut kind, mut namespace, mut name, mut sub_resource) = (None, None, None, None);
    let (mut user_info, mut dry_run) = (None, None);
    let mut inside = json.enter(b'{')?;
    while let Some(key) = json.key(&mut inside)? {
        match &*key {
            "uid" => once(&mut uid, json.string()?)?,
            "operation" => once(&mut operation, json.string()?)?,
            "kind" => once(&mut kind, kind_of(json)?)?,
            "namespace" => once(&mut namespace, json.text()?)?,
            "name" => once(&mut name, json.text()?)?,
            "subResource" => once(&mut sub_resource, json.text()?)?,
            "userInfo" => once(&mut user_info, user_of(json)?)?,
            "dryRun" => {
                let value = json.peek();
                json.skip()?;
                once(&mut dry_run, matches!(value, Some(b't')))?;
            }
            "object" => {
                // kube-apiserver writes the operation first.
                let is_new = operation.as_ref().ok_or(Unusual)? == "CREATE";
                let from = json.position();
                let found = if is_new { Some(images(json)?) } else { json.skip().map(|()| None)? };
                once(&mut object, (json.since(from), found))?;
            }
            "oldObject" => {
                let from = json.position();
                json.skip()?;
                once(&mut old_object, json.since(from))?;
            }
            _ => json.skip()?,
        }
    }
    let there = |raw: Option<&'a str>| raw.filter(|raw| *raw != "null");
    let (object, found) = object.ok_or(Unusual)?;
    let (sites, pullers) = found.unzip();
    Ok(Ask {
        uid: uid.ok_or(Unusual)?,
        operation: operation.ok_or(Unusual)?,
        kind: kind.flatten(),
        user_info: user_info.flatten(),
        namespace: namespace.flatten(),
        name: name.flatten(),
        sub_resource: sub_resource.flatten(),
        dry_run: dry_run.unwrap_or_default(),
        object: there(object),
        old_object: there(old_object.flatten()),
        sites,
        pullers: pullers.unwrap_or_default(),
    })
}

/// All images of the object at the cursor `json`.
fn images(json: &mut Cursor<'_>) -> Result<(Vec<Site>, Pullers), Unusual> {
    let mut found = Vec::new();
    let visit = &mut |seen: FoundImage<'_>| {
        if found.len() == Site::MAX {
            return Err(walk::TooMany { most: Site::MAX });
        }
        found.push(Site { pointer: seen.pointer.to_owned(), image: seen.image.to_owned(), mutable: true });
        Ok(())
    };
    let outline = walk::walk_in(json, visit)?;
    Ok((found, outline.pullers))
}

fn kind_of<'a>(json: &mut Cursor<'a>) -> Result<Option<Kind<'a>>, Unusual> {
    let (mut group, mut kind) = (None, None);
    let is_there = members(json, |json, key| match key {
        "group" => once(&mut group, json.string()?),
        "kind" => once(&mut kind, json.string()?),
        _ => Ok(json.skip()?),
    })?;
    Ok(is_there.then(|| Kind { group: group.unwrap_or_default(), kind: kind.unwrap_or_default() }))
}

fn user_of<'a>(json: &mut Cursor<'a>) -> Result<Option<User<'a>>, Unusual> {
    let mut username = None;
    let is_there = members(json, |json, key| match key {
        "username" => once(&mut username, json.string()?),
        _ => Ok(json.skip()?),
    })?;
    Ok(is_there.then(|| User { username: username.unwrap_or_default() }))
}

/// Calls `each` with every member of the JSON object at the cursor `json`; returns false for `null`.
fn members<'a>(
    json: &mut Cursor<'a>,
    mut each: impl FnMut(&mut Cursor<'a>, &str) -> Result<(), Unusual>,
) -> Result<bool, Unusual> {
    if json.peek() == Some(b'n') {
        json.skip()?;
        return Ok(false);
    }
    let mut inside = json.enter(b'{')?;
    while let Some(key) = json.key(&mut inside)? {
        each(json, &key)?;
    }
    Ok(true)
}

/// Stores the value of a key; a repeated key is an error, because the general parser refuses it.
fn once<T>(place: &mut Option<T>, value: T) -> Result<(), Unusual> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Unusual),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use crate::bench::{pod, review};
    use crate::review::{Ask, Review, parse};
    use crate::site::Site;
    use crate::walk::{self, Pullers};

    /// The fields of a review that this test compares between the two parsers.
    type Read = (String, String, Option<Vec<Site>>, [Option<String>; 6], Pullers);

    fn read_of(ask: &Ask<'_>) -> Read {
        let text = |text: &Option<std::borrow::Cow<'_, str>>| text.as_deref().map(str::to_owned);
        let kind = ask.kind.as_ref().map(|kind| format!("{}/{}", kind.group, kind.kind));
        let kind = kind.map(|kind| {
            let user = ask.user_info.as_ref().map_or("", |user| &*user.username);
            format!("{kind} by {user}")
        });
        let raw = [ask.object, ask.old_object].map(|raw| raw.map(str::to_owned));
        let [object, old_object] = raw;
        let rest = [text(&ask.namespace), text(&ask.name), text(&ask.sub_resource), kind, object, old_object];
        (ask.uid.to_string(), ask.operation.to_string(), ask.sites.clone(), rest, ask.pullers.clone())
    }

    /// Parses a review with the general parser and finds the images of its object.
    fn usual(body: &[u8]) -> Option<Read> {
        let mut ask = serde_json::from_slice::<Review<'_>>(body).ok()?.request?;
        if ask.operation == "CREATE" {
            let mut sites = Vec::new();
            if let Some(object) = ask.object {
                let walked = walk::walk(object, &mut |seen| {
                    sites.push(Site { pointer: seen.pointer.into(), image: seen.image.into(), mutable: true });
                    Ok(())
                });
                ask.pullers = walked.ok()?.pullers;
            }
            ask.sites = Some(sites);
        }
        Some(read_of(&ask))
    }

    fn short(body: &[u8]) -> Option<Read> {
        let review = super::read(std::str::from_utf8(body).ok()?).ok()?;
        Some(read_of(&review.request?))
    }

    #[test]
    fn usual_reviews_take_the_short_way_and_unusual_ones_the_other() {
        let body = String::from_utf8(review(&pod(8)).to_vec()).unwrap();
        let update = body.replace("CREATE", "UPDATE").replace(r#""oldObject":null"#, r#""oldObject":{"a":[]}"#);
        for usual_one in [&body, &update, &body.replace(r#""dryRun":false,"#, "\n ")] {
            assert!(short(usual_one.as_bytes()).is_some(), "{usual_one}");
            assert_eq!(short(usual_one.as_bytes()), usual(usual_one.as_bytes()));
        }
        assert_eq!(short(body.as_bytes()).unwrap().2.map(|sites| sites.len()), Some(8));
        for (what, unusual) in [
            ("a key twice", body.replace(r#""dryRun":false"#, r#""operation":"CREATE""#)),
            ("an operation after the object", {
                let later = body.replace(r#""operation":"CREATE","#, "");
                later.replace(r#""dryRun":false"#, r#""operation":"CREATE""#)
            }),
            ("an image twice", body.replace(r#""imagePullPolicy""#, r#""image":"x","imagePullPolicy""#)),
            ("cut off", body[..body.len() - 1].to_owned()),
            ("more behind it", body.clone() + "}"),
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
        /// If one byte of a review is changed and the fast parser still parses the review, the general parser gives the
        /// same result.
        #[test]
        fn both_ways_read_the_same(
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            images in 0usize..4,
            update in any::<bool>(),
        ) {
            let mut body = String::from_utf8(review(&pod(images)).to_vec()).unwrap();
            if update {
                body = body.replace("CREATE", "UPDATE").replace(r#""oldObject":null"#, r#""oldObject":{"a":[]}"#);
            }
            let mut body = body.into_bytes();
            let at = at.index(body.len());
            body[at] = byte;
            let is_json = serde_json::from_slice::<serde_json::Value>(&body).is_ok();
            if let Some(read) = short(&body).filter(|_| is_json) {
                prop_assert_eq!(Some(read), usual(&body));
            }
        }
    }
}
