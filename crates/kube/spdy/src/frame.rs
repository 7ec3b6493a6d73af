//! What goes over the wire, and what can be wrong with it.

use crate::headers::Headers;

/// The version in every control frame.
pub(crate) const VERSION: u16 = 3;
/// The length of what begins every frame.
pub(crate) const HEAD: usize = 8;
pub(crate) const FIN: u8 = 1;
pub(crate) const UNIDIRECTIONAL: u8 = 2;

pub(crate) const SYN_STREAM: u16 = 1;
pub(crate) const SYN_REPLY: u16 = 2;
pub(crate) const RST_STREAM: u16 = 3;
pub(crate) const SETTINGS: u16 = 4;
pub(crate) const PING: u16 = 6;
pub(crate) const GOAWAY: u16 = 7;
pub(crate) const HEADERS: u16 = 8;
pub(crate) const WINDOW_UPDATE: u16 = 9;

/// The setting that says how much may be sent before a window update.
pub(crate) const INITIAL_WINDOW_SIZE: u32 = 7;

/// A control frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Control {
    SynStream {
        stream: u32,
        headers: Headers,
        fin: bool,
        unidirectional: bool,
    },
    SynReply {
        stream: u32,
        headers: Headers,
        fin: bool,
    },
    Reset {
        stream: u32,
        code: u32,
    },
    /// Identifiers and values.
    Settings(Vec<(u32, u32)>),
    Ping(u32),
    GoAway {
        last: u32,
        code: u32,
    },
    Headers {
        stream: u32,
        headers: Headers,
        fin: bool,
    },
    WindowUpdate {
        stream: u32,
        delta: u32,
    },
    /// One that is not used.
    Other,
}

/// Why a stream is ended before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetCode {
    Protocol = 1,
    InvalidStream = 2,
    Refused = 3,
    Cancel = 5,
    Internal = 6,
    FlowControl = 7,
    StreamAlreadyClosed = 9,
}

/// Why a connection cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Another version of the protocol, or no SPDY at all.
    #[error("a frame is of version {0}, not 3")]
    Version(u16),
    /// Longer than the limit.
    #[error("a control frame has {0} bytes; that is too long")]
    TooLong(usize),
    /// Shorter or longer than its kind, or a stream numbered zero.
    #[error("a frame of type {0} is malformed")]
    Malformed(u16),
    /// What follows cannot be read either: all blocks share one compression.
    #[error("a header block cannot be read: {0}")]
    Headers(&'static str),
}
