//! The network of a client's address. The limits on login attempts count clients by network.

use std::net::{IpAddr, Ipv6Addr};

/// The leading bits of an IPv6 address that identify the network. A customer of a provider gets at
/// least a /64 and can use any of its 2^64 addresses, so a limit for each address would have no
/// effect.
const NETWORK_BITS: u32 = 64;

/// Returns the address under which a client is counted: an IPv4 address itself, also if it is
/// mapped into IPv6, or the /64 network of an IPv6 address.
pub fn origin(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) & (u128::MAX << (128 - NETWORK_BITS));
            IpAddr::V6(Ipv6Addr::from(network))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(address: &str) -> String {
        address.parse().map(origin).map_or_else(|_| "malformed".to_owned(), |ip| ip.to_string())
    }

    #[test]
    fn addresses_of_one_network_count_together() {
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("2001:db8:1:2:ffff::1"), of("2001:db8:1:2::7"));
        assert_ne!(of("2001:db8:1:3::1"), of("2001:db8:1:2::1"));
        assert_eq!(of("::ffff:192.0.2.1"), "192.0.2.1");
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
