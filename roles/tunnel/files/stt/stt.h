/* SPDX-License-Identifier: GPL-2.0 */
#ifndef CROSSOVER_STT_H
#define CROSSOVER_STT_H

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/u64_stats_sync.h>
#include <linux/workqueue.h>
#include <net/dst_cache.h>
#include <net/gro_cells.h>
#include <net/netns/generic.h>

#include "format.h"
#include "uapi.h"

/* Counters of a device; the names are in stats.c. The first nine are those of ip -s link. */
enum stt_device_counter {
	STT_RX_PACKETS,
	STT_RX_BYTES,
	STT_RX_DROPPED,
	STT_RX_ERRORS,
	STT_TX_PACKETS,
	STT_TX_BYTES,
	STT_TX_DROPPED,
	STT_TX_ERRORS,
	STT_TX_CARRIER,
	STT_TX_SEGMENTS,
	STT_TX_LARGE,
	STT_TX_PARTIAL,
	STT_TX_TOO_LONG,
	STT_TX_NO_ROUTE,
	STT_TX_LOOP,
	STT_TX_SMALL_MTU,
	STT_RX_LARGE,
	STT_RX_PARTIAL,
	STT_RX_VERIFIED,
	STT_RX_BAD_OFFLOAD,
	STT_RX_BAD_ECN,
	STT_RX_OWN_ADDRESS,
	STT_ICMP_PMTU,
	STT_ICMP_REDIRECT,
	STT_ICMP_UNREACHABLE,
	STT_DEVICE_COUNTERS
};

/* Counters of a network namespace: what happens before the device is known. */
enum stt_net_counter {
	STT_NET_SEGMENTS,
	STT_NET_WHOLE,
	STT_NET_REASSEMBLED,
	STT_NET_DUPLICATE,
	STT_NET_OVERLAP,
	STT_NET_MISMATCH,
	STT_NET_TIMEOUT,
	STT_NET_EVICTED,
	STT_NET_NO_MEMORY,
	STT_NET_TOO_MANY,
	STT_NET_MALFORMED,
	STT_NET_CHECKSUM,
	STT_NET_POLICY,
	STT_NET_VERSION,
	STT_NET_NO_DEVICE,
	STT_NET_COUNTERS
};

struct stt_device_counters {
	u64_stats_t value[STT_DEVICE_COUNTERS];
	struct u64_stats_sync syncp;
};

struct stt_net_counters {
	u64_stats_t value[STT_NET_COUNTERS];
	struct u64_stats_sync syncp;
};

/* IPv4 addresses are kept as mapped IPv6 addresses; an unset one is all zero. */
struct stt_config {
	struct in6_addr remote;
	struct in6_addr local;
	__be64 key;
	int link;
	__be16 port;
	u8 ttl;
	u8 tos;
};

struct stt_device {
	struct hlist_node node;		/* stt_net.devices, while the device is up */
	struct list_head list;		/* stt_net.all */
	struct net_device *dev;
	struct net *net;		/* that the segments travel in; the device may be elsewhere */
	struct stt_config config;
	struct dst_cache routes;
	struct gro_cells cells;
	struct stt_device_counters __percpu *counters;
};

#define STT_DEVICE_BITS 6
#define STT_BUCKET_BITS 10

/* Frames of which not all segments are here, the oldest first. */
struct stt_bucket {
	spinlock_t lock;
	struct list_head partials;
};

/* A port that a device of the namespace receives on. Written under RTNL. */
struct stt_port {
	struct hlist_node node;
	struct rcu_head rcu;
	unsigned int users;
	__be16 port;
};

struct stt_net {
	struct net *net;
	struct list_head all;		/* under RTNL */
	unsigned int up;		/* devices that are up; under RTNL */
	struct hlist_head devices[1 << STT_DEVICE_BITS];
	struct hlist_head ports;
	struct stt_bucket *buckets;	/* from the first device that goes up to the namespace's end */
	atomic_long_t memory;		/* bytes (truesize) in the buckets */
	atomic_t partials;
	atomic_t hand;			/* bucket that the next eviction starts at */
	struct delayed_work expiry;
	struct stt_net_counters __percpu *counters;
};

/* What the segments of one frame have in common. */
struct stt_flow {
	struct in6_addr source;
	struct in6_addr destination;
	__be32 packet_id;
	__be16 source_port;
	__be16 destination_port;
};

/* The headers of an inner frame: offsets from its first byte. */
struct stt_inner {
	unsigned int l3;
	unsigned int l4;
	unsigned int end;		/* where the IP packet ends */
	bool ipv4;
	u8 protocol;
};

/* The flags tell TCP from UDP; of other protocols' checksums they can say nothing. */
static inline bool stt_has_checksum(const struct stt_inner *inner)
{
	return inner->protocol == IPPROTO_TCP || inner->protocol == IPPROTO_UDP;
}

extern unsigned int stt_net_id;

static inline struct stt_net *stt_pernet(const struct net *net)
{
	return net_generic(net, stt_net_id);
}

static inline bool stt_is_ipv4(const struct stt_config *config)
{
	return ipv6_addr_v4mapped(&config->remote);
}

/* Callers have bottom halves disabled. */
static inline void stt_add(struct stt_device *stt, enum stt_device_counter which, u64 count)
{
	struct stt_device_counters *counters = this_cpu_ptr(stt->counters);

	u64_stats_update_begin(&counters->syncp);
	u64_stats_add(&counters->value[which], count);
	u64_stats_update_end(&counters->syncp);
}

static inline void stt_count(struct stt_device *stt, enum stt_device_counter which)
{
	stt_add(stt, which, 1);
}

static inline void stt_net_count(struct stt_net *sn, enum stt_net_counter which)
{
	struct stt_net_counters *counters = this_cpu_ptr(sn->counters);

	u64_stats_update_begin(&counters->syncp);
	u64_stats_inc(&counters->value[which]);
	u64_stats_update_end(&counters->syncp);
}

/* transmit.c */
void stt_transmit_init(void);
netdev_tx_t stt_xmit(struct sk_buff *skb, struct net_device *dev);
netdev_features_t stt_features_check(struct sk_buff *skb, struct net_device *dev,
				     netdev_features_t features);
unsigned int stt_overhead(const struct stt_config *config);
int stt_path_mtu(struct net *net, const struct stt_config *config);

/* receive.c */
int stt_receive_start(struct stt_device *stt);
void stt_receive_stop(struct stt_device *stt);

/* reassembly.c */
int stt_reassembly_init(void);
void stt_reassembly_exit(void);
int stt_reassembly_start(struct stt_net *sn);
void stt_reassembly_end(struct stt_net *sn);
void stt_expire(struct work_struct *work);
struct sk_buff *stt_reassemble(struct stt_net *sn, struct sk_buff *skb, const struct stt_flow *flow,
			       u32 seq, u8 *tos);

/* errors.c */
void stt_icmp4(struct net *net, struct sk_buff *skb);
void stt_icmp6(struct net *net, struct sk_buff *skb, int offset);

/* inner.c */
bool stt_parse_inner(const struct sk_buff *skb, struct stt_inner *inner);

/* stats.c */
extern const struct ethtool_ops stt_ethtool_ops;
void stt_get_stats64(struct net_device *dev, struct rtnl_link_stats64 *stats);

#endif
