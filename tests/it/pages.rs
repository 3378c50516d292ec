//! The pages: right without scripts, strict about what they load, and honest about no data.

use dedupwatch::alert::rule::Rule;
use dedupwatch::audit::Kind;
use dedupwatch::clock::Clock;
use serde_json::json;

use crate::support::{LOOK_EVERY, PATIENCE, TestApp, event, heartbeat, seed};

const HOUR_US: i64 = 3_600_000_000;
const DAY_US: i64 = 24 * HOUR_US;

const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// Every page there is, with a finding at its place.
fn pages() -> Vec<String> {
    let finding = format!("/findings/{:032x}", 1);
    let paths =
        ["/", "/findings", "/sources", "/alerts", "/players/chips/p-1", &finding, "/nothing"];
    let service = ["/services/settle"];
    let help = ["/help", "/help/duplicate_leak", "/help/source_silent", "/help/nothing"];
    paths.into_iter().chain(service).chain(help).map(str::to_owned).collect()
}

#[tokio::test]
async fn every_page_is_strict_and_has_nothing_inline() {
    let app = TestApp::start().await;
    seed::findings(&app, &[seed::leak(1)]).await;
    seed::run(&app, &[seed::OUTCOME]).await;
    for path in pages() {
        let reply = app.get(&path).await;
        assert_eq!(reply.header("content-type"), "text/html; charset=utf-8", "{path}");
        assert_eq!(reply.header("content-security-policy"), POLICY, "{path}");
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(reply.header("referrer-policy"), "same-origin", "{path}");
        for inline in ["<script", "<style", " style=", " onclick", "javascript:", "http-equiv"] {
            assert!(!reply.body.contains(inline), "{path}: {inline}");
        }
        for landmark in ["<html lang=\"en\">", "<main", "<nav", "<footer", "<h1", "class=\"skip\""]
        {
            assert!(reply.body.contains(landmark), "{path}: {landmark}");
        }
        assert!(reply.body.contains("All times are UTC"), "{path}");
        assert_eq!(reply.body.matches("<h1").count(), 1, "{path}");
    }
}

#[tokio::test]
async fn every_rule_has_a_help_page_that_lists_and_findings_lead_to() {
    let app = TestApp::start().await;
    seed::findings(&app, &[seed::leak(1)]).await;
    let list = app.get("/help").await.body;
    for kind in Kind::ALL {
        let path = format!("/help/{}", kind.as_str());
        assert!(list.contains(&format!("href=\"{path}\"")), "{path}");
        let page = app.get(&path).await;
        assert_eq!(page.status, 200, "{path}");
        for part in ["What to do", "How it comes about", "What it never means"] {
            assert!(page.body.contains(part), "{path}: {part}");
        }
    }
    for rule in Rule::ALL {
        let path = format!("/help/{}", rule.topic());
        assert_eq!(app.get(&path).await.status, 200, "{path} is the runbook of an alert");
    }
    let finding = app.get(&format!("/findings/{:032x}", 1)).await.body;
    assert!(finding.contains("href=\"/help/duplicate_leak\""));
    assert_eq!(app.get("/help/nothing").await.status, 404);
}

#[tokio::test]
async fn table_headers_have_a_scope() {
    let app = TestApp::start().await;
    seed::findings(&app, &[seed::leak(1)]).await;
    for path in pages() {
        let body = app.get(&path).await.body;
        for header in body.split("<th").skip(1).filter(|it| !it.starts_with("ead")) {
            assert!(header.trim_start().starts_with("scope="), "{path}: {}", &header[..40]);
        }
    }
}

