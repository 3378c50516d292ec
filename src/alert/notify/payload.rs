//! What the webhook gets: the payload of Alertmanager's webhook, version 4, so that whatever takes
//! that takes this. Each alert is a group of its own.
//!
//! <https://prometheus.io/docs/alerting/latest/configuration/#webhook_config>

use std::collections::BTreeMap;

use serde::Serialize;

use super::text;
use crate::alert::key::{Key, page};
use crate::alert::state::{AlertState, Instance};
use crate::outcome::format_us;

/// The end of what has not ended, as Alertmanager writes it (the zero time of Go).
const NO_END: &str = "0001-01-01T00:00:00Z";

type Texts = BTreeMap<&'static str, String>;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Payload<'a> {
    version: &'static str,
    group_key: String,
    truncated_alerts: u64,
    status: &'static str,
    receiver: &'a str,
    group_labels: Texts,
    common_labels: Texts,
    common_annotations: Texts,
    #[serde(rename = "externalURL")]
    external_url: &'a str,
    alerts: [Alert; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Alert {
    status: &'static str,
    labels: Texts,
    annotations: Texts,
    starts_at: String,
    ends_at: String,
    #[serde(rename = "generatorURL")]
    generator_url: String,
    fingerprint: String,
}

/// The payload about an alert, as JSON.
pub(in crate::alert) fn render(
    key: &Key,
    alert: &Instance,
    receiver: &str,
    external_url: &str,
) -> Result<String, serde_json::Error> {
    let external_url = external_url.trim_end_matches('/');
    let status = match alert.state {
        AlertState::Resolved => "resolved",
        AlertState::Pending | AlertState::Firing => "firing",
    };
    let group: Texts = key.labels().map(|(name, value)| (name, value.to_owned())).into();
    let mut labels = group.clone();
    labels.insert("severity", alert.seen.severity.as_str().to_owned());
    let annotations = annotations(key, alert, external_url);
    let payload = Payload {
        version: "4",
        group_key: group_key(&group),
        truncated_alerts: 0,
        status,
        receiver,
        group_labels: group,
        common_labels: labels.clone(),
        common_annotations: annotations.clone(),
        external_url,
        alerts: [Alert {
            status,
            labels,
            annotations,
            starts_at: format_us(alert.started_us),
            ends_at: alert.ended_us.map_or(NO_END.into(), format_us),
            generator_url: format!("{external_url}/alerts"),
            fingerprint: key.fingerprint(),
        }],
    };
    serde_json::to_string(&payload)
}

/// As Alertmanager has it: the route (there is one), then the labels of the group.
fn group_key(group: &Texts) -> String {
    let labels: Vec<String> =
        group.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    format!("{{}}:{{{}}}", labels.join(", "))
}

fn annotations(key: &Key, alert: &Instance, external_url: &str) -> Texts {
    let page = page(Some(key.rule), &key.service, &key.env);
    let mut annotations = Texts::from([
        ("summary", text::summary(key)),
        ("description", text::description(key, alert)),
        ("runbook_url", format!("{external_url}/help/{}", key.rule.topic())),
        ("evidence_url", format!("{external_url}{page}")),
        ("alerts_url", format!("{external_url}/alerts")),
    ]);
    if let (Some(_), Some(finding)) = (key.rule.kind(), &alert.seen.example) {
        annotations.insert("newest_finding_url", format!("{external_url}/findings/{finding}"));
    }
    annotations
}
