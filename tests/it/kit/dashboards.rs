//! The dashboards as files: what Grafana would refuse or draw wrong, and what would mislead.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use dedupwatch::alert::rule::Rule;
use dedupwatch::audit::Kind;
use dedupwatch::metrics;
use serde_json::Value;

use super::promql;
use super::{between, files, kit, yaml};
use crate::support::{TestApp, events, rfc3339};

/// Metrics that no panel and no rule uses, each with the reason.
const UNUSED: [(&str, &str); 0] = [];

/// What Prometheus itself says of what it scrapes and of alerts.
const OF_PROMETHEUS: [&str; 2] = ["up", "ALERTS"];

/// A dashboard.
pub(super) struct Dashboard {
    /// `overview`.
    pub(super) name: String,
    pub(super) json: Value,
}

impl Dashboard {
    pub(super) fn all() -> Vec<Self> {
        let read = |path: PathBuf| Self {
            name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
            json: serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap(),
        };
        files("dashboards").into_iter().map(read).collect()
    }

    /// All panels; those that are rows have nothing in them.
    fn panels(&self) -> &[Value] {
        array(&self.json["panels"])
    }

    /// The panels that show something, each with its name for messages.
    pub(super) fn shown(&self) -> impl Iterator<Item = (String, &Value)> {
        let shown = self.panels().iter().filter(|panel| panel["type"] != "row");
        shown.map(|panel| (format!("{}: {}", self.name, text(&panel["title"])), panel))
    }

    /// Every expression with where it stands: of panels, and of annotations.
    pub(super) fn expressions(&self) -> Vec<(String, &str)> {
        let targets = self.shown().flat_map(|(name, panel)| {
            let targets = array(&panel["targets"]).iter();
            targets.map(move |target| (name.clone(), text(&target["expr"])))
        });
        let annotations = array(&self.json["annotations"]["list"]).iter().map(|annotation| {
            let name = format!("{}: annotation {}", self.name, text(&annotation["name"]));
            (name, text(&annotation["target"]["expr"]))
        });
        targets.chain(annotations).collect()
    }

    pub(super) fn variables(&self) -> BTreeMap<&str, &Value> {
        let list = array(&self.json["templating"]["list"]).iter();
        list.map(|variable| (text(&variable["name"]), variable)).collect()
    }

    /// Every address that a panel or the dashboard links to.
    fn links(&self) -> Vec<&str> {
        let of_panels = self
            .panels()
            .iter()
            .flat_map(|panel| [&panel["links"], &panel["fieldConfig"]["defaults"]["links"]]);
        let lists = of_panels.chain([&self.json["links"]]).filter_map(Value::as_array);
        lists.flatten().map(|link| text(&link["url"])).filter(|url| !url.is_empty()).collect()
    }
}

#[track_caller]
pub(super) fn array(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

#[track_caller]
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// Every expression of the rules, with the name of its rule.
pub(super) fn rules() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for file in files("prometheus/rules") {
        let file = yaml(&file);
        for rule in array(&file["groups"]).iter().flat_map(|group| array(&group["rules"])) {
            let name = rule.get("alert").or(rule.get("record")).unwrap();
            all.push((text(name).to_owned(), text(&rule["expr"]).to_owned()));
        }
    }
    all
}

#[test]
fn each_dashboard_is_found_where_links_look_for_it() {
    let uids = Dashboard::all().into_iter().map(|it| text(&it.json["uid"]).to_owned());
    let fixed = ["dedupwatch-collector", "dedupwatch-overview", "dedupwatch-service"];
    assert_eq!(uids.collect::<Vec<_>>(), fixed);
    for dashboard in Dashboard::all() {
        assert_eq!(text(&dashboard.json["uid"]), format!("dedupwatch-{}", dashboard.name));
        assert_eq!(dashboard.json["schemaVersion"], 42, "{}", dashboard.name);
    }
}

