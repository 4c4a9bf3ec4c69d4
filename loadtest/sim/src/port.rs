//! Ports for programs that cannot say which one they took.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use anyhow::bail;

/// Below the ports that the system gives to outgoing connections: a program that is killed and started again finds
/// its port still free.
const FROM: Range<u16> = 20_000..32_000;
const TRIES: usize = 1_000;

/// Ports that were given, as sockets of datagrams: those are apart from the ports that programs listen on, and only one
/// process has one at a time.
static TAKEN: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());

/// A port of loopback that nobody listens on, never given twice while this process runs, nor by another one that asks here.
pub fn free() -> anyhow::Result<u16> {
    for _ in 0..TRIES {
        let address = (Ipv4Addr::LOCALHOST, fastrand::u16(FROM));
        let Ok(taken) = UdpSocket::bind(address) else { continue };
        if TcpListener::bind(address).is_ok() {
            TAKEN.lock().unwrap_or_else(PoisonError::into_inner).push(taken);
            return Ok(address.1);
        }
    }
    bail!("no port of loopback is free between {} and {}", FROM.start, FROM.end)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_port_is_free_and_given_once() {
        let first = free().unwrap();
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).unwrap();
        let others: BTreeSet<u16> = (0..100).map(|_| free().unwrap()).collect();
        assert_eq!(others.len(), 100);
        assert!(!others.contains(&held.local_addr().unwrap().port()));
        assert!(others.iter().all(|port| FROM.contains(port)));
        // What another process would begin with.
        assert!(UdpSocket::bind((Ipv4Addr::LOCALHOST, first)).is_err(), "another process is given it");
    }
}
