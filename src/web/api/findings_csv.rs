//! The list of findings as a table for spreadsheets: the same filters, up to 10,000 rows of one
//! instant.

use actix_web::http::header::{CONTENT_DISPOSITION, LINK};
use actix_web::{HttpRequest, HttpResponse, web};

use super::findings::{AS_OF, FILTERS, filter, format_key, parse_key};
use crate::audit::Finding;
use crate::limits;
use crate::outcome::{Id, Signature, format_us};
use crate::store::FindingRow;
use crate::web::AppState;
use crate::web::error::{ApiError, ErrorBody, Problem};
use crate::web::query::Params;

const PATH: &str = "/api/v1/findings.csv";

const HEADINGS: [&str; 31] = [
    "id",
    "kind",
    "severity",
    "state",
    "closed_because",
    "cause",
    "order",
    "coverage",
    "service",
    "env",
    "ledger",
    "source",
    "player",
    "session",
    "room",
    "round",
    "net",
    "final",
    "key",
    "count",
    "players",
    "first_at",
    "last_at",
    "opened_at",
    "overpaid",
    "overcharged",
    "underpaid",
    "undercharged",
    "exposure",
    "amounts_before_closing",
    "finding_url",
];

/// The findings that match as CSV, newest occurrence first. If there are more than 10,000, the
/// file is called `findings-incomplete.csv` and the header `Link` says where to go on.
#[utoipa::path(get, path = "/api/v1/findings.csv", tag = "findings", params(
    ("kind" = Option<String>, Query, description = "As of /api/v1/findings, like all the others"),
    ("after" = Option<String>, Query, description = "From the header `Link` of the answer before"),
), responses(
    (status = 200, description = "A header line, then one line for each finding",
        content_type = "text/csv", body = String),
    (status = 400, description = "A parameter is wrong", body = ErrorBody),
    (status = 503, description = "The database does not answer", body = ErrorBody),
))]
pub(in crate::web) async fn list(
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, ApiError> {
    let params = Params::parse(request.query_string(), &FILTERS)?;
    let filter = filter(&params)?;
    let limit = params.limit(limits::SCAN_ROWS_MAX)?;
    let after = params.after(parse_key)?;
    let page = state.store.findings(&filter, after.as_ref(), limit).await?;
    let body = table(&page.rows, &state.config.external_url).map_err(|error| {
        tracing::error!(%error, "a table of findings can't be written");
        let status = actix_web::http::StatusCode::INTERNAL_SERVER_ERROR;
        Problem::new(status, "internal", "The table can't be written. The log says why.")
    })?;
    let mut response = HttpResponse::Ok();
    response.content_type("text/csv; charset=utf-8").insert_header((AS_OF, page.as_of));
    let name = match &page.next {
        None => "findings.csv",
        Some(next) => {
            let next = params.address(PATH, Some(&format_key(next)));
            response.insert_header((LINK, format!("<{next}>; rel=\"next\"")));
            "findings-incomplete.csv"
        }
    };
    let attached = format!("attachment; filename=\"{name}\"");
    Ok(response.insert_header((CONTENT_DISPOSITION, attached)).body(body))
}

fn table(rows: &[FindingRow], external_url: &str) -> Result<Vec<u8>, csv::Error> {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(HEADINGS)?;
    for row in rows {
        table.write_record(line(row, external_url))?;
    }
    table.into_inner().map_err(|error| error.into_error().into())
}

fn line(row: &FindingRow, external_url: &str) -> [String; 31] {
    let it = &row.finding;
    let [session, room, round, net, last, key] = settlement(it);
    [
        it.id.clone(),
        it.kind.as_str().into(),
        it.severity.as_str().into(),
        it.state.as_str().into(),
        text(it.closed_because.as_deref()),
        text(Some(&it.cause)),
        it.order.as_str().into(),
        it.coverage.as_str().into(),
        text(Some(&it.service)),
        text(Some(&it.env)),
        text(it.ledger.as_deref()),
        text(it.source.as_ref().map(Id::as_str)),
        text(it.player.as_ref().map(Id::as_str)),
        session,
        room,
        round,
        net,
        last,
        key,
        it.count.to_string(),
        it.players.to_string(),
        format_us(it.first_us),
        format_us(it.last_us),
        format_us(row.opened_us),
        it.amounts.overpaid.to_string(),
        it.amounts.overcharged.to_string(),
        it.amounts.underpaid.to_string(),
        it.amounts.undercharged.to_string(),
        it.amounts.exposure.to_string(),
        it.amounts_before_closing.is_some().to_string(),
        format!("{external_url}/findings/{}", it.id),
    ]
}

/// Session, room, round, net, final, key.
fn settlement(finding: &Finding) -> [String; 6] {
    let none = String::new;
    match &finding.signature {
        None => [none(), none(), none(), none(), none(), none()],
        Some(Signature::Opaque { key, net }) => {
            [none(), none(), none(), net.0.to_string(), none(), text(Some(key.as_str()))]
        }
        Some(Signature::Settlement { game, net, last }) => [
            text(game.session.as_ref().map(Id::as_str)),
            text(Some(game.room.as_str())),
            text(Some(game.round.as_str())),
            net.0.to_string(),
            last.to_string(),
            none(),
        ],
    }
}

/// A text of a sender. Spreadsheets take one that begins like a formula for a formula; an
/// apostrophe before it makes it a text (OWASP, CSV injection). One that has the apostrophe of
/// itself gets another: it is another text.
fn text(text: Option<&str>) -> String {
    let text = text.unwrap_or_default();
    let bare = text.trim_start_matches('\'');
    if bare.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        return format!("'{text}");
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_text_of_a_sender_is_a_formula() {
        let text = |it| super::text(Some(it));
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"] {
            assert_eq!(text(formula), format!("'{formula}"));
        }
        assert_eq!([text("'=1"), text("''=1")], ["''=1", "'''=1"]);
        for plain in ["p-1001", "'", "", "12"] {
            assert_eq!(text(plain), plain);
        }
    }
}