#[tokio::test]
async fn no_data_never_looks_like_zero() {
    let app = TestApp::start().await;
    let overview = app.get("/").await;
    assert_eq!(overview.status, 200);
    assert!(overview.body.contains("No outcomes received yet"));
    assert!(overview.body.contains(&format!("curl {}/api/v1/outcomes", app.base())));
    assert!(!overview.body.contains("booked exactly once"));
    assert!(app.get("/findings").await.body.contains("No outcomes received yet"));
    assert!(app.get("/sources").await.body.contains("No source has reported yet"));
    assert!(app.get("/alerts").await.body.contains("No alert is firing"));
    assert!(app.get("/players/a/b").await.body.contains("Nothing heard of this player"));
}

#[tokio::test]
async fn heartbeats_and_ticks_are_no_outcomes() {
    let app = TestApp::start_with(Clock::System, |config| config.audit.warmup_us = HOUR_US).await;
    seed::run(&app, &["INSERT INTO records VALUES (1, 1, 8, 1, '{}')"]).await;
    assert_eq!(app.heartbeat(&heartbeat(0)).await.status, 200);
    app.wait_for("/-/ready", |ready| ready["audit_lag_us"] == 0).await;
    let body = app.get("/").await.body;
    assert!(body.contains("No outcomes received yet"), "{body}");
    assert!(body.contains("1 reporting"), "who reports is shown all the same");
    assert!(!body.contains("warming up"), "nothing was heard that came before");
    assert_eq!(app.push(&event(1)).await.status, 200);
    let end = std::time::Instant::now() + PATIENCE;
    while !app.get("/").await.body.contains("1 ledger is still warming up") {
        assert!(std::time::Instant::now() < end, "{}", app.get("/").await.body);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[tokio::test]
async fn who_is_gone_for_long_is_shown_and_no_more_counted() {
    let app = TestApp::start_with(Clock::manual(DAY_US * 9), |_| {}).await;
    seed::run(
        &app,
        &[
            seed::OUTCOME,
            // Of the ninth day: a watched one that fell silent two days ago, one that never sent
            // heartbeats and pushed two hours ago, one that pushed just now.
            "INSERT INTO sources VALUES (1, 'a', 'prod', 'dead', 604800000000, 1, 'silent'), \
             (2, 'a', 'prod', 'old', 770400000000, NULL, 'open'), \
             (3, 'a', 'prod', 'new', 777599000000, NULL, 'open')",
        ],
    )
    .await;
    let body = app.get("/").await.body;
    assert!(body.contains("Yes. Every settlement"), "{body}");
    for part in ["1 reporting", "1 not heard lately", "1 gone"] {
        assert!(body.contains(part), "{part}: {body}");
    }
    let list = app.get("/sources").await.body;
    assert!(list.contains("Gone: silent for over a day"), "{list}");
    assert!(list.contains("</span>Not heard lately</div>"), "{list}");
    assert_eq!(list.matches("silence proves nothing").count(), 1, "explained once: {list}");
    let counts = &app.get_json("/api/v1/services").await["services"][0]["sources"];
    assert_eq!(*counts, json!({"gone": "1", "quiet": "1", "open": "1"}));
    seed::run(&app, &["UPDATE sources SET last_push_us = 777500000000 WHERE id = 1"]).await;
    let body = app.get("/").await.body;
    assert!(body.contains("1 watched source is silent"), "{body}");
}

#[tokio::test]
async fn the_answer_comes_first() {
    let app = TestApp::start().await;
    seed::run(&app, &[seed::OUTCOME]).await;
    assert!(app.get("/").await.body.contains("Yes. Every settlement heard of"));
    assert!(app.get("/").await.body.contains("Nothing was heard in the last 60 minutes"));
    seed::findings(&app, &[seed::leak(1)]).await;
    seed::run(
        &app,
        &["INSERT INTO finding_sums VALUES ('duplicate_leak', 'settle', 'prod', 'chips', 1, 1, 0, \
           '9223372036854775807000', '40', '0', '0', '0')"],
    )
    .await;
    let body = app.get("/").await.body;
    assert!(body.contains("No. Money is booked wrong in 1 ledger."));
    // Exact to the last digit, and never netted.
    assert!(body.replace('\u{202f}', "").contains("9223372036854775807000"));
    assert!(body.contains("Overcharged</dt><dd>40<"));
    assert!(body.contains("Duplicate leak"));
}

#[tokio::test]
async fn sums_that_are_cut_are_told() {
    let app = TestApp::start().await;
    let sums = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10001) \
         INSERT INTO finding_sums SELECT 'duplicate_leak', 'a', 'prod', n, 1, 0, 0, '0', '0', '0', \
         '0', '0' FROM n";
    seed::run(&app, &[seed::OUTCOME, sums]).await;
    assert!(app.get("/").await.body.contains("Yes. Every settlement"), "all are closed");
    seed::run(&app, &["UPDATE finding_sums SET open_confirmed = 1"]).await;
    let body = app.get("/").await.body.replace('\u{202f}', "");
    assert!(body.contains("Only 10000 sums of open findings"));
    assert_eq!(app.get_json("/api/v1/services").await["truncated"], true);
}

#[tokio::test]
async fn no_list_of_alerts_is_cut_without_saying_so() {
    let app = TestApp::start().await;
    seed::run(
        &app,
        &[
            seed::OUTCOME,
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1500) \
             INSERT INTO alerts SELECT 'X', n, 'prod', 'resolved', 'critical', 1, n, '{}' FROM n",
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 102) \
             INSERT INTO alerts SELECT 'Y', n, 'prod', 'firing', 'warning', 1, NULL, '{}' FROM n",
            "INSERT INTO alerts VALUES ('Z', 'a', 'prod', 'pending', 'warning', 1, NULL, '{}')",
        ],
    )
    .await;
    assert!(app.get("/").await.body.contains("94 more firing"));
    let page = app.get("/alerts").await.body;
    let firing = page.split("<h2 id=\"pending\"").next().unwrap();
    assert!(firing.contains("And 2 more") && !firing.contains(">Z</a>"), "{firing}");
    assert!(page.contains(">Z</a>") && page.contains("And 1400 more"), "{page}");
    let all = app.get_json("/api/v1/alerts").await["alerts"].as_array().unwrap().clone();
    assert_eq!((all.len(), &all[0]["state"]), (1603, &json!("firing")));
}

