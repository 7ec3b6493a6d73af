//! From bytes to frames.

use bytes::{Buf as _, Bytes, BytesMut};

use crate::frame::{
    Control, Error, FIN, GOAWAY, HEAD, HEADERS, PING, RST_STREAM, SETTINGS, SYN_REPLY, SYN_STREAM,
    UNIDIRECTIONAL, VERSION, WINDOW_UPDATE,
};
use crate::headers::Inflater;

/// A control frame, or a piece of a data frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Control(Control),
    /// `fin` only comes with the last piece.
    Data {
        stream: u32,
        bytes: Bytes,
        fin: bool,
    },
}

/// A data frame of which a part is still to come.
#[derive(Debug)]
struct Rest {
    stream: u32,
    left: usize,
    fin: bool,
}

#[derive(Debug)]
pub(crate) struct Decoder {
    buffer: BytesMut,
    rest: Option<Rest>,
    inflater: Inflater,
    longest: usize,
}

impl Decoder {
    /// `longest`: most bytes of a control frame.
    pub(crate) fn new(longest: usize, longest_headers: usize) -> Self {
        Self { buffer: BytesMut::new(), rest: None, inflater: Inflater::new(longest_headers), longest }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes that wait for more.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.buffer.len()
    }

    /// The next frame; `None`: more bytes are needed. Never keeps more than one control frame.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, Error> {
        if let Some(rest) = self.rest.take() {
            return Ok(self.piece(rest));
        }
        let Some(head) = self.buffer.get(..HEAD) else { return Ok(None) };
        let mut head: [u8; HEAD] = head.try_into().unwrap_or_default();
        let flags = head[4];
        head[4] = 0;
        let mut head = &head[..];
        let first = head.get_u32();
        let length = head.get_u32() as usize;
        if first >> 31 == 0 {
            self.buffer.advance(HEAD);
            return Ok(self.piece(Rest { stream: first, left: length, fin: flags & FIN != 0 }));
        }
        let version = (first >> 16) as u16 & 0x7fff;
        if version != VERSION {
            return Err(Error::Version(version));
        }
        if length > self.longest {
            return Err(Error::TooLong(length));
        }
        if self.buffer.len() < HEAD + length {
            return Ok(None);
        }
        self.buffer.advance(HEAD);
        let body = self.buffer.split_to(length).freeze();
        control(first as u16, flags, body, &mut self.inflater).map(|frame| Some(Frame::Control(frame)))
    }

    fn piece(&mut self, rest: Rest) -> Option<Frame> {
        let Rest { stream, left, fin } = rest;
        if left > 0 && self.buffer.is_empty() {
            self.rest = Some(rest);
            return None;
        }
        let bytes = self.buffer.split_to(left.min(self.buffer.len())).freeze();
        let left = left - bytes.len();
        if left > 0 {
            self.rest = Some(Rest { stream, left, fin });
        }
        Some(Frame::Data { stream, bytes, fin: fin && left == 0 })
    }
}

/// A stream's number; the highest bit means nothing.
fn stream(body: &mut Bytes, kind: u16) -> Result<u32, Error> {
    match body.try_get_u32().map(|stream| stream & 0x7fff_ffff) {
        Ok(0) | Err(_) => Err(Error::Malformed(kind)),
        Ok(stream) => Ok(stream),
    }
}

fn control(kind: u16, flags: u8, mut body: Bytes, inflater: &mut Inflater) -> Result<Control, Error> {
    let malformed = |_| Error::Malformed(kind);
    let fin = flags & FIN != 0;
    let frame = match kind {
        SYN_STREAM => {
            let stream = stream(&mut body, kind)?;
            // The stream it belongs to, its priority, and a slot for credentials: none of our business.
            if body.len() < 6 {
                return Err(Error::Malformed(kind));
            }
            let headers = inflater.read(body.get(6..).unwrap_or_default())?;
            return Ok(Control::SynStream {
                stream,
                headers,
                fin,
                unidirectional: flags & UNIDIRECTIONAL != 0,
            });
        }
        SYN_REPLY => {
            let stream = stream(&mut body, kind)?;
            return Ok(Control::SynReply { stream, headers: inflater.read(&body)?, fin });
        }
        HEADERS => {
            let stream = stream(&mut body, kind)?;
            return Ok(Control::Headers { stream, headers: inflater.read(&body)?, fin });
        }
        RST_STREAM => {
            Control::Reset { stream: stream(&mut body, kind)?, code: body.try_get_u32().map_err(malformed)? }
        }
        SETTINGS => {
            let count = body.try_get_u32().map_err(malformed)? as usize;
            // The frame's length bounds the count before anything is made of it.
            if count.checked_mul(8) != Some(body.len()) {
                return Err(Error::Malformed(kind));
            }
            let mut settings = Vec::with_capacity(count);
            while body.has_remaining() {
                let id = body.try_get_u32().map_err(malformed)? & 0x00ff_ffff;
                settings.push((id, body.try_get_u32().map_err(malformed)?));
            }
            Control::Settings(settings)
        }
        PING => Control::Ping(body.try_get_u32().map_err(malformed)?),
        GOAWAY => Control::GoAway {
            last: body.try_get_u32().map_err(malformed)? & 0x7fff_ffff,
            code: body.try_get_u32().map_err(malformed)?,
        },
        WINDOW_UPDATE => Control::WindowUpdate {
            // Zero is the whole connection in SPDY/3.1.
            stream: body.try_get_u32().map_err(malformed)? & 0x7fff_ffff,
            delta: body.try_get_u32().map_err(malformed)? & 0x7fff_ffff,
        },
        _ => return Ok(Control::Other),
    };
    if body.is_empty() { Ok(frame) } else { Err(Error::Malformed(kind)) }
}
