//! Header blocks: names and values, compressed with everything that went before on this connection.

use bytes::{Buf as _, BufMut as _};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::dictionary::DICTIONARY;
use crate::frame::Error;

/// Headers of a stream, in the order they were sent. Names are lower-case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a header; its name is made lower-case.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.push((name.to_ascii_lowercase(), value.into()));
        self
    }

    /// The first value of a header.
    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        value.map(|value| value.split('\0').next().unwrap_or_default())
    }

    fn write(&self) -> Vec<u8> {
        let mut block = Vec::new();
        // What does not fit into 32 bits does not fit into a frame either; the encoder looks at that.
        block.put_u32(self.0.len() as u32);
        for (name, value) in &self.0 {
            for text in [name, value] {
                block.put_u32(text.len() as u32);
                block.put_slice(text.as_bytes());
            }
        }
        block
    }

    fn read(mut block: &[u8]) -> Result<Self, Error> {
        let count = take_number(&mut block)?;
        let mut headers: Vec<(String, String)> = Vec::new();
        for _ in 0..count {
            let name = take_text(&mut block)?.to_ascii_lowercase();
            let value = take_text(&mut block)?.to_owned();
            if name.is_empty() || headers.iter().any(|(known, _)| *known == name) {
                return Err(Error::Headers("a name is empty or there twice"));
            }
            headers.push((name, value));
        }
        if block.is_empty() { Ok(Self(headers)) } else { Err(Error::Headers("it goes on after its end")) }
    }
}

const SHORT: Error = Error::Headers("it ends too early");

fn take_number(block: &mut &[u8]) -> Result<u32, Error> {
    block.try_get_u32().map_err(|_| SHORT)
}

fn take_text<'a>(block: &mut &'a [u8]) -> Result<&'a str, Error> {
    let length = take_number(block)? as usize;
    let (text, rest) = block.split_at_checked(length).ok_or(SHORT)?;
    *block = rest;
    std::str::from_utf8(text).map_err(|_| Error::Headers("it is no text"))
}

/// Reads one side's header blocks.
pub(crate) struct Inflater {
    zlib: Decompress,
    limit: usize,
}

impl std::fmt::Debug for Inflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inflater")
    }
}

impl Inflater {
    /// `limit`: most bytes of one block when inflated.
    pub(crate) fn new(limit: usize) -> Self {
        Self { zlib: Decompress::new(true), limit }
    }

    pub(crate) fn read(&mut self, compressed: &[u8]) -> Result<Headers, Error> {
        Headers::read(&self.inflate(compressed)?)
    }

    fn inflate(&mut self, mut input: &[u8]) -> Result<Vec<u8>, Error> {
        const UNREADABLE: Error = Error::Headers("it cannot be decompressed");
        let mut block = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            let (read, written) = (self.zlib.total_in(), self.zlib.total_out());
            let result = self.zlib.decompress(input, &mut chunk, FlushDecompress::Sync);
            let read = (self.zlib.total_in() - read) as usize;
            let written = (self.zlib.total_out() - written) as usize;
            input = input.get(read..).unwrap_or_default();
            block.extend_from_slice(chunk.get(..written).unwrap_or_default());
            if block.len() > self.limit {
                return Err(Error::Headers("it is too long"));
            }
            match result {
                Err(error) if error.needs_dictionary().is_some() => {
                    self.zlib.set_dictionary(DICTIONARY).map_err(|_| UNREADABLE)?;
                }
                Err(_) | Ok(Status::StreamEnd) => return Err(UNREADABLE),
                // All is read, and there was room for more.
                Ok(_) if input.is_empty() && written < chunk.len() => return Ok(block),
                Ok(_) if read == 0 && written == 0 => return Err(UNREADABLE),
                Ok(_) => {}
            }
        }
    }
}

/// Writes one side's header blocks.
pub(crate) struct Deflater(Compress);

impl std::fmt::Debug for Deflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Deflater")
    }
}

impl Deflater {
    pub(crate) fn new() -> Self {
        let mut zlib = Compress::new(Compression::fast(), true);
        // Before the first byte a dictionary is always taken.
        let _ = zlib.set_dictionary(DICTIONARY);
        Self(zlib)
    }

    pub(crate) fn write(&mut self, headers: &Headers) -> Vec<u8> {
        let block = headers.write();
        let mut input = &*block;
        let mut out = Vec::with_capacity(block.len() / 2 + 64);
        let mut chunk = [0; 4096];
        loop {
            let (read, written) = (self.0.total_in(), self.0.total_out());
            let result = self.0.compress(input, &mut chunk, FlushCompress::Sync);
            let read = (self.0.total_in() - read) as usize;
            let written = (self.0.total_out() - written) as usize;
            input = input.get(read..).unwrap_or_default();
            out.extend_from_slice(chunk.get(..written).unwrap_or_default());
            // A chunk that is not full means that everything is flushed. Compressing what is in memory does not fail.
            if result.is_err() || written < chunk.len() {
                return out;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_back_and_each_builds_on_those_before() {
        let (mut out, mut into) = (Deflater::new(), Inflater::new(1 << 16));
        let mut lengths = Vec::new();
        for request in 0..3 {
            let headers = Headers::new()
                .with("Port", "8080")
                .with("streamType", "error")
                .with("requestID", request.to_string());
            let block = out.write(&headers);
            lengths.push(block.len());
            let read = into.read(&block).unwrap();
            assert_eq!(read, headers);
            assert_eq!(read.get("streamtype"), Some("error"));
        }
        assert!(lengths[1] < lengths[0], "{lengths:?}");
    }

    #[test]
    fn a_small_block_that_becomes_a_huge_one_is_refused() {
        let headers = Headers::new().with("x", "0".repeat(1 << 20));
        let block = Deflater::new().write(&headers);
        assert!(block.len() < 1 << 14);
        assert_eq!(Inflater::new(1 << 16).read(&block), Err(Error::Headers("it is too long")));
    }

    #[test]
    fn what_is_no_header_block_is_refused() {
        for (block, why) in [
            (&[][..], "it ends too early"),
            (&[0, 0, 0, 1], "it ends too early"),
            (&[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff], "it ends too early"),
            (&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], "a name is empty or there twice"),
            (&[0, 0, 0, 0, 1], "it goes on after its end"),
            (&[0, 0, 0, 1, 0, 0, 0, 1, 0xff, 0, 0, 0, 0], "it is no text"),
        ] {
            assert_eq!(Headers::read(block), Err(Error::Headers(why)), "{block:?}");
        }
        assert_eq!(Inflater::new(99).read(b"nonsense"), Err(Error::Headers("it cannot be decompressed")));
    }
}
