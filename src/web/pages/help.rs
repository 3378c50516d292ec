//! `/help` and `/help/TOPIC`: the rules in words, to which findings and alerts link as runbook.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::topics::{self, OF_ALERTS, Topic};
use super::{Shell, render};
use crate::audit::Kind;
use crate::web::AppState;
use crate::web::error::{PageError, Problem};
use crate::web::query::Params;

const HERE: &str = "/help";

#[derive(Template)]
#[template(path = "help.html")]
struct Help {
    shell: Shell,
    topic: &'static Topic,
    /// Whether findings can be listed by it.
    is_a_kind: bool,
}

#[derive(Template)]
#[template(path = "topics.html")]
struct Topics {
    shell: Shell,
    kinds: Vec<&'static Topic>,
    alerts: Vec<&'static Topic>,
}

/// One topic.
pub(in crate::web) async fn show(
    request: HttpRequest,
    slug: web::Path<String>,
    state: web::Data<AppState>,
) -> Result<HttpResponse, PageError> {
    Params::parse(request.query_string(), &[])?;
    let topic = topics::all().find(|topic| topic.slug == *slug).ok_or_else(|| {
        let slug: String = slug.chars().take(64).collect();
        Problem::not_found(format!("There is no help on {slug}. /help lists all topics."))
    })?;
    let is_a_kind = Kind::parse(topic.slug).is_some();
    render(&Help { shell: Shell::new(HERE, state.clock.now_us()), topic, is_a_kind })
}

/// All topics.
pub(in crate::web) async fn list(
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, PageError> {
    Params::parse(request.query_string(), &[])?;
    render(&Topics {
        shell: Shell::new(HERE, state.clock.now_us()),
        kinds: Kind::ALL.into_iter().map(topics::of_kind).collect(),
        alerts: OF_ALERTS.into(),
    })
}

/// The address of a topic.
pub(super) fn url(topic: &Topic) -> String {
    format!("{HERE}/{}", topic.slug)
}
