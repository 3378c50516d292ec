//! The API's description, made from the handlers, so that it can't say what they don't do. A test
//! holds it against the routes.

use actix_web::HttpResponse;
use utoipa::OpenApi;

use crate::web::health;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "dedupwatch",
        description = "Independent audit of settlement deduplication. Amounts and 64-bit numbers \
                       are strings; times are RFC 3339, UTC."
    ),
    paths(
        health::healthy,
        health::ready,
        health::metrics,
        super::alerts::list,
        super::close::close,
        super::config::show,
        super::findings::list,
        super::findings::one,
        super::findings_csv::list,
        super::ingest::outcomes,
        super::ingest::heartbeats,
        super::ingest::transitions,
        super::outcomes::list,
        super::players::one,
        super::services::list,
        super::services::one,
        super::sources::list,
        super::transitions::list,
        show,
    )
)]
struct Description;

/// This description.
#[utoipa::path(get, path = "/openapi.json", tag = "config",
    responses((status = 200, description = "OpenAPI 3.1", body = Object)))]
pub(in crate::web) async fn show() -> HttpResponse {
    HttpResponse::Ok().json(Description::openapi())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every route of the screen of routes that is not a page: path and method.
    fn routes() -> Vec<(String, String)> {
        let text = include_str!("../mod.rs");
        let mut routes = Vec::new();
        for call in text.split(".service(at(\"").skip(1) {
            let (path, rest) = call.split_once('"').unwrap();
            let call = rest.split(".service(").next().unwrap();
            for method in ["get", "post"] {
                let here = call.matches(&format!(".{method}(")).count();
                let page = call.contains(&format!(".{method}(pages::"));
                assert!(here <= 1, "{path}: one handler for each method");
                if here == 1 && !page {
                    routes.push((path.to_owned(), method.to_owned()));
                }
            }
        }
        routes
    }

    #[test]
    fn describes_every_route_and_nothing_else() {
        let description = serde_json::to_value(Description::openapi()).unwrap();
        let mut told = Vec::new();
        for (path, item) in description["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                assert!(operation["responses"].is_object(), "{method} {path} tells no answer");
                told.push((path.clone(), method.clone()));
            }
        }
        let mut routes = routes();
        routes.sort();
        told.sort();
        assert!(routes.len() > 10, "the routes are read from the source: {routes:?}");
        assert_eq!(told, routes);
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let text = Description::openapi().to_json().unwrap();
        let description: serde_json::Value = serde_json::from_str(&text).unwrap();
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().unwrap();
            assert!(description.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
