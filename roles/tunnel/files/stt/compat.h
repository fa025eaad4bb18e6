/* SPDX-License-Identifier: GPL-2.0 */
/* What differs between the versions and configurations of the kernels (6.1 and later). */
#ifndef CROSSOVER_STT_COMPAT_H
#define CROSSOVER_STT_COMPAT_H

#include <linux/netdevice.h>
#include <linux/version.h>
#include <net/ip.h>
#include <net/rtnetlink.h>

/* A driver that locks for itself said so by a feature bit until 6.12. */
static inline void stt_set_lockless(struct net_device *dev)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
	dev->features |= NETIF_F_LLTX;
#else
	dev->lltx = true;
#endif
}

/* The type of service of a flow became a dscp_t in 6.18. */
static inline void stt_set_flow_tos(struct flowi4 *flow, u8 tos)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
	flow->flowi4_tos = tos & INET_DSCP_MASK;
#else
	flow->flowi4_dscp = inet_dsfield_to_dscp(tos);
#endif
}

/* The packet may have wanted SCTP's checksum; the field is there only in kernels that have SCTP. */
static inline void stt_set_internet_checksum(struct sk_buff *skb)
{
#if IS_ENABLED(CONFIG_IP_SCTP)
	skb->csum_not_inet = 0;
#endif
}

/* The arguments of newlink became a structure in 6.15. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
#define STT_DEFINE_NEWLINK(name, create)							\
static int name(struct net *net, struct net_device *dev, struct nlattr *tb[],			\
		struct nlattr *data[], struct netlink_ext_ack *extack)				\
{												\
	return create(net, dev, tb, data, extack);						\
}
#else
#define STT_DEFINE_NEWLINK(name, create)							\
static int name(struct net_device *dev, struct rtnl_newlink_params *params,			\
		struct netlink_ext_ack *extack)							\
{												\
	return create(rtnl_newlink_link_net(params), dev, params->tb, params->data, extack);	\
}
#endif

#endif
