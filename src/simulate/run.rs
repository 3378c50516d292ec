//! Plays a stream: each source pushes through its own client, at the pace of game time.
//!
//! Game time is a clock that this file moves, one for each source: their stamps and heartbeats
//! come from it, so they fit together whatever the pace. It runs in the past and never ahead of
//! real time.

use std::time::Duration;

use super::stream::{Step, Stream, StreamSettings};
use super::truth::Truth;
use crate::client::{Client, Recorded, Settings, Summary};
use crate::clock::Clock;
use crate::outcome::{Boot, Event, Id, SourceName};

/// Outcomes of one source that may wait for their acknowledgement before game time waits too.
const WAITING_MAX: usize = 5_000;
/// How long the sources may take for their last outcomes and their goodbyes.
const CLOSE_MAX: Duration = Duration::from_secs(60);

/// How game time and real time belong together.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// A moment of game time ...
    pub game_us: i64,
    /// ... and the real one at which it is played.
    pub real_us: i64,
    /// Game seconds in a real second.
    pub speed: f64,
}

impl Pace {
    /// A game of this length that begins now, in real time.
    pub fn real_time(now_us: i64) -> Self {
        Self { game_us: now_us, real_us: now_us, speed: 1.0 }
    }

    /// A game of this length that begins now and runs faster. It begins so far in the past that it
    /// ends `lag_us` ago.
    pub fn faster(now_us: i64, length_us: i64, speed: f64, lag_us: i64) -> Self {
        let real_length_us = scaled(length_us, 1.0 / speed);
        let game_us = now_us + real_length_us - length_us - lag_us;
        Self { game_us, real_us: now_us, speed }
    }

    /// When a moment of game time is played.
    pub fn due_us(&self, game_us: i64) -> i64 {
        self.real_us + scaled(game_us - self.game_us, 1.0 / self.speed)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "simulations last hours, not 285 years")]
#[expect(clippy::cast_precision_loss, reason = "microseconds of a simulation fit 53 bits")]
fn scaled(span_us: i64, factor: f64) -> i64 {
    (span_us as f64 * factor) as i64
}

/// What was pushed, and what it should have led to.
pub struct Played {
    /// What was delivered.
    pub truth: Truth,
    /// The account of all boots.
    pub sums: Summary,
    /// Boots whose account is not as planned: then the truth is not exact.
    pub unclear: Vec<String>,
    /// Who pushed.
    pub sources: Vec<SourceName>,
    /// The books that were written to.
    pub ledgers: Vec<String>,
    /// When game time ended.
    pub end_us: i64,
}

