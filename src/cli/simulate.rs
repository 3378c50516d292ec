//! `simulate`: pushes simulated settlements to a collector; with `--check` it then compares what
//! was found with the truth, with `--rate` it measures instead.

use std::fmt::Write as _;
use std::num::NonZeroU64;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use hdrhistogram::Histogram;

use crate::client::http;
use crate::clock::Clock;
use crate::config::LogFormat;
use crate::simulate::check::Check;
use crate::simulate::found::Comparison;
use crate::simulate::load::{LoadReport, LoadSettings, load};
use crate::simulate::run::{Pace, Played, play};
use crate::simulate::{Fault, FaultKind, StreamSettings, parse_span_us};

const EXAMPLES: &str = "\
Examples, while a collector runs:
  dedupwatch simulate                                   traffic of healthy guards
  dedupwatch simulate --fault two-guards@1m+2m --check  a fault from minute 1 on, for 2 min
  dedupwatch simulate --faults all --check              every fault; takes 11 min
  dedupwatch simulate --rate max --events 100000        how fast the collector takes them";

/// How long ago an accelerated game ends: longer than the default `block_grace` and
/// `eviction_grace`, so that nobody has to wait for them.
const LAG_US: i64 = 45_000_000;
/// A collector that is there answers within this.
const FIRST_ANSWER_MAX: Duration = Duration::from_secs(5);
/// Requests of the API.
const REQUEST_MAX: Duration = Duration::from_secs(60);

/// Flags of `simulate`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SimulateArgs {
    /// The collector: one that runs
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9736")]
    target: String,
    /// Same seed, same players, games, copies and faults
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long the game lasts, in game time: 90s, 10m, 1h
    #[arg(long, value_name = "SPAN", default_value = "10m", value_parser = span)]
    length: i64,
    /// Game seconds in a real second, from 1 on [default: such that it takes half a minute]
    ///
    /// A game that runs faster than the clock is played in the past and ends 45 s ago. Let it take
    /// less than a minute: in a longer one the collector takes the sources' clocks for wrong, and
    /// so they are.
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    speed: Option<f64>,
    /// Players of each of the three services
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    players: u32,
    /// A fault, in game time: NAME@START+LENGTH[/SERVICE]; may be given several times
    #[arg(long = "fault", value_name = "FAULT", long_help = fault_help())]
    faults: Vec<Fault>,
    /// Every fault, spread over the services and the game
    #[arg(long = "faults", value_name = "all", value_parser = ["all"], conflicts_with = "faults",
        hide_possible_values = true)]
    every_fault: Option<String>,
    /// Then compare the findings with the truth; exit status 1 if anything differs
    ///
    /// It waits until the audit has to be sure: half a minute, or 10 min where a guard is expected
    /// to try again (order-mark, unknown).
    #[arg(long)]
    check: bool,
    /// Measure instead: send so many events a second, or `max` for as fast as it goes
    ///
    /// At a given rate, the time from the push of a second acceptance to its finding is measured
    /// too.
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "Measuring",
        conflicts_with_all = ["check", "faults", "every_fault"])]
    rate: Option<Rate>,
    /// Events in all
    #[arg(long, default_value_t = 1_000_000, requires = "rate", help_heading = "Measuring")]
    events: u64,
    /// Requests on the way at a time
    #[arg(long, default_value_t = 8, requires = "rate", help_heading = "Measuring",
        value_parser = clap::value_parser!(u64).range(1..=256))]
    connections: u64,
    /// Events of a request
    #[arg(long, default_value_t = 1_000, requires = "rate", help_heading = "Measuring",
        value_parser = clap::value_parser!(u64).range(1..=10_000))]
    batch: u64,
}

/// How fast the events of a measurement come.
#[derive(Clone, Copy, Debug)]
enum Rate {
    /// As fast as it goes.
    Max,
    /// So many a second.
    PerSecond(NonZeroU64),
}

fn rate(text: &str) -> Result<Rate, String> {
    match text {
        "max" => Ok(Rate::Max),
        _ => text
            .parse()
            .map(Rate::PerSecond)
            .map_err(|_| "write events a second, from 1 on, or max".into()),
    }
}

fn fault_help() -> String {
    let mut help = "A fault, in game time: NAME@START+LENGTH[/SERVICE]; may be given several \
                    times\n\n\
                    crash@4m+10s/2 is a crash in minute 4 after 10 s without telemetry, of \
                    service 2. SERVICE: 0 settle-poker (the default), 1 settle-slots, \
                    2 settle-baccarat. NAME, and the findings that show it:\n"
        .to_owned();
    for kind in FaultKind::all() {
        let _ = write!(help, "\n  {:<18} {}", kind.as_str(), kind.about());
        let _ = write!(help, "\n  {:<18}   {}", "", kind.known_for().join(", "));
    }
    help
}

fn span(text: &str) -> Result<i64, String> {
    parse_span_us(text)
        .filter(|&span_us| span_us > 0)
        .ok_or_else(|| "write a span of time as 90s, 10m or 1h".into())
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed| (1.0..=100_000.0).contains(speed));
    speed.ok_or_else(|| "write a number from 1 to 100000".into())
}

