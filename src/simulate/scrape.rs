//! What a collector says of itself on `/metrics`.

/// The value of one series; `None` where there is none.
pub(super) async fn scrape<T: std::str::FromStr>(
    http: &reqwest::Client,
    target: &str,
    series: &str,
) -> Result<Option<T>, reqwest::Error> {
    let response = http.get(format!("{target}/metrics")).send().await?;
    if !response.status().is_success() {
        return Ok(None);
    }
    Ok(sample(&response.text().await?, series))
}

/// How far the audit is behind the log.
pub(super) async fn audit_lag_s(
    http: &reqwest::Client,
    target: &str,
) -> Result<Option<f64>, reqwest::Error> {
    scrape(http, target, "dedupwatch_audit_lag_seconds").await
}

fn sample<T: std::str::FromStr>(text: &str, series: &str) -> Option<T> {
    let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
    value.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_read_from_the_text_format() {
        let text = "# TYPE a counter\na{x=\"1\"} 5\na{x=\"10\"} 6\nlag 0.25\n";
        assert_eq!(sample::<u64>(text, "a{x=\"1\"}"), Some(5));
        assert_eq!(sample::<f64>(text, "lag"), Some(0.25));
        assert_eq!(sample::<u64>(text, "b"), None);
    }
}