/// Why a simulation stopped.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The HTTP client did not come up.
    #[error("can't make an HTTP client: {0}")]
    Http(#[from] reqwest::Error),
    /// A name in the simulation is no id.
    #[error("a simulated name {0}")]
    Name(#[from] crate::outcome::IdError),
}

/// Plays a stream to its end, or until `stop` is done; then all sources say goodbye.
pub async fn play(
    target: &str,
    settings: StreamSettings,
    pace: Pace,
    stop: impl Future<Output = ()>,
) -> Result<Played, PlayError> {
    let start_us = settings.start_us;
    let stream = Stream::new(settings)?;
    let mut player = Player::start(target, &stream, start_us)?;
    tokio::pin!(stop);
    tokio::select! {
        played = player.play(stream, pace) => played?,
        () = &mut stop => {}
    }
    Ok(player.end().await)
}

/// All sources, on the air.
struct Player {
    target: String,
    game_us: i64,
    on_air: Vec<OnAir>,
    played: Played,
}

struct OnAir {
    client: Option<Client>,
    clock: Clock,
    from: SourceName,
    ledger: Option<Id>,
    boot: Boot,
    planned_losses: u64,
}

impl Player {
    fn start(target: &str, stream: &Stream, game_us: i64) -> Result<Self, PlayError> {
        let boot = Stream::boot_at(game_us);
        let mut on_air = Vec::new();
        for (index, from) in stream.sources().enumerate() {
            let ledger = stream.ledger(index).cloned();
            let clock = Clock::manual(game_us);
            let client = Some(start(target, from, ledger.as_ref(), boot, &clock)?);
            let from = from.clone();
            on_air.push(OnAir { client, clock, from, ledger, boot, planned_losses: 0 });
        }
        let mut ledgers: Vec<_> = on_air.iter().map(OnAir::ledger).collect();
        ledgers.dedup();
        let played = Played {
            truth: Truth::default(),
            sums: Summary::default(),
            unclear: Vec::new(),
            sources: stream.sources().cloned().collect(),
            ledgers,
            end_us: game_us,
        };
        Ok(Self { target: target.to_owned(), game_us, on_air, played })
    }

    async fn play(&mut self, mut stream: Stream, pace: Pace) -> Result<(), PlayError> {
        while let Some(step) = stream.next_step()? {
            let due_us = pace.due_us(step.at_us());
            let wait_us = due_us - Clock::System.now_us();
            if let Ok(wait_us @ 1..) = u64::try_from(wait_us) {
                tokio::time::sleep(Duration::from_micros(wait_us)).await;
            }
            match step {
                Step::Decided { at_us, source, events, lost } => {
                    self.move_to(at_us, &stream);
                    self.decided(source, events, lost).await;
                }
                Step::Restarted { at_us, source, goodbye } => {
                    self.leave(source, goodbye).await;
                    self.move_to(at_us, &stream);
                    self.come_back(source, at_us)?;
                }
            }
        }
        Ok(())
    }

    fn move_to(&mut self, at_us: i64, stream: &Stream) {
        self.game_us = at_us.max(self.game_us);
        for (source, on_air) in self.on_air.iter().enumerate() {
            let now_us = self.game_us - stream.behind_us(source, self.game_us);
            on_air.clock.advance(now_us - on_air.clock.now_us());
        }
    }

    async fn decided(&mut self, source: usize, events: Vec<Event>, lost: bool) {
        let Some(on_air) = self.on_air.get_mut(source) else { return };
        let Some(client) = &on_air.client else { return };
        for event in events {
            if lost {
                client.give_up();
                on_air.planned_losses += 1;
                self.played.truth.lost(on_air.boot, &event);
                continue;
            }
            client.wait_for_room(WAITING_MAX).await;
            match client.record(event.clone()) {
                Recorded { kept: true, .. } => self.played.truth.told(on_air.boot, &event),
                Recorded { kept: false, .. } => self.played.truth.lost(on_air.boot, &event),
            }
        }
    }

    /// The end of a boot. What was recorded before is delivered in any case: a crash loses what
    /// the stream says, not what happens to be on its way.
    async fn leave(&mut self, source: usize, goodbye: bool) {
        let Some(on_air) = self.on_air.get_mut(source) else { return };
        let Some(client) = on_air.client.take() else { return };
        let summary = if goodbye {
            client.close(CLOSE_MAX).await
        } else {
            client.wait_for_room(0).await;
            let summary = client.kill().await;
            let (ledger, at_us) = (on_air.ledger(), self.game_us);
            self.played.truth.crashed(&on_air.from, &ledger, at_us);
            summary
        };
        account(&mut self.played, on_air, summary, goodbye);
    }

    fn come_back(&mut self, source: usize, at_us: i64) -> Result<(), PlayError> {
        let Some(on_air) = self.on_air.get_mut(source) else { return Ok(()) };
        on_air.boot = Stream::boot_at(at_us);
        on_air.planned_losses = 0;
        let ledger = on_air.ledger.as_ref();
        let (from, boot) = (&on_air.from, on_air.boot);
        on_air.client = Some(start(&self.target, from, ledger, boot, &on_air.clock)?);
        Ok(())
    }

    /// All goodbyes, at once.
    async fn end(mut self) -> Played {
        self.played.end_us = self.game_us;
        let goodbyes = self.on_air.into_iter().map(|mut on_air| {
            let client = on_air.client.take();
            tokio::spawn(async move {
                let summary = client?.close(CLOSE_MAX).await;
                Some((on_air, summary))
            })
        });
        let goodbyes: Vec<_> = goodbyes.collect();
        for goodbye in goodbyes {
            if let Ok(Some((on_air, summary))) = goodbye.await {
                account(&mut self.played, &on_air, summary, true);
            }
        }
        self.played
    }
}

impl OnAir {
    fn ledger(&self) -> String {
        self.ledger.as_ref().unwrap_or(&self.from.service).to_string()
    }
}

fn start(
    target: &str,
    from: &SourceName,
    ledger: Option<&Id>,
    boot: Boot,
    clock: &Clock,
) -> Result<Client, PlayError> {
    let settings = Settings::new(target, from.clone(), clock.clone());
    let ledgers = vec![ledger.unwrap_or(&from.service).clone()];
    Ok(Client::start(Settings { boot, ledgers, ..settings })?)
}

fn account(played: &mut Played, on_air: &OnAir, summary: Summary, goodbye: bool) {
    played.truth.ended(&on_air.from, on_air.boot, summary.told_seq);
    let delivered = summary.written + summary.repeated;
    let planned = summary.given_out - on_air.planned_losses;
    if delivered != planned || summary.said_goodbye != goodbye {
        let (source, boot) = (&on_air.from.source, on_air.boot);
        played.unclear.push(format!(
            "{source}, boot {boot}: {planned} to be told, {delivered} acknowledged, {} rejected, \
             goodbye {}",
            summary.rejected, summary.said_goodbye
        ));
    }
    let sums = &mut played.sums;
    sums.given_out += summary.given_out;
    sums.written += summary.written;
    sums.repeated += summary.repeated;
    sums.rejected += summary.rejected;
    sums.lost += summary.lost;
    sums.waiting += summary.waiting;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faster_game_ends_before_now() {
        let (now_us, length_us, lag_us) = (1_800_000_000_000_000, 600_000_000, 45_000_000);
        let pace = Pace::faster(now_us, length_us, 20.0, lag_us);
        assert_eq!(pace.due_us(pace.game_us), now_us);
        let end_us = pace.game_us + length_us;
        assert_eq!(pace.due_us(end_us), now_us + 30_000_000);
        assert_eq!(pace.due_us(end_us) - end_us, lag_us);
    }

    #[test]
    fn game_time_is_never_ahead_of_real_time() {
        let pace = Pace::faster(0, 600_000_000, 7.3, 0);
        for game_us in (pace.game_us..=pace.game_us + 600_000_000).step_by(1_000_003) {
            assert!(game_us <= pace.due_us(game_us) + 1);
        }
    }
}
