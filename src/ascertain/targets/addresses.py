"""Which addresses nobody may reach through us who only sends a request: a server that acts for
others would else be a way into the network that it stands in."""

from __future__ import annotations

import ipaddress

from ascertain.core.errors import SendRefused

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# RFC 6598, RFC 6890 and what clouds serve there; `is_global` of Python 3.11 knows most of it.
_SHARED = ipaddress.ip_network("100.64.0.0/10")
_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))


class AddressRefused(SendRefused):
    """The target's name leads to an address that only a target declared private may have."""


def refused(address: str) -> str:
    """Say why a numeric address may not be connected to, or return an empty text.

    Only public unicast addresses are allowed. IPv4 addresses within IPv6 (mapped, 6to4, Teredo,
    NAT64) are judged by the IPv4 address that is reached in the end. To be asked about the very
    address that is then connected to: a name may lead elsewhere when it is asked for again.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return f"{address!r} is no address"
    inner = _embedded(found)
    return _why(inner if inner is not None else found)


def _embedded(found: _Address) -> ipaddress.IPv4Address | None:
    if isinstance(found, ipaddress.IPv4Address):
        return None
    if found.ipv4_mapped is not None:
        return found.ipv4_mapped
    if found.sixtofour is not None:
        return found.sixtofour
    if found.teredo is not None:
        return found.teredo[1]
    if any(found in network for network in _NAT64) or int(found) >> 32 == 0:
        return ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
    return None


def _why(found: _Address) -> str:
    kinds = (
        ("is_unspecified", "no host's"), ("is_loopback", "this machine's own"),
        ("is_link_local", "link-local, where clouds keep credentials"),
        ("is_multicast", "for many hosts at once"), ("is_private", "private"),
        ("is_reserved", "reserved"),
    )  # fmt: skip
    for kind, words in kinds:
        if getattr(found, kind):
            return f"{found} is {words}"
    if found.version == 4 and found in _SHARED:
        return f"{found} is shared by a provider's network"
    return "" if found.is_global else f"{found} is not public"
