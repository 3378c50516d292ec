//! Telling the one receiver there is: a webhook.

mod courier;
mod payload;
mod text;

pub use self::courier::{Courier, CourierError, DELIVERY_HEADER, Sent, WEBHOOK};
pub(super) use self::payload::render;
