// SPDX-License-Identifier: GPL-2.0
/*
 * Transmit: an inner frame, however large, becomes the payload of one TCP-like packet, and the
 * stack (or the card) cuts it into segments as it would a TCP stream's.
 */
#include <linux/etherdevice.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/tcp.h>
#include <net/addrconf.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ip6_route.h>
#include <net/ip_tunnels.h>
#include <net/ipv6.h>
#include <net/route.h>
#include <net/tcp.h>
#include <net/udp.h>

#include "compat.h"
#include "stt.h"

/* A path on which a segment carries less than this is not worth a tunnel (IPv4 allows 28). */
#define STT_MIN_SEGMENT 64

/* What a packet needs beside the inner frame. */
struct stt_outer {
	struct dst_entry *dst;
	union {
		struct {
			__be32 source;
			__be32 destination;
		} v4;
		struct flowi6 v6;
	};
	__be16 source_port;
	int segment;		/* payload of a segment, bytes */
	u8 tos;
};

/* Packet ids of one CPU: its number in the low bits, so that no two CPUs give the same. */
static DEFINE_PER_CPU(u32, packet_ids);
static u32 packet_id_step;

void stt_transmit_init(void)
{
	int cpu;

	packet_id_step = roundup_pow_of_two(nr_cpu_ids);
	for_each_possible_cpu(cpu)
		per_cpu(packet_ids, cpu) = (get_random_u32() & ~(packet_id_step - 1)) | cpu;
}

static unsigned int ip_header_len(const struct stt_config *config)
{
	return stt_is_ipv4(config) ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
}

/* Bytes around an inner IP packet that fits in one segment. */
unsigned int stt_overhead(const struct stt_config *config)
{
	return ip_header_len(config) + sizeof(struct tcphdr) + STT_HEADER_LEN + ETH_HLEN;
}

static void fill_flow4(struct flowi4 *flow, const struct stt_config *config)
{
	memset(flow, 0, sizeof(*flow));
	flow->flowi4_oif = config->link;
	flow->flowi4_proto = IPPROTO_TCP;
	flow->daddr = config->remote.s6_addr32[3];
	flow->saddr = config->local.s6_addr32[3];
	flow->fl4_dport = config->port;
}

static void fill_flow6(struct flowi6 *flow, const struct stt_config *config)
{
	memset(flow, 0, sizeof(*flow));
	flow->flowi6_oif = config->link;
	flow->flowi6_proto = IPPROTO_TCP;
	flow->daddr = config->remote;
	flow->saddr = config->local;
	flow->fl6_dport = config->port;
}

/* The MTU of the path to the far end as the routes have it now, or a negative error. */
int stt_path_mtu(struct net *net, const struct stt_config *config)
{
	struct dst_entry *dst;
	int mtu;

	if (stt_is_ipv4(config)) {
		struct flowi4 flow;
		struct rtable *route;

		fill_flow4(&flow, config);
		route = ip_route_output_key(net, &flow);
		if (IS_ERR(route))
			return PTR_ERR(route);
		dst = &route->dst;
	} else {
		struct flowi6 flow;

		fill_flow6(&flow, config);
		dst = ipv6_stub->ipv6_dst_lookup_flow(net, NULL, &flow, NULL);
		if (IS_ERR(dst))
			return PTR_ERR(dst);
	}
	mtu = dst_mtu(dst);
	dst_release(dst);
	return mtu;
}

/*
 * A route looked up for one packet serves the next ones too, unless something of the packet
 * itself (its mark, a copied type of service) takes part in the choice.
 */
static bool route_is_shared(const struct stt_device *stt, const struct sk_buff *skb)
{
	return !skb->mark && stt->config.tos != STT_TOS_INHERIT;
}

static struct dst_entry *route4(struct stt_device *stt, const struct sk_buff *skb,
				struct stt_outer *outer)
{
	bool shared = route_is_shared(stt, skb);
	struct rtable *route;
	struct flowi4 flow;

