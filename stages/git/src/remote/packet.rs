//! Git's packet lines: four hexadecimal digits of length, then so many bytes.

use bytes::{Buf as _, Bytes, BytesMut};

/// The largest packet there is.
pub(super) const LARGEST: usize = 65_520;

/// What says which program asks.
pub(super) const AGENT: &str = concat!("agent=gitops-runtime/", env!("CARGO_PKG_VERSION"));

/// One packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Packet {
    /// `0000`: a message ends.
    Flush,
    /// `0001`: a section ends.
    Delimiter,
    /// `0002`: an answer ends.
    End,
    /// Bytes.
    Data(Bytes),
}

/// Takes the first packet off `buffer`; `None` when it is not whole yet.
///
/// # Errors
/// What stands there is no packet.
pub(super) fn take(buffer: &mut BytesMut) -> Result<Option<Packet>, &'static str> {
    const NONE: &str = "a packet has no length";
    let Some(head) = buffer.get(..4) else { return Ok(None) };
    if !head.iter().all(u8::is_ascii_hexdigit) {
        return Err(NONE);
    }
    let length = std::str::from_utf8(head).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
    let packet = match length.ok_or(NONE)? {
        0 => Packet::Flush,
        1 => Packet::Delimiter,
        2 => Packet::End,
        length if !(4..=LARGEST).contains(&length) => return Err("a packet is longer than any may be"),
        length if buffer.len() < length => return Ok(None),
        length => {
            let mut whole = buffer.split_to(length);
            whole.advance(4);
            return Ok(Some(Packet::Data(whole.freeze())));
        }
    };
    buffer.advance(4);
    Ok(Some(packet))
}

/// Adds a line, which ends with a line feed.
pub(super) fn line(to: &mut Vec<u8>, text: &str) {
    to.extend_from_slice(format!("{:04x}{text}\n", text.len() + 5).as_bytes());
}

/// Adds a text as it is.
pub(super) fn data(to: &mut Vec<u8>, text: &str) {
    to.extend_from_slice(format!("{:04x}{text}", text.len() + 4).as_bytes());
}

/// Adds the end of a message.
pub(super) fn flush(to: &mut Vec<u8>) {
    to.extend_from_slice(b"0000");
}

/// Adds the end of a section.
pub(super) fn delimiter(to: &mut Vec<u8>) {
    to.extend_from_slice(b"0001");
}

/// The text of a packet, without the line feed at its end.
pub(super) fn text(data: &Bytes) -> String {
    String::from_utf8_lossy(data).trim_end_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use bytes::{Bytes, BytesMut};

    use super::{Packet, delimiter, flush, line, take};

    #[test]
    fn what_is_written_is_read_however_it_is_cut() {
        let mut written = Vec::new();
        line(&mut written, "command=fetch");
        delimiter(&mut written);
        line(&mut written, "");
        flush(&mut written);
        let mut buffer = BytesMut::new();
        let mut found = Vec::new();
        for byte in written {
            buffer.extend_from_slice(&[byte]);
            found.extend(take(&mut buffer).unwrap());
        }
        assert_eq!(
            found,
            [
                Packet::Data(Bytes::from_static(b"command=fetch\n")),
                Packet::Delimiter,
                Packet::Data(Bytes::from_static(b"\n")),
                Packet::Flush,
            ]
        );
        assert!(buffer.is_empty());
    }

    #[test]
    fn what_is_no_packet_is_refused() {
        for (bytes, why) in [
            (&b"HTTP/1.1"[..], "a packet has no length"),
            (b"+00aabc", "a packet has no length"),
            (b"ffff", "a packet is longer than any may be"),
            (b"0003", "a packet is longer than any may be"),
        ] {
            assert_eq!(take(&mut BytesMut::from(bytes)).unwrap_err(), why);
        }
        assert_eq!(take(&mut BytesMut::from(&b"00"[..])).unwrap(), None);
    }
}
