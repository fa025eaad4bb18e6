/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wire format of draft-davie-stt-08.
 *
 * An STT frame is the 18-byte header below and an Ethernet frame. It travels as the payload of
 * segments that look like TCP: the upper half of the sequence number is the length of the STT
 * frame, the lower half the offset of the segment in it; the acknowledgement number names the
 * frame among those of the same addresses and ports.
 */
#ifndef CROSSOVER_STT_FORMAT_H
#define CROSSOVER_STT_FORMAT_H

#include <linux/if_ether.h>
#include <linux/if_vlan.h>
#include <linux/types.h>

#define STT_VERSION 0

#define STT_CSUM_VERIFIED 0x01	/* the sender has checked the inner L4 checksum */
#define STT_CSUM_PARTIAL 0x02	/* the inner L4 checksum holds the pseudo-header's sum only */
#define STT_IPV4 0x04
#define STT_TCP 0x08

/* The VLAN field is a tag control word whose CFI bit says that there is a tag. */
#define STT_VLAN_VALID VLAN_CFI_MASK

struct stt_header {
	__u8 version;
	__u8 flags;
	__u8 l4_offset;		/* from the start of the Ethernet frame */
	__u8 reserved;
	__be16 mss;		/* 0: not to be segmented */
	__be16 vlan;
	__be64 key;
	__be16 padding;		/* puts the inner IP header on a multiple of four */
} __packed;

#define STT_HEADER_LEN 18

/* An IPv4 packet of 65,535 bytes less the IP, TCP and STT headers. */
#define STT_MAX_FRAME (65535 - 20 - 20 - STT_HEADER_LEN)

/* Source ports that a flow's hash is spread over: the dynamic ports of RFC 6335. */
#define STT_FIRST_SOURCE_PORT 49152
#define STT_LAST_SOURCE_PORT 65535

static_assert(sizeof(struct stt_header) == STT_HEADER_LEN);

#endif
