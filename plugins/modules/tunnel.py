#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: the tunnel links of a host, as a whole."""

from __future__ import annotations

DOCUMENTATION = r"""
module: tunnel
short_description: Make the tunnel links of a host, whatever their type
version_added: 0.1.0
description:
  - Takes the whole declared set of links, reads the host's devices, and applies what differs. A
    change that fails half-way is undone at once.
  - The same declaration serves both hosts; each finds its own end among O(links[].ends).
  - Only what is declared, or was added by this module before, is touched. What is declared no
    more is taken back. A device of others in the way is an error, as is a link that would touch
    the device by which the host is managed.
  - The MTU of a link is computed from what its headers take. One that is given and cannot work is
    refused with the reckoning.
  - Keys (WireGuard, MACsec) come from O(seed). A link gets new ones when its device is made;
    otherwise its keys stay, whatever the seed. No key is ever shown.
author: Crossover developers
options:
  state:
    description: V(absent) takes back everything that this module has added.
    type: str
    choices: [present, absent]
    default: present
  links:
    description: The links, a link that runs over another one after it.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the device on both hosts, at most 14 characters.
        type: str
        required: true
      type:
        description: Type of tunnel.
        type: str
        required: true
        choices: [vxlan, vxlan-gpe, geneve, gre, gretap, ip6gre, ip6gretap, ipip, sit, ip6tnl,
                  fou, gue, l2tp, wireguard, macsec, ovs, stt]
      ends:
        description: The two outer addresses; one of them is this host's.
        type: list
        elements: str
        required: true
      inner_ipv4:
        description: The two inner addresses with length, in the order of the ends.
        type: list
        elements: str
      inner_ipv6:
        description: The two inner addresses with length, in the order of the ends.
        type: list
        elements: str
      device:
        description: Device below; that of the route to the other end if not given.
        type: str
      mtu:
        description: MTU of the link; computed from its overhead if not given.
        type: int
      underlay_mtu:
        description: >-
          Largest outer packet, bytes, where that is less than the MTU of the device below: over
          IPsec, say.
        type: int
      id:
        description: >-
          VNI of VXLAN and Geneve, identifier of an L2TPv3 tunnel and its session, key of an Open
          vSwitch port.
        type: int
      key:
        description: Key of GRE or STT, which tells tunnels apart and is no secret.
        type: int
      port:
        description: Port of UDP, or that in the place of TCP's for STT; the usual one if not given.
        type: int
      source_ports:
        description: Lowest source port of VXLAN and one above the highest.
        type: list
        elements: int
      carries:
        description: What a FOU or GUE link carries; V(ipip) if not given.
        type: str
        choices: [ipip, sit, gre]
      csum:
        description: Whether outer UDP, or GRE, has a checksum; as the kernel likes if not given.
        type: bool
      udp6_zero_csum:
        description: Whether UDP over IPv6 goes and comes without a checksum.
        type: bool
      ttl:
        description: TTL or hop limit of outer packets, or V(inherit).
        type: str
      tos:
        description: TOS or traffic class of outer packets, or V(inherit).
        type: str
      df:
        description: The don't-fragment bit of outer IPv4 packets.
        type: str
        choices: [set, unset, inherit]
      seq:
        description: Whether GRE packets are numbered.
        type: bool
      encap_limit:
        description: Tunnel encapsulation limit of RFC 2473; none if not given.
        type: int
      encap:
        description: What carries L2TPv3; V(udp) if not given.
        type: str
        choices: [udp, ip]
      cipher:
        description: Cipher of MACsec; V(gcm-aes-128) if not given.
        type: str
        choices: [gcm-aes-128, gcm-aes-256]
      encrypt:
        description: Whether MACsec encrypts, or only authenticates; it encrypts if not given.
        type: bool
      protocol:
        description: What an Open vSwitch port speaks; V(vxlan) if not given.
        type: str
        choices: [vxlan, geneve, gre]
      offloads:
        description: Features of the link's device as ethtool -K names them, each true or false.
        type: dict
  offloads:
    description: >-
      Whether checksum, segmentation and receive offloads are on or off on the links, the devices
      below them and O(offload_devices), as far as the devices let them be changed.
    type: str
    choices: [unchanged, "on", "off"]
    default: unchanged
  offload_devices:
    description: Further devices that O(offloads) is about.
    type: list
    elements: str
    default: []
  seed:
    description: 32 random bytes in base64, the same for both hosts; see the action tunnel_keys.
    type: str
  generation:
    description: A name for the seed that says nothing about it.
    type: str
  rekey:
    description: Whether every link with keys is made anew with new ones.
    type: bool
    default: false
  management:
    description: >-
      Addresses that manage this host. If not given, the other end of the SSH connection; an empty
      list switches this protection off.
    type: list
    elements: str
extends_documentation_fragment:
  - crossover.lab.guard
attributes:
  check_mode:
    support: full
    description: Says what would be changed.
  diff_mode:
    support: full
    description: Shows properties of links, never a key.
seealso:
  - module: crossover.lab.ipsec
"""

EXAMPLES = r"""
- name: Ensure two hosts are joined by VXLAN
  crossover.lab.tunnel:
    links:
      - name: vx0
        type: vxlan
        id: 42
        ends: [198.18.0.1, 198.18.0.2]
        inner_ipv4: [198.19.0.1/24, 198.19.0.2/24]

- name: Ensure the hosts are as they were
  crossover.lab.tunnel:
    state: absent
"""

RETURN = r"""
by_hand:
  description: >-
    The shell commands that build the declared links by hand on a host that has none, in order,
    offloads after them (but in check mode). Keys are shell variables, C($KEY_…), made of
    C($SECRET).
  returned: success
  type: list
  elements: str
actions:
  description: What was done, as C(verb), C(name) and C(why) (the properties that differed).
  returned: success
  type: list
  elements: dict
links:
  description: >-
    For each link its C(name), C(type), C(underlay) (the device below), C(overhead) and C(mtu) in
    bytes, and the C(generation) of its keys.
  returned: success
  type: list
  elements: dict
state:
  description: >-
    The links as read back (in check mode, as they would be), by name and property.
  returned: success
  type: dict
offloads:
  description: Offloads of the links and the devices below them, by device.
  returned: success, not in check mode
  type: dict
refused:
  description: Offloads that a device did not take.
  returned: changed
  type: list
  elements: str
renewed:
  description: Names of the links that got new keys.
  returned: success
  type: list
  elements: str
undone:
  description: Whether a change that failed half-way has been undone.
  returned: failure
  type: bool
left:
  description: What could not be undone.
  returned: failure
  type: list
  elements: str
guard:
  description: The guard of this change; none if nothing could cut the connection.
  returned: always
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils import (
    guard,
    tunnel_apply,
    tunnel_prepare,
)
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.declared import (
    DeclarationError,
)
from ansible_collections.crossover.lab.plugins.module_utils.tunnel_arguments import ARGUMENTS
from ansible_collections.crossover.lab.plugins.module_utils.tunnel_host import TunnelError


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        change = tunnel_prepare.prepare(module.params)
        for text in change.warnings:
            module.warn(text)
        if module.check_mode:
            module.exit_json(**change.result())
        done = tunnel_apply.carry_out(change, module.params["guard"] or {})
        for text in done.get("refused", ()):
            module.warn(text)
        module.exit_json(**done)
    except tunnel_apply.RefusedError as error:
        module.fail_json(msg=str(error), undone=not error.left, left=list(error.left), guard=None)
    except (DeclarationError, TunnelError, HostError, guard.GuardError) as error:
        module.fail_json(msg=str(error), guard=None)


if __name__ == "__main__":
    main()
