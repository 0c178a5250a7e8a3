//! The address of the page on which a subject tells what it believes in.

use hyper::Uri;

/// Host with port, and the whole address; or what is wrong with it.
pub(crate) fn page_address(url: &str) -> Result<(String, Uri), String> {
    let example = "write for example `http://127.0.0.1:9000/world`";
    let uri: Uri = url.parse().map_err(|error| format!("`{url}` is no address ({error}): {example}"))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http"), Some(host)) => Ok((format!("{host}:{}", uri.port_u16().unwrap_or(80)), uri)),
        _ => Err(format!("`{url}` is no address of a page: {example}")),
    }
}

#[cfg(test)]
mod tests {
    use super::page_address;

    #[test]
    fn addresses_are_of_pages() {
        assert_eq!(page_address("http://127.0.0.1:9000/world").unwrap().0, "127.0.0.1:9000");
        assert_eq!(page_address("http://localhost/").unwrap().0, "localhost:80");
        for wrong in ["127.0.0.1:9000", "https://127.0.0.1/", "world", ""] {
            assert!(page_address(wrong).unwrap_err().contains("write for example"), "{wrong}");
        }
    }
}
