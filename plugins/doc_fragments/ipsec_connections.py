# SPDX-License-Identifier: GPL-2.0-or-later
"""Documentation that the modules ipsec and ike share: the declaration of connections."""

from __future__ import annotations


class ModuleDocFragment:
    """The options whose arguments are in module_utils/ipsec_arguments.py, and where keys come
    from."""

    DOCUMENTATION = r"""
options:
  connections:
    description: The connections.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name, unique on the host.
        type: str
        required: true
      ends:
        description: The two addresses; one of them is this host's.
        type: list
        elements: str
        required: true
      mode:
        description: V(transport) protects what the ends send each other, V(tunnel) networks.
        type: str
        choices: [transport, tunnel]
        default: transport
      networks:
        description: For V(tunnel), the networks behind the ends; the ends themselves if not given.
        type: list
        elements: str
      algorithm:
        description: >-
          Algorithms of ESP. V(null) does not encrypt and checks integrity with HMAC-SHA256.
        type: str
        choices: [aes-gcm, aes-cbc-sha1, aes-cbc-sha256, chacha20-poly1305, "null"]
        default: aes-gcm
      key_bits:
        description: Size of the cipher's key; by default the smallest that it takes.
        type: int
      esn:
        description: Whether sequence numbers have 64 bits.
        type: bool
        default: false
      replay_window:
        description: Packets that may arrive out of order.
        type: int
        default: 32
      selectors:
        description: Which packets; all between the ends if not given.
        type: list
        elements: dict
        suboptions:
          protocol:
            description: Protocol such as V(tcp) or V(udp); all if not given.
            type: str
          port:
            description: Port of the second end; all if not given.
            type: int
      mark:
        description: Packet mark of the SAs and policies.
        type: dict
        suboptions:
          value:
            description: Value.
            type: int
            required: true
          mask:
            description: Mask; all bits if not given.
            type: int
      if_id:
        description: Identifier of an xfrm interface.
        type: int
      offload:
        description: Device that the SAs are offloaded to.
        type: str
      lifetimes:
        description: Limits of each SA; none if not given.
        type: dict
        suboptions:
          soft_bytes:
            description: Bytes until the kernel warns.
            type: int
          hard_bytes:
            description: Bytes until the SA expires.
            type: int
          soft_packets:
            description: Packets until the kernel warns.
            type: int
          hard_packets:
            description: Packets until the SA expires.
            type: int
          soft_add_s:
            description: Seconds from being added until the kernel warns.
            type: int
          hard_add_s:
            description: Seconds from being added until the SA expires.
            type: int
          soft_use_s:
            description: Seconds from the first use until the kernel warns.
            type: int
          hard_use_s:
            description: Seconds from the first use until the SA expires.
            type: int
      label:
        description: >-
          SELinux context of the SAs, or V(process) for the context in which the measured processes
          will run (that of this connection, with O(level)). None if not given.
        type: str
      policy_label:
        description: >-
          Context of the policies; of a labelled connection C(system_u:object_r:ipsec_spd_t:s0) if
          not given.
        type: str
      spi:
        description: First SPI; each pair of SAs takes two. By default from the place in the list.
        type: int
      reqid:
        description: >-
          Number that ties SAs to policies, and tells them from those of others. By default from
          the place in the list.
        type: int
      priority:
        description: Priority of the policies; lower ones are asked first.
        type: int
        default: 1000
      pairs:
        description: >-
          Pairs of SAs. The first serves the flow; more of them fill the table to measure its size.
        type: int
        default: 1
      vary:
        description: What the further pairs differ in.
        type: str
        choices: [label, selector]
        default: label
  level:
    description: SELinux level that the measured processes are started with (C(runcon -l)).
    type: str
  seed:
    description: 32 random bytes in base64, the same for both hosts; see the action ipsec_keys.
    type: str
  generation:
    description: A name for the seed that says nothing about it.
    type: str
  management:
    description: >-
      Addresses that manage this host and must stay reachable in clear. If not given, the other end
      of the SSH connection; an empty list switches this protection off.
    type: list
    elements: str
"""
