//! Where a node, its pods and Services are: addresses of 198.18.0.0/15, which no network of anybody's uses (RFC 2544).

use std::net::{IpAddr, Ipv4Addr};

/// The networks of one node: those of many stand beside each other on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    block: u8,
}

impl Network {
    /// How many there are.
    pub(super) const ALL: u8 = 128;

    pub(crate) fn new(block: u8) -> Self {
        Self { block: block % Self::ALL }
    }

    /// Which one it is.
    pub(super) fn block(self) -> u8 {
        self.block
    }

    /// The machine, as the node and its pods reach it: the API server listens here.
    #[must_use]
    pub fn host(self) -> Ipv4Addr {
        self.address(0, 1)
    }

    /// The node, as the machine and pods reach it: node ports are open here.
    #[must_use]
    pub fn node(self) -> Ipv4Addr {
        self.address(0, 2)
    }

    /// The Service `kubernetes`.
    #[must_use]
    pub fn api(self) -> Ipv4Addr {
        self.address(1, 1)
    }

    /// The name server of pods.
    #[must_use]
    pub fn dns(self) -> Ipv4Addr {
        self.address(1, 10)
    }

    /// The range of Services; the machine reaches each of them.
    #[must_use]
    pub fn services(self) -> String {
        format!("{}/24", self.address(1, 0))
    }

    /// Whether an address is that of a Service.
    #[must_use]
    pub fn is_service(self, address: IpAddr) -> bool {
        let [first, second, third, _] = self.address(1, 0).octets();
        matches!(address, IpAddr::V4(address) if address.octets()[..3] == [first, second, third])
    }

    /// The range of pods; the machine reaches each of them.
    #[must_use]
    pub fn pods(self) -> String {
        format!("{}/24", self.address(2, 0))
    }

    /// The node, as it asks pods whether they are well.
    #[must_use]
    pub fn gateway(self) -> Ipv4Addr {
        self.address(2, 1)
    }

    /// All of it.
    pub(super) fn range(self) -> String {
        format!("{}/22", self.address(0, 0))
    }

    /// The machine's end of the link to the node.
    pub(super) fn link(self) -> String {
        format!("gitops-node-{}", self.block)
    }

    fn address(self, part: u8, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(198, 18 + self.block / 64, self.block % 64 * 4 + part, host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_is_of_two_nodes() {
        let first = Network::new(0);
        assert_eq!((first.host(), first.range()), ([198, 18, 0, 1].into(), "198.18.0.0/22".to_owned()));
        assert_eq!(
            (first.services(), first.pods()),
            ("198.18.1.0/24".to_owned(), "198.18.2.0/24".to_owned())
        );
        assert!(first.is_service(first.api().into()) && !first.is_service(first.gateway().into()));
        let last = Network::new(Network::ALL - 1);
        assert_eq!((last.node(), last.range()), ([198, 19, 252, 2].into(), "198.19.252.0/22".to_owned()));
        let ranges: std::collections::BTreeSet<String> =
            (0..Network::ALL).map(|block| Network::new(block).range()).collect();
        assert_eq!(ranges.len(), usize::from(Network::ALL));
        assert!(last.link().len() < 16, "the kernel takes no longer name");
    }
}