#[test]
fn every_dashboard_stands_in_the_readme() {
    let readme = std::fs::read_to_string(kit("../README.md")).unwrap();
    for dashboard in Dashboard::all() {
        let [uid, what] = ["uid", "description"].map(|key| text(&dashboard.json[key]));
        let row = format!("| `{uid}` | {what} |\n");
        assert!(readme.contains(&row), "missing: {row}");
    }
}

#[test]
fn each_panel_has_its_own_id_and_its_own_place() {
    for dashboard in Dashboard::all() {
        let (mut ids, mut taken) = (BTreeSet::new(), BTreeMap::new());
        for panel in dashboard.panels() {
            let name = format!("{}: {}", dashboard.name, text(&panel["title"]));
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{name}: id is taken");
            let [x, y, w, h] =
                ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
            assert!(w > 0 && h > 0 && x + w <= 24, "{name}: out of the 24 columns");
            for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
                let other = taken.insert(cell, name.clone());
                assert_eq!(other, None, "{name} overlaps at {cell:?}");
            }
        }
    }
}

#[test]
fn each_panel_says_what_it_shows_and_in_which_unit() {
    for dashboard in Dashboard::all() {
        for (name, panel) in dashboard.shown() {
            let description = text(&panel["description"]);
            assert!(description.ends_with('.') && description.len() > 20, "{name}: {description}");
            let defaults = &panel["fieldConfig"]["defaults"];
            assert!(!text(&defaults["unit"]).is_empty(), "{name}: no unit");
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{name}");
            let targets = array(&panel["targets"]).iter();
            let refs: BTreeSet<&str> = targets.map(|target| text(&target["refId"])).collect();
            assert!(!refs.is_empty() && refs.len() == array(&panel["targets"]).len(), "{name}");
            // A number by itself must say whether it is good.
            let steps = defaults["thresholds"]["steps"].as_array();
            assert!(panel["type"] != "stat" || steps.is_some(), "{name}: no thresholds");
            if let Some(steps) = steps {
                assert!(steps[0]["value"].is_null(), "{name}: the lowest step has no value");
                let values = steps[1..].iter().map(|step| step["value"].as_f64().unwrap());
                assert!(values.is_sorted(), "{name}: thresholds rise");
            }
        }
    }
}

#[test]
fn each_dashboard_asks_for_data_source_service_and_env() {
    for dashboard in Dashboard::all() {
        let variables = dashboard.variables();
        for needed in ["datasource", "service", "env", "pages"] {
            assert!(variables.contains_key(needed), "{}: no {needed}", dashboard.name);
        }
        let source = yaml(&kit("provisioning/datasources/prometheus.yml"));
        let uid = &source["datasources"][0]["uid"];
        assert_eq!(&variables["datasource"]["current"]["value"], uid);
        let all = dashboard.json.to_string();
        for used in all.split('$').skip(1) {
            let used = used.trim_start_matches('{');
            let end = used.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap();
            let builtin = ["__rate_interval", "__range", "__from", "__to", "__field", "__all"];
            let known = variables.contains_key(&used[..end]) || builtin.contains(&&used[..end]);
            assert!(known, "{}: ${} is no variable", dashboard.name, &used[..end]);
        }
    }
}

#[test]
fn the_dashboards_are_provisioned_with_the_scrape_interval_of_prometheus() {
    let providers = yaml(&kit("provisioning/dashboards/dedupwatch.yml"));
    assert_eq!(providers["providers"][0]["type"], "file");
    let source = yaml(&kit("provisioning/datasources/prometheus.yml"));
    let source = &source["datasources"][0];
    assert_eq!(source["type"], "prometheus");
    let prometheus = yaml(&kit("prometheus/prometheus.yml"));
    assert_eq!(source["jsonData"]["timeInterval"], prometheus["global"]["scrape_interval"]);
}

