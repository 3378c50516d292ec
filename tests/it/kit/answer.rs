//! The panel that answers "Is money safe now?", in one world after the other: it may say yes only
//! where everybody is heard and nothing says otherwise. `promtool` evaluates it.

use std::collections::BTreeSet;

use dedupwatch::audit::Kind;
use serde_json::{Value, json};

use super::dashboards::{Dashboard, text};
use super::{between, content};

/// Its name, what a Prometheus has of it beyond `heard`, and the answer, or none.
struct World(&'static str, &'static [(&'static str, u8)], Option<u8>);

const OPEN: (&str, u8) = (r#"dedup_sources{service="a", env="prod", state="open"}"#, 1);
const SILENT: (&str, u8) = (r#"dedup_sources{service="a", env="prod", state="silent"}"#, 1);
const NOT_SILENT: (&str, u8) = (r#"dedup_sources{service="a", env="prod", state="silent"}"#, 0);
const MISSING: (&str, u8) = (r#"dedup_open_findings{service="a", kind="telemetry_gap"}"#, 1);
const CLOCK: (&str, u8) = (r#"dedup_open_findings{service="a", kind="clock_rollback"}"#, 1);
const LEAK: (&str, u8) = (r#"dedup_open_findings{service="a", kind="duplicate_leak"}"#, 1);
const NO_LEAK: (&str, u8) = (r#"dedup_open_findings{service="a", kind="duplicate_leak"}"#, 0);
const LEAKS: (&str, u8) =
    (r#"dedup_alerts{service="a", env="prod", alertname="DuplicateLeak", state="firing"}"#, 1);
const WAS_LEAKING: (&str, u8) =
    (r#"dedup_alerts{service="a", env="prod", alertname="DuplicateLeak", state="resolved"}"#, 1);
const LAG: (&str, u8) = ("dedupwatch_audit_lag_seconds", 6);
const NO_LAG: (&str, u8) = ("dedupwatch_audit_lag_seconds", 0);
const DOWN: (&str, u8) = (r#"up{job="dedupwatch"}"#, 0);

/// Findings of these kinds do not change the answer: they say nothing of where money went, or say
/// it again of a settlement that another finding is about. The overview page goes by the same.
const NOT_ABOUT_MONEY: [Kind; 13] = [
    Kind::BlockAfterFailedEffect,
    Kind::ClockRollback,
    Kind::ClockSkew,
    Kind::VersionRegression,
    Kind::TornState,
    Kind::RetryStorm,
    Kind::ReplicaDisagreement,
    Kind::OutcomeFlip,
    Kind::CapMismatch,
    Kind::CounterWrap,
    Kind::TwoWriters,
    Kind::SignatureReused,
    Kind::IllegalTransition,
];

const WORLDS: [World; 9] = [
    World("all is well", &[OPEN, NOT_SILENT, NO_LEAK, NO_LAG], Some(0)),
    World("a clock was set back", &[OPEN, NOT_SILENT, CLOCK, NO_LAG], Some(0)),
    World("the audit is behind", &[OPEN, NO_LEAK, LAG], Some(1)),
    World("a source is silent", &[OPEN, SILENT, NO_LAG], Some(1)),
    World("outcomes are missing", &[OPEN, MISSING, NO_LAG], Some(1)),
    World("a leak is open", &[OPEN, SILENT, LEAK, WAS_LEAKING, NO_LAG], Some(2)),
    World("it leaks", &[OPEN, LEAK, LEAKS, LAG], Some(3)),
    World("nobody has ever reported", &[NO_LAG], None),
    World("nothing is scraped", &[DOWN], None),
];

/// A test for `promtool`: in a world an expression has its value, or none.
fn unit_test(expression: &str, World(name, series, answer): &World) -> Value {
    let input = series.iter().map(|(series, value)| json!({"series": series, "values": value}));
    let expected = answer.iter().map(|answer| json!({"labels": "{}", "value": answer}));
    json!({
        "name": name,
        "input_series": input.collect::<Vec<_>>(),
        "promql_expr_test": [{
            "expr": expression,
            "eval_time": "0m",
            "exp_samples": expected.collect::<Vec<_>>(),
        }],
    })
}

#[test]
fn is_money_safe_now_has_an_answer_to_everything() {
    let mut answered = 0;
    for dashboard in Dashboard::all() {
        let mut shown = dashboard.shown();
        let Some((name, panel)) = shown.find(|(name, _)| name.ends_with("Is money safe now?"))
        else {
            continue;
        };
        let asked = between(text(&panel["targets"][0]["expr"]), "kind=~\"", '"');
        let asked: Vec<&str> = asked.iter().flat_map(|kinds| kinds.split('|')).collect();
        let all = Kind::ALL.into_iter().filter(|kind| !NOT_ABOUT_MONEY.contains(kind));
        let all: BTreeSet<&str> = all.map(Kind::as_str).collect();
        assert_eq!(asked.len(), all.len(), "{name}: each kind once");
        assert_eq!(BTreeSet::from_iter(asked), all, "{name}");

        let (service, env) = if dashboard.name == "service" { ("a", "prod") } else { (".+", ".+") };
        let expression = text(&panel["targets"][0]["expr"]);
        let expression = expression.replace("$service", service).replace("$env", env);
        let tests: Vec<Value> = WORLDS.iter().map(|world| unit_test(&expression, world)).collect();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("answers.yml");
        std::fs::write(&file, json!({"tests": tests}).to_string()).unwrap();
        content("promtool", &["test", "rules"], &[file]);

        let defaults = &panel["fieldConfig"]["defaults"];
        let words = defaults["mappings"][0]["options"].as_object().unwrap();
        assert!(words.keys().eq(["0", "1", "2", "3"]), "{name}: a word for each answer");
        assert!(text(&defaults["noValue"]).starts_with("Not known"), "{name}: and for none");
        answered += 1;
    }
    assert_eq!(answered, 2, "of the overview and of one service");
}
