//! Who reports, and what of it is missing.

use actix_web::{HttpRequest, web};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::Serialize;

use crate::audit::Blind;
use crate::outcome::format_us;
use crate::store::{SourceRow, size_of};
use crate::web::AppState;
use crate::web::coverage;
use crate::web::error::{ApiError, ErrorBody, Problem};
use crate::web::query::Params;

/// One guard instance. 64-bit numbers are strings.
#[derive(Serialize, utoipa::ToSchema)]
pub struct SourceView {
    /// Which service.
    service: String,
    /// Which env.
    env: String,
    /// Which instance.
    source: String,
    /// `open`, `silent` (watched, and not heard) or `closed` (said goodbye).
    state: String,
    /// Whether it sends heartbeats; only then can it be called silent.
    watched: bool,
    /// Receipt of its newest push or heartbeat.
    last_push_at: String,
    /// Receipt of its newest heartbeat.
    last_heartbeat_at: Option<String>,
    /// Its newest run; null if its events are not counted.
    boot: Option<BootView>,
    /// The newest stretches in which something may have happened unheard, newest first.
    blind: Vec<BlindView>,
}

/// A stretch of time, by the source's clock.
#[derive(Serialize, utoipa::ToSchema)]
pub struct BlindView {
    /// From here.
    from: String,
    /// To here.
    to: String,
}

/// One run of a source.
#[derive(Serialize, utoipa::ToSchema)]
pub struct BootView {
    /// Its start time or number.
    boot: String,
    /// Receipt of its first word.
    first_received_at: String,
    /// Receipt of its newest word.
    last_received_at: String,
    /// Highest number that came or that a heartbeat named.
    last_seq: String,
    /// Numbers that were taken; null if `lost_at_most` is not 0: those between the lost ones are
    /// in the log, and not counted.
    received: Option<String>,
    /// Numbers that came and were refused.
    refused: String,
    /// Numbers from the first to the last that is not taken any more, as the boot had too many
    /// holes. Those that came before are among them.
    lost_at_most: String,
    /// Numbers that did not come.
    missing: String,
}

/// A part of the list.
#[derive(Serialize, utoipa::ToSchema)]
pub struct Sources {
    /// By service, env and source.
    sources: Vec<SourceView>,
    /// For `after`; null at the end.
    next: Option<String>,
}

/// The sources, by service, env and name.
#[utoipa::path(get, path = "/api/v1/sources", tag = "sources", params(
    ("service" = Option<String>, Query),
    ("env" = Option<String>, Query),
    ("limit" = Option<u32>, Query, description = "1 to 1,000; 100 by default"),
    ("after" = Option<String>, Query, description = "`next` of the answer before"),
), responses(
    (status = 200, body = Sources),
    (status = 400, description = "A parameter is wrong", body = ErrorBody),
    (status = 503, description = "The database does not answer", body = ErrorBody),
))]
pub(in crate::web) async fn list(
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<web::Json<Sources>, ApiError> {
    let params = Params::parse(request.query_string(), &FILTERS)?;
    let rows = read(&params, 100, &state).await?;
    let next = next(&params, 100, &rows)?;
    let blind = coverage::blind(&state.store, &rows).await?;
    let view = |row: SourceRow| {
        let stretches = row.name().and_then(|name| blind.get(&name)).map_or(&[][..], Vec::as_slice);
        view(row, stretches)
    };
    Ok(web::Json(Sources { sources: rows.into_iter().map(view).collect(), next }))
}

/// Parameters of the list.
pub(in crate::web) const FILTERS: [&str; 4] = ["service", "env", "limit", "after"];

/// The part of the list that the parameters ask for; the page of sources has the same.
pub(in crate::web) async fn read(
    params: &Params,
    limit: u32,
    state: &AppState,
) -> Result<Vec<SourceRow>, Problem> {
    let (service, env) = (params.id("service")?, params.id("env")?);
    let after = params.after(parse_key)?;
    let after = after
        .as_ref()
        .map(|[service, env, source]| (service.as_str(), env.as_str(), source.as_str()));
    let limit = params.limit(limit)?;
    Ok(state.store.sources(after, service.as_deref(), env.as_deref(), limit).await?)
}

/// Where the list goes on after these rows; `None` at its end.
pub(in crate::web) fn next(
    params: &Params,
    limit: u32,
    rows: &[SourceRow],
) -> Result<Option<String>, Problem> {
    let limit = params.limit(limit)? as usize;
    Ok(rows.last().filter(|_| rows.len() >= limit).map(format_key))
}

/// The place of a source in the list, for `after`: names may hold anything, so each is encoded.
fn format_key(row: &SourceRow) -> String {
    [&row.service, &row.env, &row.source]
        .map(|name| utf8_percent_encode(name, NON_ALPHANUMERIC).to_string())
        .join(".")
}

/// Reads [`format_key`] back.
fn parse_key(text: &str) -> Option<[String; 3]> {
    let names: Vec<String> = text
        .split('.')
        .map(|name| percent_decode_str(name).decode_utf8().map(String::from))
        .collect::<Result<_, _>>()
        .ok()?;
    names.try_into().ok()
}

/// A source outside.
fn view(row: SourceRow, blind: &[Blind]) -> SourceView {
    let stretch = |it: &Blind| BlindView { from: format_us(it.from_us), to: format_us(it.to_us) };
    SourceView {
        blind: blind.iter().map(stretch).collect(),
        service: row.service,
        env: row.env,
        source: row.source,
        state: row.state,
        watched: row.last_heartbeat_us.is_some(),
        last_push_at: format_us(row.last_push_us),
        last_heartbeat_at: row.last_heartbeat_us.map(format_us),
        boot: row.boot.map(|boot| BootView {
            missing: size_of(&boot.missing()).to_string(),
            received: boot.taken().map(|count| count.to_string()),
            refused: size_of(&boot.refused).to_string(),
            lost_at_most: size_of(&boot.lost).to_string(),
            boot: boot.boot,
            first_received_at: format_us(boot.first_received_us),
            last_received_at: format_us(boot.last_received_us),
            last_seq: boot.last_seq.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_any_name() {
        let row = SourceRow {
            service: "a.b%".into(),
            env: "prod".into(),
            source: "é/x".into(),
            state: "open".into(),
            last_push_us: 0,
            last_heartbeat_us: None,
            boot: None,
        };
        let key = parse_key(&format_key(&row)).unwrap();
        assert_eq!(key, [row.service, row.env, row.source]);
        assert_eq!(parse_key("a.b"), None);
    }
}
