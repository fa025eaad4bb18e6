/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* Netlink attributes of an stt link: IFLA_INFO_DATA of RTM_NEWLINK and RTM_GETLINK. */
#ifndef CROSSOVER_STT_UAPI_H
#define CROSSOVER_STT_UAPI_H

enum {
	IFLA_STT_UNSPEC,
	IFLA_STT_KEY,		/* u64, the context id of the frames */
	IFLA_STT_REMOTE,	/* be32, IPv4 address of the far end */
	IFLA_STT_REMOTE6,	/* struct in6_addr */
	IFLA_STT_LOCAL,		/* be32, absent or 0: the route's choice, any on receive */
	IFLA_STT_LOCAL6,	/* struct in6_addr */
	IFLA_STT_LINK,		/* u32, interface index that the segments leave by; 0: any */
	IFLA_STT_PORT,		/* be16, destination port in both directions */
	IFLA_STT_TTL,		/* u8, 0: the route's hop limit */
	IFLA_STT_TOS,		/* u8, 1: copied from the inner packet */
	IFLA_STT_PAD,
	__IFLA_STT_MAX
};
#define IFLA_STT_MAX (__IFLA_STT_MAX - 1)

#define STT_DEFAULT_PORT 7471
#define STT_TOS_INHERIT 1

#endif
