use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::{Refusal, Scan};

fn deflated(content: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// The head of an entry, of a kind and a size.
fn entry(kind: u8, mut size: u64) -> Vec<u8> {
    let mut first = kind << 4 | u8::try_from(size & 15).unwrap();
    size >>= 4;
    let mut head = Vec::new();
    while size > 0 {
        head.push(first | 0x80);
        first = u8::try_from(size & 0x7f).unwrap();
        size >>= 7;
    }
    head.push(first);
    head
}

fn pack(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut all = b"PACK\0\0\0\x02".to_vec();
    all.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
    all.extend(entries.concat());
    all.extend([0; 20]);
    all
}

fn blob(content: &[u8]) -> Vec<u8> {
    [entry(3, content.len() as u64), deflated(content)].concat()
}

/// Of a difference to the blob `bytes` before it, which says that its result has `result` bytes.
fn delta(by_offset: bool, base: u64, result: u64) -> Vec<u8> {
    let mut content = Vec::new();
    for mut number in [base, result] {
        while number >= 0x80 {
            content.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
            number >>= 7;
        }
        content.push(u8::try_from(number).unwrap());
    }
    content.extend(b"\x01x");
    let (kind, of) = if by_offset { (6, vec![0x81, 0x02]) } else { (7, vec![9; 20]) };
    [entry(kind, content.len() as u64), of, deflated(&content)].concat()
}

fn scan(bytes: &[u8], step: usize) -> Result<bool, Refusal> {
    let mut scan = Scan::new(1_000_000);
    for part in bytes.chunks(step) {
        scan.feed(part)?;
    }
    Ok(scan.is_done())
}

#[test]
fn a_pack_is_looked_through_however_it_is_cut() {
    let large = b"0123456789".repeat(50_000);
    let whole = pack(&[blob(b""), blob(b"a"), blob(&large), delta(true, 300, 1), delta(false, 5, 1_000_000)]);
    for step in [1, 2, 3, 7, 4_096, whole.len()] {
        assert_eq!(scan(&whole, step), Ok(true), "{step}");
    }
    assert_eq!(scan(whole.get(..whole.len() - 1).unwrap(), 5), Ok(false));
    assert_eq!(scan(&pack(&[]), 1), Ok(true));
}

#[test]
fn an_announced_size_is_refused_before_its_content_comes() {
    let announced = [b"PACK\0\0\0\x02\0\0\0\x01".to_vec(), entry(3, 2 << 30)].concat();
    assert_eq!(scan(&announced, 1), Err(Refusal::Large(2 << 30)));
    assert_eq!(scan(&pack(&[delta(true, 3, 2 << 30)]), 7), Err(Refusal::Large(2 << 30)));
    assert_eq!(scan(&pack(&[delta(false, 2 << 30, 3)]), 7), Err(Refusal::Large(2 << 30)));
}

#[test]
fn what_is_no_pack_is_refused() {
    for (bytes, why) in [
        (b"<!DOCTYPE html><html>".to_vec(), "it is no pack of version 2"),
        (b"PACK\0\0\0\x02\xff\xff\xff\xff".to_vec(), "it announces more than 10,000,000 objects"),
        (pack(&[entry(5, 1)]), "an object is of no kind there is"),
        (pack(&[[0xb0; 12].to_vec()]), "a size is too long"),
        (pack(&[[entry(6, 9), vec![0x80; 30]].concat()]), "an offset is too long"),
        (pack(&[[entry(3, 5), deflated(b"longer than five")].concat()]), "an object is larger than it says"),
        (pack(&[[entry(3, 50), deflated(b"short")].concat()]), "an object is smaller than it says"),
        (
            pack(&[[entry(3, 5), b"not compressed".to_vec()].concat()]),
            "an object is not compressed as it should be",
        ),
        ([pack(&[]), vec![0]].concat(), "there is more behind its end"),
    ] {
        assert_eq!(scan(&bytes, 3), Err(Refusal::Damaged(why)));
        assert_eq!(scan(&bytes, bytes.len()), Err(Refusal::Damaged(why)));
    }
}
