//! From frames to bytes.

use bytes::{BufMut as _, Bytes, BytesMut};

use crate::frame::{
    Control, FIN, GOAWAY, HEADERS, PING, RST_STREAM, SETTINGS, SYN_REPLY, SYN_STREAM, UNIDIRECTIONAL,
    VERSION, WINDOW_UPDATE,
};
use crate::headers::Deflater;

/// What a frame's length has room for.
const LONGEST: usize = (1 << 24) - 1;

#[derive(Debug)]
pub(crate) struct Encoder {
    out: BytesMut,
    deflater: Deflater,
}

impl Encoder {
    pub(crate) fn new() -> Self {
        Self { out: BytesMut::new(), deflater: Deflater::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    pub(crate) fn take(&mut self) -> Bytes {
        self.out.split().freeze()
    }

    pub(crate) fn data(&mut self, stream: u32, bytes: &[u8], fin: bool) {
        let mut pieces = bytes.chunks(LONGEST).peekable();
        if pieces.peek().is_none() {
            self.data_frame(stream, &[], fin);
        }
        while let Some(piece) = pieces.next() {
            self.data_frame(stream, piece, fin && pieces.peek().is_none());
        }
    }

    fn data_frame(&mut self, stream: u32, bytes: &[u8], fin: bool) {
        self.out.put_u32(stream & 0x7fff_ffff);
        self.length(u8::from(fin) * FIN, bytes.len());
        self.out.put_slice(bytes);
    }

    fn length(&mut self, flags: u8, length: usize) {
        self.out.put_u32(u32::from(flags) << 24 | length as u32);
    }

    fn head(&mut self, kind: u16, flags: u8, length: usize) {
        self.out.put_u16(0x8000 | VERSION);
        self.out.put_u16(kind);
        self.length(flags, length);
    }

    pub(crate) fn control(&mut self, frame: &Control) {
        match frame {
            Control::SynStream { stream, headers, fin, unidirectional } => {
                let block = self.deflater.write(headers);
                let flags = (u8::from(*fin) * FIN) | (u8::from(*unidirectional) * UNIDIRECTIONAL);
                self.head(SYN_STREAM, flags, 10 + block.len());
                self.out.put_u32(*stream);
                self.out.put_bytes(0, 6);
                self.out.put_slice(&block);
            }
            Control::SynReply { stream, headers, fin } | Control::Headers { stream, headers, fin } => {
                let block = self.deflater.write(headers);
                let kind = if matches!(frame, Control::SynReply { .. }) { SYN_REPLY } else { HEADERS };
                self.head(kind, u8::from(*fin) * FIN, 4 + block.len());
                self.out.put_u32(*stream);
                self.out.put_slice(&block);
            }
            Control::Reset { stream, code } => self.two(RST_STREAM, *stream, *code),
            Control::GoAway { last, code } => self.two(GOAWAY, *last, *code),
            Control::WindowUpdate { stream, delta } => self.two(WINDOW_UPDATE, *stream, *delta),
            Control::Ping(id) => {
                self.head(PING, 0, 4);
                self.out.put_u32(*id);
            }
            Control::Settings(settings) => {
                self.head(SETTINGS, 0, 4 + settings.len() * 8);
                self.out.put_u32(settings.len() as u32);
                for (id, value) in settings {
                    self.out.put_u32(*id);
                    self.out.put_u32(*value);
                }
            }
            Control::Other => {}
        }
    }

    fn two(&mut self, kind: u16, first: u32, second: u32) {
        self.head(kind, 0, 8);
        self.out.put_u32(first);
        self.out.put_u32(second);
    }
}
