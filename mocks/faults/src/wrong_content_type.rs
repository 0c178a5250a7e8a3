//! `wrong-content-type`: answers carry another `Content-Type`, as a proxy's error page would. A hit is one answer.

use super::{Asked, Behaviour, Injection, On, Row, Scene};

pub(super) const ROW: Row = Row::requests("wrong-content-type", "Answers carry another `Content-Type`.")
    .takes(&[("contentType", "`text/html`", "")])
    .on(On::Any)
    .sees("another media type, the same body")
    .played(|_| Box::new(WrongContentType));

/// When the fault does not say.
const MEDIA: &str = "text/html";

#[derive(Debug)]
pub(super) struct WrongContentType;

impl Behaviour for WrongContentType {
    fn asked(&mut self, asked: &Asked<'_>, injection: &mut Injection, scene: &mut Scene<'_>) {
        let media = scene.fault.content_type.clone().unwrap_or_else(|| MEDIA.to_owned());
        scene.hit(format!("{} answered as {media}", asked.describe()));
        injection.content_type = Some(media);
    }
}