/// Names of our metrics.
fn ours() -> BTreeSet<String> {
    metrics::described().map(|(name, _)| name.split('{').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn no_metric_is_unknown_and_none_is_forgotten() {
    let app = TestApp::start().await;
    let scraped = app.get("/metrics").await.body;
    app.stop().await;
    let mut known: BTreeSet<String> = ours();
    known.extend(between(&scraped, "# TYPE ", ' ').into_iter().map(str::to_owned));
    let rules = rules();
    let recorded = rules.iter().map(|(name, _)| name).filter(|name| name.contains(':'));
    known.extend(recorded.cloned());
    known.extend(OF_PROMETHEUS.map(str::to_owned));

    let dashboards = Dashboard::all();
    let shown = dashboards.iter().flat_map(Dashboard::expressions);
    let ruled = rules.iter().map(|(name, expression)| (name.clone(), expression.as_str()));
    let mut used = BTreeSet::new();
    for (place, expression) in shown.chain(ruled) {
        for name in promql::metrics(expression) {
            let family = name.strip_suffix("_bucket").unwrap_or(&name).to_owned();
            assert!(known.contains(&family), "{place}: {family} is no metric");
            used.insert(family);
        }
    }
    let unused: BTreeSet<String> = ours().difference(&used).cloned().collect();
    let excused: BTreeSet<String> = UNUSED.map(|(name, _)| name.to_owned()).into();
    assert_eq!(unused, excused, "left: what no panel and no rule uses");
    let recorded: BTreeSet<&String> = rules.iter().map(|(name, _)| name).collect();
    let forgotten = recorded.iter().filter(|name| name.contains(':') && !used.contains(**name));
    assert_eq!(forgotten.count(), 0, "recorded and not used");
}

/// A kind or an alert with a typo would be a panel that shows for ever that nothing is wrong.
#[test]
fn every_kind_and_every_alert_that_is_asked_for_exists() {
    let rules = rules();
    let kinds: BTreeSet<&str> = Kind::ALL.into_iter().map(Kind::as_str).collect();
    let mut alerts: BTreeSet<&str> = Rule::ALL.into_iter().map(Rule::as_str).collect();
    alerts.insert("Dedupwatch.+");
    let dashboards = Dashboard::all();
    let shown = dashboards.iter().flat_map(Dashboard::expressions);
    let ruled = rules.iter().map(|(name, expression)| (name.clone(), expression.as_str()));
    let mut seen = 0;
    for (place, expression) in shown.chain(ruled) {
        for (label, known) in [("kind", &kinds), ("alertname", &alerts)] {
            for operator in ["=\"", "=~\"", "!~\""] {
                for names in between(expression, &format!("{label}{operator}"), '"') {
                    let unknown = names.split('|').find(|name| !known.contains(name));
                    assert_eq!(unknown, None, "{place}: no such {label}");
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 10, "only {seen} were seen");
}

#[tokio::test]
async fn every_link_leads_to_a_page() {
    let app = TestApp::start().await;
    assert_eq!(app.push(&events(1, 3)).await.status, 200);
    let end_us = crate::support::now_us();
    let filled = [
        ("${pages}", String::new()),
        ("${service:percentencode}", "settle-poker".into()),
        ("${env:percentencode}", "prod".into()),
        ("${__field.labels.service:percentencode}", "settle-poker".into()),
        ("${__field.labels.kind:percentencode}", "telemetry_gap".into()),
        ("${__from:date:iso}", rfc3339(end_us - 3_600_000_000)),
        ("${__to:date:iso}", rfc3339(end_us)),
    ];
    let mut paths = BTreeSet::new();
    for dashboard in Dashboard::all() {
        for link in dashboard.links() {
            assert!(link.starts_with("${pages}/"), "{}: {link}", dashboard.name);
            let path = filled
                .iter()
                .fold(link.to_owned(), |link, (variable, value)| link.replace(variable, value));
            assert!(!path.contains('$'), "{}: {link}", dashboard.name);
            paths.insert(path);
        }
    }
    assert!(paths.iter().filter(|path| path.contains("from=")).count() > 5);
    app.wait_for_text("/services/settle-poker", "settle-poker").await;
    for path in paths {
        let reply = app.get(&path).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
    }
    app.stop().await;
}
