//! Ports for programs that cannot say which one they took.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use anyhow::bail;

/// Below the ports that the system gives to outgoing connections: a program that is killed and started again finds
/// its port still free.
const FROM: Range<u16> = 20_000..32_000;
const TRIES: usize = 1_000;

static TAKEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// A port of loopback that nobody listens on, never given twice by this process.
pub fn free() -> anyhow::Result<u16> {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..TRIES {
        let port = fastrand::u16(FROM);
        if !taken.contains(&port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            taken.insert(port);
            return Ok(port);
        }
    }
    bail!("no port of loopback is free between {} and {}", FROM.start, FROM.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_free_and_given_once() {
        let first = free().unwrap();
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).unwrap();
        let others: BTreeSet<u16> = (0..100).map(|_| free().unwrap()).collect();
        assert_eq!(others.len(), 100);
        assert!(!others.contains(&held.local_addr().unwrap().port()));
        assert!(others.iter().all(|port| FROM.contains(port)));
    }
}