#[tokio::test]
async fn the_page_reloads_only_if_asked() {
    let app = TestApp::start().await;
    assert_eq!(app.get("/").await.header("refresh"), "");
    let reply = app.get("/?refresh=10").await;
    assert_eq!((reply.status, reply.header("refresh")), (200, "10"));
    let reply = app.get("/?refresh=0").await;
    assert_eq!(reply.status, 400);
    assert!(reply.body.contains("That address does not work"), "an error is a page");
}

#[tokio::test]
async fn html_in_an_id_is_harmless() {
    let app = TestApp::start().await;
    let evil = "<script>alert(1)</script>\"'&";
    let mut leak = seed::leak(1);
    for field in ["player", "service", "ledger", "cause", "source"] {
        leak[field] = json!(evil);
    }
    leak["signature"]["room"] = json!(evil);
    leak["witnesses"][0]["trace_id"] = json!(evil);
    seed::findings(&app, &[leak]).await;
    seed::run(&app, &[seed::OUTCOME]).await;
    let player = "/players/%3Cscript%3E%2Fa/%3Cb%3E";
    for path in ["/", "/findings", "/findings?player=%3Cscript%3E", player, "/%3Cscript%3E"] {
        let body = app.get(path).await.body;
        assert!(!body.contains("<script"), "{path}");
        assert!(!body.contains("\"'&\""), "{path}");
    }
    let body = app.get(&format!("/findings/{:032x}", 1)).await.body;
    assert!(!body.contains("<script") && body.contains("&#60;script"), "{body}");
}