/// Runs the simulation, or the measurement.
pub(super) async fn run(mut arguments: SimulateArgs) -> anyhow::Result<ExitCode> {
    super::start_logs("warn", LogFormat::Text);
    arguments.target.truncate(arguments.target.trim_end_matches('/').len());
    find_collector(&arguments.target).await?;
    match arguments.rate {
        Some(rate) => measure(&arguments, rate).await,
        None => simulate(&arguments).await,
    }
}

/// Services try again for ever; a simulation without a collector ends at once.
async fn find_collector(target: &str) -> anyhow::Result<()> {
    let answer = http(FIRST_ANSWER_MAX)?.get(format!("{target}/-/healthy")).send().await;
    answer.and_then(reqwest::Response::error_for_status).with_context(|| {
        format!("no collector answers at {target}; start one, or name another with --target")
    })?;
    Ok(())
}

async fn simulate(arguments: &SimulateArgs) -> anyhow::Result<ExitCode> {
    let stop = super::serve::stop_signal()?;
    let now_us = Clock::System.now_us();
    let pace = pace(arguments, now_us);
    let settings = StreamSettings {
        seed: arguments.seed,
        start_us: pace.game_us,
        length_us: arguments.length,
        players: usize::try_from(arguments.players)?,
        tag: Some(format!("{:x}", now_us / 1_000)),
        faults: match arguments.every_fault {
            Some(_) => Fault::all(arguments.length),
            None => arguments.faults.clone(),
        },
    };
    let played = play(&arguments.target, settings, pace, stop).await?;
    print_sums(&played);
    let exact = played.unclear.is_empty();
    if !arguments.check {
        return Ok(if exact { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let http = http(REQUEST_MAX)?;
    let check = Check::of(&http, &arguments.target, played).await?;
    let wait_s = check.wait_us() / 1_000_000;
    println!("comparing in {wait_s} s, when the graces of the audit are over ...");
    let comparison = check.compare(&http, &arguments.target).await?;
    print_comparison(&comparison);
    Ok(if exact && comparison.is_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Half a minute at most, unless a speed was asked for.
#[expect(clippy::cast_precision_loss, reason = "microseconds of a simulation fit 53 bits")]
fn pace(arguments: &SimulateArgs, now_us: i64) -> Pace {
    let half_minutes = arguments.length as f64 / 30_000_000.0;
    let speed = arguments.speed.unwrap_or_else(|| half_minutes.max(1.0));
    if speed > 1.0 {
        Pace::faster(now_us, arguments.length, speed, LAG_US)
    } else {
        Pace::real_time(now_us)
    }
}

fn print_sums(played: &Played) {
    let sums = &played.sums;
    println!(
        "{} outcomes: {} written, {} repeated, {} rejected, {} lost on purpose",
        sums.given_out, sums.written, sums.repeated, sums.rejected, sums.lost
    );
    for line in &played.unclear {
        println!("not as planned: {line}");
    }
}

fn print_comparison(comparison: &Comparison) {
    for line in &comparison.missed {
        println!("missed: {line}");
    }
    for line in &comparison.false_alarms {
        println!("false:  {line}");
    }
    let (missed, wrong) = (comparison.missed.len(), comparison.false_alarms.len());
    for (kind, count) in &comparison.right {
        println!("right:  {count} {kind}");
    }
    println!("{} right, {missed} missed, {wrong} false", comparison.right_in_all());
}

async fn measure(arguments: &SimulateArgs, rate: Rate) -> anyhow::Result<ExitCode> {
    let settings = LoadSettings {
        target: arguments.target.clone(),
        events: arguments.events,
        connections: arguments.connections,
        batch: arguments.batch,
        rate: match rate {
            Rate::Max => None,
            Rate::PerSecond(rate) => Some(rate),
        },
    };
    let report = load(&http(REQUEST_MAX)?, &settings).await?;
    print_report(&report, &settings);
    let complete = report.is_complete(settings.events);
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds to be read")]
fn print_report(report: &LoadReport, settings: &LoadSettings) {
    let ms = |times: &Histogram<u64>, at| times.value_at_quantile(at) as f64 / 1_000.0;
    println!(
        "{} events in {:.1} s over {} connections, {} a request",
        report.written,
        report.took.as_secs_f64(),
        settings.connections,
        settings.batch
    );
    println!("acknowledged: {:.0} events/s", report.rate());
    println!("ack: P50 {:.1} ms, P99 {:.1} ms", ms(&report.acks, 0.5), ms(&report.acks, 0.99));
    if let Some(times) = &report.findings {
        println!(
            "second acceptance to finding: P50 {:.1} ms, P99 {:.1} ms, {} times",
            ms(times, 0.5),
            ms(times, 0.99),
            times.len()
        );
    }
    println!("put off by 429 or 503: {} requests", report.put_off);
    let right = if report.is_complete(settings.events) { "right" } else { "WRONG" };
    let counted = report.counted.map_or("no metrics".into(), |n| format!("{n} by /metrics"));
    println!(
        "count {right}: {} asked for, {} written, {} repeated, {} rejected, {counted}",
        settings.events, report.written, report.repeated, report.rejected
    );
    let lag = report.lag_s.map_or("unknown".into(), |lag_s| format!("{lag_s:.2} s"));
    let done = report.judged_after.map_or("not within the time".into(), |after| {
        format!("after {:.2} s", after.as_secs_f64())
    });
    println!("judge: {lag} behind at the last ack, done {done}");
}
