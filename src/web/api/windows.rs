//! What the window advisor says of a service, as a part of the service's view.

use serde::Serialize;

use crate::audit::{Advice, DISTANCES, Histogram, LATE_GAMES, LATE_SECONDS, Measured};

/// How long the windows of a service have to be, in signatures, by the last 7 days.
#[derive(Serialize, utoipa::ToSchema)]
pub struct WindowView {
    /// The capacity that would have been needed; null while nothing was measured.
    required_capacity: Option<String>,
    /// It is more than that: further back than is remembered.
    required_is_more: bool,
    /// The smallest that guards tell now; null where none does.
    capacity: Option<String>,
    /// The alert `WindowTooSmall` is about this.
    too_small: bool,
    /// How the required capacity comes about.
    derivation: String,
    /// By how many games acceptances came late, at most.
    late_games: String,
    /// Replays that were blocked though their game was no longer live.
    caught_though_over: String,
    /// Those of them in the last place of their window: by luck.
    caught_in_last_place: String,
    /// What was measured in the last 24 hours; only where one service is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<MeasuredView>,
}

/// What was measured in the last 24 hours.
#[derive(Serialize, utoipa::ToSchema)]
pub struct MeasuredView {
    /// Other settlements accepted between a settlement and its replay.
    replay_distance: Vec<BucketView>,
    /// Seconds from a game's first acceptance to a late one.
    late_seconds: Vec<BucketView>,
    /// Games that had begun since, at a late acceptance.
    late_games: Vec<BucketView>,
}

/// One part of a histogram.
#[derive(Serialize, utoipa::ToSchema)]
pub struct BucketView {
    /// Up to here, included; null for all beyond.
    up_to: Option<String>,
    /// How many, not counting those of smaller bounds.
    count: String,
}

impl WindowView {
    pub(super) fn new(advice: &Advice, measured: Option<&Measured>) -> Self {
        let required = advice.required();
        let (caught, lucky) = advice.caught();
        Self {
            required_capacity: required.map(|need| need.capacity.to_string()),
            required_is_more: required.is_some_and(|need| need.more),
            capacity: advice.capacity().map(|capacity| capacity.to_string()),
            too_small: advice.is_too_small(),
            derivation: advice.derivation(),
            late_games: advice.late_games().to_string(),
            caught_though_over: caught.to_string(),
            caught_in_last_place: lucky.to_string(),
            measured: measured.map(|measured| MeasuredView {
                replay_distance: buckets(&measured.distances, &DISTANCES),
                late_seconds: buckets(&measured.late_us, &LATE_SECONDS),
                late_games: buckets(&measured.late_games, &LATE_GAMES),
            }),
        }
    }
}

fn buckets(histogram: &Histogram, bounds: &[u64]) -> Vec<BucketView> {
    let uppers = bounds.iter().map(|bound| Some(bound.to_string())).chain([None]);
    let counts = histogram.counts.iter().copied().chain(std::iter::repeat(0));
    let bucket =
        |(up_to, count): (Option<String>, u64)| BucketView { up_to, count: count.to_string() };
    uppers.zip(counts).map(bucket).collect()
}
