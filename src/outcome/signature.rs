//! The identity of one settlement, kept as fields and never as a joined string.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Id, KeyedHash, Net};

/// The identity of one settlement of a player. Each part prevents one confusion: room (two
/// rooms), round (two games), net and final (two settlements of one game), session (rooms and
/// rounds that are used again).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signature {
    /// A settlement of a game.
    Settlement {
        /// Where it was played, and which round.
        game: Game,
        /// How much it moves.
        net: Net,
        /// The last settlement of its game.
        last: bool,
    },
    /// A service with a scheme of its own. The amount is no part of the identity.
    Opaque {
        /// The whole identity.
        key: Id,
        /// How much it moves; 0 if not told.
        net: Net,
    },
}

/// One game of one player in one ledger.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Game {
    /// Set where rooms and rounds are used again.
    pub session: Option<Id>,
    /// May be empty: some games have no room.
    pub room: Id,
    /// Counts the games of a room.
    pub round: Id,
}

impl Signature {
    /// The amount that an acceptance moves.
    pub fn net(&self) -> Net {
        match self {
            Self::Settlement { net, .. } | Self::Opaque { net, .. } => *net,
        }
    }

    /// Its game; opaque keys have none.
    pub fn game(&self) -> Option<&Game> {
        match self {
            Self::Settlement { game, .. } => Some(game),
            Self::Opaque { .. } => None,
        }
    }

    /// Its room, by which windows of scope `room` are told apart.
    pub fn room(&self) -> Option<&Id> {
        self.game().map(|game| &game.room)
    }

    /// 64 bits of a keyed hash of the identity.
    pub fn hash(&self, hash: &KeyedHash) -> i64 {
        match self {
            Self::Settlement { game, net, last } => hash.of(&[
                b"game",
                game.session.as_ref().map_or(b"", |id| id.as_str().as_bytes()),
                if game.session.is_some() { b"s" } else { b"" },
                game.room.as_str().as_bytes(),
                game.round.as_str().as_bytes(),
                &net.0.to_be_bytes(),
                &[u8::from(*last)],
            ]),
            Self::Opaque { key, .. } => hash.of(&[b"key", key.as_str().as_bytes()]),
        }
    }
}

impl Game {
    /// 64 bits of a keyed hash of the game.
    pub fn hash(&self, hash: &KeyedHash) -> i64 {
        hash.of(&[
            self.session.as_ref().map_or(b"", |id| id.as_str().as_bytes()),
            if self.session.is_some() { b"s" } else { b"" },
            self.room.as_str().as_bytes(),
            self.round.as_str().as_bytes(),
        ])
    }
}

impl Serialize for Signature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            Fields::from(self.clone()).serialize(serializer)
        } else {
            Packed::serialize(self, serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            Self::try_from(Fields::deserialize(deserializer)?).map_err(de::Error::custom)
        } else {
            Packed::deserialize(deserializer)
        }
    }
}

/// For programs.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Signature")]
enum Packed {
    Settlement { game: Game, net: Net, last: bool },
    Opaque { key: Id, net: Net },
}

/// The wire form.
#[derive(Serialize, Deserialize)]
struct Fields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    room: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    round: Option<Id>,
    net: Net,
    #[serde(default, rename = "final", skip_serializing_if = "Option::is_none")]
    last: Option<bool>,
}

impl From<Signature> for Fields {
    fn from(signature: Signature) -> Self {
        match signature {
            Signature::Settlement { game, net, last } => Self {
                key: None,
                session: game.session,
                room: Some(game.room),
                round: Some(game.round),
                net,
                last: Some(last),
            },
            Signature::Opaque { key, net } => {
                Self { key: Some(key), session: None, room: None, round: None, net, last: None }
            }
        }
    }
}

impl TryFrom<Fields> for Signature {
    type Error = de::value::Error;

    fn try_from(fields: Fields) -> Result<Self, Self::Error> {
        match fields {
            Fields { key: Some(key), net, .. } => Ok(Self::Opaque { key, net }),
            Fields { session, room: Some(room), round: Some(round), net, last, .. } => {
                let game = Game { session, room, round };
                Ok(Self::Settlement { game, net, last: last.unwrap_or(false) })
            }
            _ => Err(de::Error::custom("a signature needs room and round, or key")),
        }
    }
}
