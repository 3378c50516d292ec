//! The page of what went wrong: a page like the others, with a way back.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use askama::Template;

use super::Shell;
use crate::web::error::{ApiError, PageError, Problem};

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    shell: Shell,
    status: u16,
    heading: &'static str,
    message: &'a str,
}

/// The page of a problem.
pub(in crate::web) fn render(problem: &Problem) -> String {
    let heading = match problem.status {
        StatusCode::NOT_FOUND => "Not here",
        StatusCode::BAD_REQUEST => "That address does not work",
        StatusCode::SERVICE_UNAVAILABLE => "Not now",
        _ => "Something went wrong",
    };
    let status = problem.status.as_u16();
    let page = ErrorPage { shell: Shell::timeless(), status, heading, message: &problem.message };
    page.render().unwrap_or_else(|_| problem.to_string())
}

/// The answer where no route is: JSON for the API, a page for people.
pub(in crate::web) async fn not_found(request: HttpRequest) -> HttpResponse {
    let path = request.path();
    if path.starts_with("/api/") {
        let message = format!("There is nothing at {path}. /openapi.json lists what there is.");
        return ApiError(Problem::not_found(message)).error_response();
    }
    let message = format!("There is no page at {path}.");
    PageError(Problem::not_found(message)).error_response()
}
