//! Where the order of arrival, bounds and clocks once led to wrong verdicts.

use super::*;

fn ev(w: &mut World, at: f64, n: u64, sig: &str) {
    w.hear(told(at, &format!("a 1#{n}"), "p", sig, "processed").window(4, 4));
}

/// one live eviction a day after the row closed as quiet.
#[test]
fn a_live_eviction_after_a_quiet_day_is_confirmed() {
    let mut w = World::new();
    ev(&mut w, 1.0, 1, "r/1/5");
    w.hear(told(2.0, "a 1#2", "p", "r/1/5", "evicted"));
    ev(&mut w, 2.1, 3, "r/1/6F");
    w.wait_until(10.0);
    assert_eq!(w.only(Kind::LiveEviction).state, State::Confirmed);
    w.wait_until(90_000.0);
    w.assert_quiet();
    let d = 100_000.0;
    ev(&mut w, d + 1.0, 4, "r/9/5");
    w.hear(told(d + 2.0, "a 1#5", "p", "r/9/5", "evicted"));
    ev(&mut w, d + 2.1, 6, "r/9/6F");
    w.wait_until(d + 10.0);
    assert_eq!(w.open(Kind::LiveEviction).len(), 1);
}

/// suspected evictions fall out of a bounded list while the watermark waits.
#[test]
fn suspected_evictions_outlive_a_slow_source() {
    let mut w = World::new();
    w.heartbeat(0.0, "b", "1", 0);
    w.heartbeat(0.0, "a", "1", 0);
    let mut n = 0;
    for g in 0..20 {
        let t = 1.0 + f64::from(g) * 2.0;
        n += 1;
        w.hear(told(t, &format!("a 1#{n}"), "p", &format!("r/{g}/5"), "processed").window(1, 1));
        n += 1;
        w.hear(
            told(t + 1.0, &format!("a 1#{n}"), "p", &format!("r/{g}/6F"), "processed")
                .window(1, 1)
                .evicts(&format!("r/{g}/5")),
        );
    }
    w.heartbeat(100.0, "a", "1", n);
    w.heartbeat(100.0, "b", "1", 0);
    let total: u64 = w
        .all(Kind::LiveEviction)
        .iter()
        .filter(|r| r.state == State::Confirmed)
        .map(|r| r.count)
        .sum();
    assert_eq!(total, 20);
}

fn found_in_order(order: &[usize]) -> usize {
    let mut w = World::new();
    let e = |i: usize| match i {
        0 => told(0.5, "a 1#1", "p", "z/0/1", "processed"),
        1 => told(1.0, "a 1#2", "p", "r/3/5", "processed"),
        2 => told(2.0, "a 1#3", "p", "r/1/5", "processed"),
        3 => told(3.0, "a 1#4", "p", "r/2/5", "processed"),
        _ => told(4.0, "a 1#5", "p", "r/3/6F", "processed").evicts("r/1/5"),
    };
    for i in order {
        w.hear(e(*i));
    }
    w.wait_until(100.0);
    w.open(Kind::LiveEviction).len()
}

/// the same five events in two orders of arrival.
#[test]
fn what_is_not_live_may_become_so_by_late_news() {
    assert_eq!(found_in_order(&[0, 1, 2, 3, 4]), 1, "in order");
    assert_eq!(found_in_order(&[0, 2, 3, 4, 1]), 1, "one late");
}

/// source b's clock is 5 min ahead, measured by heartbeats; it has a hole at the very moment.
#[test]
fn measured_offsets_correct_who_was_blind() {
    let mut w = World::new();
    let beat = |w: &mut World, at: f64, ahead: f64, source: &str, last: u64| {
        w.received_us = seconds(at);
        w.fold(Body::Heartbeat(Heartbeat {
            from: named(source),
            boot: Boot::parse("1").unwrap(),
            last_seq: last,
            at_us: seconds(at + ahead),
            ledgers: vec![id("settle")],
            state: SourceState::Running,
        }));
    };
    let tell = |w: &mut World, at: f64, t: Told| {
        w.received_us = seconds(at);
        let e = t.event();
        w.fold(Body::Event(Box::new(e)));
    };
    for i in 0..30 {
        beat(&mut w, f64::from(i) * 5.0, 0.0, "a", 0);
        beat(&mut w, f64::from(i) * 5.0, 300.0, "b", 0);
    }
    tell(&mut w, 150.0, told(450.0, "b 1#1", "q", "x/1/1", "processed"));
    // b 1#2 (the acceptance of p's r/1/5 at true 151) is lost.
    tell(&mut w, 152.0, told(452.0, "b 1#3", "q", "x/1/2", "processed"));
    tell(&mut w, 153.0, told(153.0, "a 1#1", "p", "r/1/5", "replay_blocked"));
    w.received_us = seconds(185.0);
    w.give_up("b", "1", 2, 2);
    for i in 37..60 {
        beat(&mut w, f64::from(i) * 5.0, 0.0, "a", 1);
        beat(&mut w, f64::from(i) * 5.0, 300.0, "b", 3);
    }
    assert!(w.open(Kind::FalseBlock).is_empty());
}

