//! The page of what went wrong: a page like the others, with a way back.

use actix_web::http::StatusCode;
use askama::Template;

use super::Shell;
use crate::web::error::Problem;

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
        StatusCode::BAD_REQUEST | StatusCode::METHOD_NOT_ALLOWED => "That address does not work",
        StatusCode::SERVICE_UNAVAILABLE => "Not now",
        _ => "Something went wrong",
    };
    let status = problem.status.as_u16();
    let page = ErrorPage { shell: Shell::timeless(), status, heading, message: &problem.message };
    page.render().unwrap_or_else(|_| problem.to_string())
}