	outer->v4.destination = stt->config.remote.s6_addr32[3];
	if (shared) {
		route = dst_cache_get_ip4(&stt->routes, &outer->v4.source);
		if (route)
			return &route->dst;
	}
	fill_flow4(&flow, &stt->config);
	flow.flowi4_mark = skb->mark;
	flow.fl4_sport = outer->source_port;
	stt_set_flow_tos(&flow, outer->tos);
	route = ip_route_output_key(stt->net, &flow);
	if (IS_ERR(route))
		return ERR_CAST(route);
	outer->v4.source = flow.saddr;
	if (route->dst.dev == stt->dev) {
		ip_rt_put(route);
		return ERR_PTR(-ELOOP);
	}
	if (shared)
		dst_cache_set_ip4(&stt->routes, &route->dst, flow.saddr);
	return &route->dst;
}

static struct dst_entry *route6(struct stt_device *stt, const struct sk_buff *skb,
				struct stt_outer *outer)
{
	bool shared = route_is_shared(stt, skb);
	struct flowi6 *flow = &outer->v6;
	struct dst_entry *dst;

	fill_flow6(flow, &stt->config);
	flow->flowi6_mark = skb->mark;
	flow->fl6_sport = outer->source_port;
	flow->flowlabel = ip6_make_flowinfo(outer->tos, 0);
	if (shared) {
		dst = dst_cache_get_ip6(&stt->routes, &flow->saddr);
		if (dst)
			return dst;
	}
	dst = ipv6_stub->ipv6_dst_lookup_flow(stt->net, NULL, flow, NULL);
	if (IS_ERR(dst))
		return dst;
	if (dst->dev == stt->dev) {
		dst_release(dst);
		return ERR_PTR(-ELOOP);
	}
	if (shared)
		dst_cache_set_ip6(&stt->routes, dst, &flow->saddr);
	return dst;
}

static u8 outer_tos(const struct stt_device *stt, struct sk_buff *skb)
{
	u8 inner = 0, tos = stt->config.tos;

	if (pskb_inet_may_pull(skb))
		inner = ip_tunnel_get_dsfield(ip_hdr(skb), skb);
	if (tos == STT_TOS_INHERIT)
		tos = inner;
	return INET_ECN_encapsulate(tos, inner);
}

static int find_outer(struct stt_device *stt, struct sk_buff *skb, struct stt_outer *outer)
{
	outer->tos = outer_tos(stt, skb);
	outer->source_port = udp_flow_src_port(stt->net, skb, STT_FIRST_SOURCE_PORT,
					       STT_LAST_SOURCE_PORT, true);
	if (stt_is_ipv4(&stt->config))
		outer->dst = route4(stt, skb, outer);
	else
		outer->dst = route6(stt, skb, outer);
	if (IS_ERR(outer->dst))
		return PTR_ERR(outer->dst);
	outer->segment = (int)dst_mtu(outer->dst) - (int)ip_header_len(&stt->config) -
			 (int)sizeof(struct tcphdr);
	if (outer->segment < STT_MIN_SEGMENT) {
		dst_release(outer->dst);
		return -EMSGSIZE;
	}
	return 0;
}

/* Whether the header can say where the inner checksum is: TCP's or UDP's, near enough. */
static bool can_leave_checksum(const struct sk_buff *skb, int offset)
{
	return offset >= ETH_HLEN && offset <= U8_MAX &&
	       (skb->csum_offset == offsetof(struct tcphdr, check) ||
		skb->csum_offset == offsetof(struct udphdr, check));
}

/* The far end trusts the fields only when they agree with the packet, so ask the same here. */
netdev_features_t stt_features_check(struct sk_buff *skb, struct net_device *dev,
				     netdev_features_t features)
{
	struct stt_inner inner;

	if (skb->ip_summed != CHECKSUM_PARTIAL)
		return features;
	if (can_leave_checksum(skb, skb_checksum_start_offset(skb)) &&
	    stt_parse_inner(skb, &inner) && inner.l4 == skb_checksum_start_offset(skb))
		return features;
	return features & ~(NETIF_F_CSUM_MASK | NETIF_F_GSO_MASK);
}

