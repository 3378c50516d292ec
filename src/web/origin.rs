//! Keeps other sites from closing findings through a reader's browser: a request that a browser
//! marks as coming from elsewhere is refused. Requests of programs carry no such marks. That the
//! host is ours is known before ([`super::host`]): else a site under a name of its own that leads
//! here would pass for us.

use actix_web::HttpRequest;
use actix_web::http::{StatusCode, header};

use super::error::Problem;

/// Refuses what a browser sent for another site.
pub(super) fn check(request: &HttpRequest) -> Result<(), Problem> {
    let header = |name: &str| request.headers().get(name).map(|value| value.as_bytes());
    let same = match (header("sec-fetch-site"), header(header::ORIGIN.as_str())) {
        (Some(site), _) => matches!(site, b"same-origin" | b"none"),
        (None, Some(origin)) => is_host(origin, header(header::HOST.as_str())),
        (None, None) => true,
    };
    match same {
        true => Ok(()),
        false => Err(Problem::new(
            StatusCode::FORBIDDEN,
            "other_origin",
            "This was sent from another site. Open the finding here and close it here.",
        )),
    }
}

/// Whether `http://HOST` or `https://HOST` names this host.
fn is_host(origin: &[u8], host: Option<&[u8]>) -> bool {
    let named = [&b"http://"[..], b"https://"].into_iter().find_map(|it| origin.strip_prefix(it));
    named.is_some() && named == host
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    fn is_taken(headers: &[(&str, &str)]) -> bool {
        let start = TestRequest::default().insert_header(("host", "audit:9736"));
        let headers = headers.iter().copied();
        let request = headers.fold(start, |request, header| request.insert_header(header));
        check(&request.to_http_request()).is_ok()
    }

    #[test]
    fn takes_our_own_pages_and_programs_alone() {
        assert!(is_taken(&[]));
        assert!(is_taken(&[("sec-fetch-site", "same-origin"), ("origin", "http://audit:9736")]));
        assert!(is_taken(&[("origin", "https://audit:9736")]));
        assert!(!is_taken(&[("sec-fetch-site", "cross-site")]));
        assert!(!is_taken(&[("sec-fetch-site", "same-site")]));
        assert!(!is_taken(&[("origin", "http://evil:9736")]));
        assert!(!is_taken(&[("origin", "null")]));
    }
}
