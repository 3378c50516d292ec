//! A body as it was before its sender packed it, within a bound: a bomb never gets larger.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

use super::BodyError;
use crate::limits;

/// How a body is packed (`Content-Encoding`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `gzip`: one member or several.
    Gzip,
    /// `zstd`: one frame or several.
    Zstd,
}

/// Unpacks a whole body, and stops at the bound.
pub fn inflate(body: &[u8], encoding: Encoding) -> Result<Vec<u8>, BodyError> {
    match encoding {
        Encoding::Gzip => bounded(MultiGzDecoder::new(body))
            .map_err(|error| BodyError::NotGzip(error.to_string()))?,
        Encoding::Zstd => {
            unpack_zstd(body).map_err(|error| BodyError::NotZstd(error.to_string()))?
        }
    }
    .ok_or(BodyError::TooLarge(limits::BODY_INFLATED_BYTES_MAX, "inflated"))
}

/// A frame names its window, up to terabytes, and the decoder takes memory for it before a byte
/// has come out.
fn unpack_zstd(body: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut decoder = zstd::Decoder::with_buffer(body)?;
    decoder.window_log_max(limits::ZSTD_WINDOW_LOG_MAX)?;
    bounded(decoder)
}

/// All of it; `None` if it is more than is taken.
fn bounded(unpacked: impl Read) -> io::Result<Option<Vec<u8>>> {
    let bound = limits::BODY_INFLATED_BYTES_MAX;
    let mut inflated = Vec::new();
    unpacked.take(bound as u64 + 1).read_to_end(&mut inflated)?;
    Ok(Some(inflated).filter(|inflated| inflated.len() <= bound))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 1).unwrap()
    }

    /// Bounds and breaks are the same for each.
    fn is_inflated_within_its_bound(pack: fn(&[u8]) -> Vec<u8>, encoding: Encoding, code: &str) {
        let inflate = |body: &[u8]| inflate(body, encoding);
        assert_eq!(inflate(&pack(b"[]")).unwrap(), b"[]");
        assert_eq!(inflate(&[pack(b"[1"), pack(b",2]")].concat()).unwrap(), b"[1,2]");
        let blanks = vec![b' '; limits::BODY_INFLATED_BYTES_MAX + 1];
        let bomb = pack(&blanks);
        assert!(bomb.len() < 1 << 20);
        assert_eq!(inflate(&bomb).unwrap_err().code(), "body_too_large");
        let most = inflate(&pack(&blanks[1..])).unwrap();
        assert_eq!(most.len(), limits::BODY_INFLATED_BYTES_MAX);
        let whole = pack(b"[1,2,3]");
        for broken in [&whole[..whole.len() - 4], b"[]", b"", b"no such frame"] {
            assert_eq!(inflate(broken).unwrap_err().code(), code, "{broken:?}");
        }
    }

    #[test]
    fn gzip_is_inflated_within_its_bound() {
        is_inflated_within_its_bound(gzip, Encoding::Gzip, "not_gzip");
    }

    #[test]
    fn zstd_is_inflated_within_its_bound() {
        is_inflated_within_its_bound(zstd, Encoding::Zstd, "not_zstd");
    }

    #[test]
    fn a_zstd_frame_takes_a_window_of_8_mib_at_most() {
        let frame = |window_log: u32| {
            let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
            encoder.window_log(window_log).unwrap();
            encoder.write_all(b"[]").unwrap();
            encoder.finish().unwrap()
        };
        assert_eq!(inflate(&frame(23), Encoding::Zstd).unwrap(), b"[]");
        let told = inflate(&frame(24), Encoding::Zstd).unwrap_err();
        assert_eq!(told.code(), "not_zstd");
        assert!(told.to_string().contains("8 MiB"), "{told}");
    }
}
