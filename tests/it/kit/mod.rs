//! The kit in `grafana/`: rules and configurations as Prometheus and Alertmanager read them;
//! dashboards as Grafana does.

mod answer;
mod compose;
mod dashboards;
mod live;
mod promql;

use std::path::{Path, PathBuf};
use std::process::Command;

use dedupwatch::alert::rule::Rule;
use serde_json::Value;

use crate::support::TestApp;

/// A file or folder of the kit.
fn kit(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("grafana").join(path)
}

/// The files of a folder of the kit, in order; at least one.
fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(kit(folder)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "nothing in {folder}");
    files
}

/// A YAML file of the kit.
fn yaml(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// Runs a tool that must be content.
fn content(tool: &str, arguments: &[&str], files: &[PathBuf]) {
    let mut command = Command::new(tool);
    let output = command.args(arguments).args(files).output();
    let output = output.unwrap_or_else(|why| panic!("{tool}: {why}; see tests/run"));
    let told = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{tool} {arguments:?}: {}", told.concat());
}

#[test]
fn prometheus_takes_configuration_and_rules() {
    content("promtool", &["check", "config"], &[kit("prometheus/prometheus.yml")]);
    content("promtool", &["check", "rules", "--lint-fatal"], &files("prometheus/rules"));
}

#[test]
fn alerts_fire_when_they_must_and_not_before() {
    content("promtool", &["test", "rules"], &files("prometheus/tests"));
}

#[test]
fn alertmanager_takes_its_configuration_and_pages_for_what_is_critical() {
    let config = kit("prometheus/alertmanager.yml");
    content("amtool", &["check-config"], std::slice::from_ref(&config));
    let config = format!("--config.file={}", config.display());
    for (severity, receiver) in [("critical", "on-call"), ("warning", "tickets")] {
        let verify = format!("--verify.receivers={receiver}");
        let label = format!("severity={severity}");
        content("amtool", &["config", "routes", "test", &config, &verify, &label], &[]);
    }
}

/// What stands between two texts, each time.
fn between<'a>(text: &'a str, before: &'a str, after: char) -> Vec<&'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split(after).next()).collect()
}

#[test]
fn every_alert_is_tested() {
    let rules = std::fs::read_to_string(kit("prometheus/rules/alerts.yml")).unwrap();
    let tests = files("prometheus/tests").into_iter().map(std::fs::read_to_string);
    let tests = tests.map(Result::unwrap).collect::<String>();
    for alert in between(&rules, "- alert: ", '\n') {
        let fires = format!("        alertname: {alert}\n        exp_alerts:\n          - ");
        let rests = format!("alertname: {alert}, exp_alerts: []");
        assert!(tests.contains(&fires), "{alert} never fires");
        let own = alert == "DedupOwnAlert"; // nothing of its own that could rest
        assert!(own || tests.contains(&rests), "{alert} never rests");
    }
}

#[tokio::test]
async fn every_runbook_is_a_page_of_ours() {
    let rules = std::fs::read_to_string(kit("prometheus/rules/alerts.yml")).unwrap();
    let alerts = between(&rules, "- alert: ", '\n').len();
    let runbooks = between(&rules, "runbook_url: '{{ $externalLabels.dedupwatch }}", '\'');
    assert_eq!(runbooks.len() + rules.matches("annotations: *own").count(), alerts);
    let app = TestApp::start().await;
    for runbook in runbooks.iter().filter(|path| !path.contains("{{")) {
        assert_eq!(app.get(runbook).await.status, 200, "{runbook}");
    }
    app.stop().await;
}

/// `DedupOwnAlert` makes the topic out of the alert's name: between a small and a capital letter
/// comes an underscore.
#[test]
fn the_help_on_our_own_alerts_is_found_by_their_names() {
    for rule in Rule::ALL {
        let mut topic = String::new();
        for letter in rule.as_str().chars() {
            if letter.is_uppercase() && !topic.is_empty() {
                topic.push('_');
            }
            topic.extend(letter.to_lowercase());
        }
        assert_eq!(topic, rule.topic());
    }
}