/// an unknown long after a block.
#[test]
fn an_unknown_after_a_false_block_changes_nothing() {
    let mut w = World::new();
    w.hear(told(1.0, "a 1#1", "p", "r/0/1", "processed"));
    w.hear(told(10.0, "a 1#2", "p", "r/1/5", "replay_blocked"));
    w.wait_until(100.0);
    assert_eq!(w.only(Kind::FalseBlock).state, State::Confirmed);
    w.hear(told(1200.0, "a 1#3", "p", "r/1/5", "unknown"));
    assert_eq!(w.open(Kind::FalseBlock).len(), 1);
}

/// the boot goes on after its goodbye, then falls silent.
#[test]
fn a_boot_that_goes_on_takes_its_goodbye_back() {
    let mut w = World::new();
    w.heartbeat(0.0, "b", "1", 0);
    w.heartbeat(0.0, "a", "1", 0);
    w.hear(told(1.0, "b 1#1", "q", "x/1/1", "processed"));
    w.goodbye(2.0, "b", "1", 1);
    w.hear(told(3.0, "b 1#2", "q", "x/1/2", "processed"));
    w.heartbeat(5.0, "b", "1", 2);
    w.heartbeat(60.0, "a", "1", 0);
    w.received_us = seconds(66.0);
    w.silent("b", "1");
    w.hear(told(70.0, "a 1#1", "p", "r/1/5", "replay_blocked"));
    w.heartbeat(200.0, "a", "1", 1);
    w.wait_until(300.0);
    // As without the goodbye: silent since 5 s, so blind or at least assumed.
    assert!(w.open(Kind::FalseBlock).iter().all(|r| r.coverage != crate::audit::Coverage::Full));
}

/// a hole across a clock step back.
#[test]
fn a_hole_across_a_step_of_the_clock_is_blind() {
    let mut w = World::new();
    w.heartbeat(0.0, "b", "1", 0);
    w.heartbeat(0.0, "a", "1", 0);
    w.hear(told(4000.0, "b 1#1", "q", "x/1/1", "processed"));
    w.received_us = seconds(4000.0);
    // the clock of b steps back to 3400; #2 lost
    w.hear(told(3400.0, "b 1#3", "q", "x/1/2", "processed"));
    w.give_up("b", "1", 2, 2);
    w.hear(told(3700.0, "a 1#1", "p", "r/1/5", "replay_blocked"));
    w.heartbeat(5000.0, "a", "1", 1);
    w.heartbeat(5000.0, "b", "1", 3);
    assert!(w.open(Kind::FalseBlock).is_empty());
}

/// 64 failed tries, then paid twice.
#[test]
fn failed_acceptances_make_room_for_those_that_stand() {
    let mut w = World::new();
    for n in 1..=64_u32 {
        w.hear(
            told(f64::from(n), &format!("a 1#{n}"), "p", "r/1/5F", "processed")
                .with("effect", "failed"),
        );
    }
    w.hear(told(70.0, "a 1#65", "p", "r/1/5F", "processed").with("effect", "applied"));
    w.hear(told(80.0, "a 1#66", "p", "r/1/5F", "processed").with("effect", "applied"));
    w.wait_until(100.0);
    assert_eq!(w.open(Kind::DuplicateLeak).len(), 1);
}

/// failed ones beyond 64 are no surplus.
#[test]
fn failed_acceptances_beyond_the_bound_are_no_surplus() {
    let mut w = World::new();
    w.hear(told(0.1, "a 1#1", "p", "r/1/5F", "processed"));
    w.hear(told(0.2, "a 1#2", "p", "r/1/5F", "processed"));
    for n in 3..=74_u32 {
        w.hear(
            told(f64::from(n), &format!("a 1#{n}"), "p", "r/1/5F", "processed")
                .with("effect", "failed"),
        );
    }
    assert_eq!(w.only(Kind::DuplicateLeak).amounts.overpaid, 5);
}

