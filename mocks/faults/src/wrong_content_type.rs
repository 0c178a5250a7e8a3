//! `wrong-content-type`: answers have another `Content-Type`, as a proxy's error page would have. A hit is one answer
//! with the wrong type.

use super::settings::keys;
use super::{Behaviour, Error, Injection, On, PlayedRow, RequestFacts, Row, Scene};

keys! {
    pub struct Keys {
        content_type "contentType": String = ("`text/html`", ""),
    }
}

pub(super) const ROW: PlayedRow = Row::requests("wrong-content-type", "Answers carry another `Content-Type`.")
    .takes::<Keys>()
    .refuses(|fault| match fault.keys::<Keys>().content_type {
        Some(media) if http::HeaderValue::from_str(&media).is_err() => {
            let instead = "write a media type such as `text/html`";
            Err(Error::Value { key: "contentType", given: format!("`{media}`"), instead })
        }
        _ => Ok(()),
    })
    .on(On::Any)
    .sees("another `Content-Type`, the same body")
    .played(|_| Box::new(WrongContentType));

/// The default `Content-Type`.
const MEDIA: &str = "text/html";

#[derive(Debug)]
pub(super) struct WrongContentType;

impl Behaviour for WrongContentType {
    fn request(&mut self, asked: &RequestFacts<'_>, injection: &mut Injection, scene: &mut Scene<'_>) {
        let media = scene.fault.keys::<Keys>().content_type.unwrap_or_else(|| MEDIA.to_owned());
        scene.hit(format!("{} answered as {media}", asked.describe()));
        injection.content_type = Some(media);
    }
}