#[tokio::test]
async fn the_way_to_a_player_survives_any_name() {
    let app = TestApp::start().await;
    let mut leak = seed::leak(1);
    leak["player"] = json!("a/b?c#d%2F é");
    seed::findings(&app, &[leak]).await;
    let list = app.get("/findings").await.body;
    let link = list.split("href=\"/players/").nth(1).unwrap().split('"').next().unwrap();
    let page = app.get(&format!("/players/{link}")).await;
    assert!(page.body.contains("<h1>Player a/b?c#d%2F é</h1>"), "{}", page.body);
    assert!(page.body.contains("Duplicate leak"), "its finding is there");
}

#[tokio::test]
async fn findings_are_filtered_and_paged_by_links() {
    let app = TestApp::start().await;
    let leaks: Vec<_> = (1..=3).map(seed::leak).collect();
    seed::findings(&app, &leaks).await;
    let first = app.get("/findings?limit=2&service=settle").await.body;
    assert!(first.contains("value=\"settle\""), "the filter keeps what was asked for");
    let older = first.split("rel=\"next\"").next().unwrap().rsplit("href=\"").next().unwrap();
    let older = older.split('"').next().unwrap().replace("&#38;", "&");
    let second = app.get(&older).await.body;
    assert!(second.contains(&format!("/findings/{:032x}", 1)));
    assert!(!second.contains(&format!("/findings/{:032x}", 2)));
    let none = app.get("/findings?service=nobody").await.body;
    assert!(!none.contains("<tbody>"));
}

#[tokio::test]
async fn sources_are_filtered_and_paged_by_links() {
    let app = TestApp::start().await;
    seed::run(
        &app,
        &["INSERT INTO sources VALUES (1, 'a b', 'prod', 's1', 1, 1, 'open'), \
           (2, 'a b', 'prod', 's2', 1, 1, 'open'), (3, 'a b', 'test', 's3', 1, 1, 'open'), \
           (4, 'c', 'prod', 's4', 1, 1, 'open')"],
    )
    .await;
    let first = app.get("/sources?service=a+b&env=prod&limit=1").await.body;
    assert!(first.contains("Only those of <b>a b</b>"), "{first}");
    let more = first.split("\" rel=\"next\"").next().unwrap().rsplit("href=\"").next().unwrap();
    let second = app.get(&more.replace("&#38;", "&")).await.body;
    let shows = |name| second.contains(&format!("data-label=\"Source\">{name}<"));
    assert_eq!(["s1", "s2", "s3", "s4"].map(shows), [false, true, false, false], "{second}");
    let of_test = app.get_json("/api/v1/sources?env=test").await;
    assert_eq!(of_test["sources"][0]["source"], "s3");
    assert_eq!(of_test["sources"].as_array().unwrap().len(), 1);
    let none = app.get("/sources?service=nobody").await;
    assert!(none.status == 200 && none.body.contains("No such source has reported"));
}

#[tokio::test]
async fn checks_that_could_not_be_made_are_shown_with_the_reason() {
    let app = TestApp::start_with(Clock::System, |config| config.audit.eviction_grace_us = 0).await;
    assert!(!app.get("/sources").await.body.contains("could not be made"));
    let mut evicted = event(1);
    evicted["outcome"] = "evicted".into();
    assert_eq!(app.push(&evicted).await.status, 200);
    let page = app.wait_for_text("/sources", "never accepted, as far as was heard").await;
    assert!(page.contains("<a href=\"/help/live_eviction\">live eviction</a>"), "{page}");
}

#[tokio::test]
async fn a_finding_tells_the_rule_the_witnesses_and_what_to_do() {
    let app = TestApp::start().await;
    seed::findings(&app, &[seed::leak(1)]).await;
    let body = app.get(&format!("/findings/{:032x}", 1)).await.body;
    for part in [
        "One settlement was accepted 2 times.",
        "The rule",
        "How sure",
        "The order of the witnesses is proven",
        "What to do",
        ">accepted again<",
        "Both carry the same trace id.",
        "The first two are",
        "Remove the cause: the window is too short.",
        "method=\"post\"",
    ] {
        assert!(body.contains(part), "{part}");
    }
}