/* Fill the header from what the stack left to do. */
static int fill_header(struct stt_device *stt, struct sk_buff *skb, struct stt_header *header)
{
	struct stt_inner inner;

	memset(header, 0, sizeof(*header));
	header->version = STT_VERSION;
	header->key = stt->config.key;
	if (skb_vlan_tag_present(skb)) {
		header->vlan = htons(skb_vlan_tag_get(skb) | STT_VLAN_VALID);
		__vlan_hwaccel_clear_tag(skb);
	}
	if (skb->ip_summed == CHECKSUM_PARTIAL) {
		int offset = skb_checksum_start_offset(skb);

		if (!can_leave_checksum(skb, offset))
			return skb_is_gso(skb) ? -EINVAL : skb_checksum_help(skb);
		header->flags = STT_CSUM_PARTIAL;
		header->l4_offset = offset;
		if (vlan_get_protocol(skb) == htons(ETH_P_IP))
			header->flags |= STT_IPV4;
		if (skb->csum_offset == offsetof(struct tcphdr, check))
			header->flags |= STT_TCP;
		if (skb_is_gso(skb))
			header->mss = htons(skb_shinfo(skb)->gso_size);
	} else if (skb_is_gso(skb)) {
		return -EINVAL;
	} else if (skb->ip_summed == CHECKSUM_UNNECESSARY && stt_parse_inner(skb, &inner) &&
		   stt_has_checksum(&inner) && inner.l4 <= U8_MAX) {
		header->flags = STT_CSUM_VERIFIED;
		header->l4_offset = inner.l4;
		if (inner.ipv4)
			header->flags |= STT_IPV4;
		if (inner.protocol == IPPROTO_TCP)
			header->flags |= STT_TCP;
	}
	return 0;
}

/* Put the TCP-like header in front; the sum of its pseudo-header is still to be added. */
static struct tcphdr *push_tcp(struct sk_buff *skb, const struct stt_device *stt,
			       const struct stt_outer *outer)
{
	u32 id = this_cpu_add_return(packet_ids, packet_id_step);
	unsigned int length = skb->len;
	struct tcphdr *tcp;

	tcp = skb_push(skb, sizeof(*tcp));
	memset(tcp, 0, sizeof(*tcp));
	tcp->source = outer->source_port;
	tcp->dest = stt->config.port;
	tcp->seq = htonl(length << 16);
	tcp->ack_seq = htonl(id);
	tcp->doff = sizeof(*tcp) / 4;
	tcp->ack = 1;
	tcp->psh = 1;
	tcp->window = htons(U16_MAX);

	skb_reset_transport_header(skb);
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct tcphdr, check);
	stt_set_internet_checksum(skb);
	return tcp;
}

/* Tell the stack how to cut; returns the number of segments. */
static unsigned int set_segments(struct sk_buff *skb, unsigned int length, unsigned int size,
				 unsigned int type)
{
	struct skb_shared_info *shared = skb_shinfo(skb);

	if (length <= size) {
		shared->gso_size = 0;
		shared->gso_segs = 0;
		shared->gso_type = 0;
		return 1;
	}
	shared->gso_size = size;
	shared->gso_segs = DIV_ROUND_UP(length, size);
	shared->gso_type = type;
	return shared->gso_segs;
}

static int send4(struct stt_device *stt, struct sk_buff *skb, const struct stt_outer *outer,
		 unsigned int segments)
{
	struct iphdr *ip;

	ip = skb_push(skb, sizeof(*ip));
	skb_reset_network_header(skb);
	memset(IPCB(skb), 0, sizeof(*IPCB(skb)));
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tos = outer->tos;
	ip->frag_off = ip_mtu_locked(outer->dst) ? 0 : htons(IP_DF);
	ip->ttl = stt->config.ttl ?: ip4_dst_hoplimit(outer->dst);
	ip->protocol = IPPROTO_TCP;
	ip->saddr = outer->v4.source;
	ip->daddr = outer->v4.destination;
	__ip_select_ident(stt->net, ip, segments);
	return ip_local_out(stt->net, NULL, skb);
}