fn kinds_in_order(order: &[usize]) -> Vec<Kind> {
    let mut w = World::new();
    w.heartbeat(0.0, "a", "1", 0);
    w.heartbeat(0.0, "b", "1", 0);
    let e = |i: usize| match i {
        0 => told(1.0, "a 1#1", "p", "r/1/1", "processed").window(1, 2),
        1 => told(2.0, "a 1#2", "p", "r/1/2", "processed").window(2, 2),
        // b 1#1 accepts r/2/5 into the window that both share: lost.
        2 => told(5.0, "a 1#3", "p", "r/2/5", "replay_blocked").window(2, 2),
        _ => told(4.0, "b 1#2", "p", "r/2/6", "processed").window(2, 2),
    };
    for i in order {
        w.hear(e(*i));
    }
    w.received_us = seconds(40.0);
    w.give_up("b", "1", 1, 1);
    w.heartbeat(100.0, "a", "1", 3);
    w.heartbeat(100.0, "b", "1", 2);
    w.rows
        .values()
        .filter(|r| r.state != State::Closed)
        .map(|r| r.kind)
        .filter(|k| matches!(k, Kind::FalseBlock | Kind::UnverifiableBlock))
        .collect()
}

#[test]
fn a_window_proves_nothing_once_somebody_else_wrote() {
    assert_eq!(kinds_in_order(&[0, 1, 3, 2]), [Kind::UnverifiableBlock], "other writer first");
    assert_eq!(kinds_in_order(&[0, 1, 2, 3]), [Kind::UnverifiableBlock], "other writer after");
}

/// a lost tail that comes after all.
#[test]
fn a_lost_tail_that_comes_after_all_closes_its_gap() {
    let mut w = World::new();
    w.hear(told(1.0, "a 1#100", "p", "r/1/1", "processed"));
    w.heartbeat(5.0, "a", "1", 103);
    w.received_us = seconds(40.0);
    w.give_up("a", "1", 101, 103);
    assert_eq!(w.only(Kind::TelemetryGap).count, 3);
    for n in 101..=103_u32 {
        w.hear(told(
            2.0 + f64::from(n - 100) / 10.0,
            &format!("a 1#{n}"),
            "p",
            &format!("r/1/{n}"),
            "processed",
        ));
    }
    w.wait_until(100.0);
    assert!(w.open(Kind::TelemetryGap).is_empty(), "{:?}", w.only(Kind::TelemetryGap).count);
}

/// a decision about row 1 must not close row 2.
#[test]
fn a_decision_about_an_older_row_leaves_the_newer_open() {
    let mut w = World::new();
    w.hear(told(1.0, "a 1#1", "p", "r/1/5", "processed"));
    w.hear(told(2.0, "a 1#2", "p", "r/1/5", "processed"));
    let first = w.only(Kind::DuplicateLeak).clone();
    let close = |w: &mut World| {
        w.audit.load_finding(first.clone());
        w.fold(Body::Closed(Closed {
            finding: first.id.clone(),
            reason: "known".into(),
            note: String::new(),
        }));
    };
    close(&mut w);
    w.hear(told(3.0, "a 1#3", "p", "r/1/5", "processed"));
    assert_eq!(w.only(Kind::DuplicateLeak).ordinal, 2);
    close(&mut w); // the second click, or a second person
    assert_eq!(w.open(Kind::DuplicateLeak).len(), 1);
}

/// an opaque key whose eviction was told without the amount.
#[test]
fn an_opaque_key_takes_its_amount_from_its_acceptance() {
    let run = |first: bool| {
        let mut w = World::new();
        if first {
            w.hear(told(1.5, "b 1#1", "p", "=k/0", "evicted"));
        }
        w.hear(told(1.0, "a 1#1", "p", "=k/100", "processed").with("ref", "R"));
        w.hear(told(2.0, "a 1#2", "p", "=k/100", "processed").with("ref", "R"));
        w.hear(told(3.0, "a 1#3", "p", "=undo/-100", "processed").with("reversal_of", "R"));
        w.open(Kind::DuplicateLeak).len()
    };
    assert_eq!(run(false), 0);
    assert_eq!(run(true), 0);
}