#[tokio::test]
async fn a_live_eviction_leads_to_the_leaks_of_its_service() {
    let app = TestApp::start().await;
    let mut eviction = seed::leak(1);
    eviction["kind"] = json!("live_eviction");
    eviction["service"] = json!("a&b");
    seed::findings(&app, &[eviction]).await;
    let body = app.get(&format!("/findings/{:032x}", 1)).await.body;
    let link = "/findings?kind=duplicate_leak&#38;service=a%26b&#38;env=prod";
    assert!(body.contains(link) && body.contains("the examples below"), "{body}");
}

#[tokio::test]
async fn the_worst_finding_is_first() {
    let app = TestApp::start().await;
    // By number, which is the order of time: booked, at risk.
    let amounts = [("50", "0"), ("0", "900"), ("70", "0"), ("0", "0"), ("50", "1"), ("50", "0")];
    let leak = |(n, (booked, at_risk)): (u32, _)| {
        let mut leak = seed::leak(n);
        leak["amounts"] = json!({"overpaid": "0", "overcharged": "0", "underpaid": booked,
            "undercharged": "0", "exposure": at_risk});
        leak
    };
    let mut leaks: Vec<_> = (1..).zip(amounts).map(leak).collect();
    leaks.push(leak((7, ("9999", "0"))));
    leaks[6]["severity"] = json!("warning");
    seed::findings(&app, &leaks).await;
    seed::run(&app, &[seed::OUTCOME]).await;
    let body = app.get("/").await.body;
    let ids: Vec<_> = body
        .split("<a href=\"/findings/")
        .skip(1)
        .map(|rest| u32::from_str_radix(&rest[..32], 16).unwrap())
        .collect();
    assert_eq!(ids, [3, 5, 6, 1, 2, 4, 7], "{body}");
}

#[tokio::test]
async fn what_was_taken_among_lost_numbers_is_not_called_lost() {
    let app = TestApp::start().await;
    seed::run(
        &app,
        &[
            "INSERT INTO sources VALUES (1, 'a', 'prod', 's1', 1, 1, 'open')",
            "INSERT INTO boots VALUES (1, 1, '7', 1, 1, 10001, 0, '[[1,1],[9999,9999],\
             [10001,10001]]', '[]', '[[2,9998]]', '[]', 1, '[]')",
        ],
    )
    .await;
    let page = app.get("/sources").await.body.replace('\u{202f}', "");
    assert!(page.contains("up to 9997 lost: 2 to 9998") && page.contains("not counted"), "{page}");
    let boot = &app.get_json("/api/v1/sources").await["sources"][0]["boot"];
    let told = (&boot["received"], &boot["lost_at_most"], &boot["missing"]);
    assert_eq!(told, (&json!(null), &json!("9997"), &json!("1")));
}

#[tokio::test]
async fn an_unknown_address_is_a_page_with_a_way_back() {
    let app = TestApp::start().await;
    for path in ["/nothing", "/findings/abc"] {
        let reply = app.get(path).await;
        assert_eq!(reply.status, 404, "{path}");
        assert!(reply.body.contains("<a class=\"button\" href=\"/\">"), "{path}");
    }
}

#[tokio::test]
async fn the_style_sheet_is_small_and_ours() {
    let app = TestApp::start().await;
    let page = app.get("/").await.body;
    let address = page.split("<link rel=\"stylesheet\" href=\"").nth(1).unwrap();
    let reply = app.get(address.split('"').next().unwrap()).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, "text/css; charset=utf-8"));
    assert!(reply.body.contains("prefers-color-scheme: dark"));
    assert!(!reply.body.contains("url("), "it loads nothing");
    assert!(reply.body.len() < 16 << 10, "{} bytes", reply.body.len());
}