static int send6(struct stt_device *stt, struct sk_buff *skb, const struct stt_outer *outer)
{
	struct flowi6 flow = outer->v6;
	struct ipv6hdr *ip;
	__be32 label;

	label = ip6_make_flowlabel(stt->net, skb, 0, true, &flow);
	ip = skb_push(skb, sizeof(*ip));
	skb_reset_network_header(skb);
	memset(IP6CB(skb), 0, sizeof(*IP6CB(skb)));
	ip6_flow_hdr(ip, outer->tos, label);
	ip->nexthdr = IPPROTO_TCP;
	ip->hop_limit = stt->config.ttl ?: ip6_dst_hoplimit(outer->dst);
	ip->saddr = flow.saddr;
	ip->daddr = flow.daddr;
	skb->protocol = htons(ETH_P_IPV6);
	return ip6_local_out(stt->net, NULL, skb);
}

/* Encapsulate and send; takes over the packet and the reference to the route. */
static int send_frame(struct stt_device *stt, struct sk_buff *skb,
		      const struct stt_header *header, const struct stt_outer *outer)
{
	bool ipv4 = stt_is_ipv4(&stt->config);
	unsigned int length, segments;
	struct tcphdr *tcp;

	memcpy(skb_push(skb, STT_HEADER_LEN), header, STT_HEADER_LEN);
	length = skb->len;
	segments = set_segments(skb, length, outer->segment, ipv4 ? SKB_GSO_TCPV4 : SKB_GSO_TCPV6);
	stt_add(stt, STT_TX_SEGMENTS, segments);

	tcp = push_tcp(skb, stt, outer);
	skb->encapsulation = 0;
	skb_scrub_packet(skb, !net_eq(stt->net, dev_net(stt->dev)));
	skb_clear_hash_if_not_l4(skb);
	skb_dst_set(skb, outer->dst);
	if (ipv4) {
		tcp->check = ~csum_tcpudp_magic(outer->v4.source, outer->v4.destination,
						skb->len, IPPROTO_TCP, 0);
		return send4(stt, skb, outer, segments);
	}
	tcp->check = ~csum_ipv6_magic(&outer->v6.saddr, &outer->v6.daddr, skb->len, IPPROTO_TCP, 0);
	return send6(stt, skb, outer);
}

static enum stt_device_counter reason_of(int error)
{
	switch (error) {
	case -ELOOP:
		return STT_TX_LOOP;
	case -EMSGSIZE:
		return STT_TX_SMALL_MTU;
	default:
		return STT_TX_NO_ROUTE;
	}
}

netdev_tx_t stt_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct stt_device *stt = netdev_priv(dev);
	unsigned int length = skb->len;
	struct stt_header header;
	struct stt_outer outer;
	bool large, partial;
	int error;

	skb_reset_mac_header(skb);
	if (length > STT_MAX_FRAME) {
		stt_count(stt, STT_TX_TOO_LONG);
		goto failed;
	}
	error = find_outer(stt, skb, &outer);
	if (error) {
		stt_count(stt, reason_of(error));
		if (error != -ELOOP && error != -EMSGSIZE)
			stt_count(stt, STT_TX_CARRIER);
		goto failed;
	}
	large = skb_is_gso(skb);
	if (skb_cow_head(skb, LL_RESERVED_SPACE(outer.dst->dev) + outer.dst->header_len +
			      ip_header_len(&stt->config) + sizeof(struct tcphdr) +
			      STT_HEADER_LEN) ||
	    fill_header(stt, skb, &header)) {
		dst_release(outer.dst);
		goto failed;
	}
	partial = header.flags & STT_CSUM_PARTIAL;
	error = send_frame(stt, skb, &header, &outer);
	if (net_xmit_eval(error)) {
		stt_count(stt, STT_TX_DROPPED);
		return NETDEV_TX_OK;
	}
	stt_count(stt, STT_TX_PACKETS);
	stt_add(stt, STT_TX_BYTES, length);
	if (large)
		stt_count(stt, STT_TX_LARGE);
	if (partial)
		stt_count(stt, STT_TX_PARTIAL);
	return NETDEV_TX_OK;

failed:
	stt_count(stt, STT_TX_ERRORS);
	kfree_skb(skb);
	return NETDEV_TX_OK;
}