/// a window for the whole instance.
#[test]
fn a_window_for_the_instance_is_pushed_by_anybody() {
    let mut w = World::new();
    let win =
        |t: Told| t.with("window", serde_json::json!({"len": 4, "cap": 4, "scope": "source"}));
    w.hear(win(told(1.0, "a 1#1", "p", "r/1/5", "processed")));
    w.hear(win(told(2.0, "a 1#2", "p", "r/2/5", "processed")));
    w.hear(win(told(10.0, "a 1#3", "p", "r/1/5", "evicted")));
    w.hear(win(told(10.1, "a 1#4", "other", "s/1/5", "processed")));
    w.hear(win(told(11.9, "a 1#5", "p", "r/3/5", "processed")));
    w.wait_until(100.0);
    assert_eq!(w.open(Kind::LiveEviction).len(), 1);
}

/// a gap closed as quiet, filled late, then a smaller new gap.
#[test]
fn a_gap_after_a_filled_one_counts_from_nothing() {
    let mut w = World::new();
    w.hear(told(1.0, "a 1#1", "p", "r/1/1", "processed"));
    w.hear(told(2.0, "a 1#7", "p", "r/1/7", "processed"));
    w.received_us = seconds(40.0);
    w.give_up("a", "1", 2, 6);
    w.wait_until(90_000.0);
    w.assert_quiet();
    for n in 2..=6_u32 {
        w.hear(told(1.5, &format!("a 1#{n}"), "p", &format!("r/1/{n}"), "processed"));
    }
    w.hear(told(90_100.0, "a 1#10", "p", "r/2/1", "processed"));
    w.received_us = seconds(90_140.0);
    w.give_up("a", "1", 8, 9);
    assert_eq!(w.open(Kind::TelemetryGap).len(), 1);
}

fn first_confirmed(every: f64) -> Option<f64> {
    let mut w = World::new();
    w.heartbeat(0.0, "a", "1", 0);
    let mut n = 0;
    for g in 0..200 {
        let t = 1.0 + f64::from(g) * every;
        let p = format!("p{g}");
        for (sig, out) in [("r/1/5", None), ("r/1/6F", Some("r/1/5"))] {
            n += 1;
            let e = told(t, &format!("a 1#{n}"), &p, sig, "processed").window(1, 1);
            w.hear(match out {
                Some(out) => e.evicts(out),
                None => e,
            });
        }
        if w.open(Kind::LiveEviction).iter().any(|r| r.state == State::Confirmed) {
            return Some(t);
        }
    }
    None
}

/// live evictions that do not stop.
#[test]
fn a_steady_stream_of_live_evictions_is_confirmed() {
    assert!(first_confirmed(1.0).is_some());
}

#[test]
fn a_goodbye_ahead_of_its_last_words_waits_for_them() {
    let mut w = World::new();
    w.heartbeat(0.0, "a", "1", 0);
    w.hear(told(1.0, "a 1#1", "p", "r/1/5", "processed").window(1, 2));
    w.hear(told(2.0, "a 1#2", "p", "r/1/6F", "processed").window(2, 2));
    w.goodbye(20.0, "a", "1", 4);
    let pushing = told(4.0, "a 1#4", "p", "r/2/6F", "processed").window(2, 2);
    w.hear(pushing.evicts("r/1/6F"));
    w.wait_until(25.0);
    w.hear(told(3.0, "a 1#3", "p", "r/2/5", "processed").window(2, 2).evicts("r/1/5"));
    w.wait_until(30.0);
    assert_eq!(w.only(Kind::LiveEviction).count, 2);
    assert_eq!(w.skipped(), [].into());
}

#[test]
fn a_goodbye_ahead_of_words_that_are_given_up_waits_no_more() {
    let mut w = World::new();
    w.heartbeat(0.0, "a", "1", 0);
    w.hear(told(1.0, "a 1#1", "p", "r/1/5", "replay_blocked").window(0, 2));
    w.goodbye(2.0, "a", "1", 3);
    w.wait_until(100.0);
    assert_eq!(w.only(Kind::FalseBlock).state, State::Suspected);
    w.give_up("a", "1", 2, 3);
    w.wait_until(101.0);
    assert_eq!(w.only(Kind::FalseBlock).state, State::Confirmed);
}
