//! One move of a delivery from a state to another. The serde form is the wire form of
//! `POST /api/v1/transitions`.

use serde::{Deserialize, Serialize};

use super::{Boot, Id, SourceName};

/// A delivery went from one state to another.
///
/// Has an identity as an outcome has: (`boot`, `seq`), or `event_id`, or both (then the sequence
/// decides). Transitions are counted apart from outcomes: the first of a boot is 1 again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// Who says it.
    #[serde(flatten)]
    pub from: SourceName,
    /// The run of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<Boot>,
    /// Counts the transitions of the boot from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Identity of senders that can't count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<Id>,
    /// Names the delivery.
    pub trace_id: Id,
    /// Names the settlement that is delivered.
    pub key: Id,
    /// The state before.
    #[serde(rename = "from")]
    pub left: DeliveryState,
    /// The state after.
    #[serde(rename = "to")]
    pub entered: DeliveryState,
    /// Why, in the sender's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Id>,
    /// When, by the source's clock.
    #[serde(rename = "at", with = "super::time::rfc3339")]
    pub at_us: i64,
}

/// How far a delivery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It came.
    Received,
    /// The guard looks at it.
    Checking,
    /// It was let through.
    Accepted,
    /// It was turned away.
    Refused,
}

impl Transition {
    /// The run and the number in it, where the source counts.
    pub fn sequence(&self) -> Option<(Boot, u64)> {
        self.boot.zip(self.seq)
    }

    /// Whether it goes forward.
    pub fn is_legal(&self) -> bool {
        self.left.leads_to(self.entered)
    }

    /// A copy without what may differ between two tellings of one transition.
    pub fn content(&self) -> Self {
        Self { at_us: 0, ..self.clone() }
    }
}

impl DeliveryState {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [Self::Received, Self::Checking, Self::Accepted, Self::Refused];

    /// Its name on the wire and as a label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Checking => "checking",
            Self::Accepted => "accepted",
            Self::Refused => "refused",
        }
    }

    /// Whether a delivery may go from here to there. A step may be left out; an end is an end.
    pub fn leads_to(self, entered: Self) -> bool {
        entered.rank() > self.rank()
    }

    /// Both ends are as far as a delivery goes.
    fn rank(self) -> u8 {
        match self {
            Self::Received => 0,
            Self::Checking => 1,
            Self::Accepted | Self::Refused => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_forward_is_legal() {
        let text = r#"{"service":"s","env":"prod","source":"a","boot":"1","seq":1,
            "trace_id":"t","key":"k","from":"received","to":"checking",
            "at":"2026-11-30T12:00:00.000000Z"}"#;
        let transition: Transition = serde_json::from_str(text).unwrap();
        let mut legal = Vec::new();
        for left in DeliveryState::ALL {
            for entered in DeliveryState::ALL {
                if (Transition { left, entered, ..transition.clone() }).is_legal() {
                    legal.push(format!("{} {}", left.as_str(), entered.as_str()));
                }
            }
        }
        let forward = [
            "received checking",
            "received accepted",
            "received refused",
            "checking accepted",
            "checking refused",
        ];
        assert_eq!(legal, forward);
        let same: Transition =
            serde_json::from_str(&serde_json::to_string(&transition).unwrap()).unwrap();
        assert_eq!(same, transition);
    }
}
