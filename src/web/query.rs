//! Parameters of an address. A wrong one is told with its name, what is wrong, and what would be
//! right: a filter that is silently ignored shows findings that were not asked for, and a typo in
//! a monitoring script would look like "nothing found".

use std::borrow::Cow;

use actix_web::web::Query;
use chrono::NaiveDateTime;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::error::Problem;
use crate::limits;
use crate::outcome::{Id, parse_us};

/// The parameters of one request; empty ones (a form sends those) count as not given.
#[derive(Debug)]
pub(super) struct Params(Vec<(String, String)>);

impl Params {
    /// Reads the query string; a parameter that is not known, or comes twice, is refused.
    pub(super) fn parse(query: &str, known: &[&str]) -> Result<Self, Problem> {
        let Query(mut pairs) = Query::<Vec<(String, String)>>::from_query(query)
            .map_err(|_| refused("the query", "is not valid percent-encoded UTF-8; encode it"))?;
        pairs.retain(|(_, value)| !value.is_empty());
        for (index, (name, _)) in pairs.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                let takes = match known {
                    [] => Cow::Borrowed("this address takes none"),
                    _ => Cow::Owned(format!("this address takes: {}", known.join(", "))),
                };
                return Err(refused(&short(name), &format!("is not known; {takes}")));
            }
            if pairs.iter().take(index).any(|(other, _)| other == name) {
                return Err(refused(name, "is given twice; give it once"));
            }
        }
        Ok(Self(pairs))
    }

    /// A parameter as it was sent.
    pub(super) fn raw(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// A name that a service gave to something.
    pub(super) fn id(&self, name: &str) -> Result<Option<String>, Problem> {
        let Some(value) = self.raw(name) else { return Ok(None) };
        match Id::parse(value) {
            Ok(id) => Ok(Some(id.as_str().to_owned())),
            Err(error) => Err(refused(name, &error.to_string())),
        }
    }

    /// One of a few words.
    pub(super) fn word(&self, name: &str, words: &[&str]) -> Result<Option<String>, Problem> {
        match self.raw(name) {
            Some(value) if !words.contains(&value) => {
                let told =
                    format!("{:?} is not known; use one of: {}", short(value), words.join(", "));
                Err(refused(name, &told))
            }
            value => Ok(value.map(str::to_owned)),
        }
    }

    /// A moment: RFC 3339, or as a form sends it (`2026-11-30T12:00`), then UTC.
    pub(super) fn time_us(&self, name: &str) -> Result<Option<i64>, Problem> {
        let Some(value) = self.raw(name) else { return Ok(None) };
        parse_us(value).or_else(|| parse_form_time(value)).map(Some).ok_or_else(|| {
            refused(name, "is no time; use RFC 3339 in UTC, as 2026-11-30T12:00:00Z")
        })
    }

    /// A whole number from `least` to `most`.
    pub(super) fn number(&self, name: &str, least: u32, most: u32) -> Result<Option<u32>, Problem> {
        let Some(value) = self.raw(name) else { return Ok(None) };
        match value.parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(refused(name, &format!("must be a whole number from {least} to {most}"))),
        }
    }

    /// This address from another place of the list on; without one, from its first.
    pub(super) fn address(&self, path: &str, after: Option<&str>) -> String {
        let kept = self.0.iter().filter(|(name, _)| name != "after");
        let kept = kept.map(|(name, value)| (name.as_str(), value.as_str()));
        let pairs = kept.chain(after.map(|after| ("after", after)));
        let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
        let pairs: Vec<String> =
            pairs.map(|(name, value)| format!("{name}={}", encode(value))).collect();
        if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
    }

    /// How many rows are wanted.
    pub(super) fn limit(&self, default: u32) -> Result<u32, Problem> {
        Ok(self.number("limit", 1, limits::LIST_ROWS_MAX)?.unwrap_or(default))
    }

    /// The place to go on from, as the answer before gave it in `next`.
    pub(super) fn after<T>(&self, read: impl Fn(&str) -> Option<T>) -> Result<Option<T>, Problem> {
        let Some(value) = self.raw("after") else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| {
            refused("after", "is no place in this list; use `next` of the answer before")
        })
    }
}

fn parse_form_time(value: &str) -> Option<i64> {
    ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S%.f"]
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(value, format).ok())
        .map(|time| time.and_utc().timestamp_micros())
}

pub(super) fn refused(name: &str, told: &str) -> Problem {
    Problem::bad_request("bad_parameter", format!("parameter `{name}`: {told}"))
}

/// What was sent, cut to what fits a sentence.
fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<T: std::fmt::Debug>(result: Result<T, Problem>) -> String {
        result.unwrap_err().message
    }

    #[test]
    fn reads_what_is_right() {
        let query = "kind=a%20b&from=2026-11-30T12:00:00Z&to=2026-11-30T12:00&limit=5&service=";
        let params = Params::parse(query, &["kind", "from", "to", "limit", "service"]).unwrap();
        assert_eq!(params.id("kind").unwrap().as_deref(), Some("a b"));
        assert_eq!(params.time_us("from").unwrap(), params.time_us("to").unwrap());
        assert_eq!(params.limit(100).unwrap(), 5);
        assert_eq!(params.id("service").unwrap(), None);
    }

    #[test]
    fn an_address_keeps_what_was_asked_for() {
        let params = Params::parse("a=x%20y&after=1&b=", &["a", "after", "b"]).unwrap();
        assert_eq!(params.address("/p", Some("2.3")), "/p?a=x%20y&after=2%2E3");
        assert_eq!(params.address("/p", None), "/p?a=x%20y");
        assert_eq!(Params::parse("", &[]).unwrap().address("/p", None), "/p");
    }

    #[test]
    fn tells_what_is_wrong_where_and_what_to_do() {
        let known = ["state", "limit", "from", "after", "player"];
        let unknown = message(Params::parse("stat=open", &known));
        assert!(unknown.contains("`stat`") && unknown.contains("state, limit"), "{unknown}");
        assert!(message(Params::parse("limit=1&limit=2", &known)).contains("twice"));
        assert!(message(Params::parse("x=1", &[])).contains("takes none"));
        let params = |query| Params::parse(query, &known).unwrap();
        let words = message(params("state=open").word("state", &["suspected", "closed"]));
        assert!(words.contains("suspected, closed"), "{words}");
        for limit in ["0", "1001", "-1", "1e3", "x"] {
            let query = format!("limit={limit}");
            let told = message(Params::parse(&query, &known).unwrap().limit(100));
            assert!(told.contains("1 to 1000"), "{told}");
        }
        assert!(message(params("from=yesterday").time_us("from")).contains("RFC 3339"));
        assert!(message(params("player=a%00b").id("player")).contains("control"));
        let after = params("after=x").after(|text| text.parse::<i64>().ok());
        assert!(message(after).contains("`next`"));
    }
}
