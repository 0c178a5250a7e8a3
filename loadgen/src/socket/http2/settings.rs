//! The server's settings (RFC 9113, section 6.5). Pure: no I/O.

use super::frame::Fault;

const HEADER_TABLE_SIZE: u16 = 1;
pub(super) const ENABLE_PUSH: u16 = 2;
const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_FRAME_SIZE: u16 = 5;
pub(super) const MAX_HEADER_LIST_SIZE: u16 = 6;

/// The number of streams that is assumed before the server's settings come, as in other HTTP/2 clients. Section 6.5.2
/// of RFC 9113 recommends that servers allow at least as many.
pub(crate) const STREAMS_UNTIL_TOLD: u32 = 100;
const WINDOW_MAX: u32 = (1 << 31) - 1;
/// The allowed values of the largest frame size; 16 KiB is the initial value.
const FRAME_BYTES: std::ops::RangeInclusive<u32> = 1 << 14..=(1 << 24) - 1;

/// The server's settings that concern sent data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer {
    pub table_bytes: u32,
    pub streams_max: u32,
    pub window_bytes: u32,
}

impl Default for Peer {
    fn default() -> Self {
        Self { table_bytes: 4096, streams_max: STREAMS_UNTIL_TOLD, window_bytes: 65_535 }
    }
}

impl Peer {
    /// Applies the payload of a SETTINGS frame, which has six bytes for each setting.
    pub(super) fn change(&mut self, settings: &[u8]) -> Result<(), Fault> {
        for setting in settings.chunks_exact(6) {
            let Some((identifier, value)) = setting.split_first_chunk() else { continue };
            let value = value.try_into().map(u32::from_be_bytes).unwrap_or_default();
            match u16::from_be_bytes(*identifier) {
                HEADER_TABLE_SIZE => self.table_bytes = value,
                ENABLE_PUSH if value != 0 => return Err(Fault::protocol("the server says that clients may push")),
                MAX_CONCURRENT_STREAMS => self.streams_max = value,
                INITIAL_WINDOW_SIZE if value > WINDOW_MAX => {
                    return Err(Fault::flow_control("a window is larger than 2^31-1"));
                }
                INITIAL_WINDOW_SIZE => self.window_bytes = value,
                MAX_FRAME_SIZE if !FRAME_BYTES.contains(&value) => {
                    return Err(Fault::protocol("a setting for the size of frames is out of its range"));
                }
                // Larger frames are never sent, and unknown settings are ignored.
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(settings: &[(u16, u32)]) -> Result<Peer, Fault> {
        let bytes: Vec<u8> =
            settings.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect();
        let mut peer = Peer::default();
        peer.change(&bytes).map(|()| peer)
    }

    #[test]
    fn settings_are_taken_over_within_their_ranges() {
        let all = [(1, 0), (2, 0), (3, 7), (4, 9), (5, 1 << 14), (6, 1), (0x1234, 5)];
        assert_eq!(changed(&all), Ok(Peer { table_bytes: 0, streams_max: 7, window_bytes: 9 }));
        assert_eq!(changed(&[]), Ok(Peer::default()));
        for wrong in [(2, 1), (4, 1 << 31), (5, 100), (5, 1 << 24)] {
            assert!(changed(&[wrong]).is_err(), "{wrong:?}");
        }
    }
}
