//! `kind: attach`: the address of a webhook that runs already.

use hyper::Uri;

/// Host and port of a webhook, for a connection; none where it is no address of one.
pub(crate) fn host_and_port(url: &str) -> Option<(String, u16)> {
    let uri: Uri = url.parse().ok().filter(|uri: &Uri| uri.scheme_str() == Some("https"))?;
    let host = uri.host().filter(|host| !host.is_empty())?;
    Some((host.trim_start_matches('[').trim_end_matches(']').to_owned(), uri.port_u16().unwrap_or(443)))
}

/// What is wrong with an address.
pub(super) fn problem(url: &str) -> Option<String> {
    match host_and_port(url) {
        Some(_) => None,
        None => Some(format!(
            "`url: {url}` is no address of a webhook: write for example `https://127.0.0.1:9443/validate`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_webhook_is_https() {
        assert_eq!(host_and_port("https://127.0.0.1:9443/validate"), Some(("127.0.0.1".to_owned(), 9443)));
        assert_eq!(host_and_port("https://[::1]:9443/v"), Some(("::1".to_owned(), 9443)));
        assert_eq!(host_and_port("https://hook.local/v"), Some(("hook.local".to_owned(), 443)));
        for wrong in ["http://127.0.0.1:9443/v", "127.0.0.1:9443", "/validate", ""] {
            assert!(problem(wrong).is_some_and(|text| text.contains("https://127.0.0.1:9443/validate")), "{wrong}");
        }
    }
}
