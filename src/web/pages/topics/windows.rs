//! Rules about the guard's memory.

use super::Topic;

pub(super) const LIVE_EVICTION: Topic = Topic {
    slug: "live_eviction",
    name: "Live eviction",
    rule: "A guard's window must remember every settlement of the games a player is still in. \
           Here it let one go that can still be replayed: the next replay of it would be booked \
           again. Nothing is lost yet.",
    origins: &[
        "undersized: the window is smaller than what a player's two newest games need.",
        "late_third_game: a settlement came late, when a third game had begun.",
        "parallel_rooms: the player was in several rooms at once.",
        "ttl, reaper, memory, restart: it did not fall out for want of room.",
        "Any of these may be inferred: where no guard of the service tells what falls out, it \
         follows from a full window, first in, first out. Such a witness is called “eviction \
         inferred”, and the order is assumed.",
    ],
    steps: &[
        "Compare the window's capacity with what a player needs: the service's page has the \
         required capacity and how it comes about.",
        "Raise the capacity, or find out why more games run side by side than expected.",
    ],
    never: &[
        "A double booking: it is the chance of one. A leak is told as a duplicate leak.",
        "The eviction of a settlement whose game is over: that is what windows are for.",
    ],
};

pub(super) const WINDOW_LOST: Topic = Topic {
    slug: "window_lost",
    name: "Window lost",
    rule: "After each outcome a guard reports how many signatures its window holds. Here it held \
           fewer than it must after what it did before: part of the memory is gone, and replays \
           of what was lost would be booked again.",
    origins: &[
        "restart: the memory did not survive a restart.",
        "cap_changed: a deploy lowered the capacity.",
        "ttl: entries ran out by age during a long pause.",
        "on_block: a refused replay changed the window.",
        "cleared: the window was emptied while the guard ran.",
    ],
    steps: &[
        "Look at the witnesses: what the window held before and after.",
        "Keep the window where a restart or a deploy can't lose it.",
        "Watch for duplicate leaks of the players concerned: replays of what was lost get through.",
    ],
    never: &[
        "Missing reports: windows are compared only where the numbers between have no hole.",
        "An eviction for want of room: that is expected, and taken into account.",
    ],
};

pub(super) const UNDERSIZED_WINDOW: Topic = Topic {
    slug: "undersized_window",
    name: "Undersized window",
    rule: "In a player's two newest games more different settlements were accepted than the \
           window can hold. While both games can still be replayed, some are unprotected: this \
           is a matter of capacity, not of chance.",
    origins: &[
        "A capacity below two settlements a game for two games.",
        "Games with more settlements than were planned for: side bets, partial payouts.",
    ],
    steps: &[
        "Raise the capacity to what the service's page says is required.",
        "Find out which games settle more often than expected: the examples are some.",
    ],
    never: &[
        "A double booking: it says that one could get through.",
        "One unusual player alone: the finding counts the players it happened to.",
    ],
};

pub(super) const CAP_MISMATCH: Topic = Topic {
    slug: "cap_mismatch",
    name: "Different capacities",
    rule: "Sources of one service report windows of different capacity. A player's protection \
           then depends on which instance a delivery reaches.",
    origins: &["A rolling deploy that changes the capacity.", "An instance with an old setting."],
    steps: &["If no deploy is going on, bring the settings of the instances in line."],
    never: &["A wrong booking. During a deploy it is expected."],
};

pub(super) const GUARD_BYPASS: Topic = Topic {
    slug: "guard_bypass",
    name: "Guard bypassed",
    rule: "Settlements were accepted while the guard was off (guard_mode `off`). Nothing looked \
           for repeats; the sum is what was booked without protection.",
    origins: &[
        "A switch that was meant for an emergency or a migration and stayed on.",
        "A fallback that lets everything through when the guard's store is away.",
    ],
    steps: &[
        "Find out who switched the guard off, and switch it on.",
        "Look at the duplicate leaks of that time: the audit finds them without the guard.",
    ],
    never: &["A double booking by itself: those are told as duplicate leaks of cause guard_off."],
};

pub(super) const TWO_WRITERS: Topic = Topic {
    slug: "two_writers",
    name: "Two writers",
    rule: "Two sources with memories of their own accepted settlements of one player within one \
           second. Neither knows what the other accepted: a replay that changes sides gets \
           through.",
    origins: &[
        "A balancer that does not keep a player on one instance.",
        "A handover of a player while deliveries are on their way.",
    ],
    steps: &["Share the memory, or send all of a player's settlements to one instance."],
    never: &["A double booking: it says that one is possible."],
};

pub(super) const WINDOW_TOO_SMALL: Topic = Topic {
    slug: "window_too_small",
    name: "Window too small",
    rule: "Measured by what was played in the last seven days, the windows of this service would \
           have needed more places than they have: a settlement that can still come back was, or \
           could have been, out of the window. This is told before anything is booked twice.",
    origins: &[
        "More settlements in a player's live games than the window holds.",
        "Finals that come late, when newer games have begun: each takes a place between.",
        "Replays that come after more other settlements than the window holds.",
        "Luck: a replay of a game that was over was caught in the last place of its window. One \
         settlement more, and it would have been booked again.",
    ],
    steps: &[
        "Read on the service's page how the required capacity comes about.",
        "Raise the capacity to what is required, on all instances. The alert ends when all of \
         them have told the new one for a quarter of an hour.",
        "If finals come late, find out what holds them up: the page shows how late they come.",
    ],
    never: &[
        "A double booking: that is told as a duplicate leak.",
        "A guess: only what is known to have gone into one window is counted.",
    ],
};
