// SPDX-License-Identifier: GPL-2.0
/*
 * Receive: segments are taken from the LOCAL_IN hook, after the packet filter and before TCP,
 * when their port belongs to a device of the namespace.
 *
 * GRO has usually made one packet of a frame's segments before they come here, since their
 * sequence numbers follow on and the acknowledgement number is the same; what it has not joined
 * goes through reassembly. What belongs to a connection being made or torn down (SYN, FIN, RST,
 * no ACK) is left to TCP, which refuses it.
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/tcp.h>
#include <net/inet_ecn.h>
#include <net/ip_tunnels.h>
#include <net/ipv6.h>
#include <net/tcp.h>
#include <net/xfrm.h>

#include "stt.h"

static bool port_is_ours(const struct stt_net *sn, __be16 number)
{
	const struct stt_port *port;

	hlist_for_each_entry_rcu(port, &sn->ports, node)
		if (port->port == number)
			return true;
	return false;
}

static struct hlist_head *devices_of_key(struct stt_net *sn, __be64 key)
{
	return &sn->devices[hash_64((__force u64)key, STT_DEVICE_BITS)];
}

/* The device that a frame belongs to; one with the local address given goes first. */
static struct stt_device *find_device(struct stt_net *sn, const struct stt_flow *flow,
				      __be64 key, int link)
{
	struct stt_device *stt, *found = NULL;

	hlist_for_each_entry_rcu(stt, devices_of_key(sn, key), node) {
		const struct stt_config *config = &stt->config;

		if (config->key != key || config->port != flow->destination_port ||
		    !ipv6_addr_equal(&config->remote, &flow->source) ||
		    (config->link && config->link != link))
			continue;
		if (ipv6_addr_equal(&config->local, &flow->destination))
			return stt;
		if (ipv6_addr_any(&config->local))
			found = stt;
	}
	return found;
}

/* TCP segmentation as the header asks for it, if the inner packet bears it out. */
static bool restore_gso(struct sk_buff *skb, const struct stt_inner *inner, unsigned int mss)
{
	struct skb_shared_info *shared = skb_shinfo(skb);
	const struct tcphdr *tcp;
	struct tcphdr buffer;
	unsigned int start;

	tcp = skb_header_pointer(skb, inner->l4, sizeof(buffer), &buffer);
	if (!tcp || tcp->doff < sizeof(*tcp) / 4)
		return false;
	start = inner->l4 + tcp->doff * 4;
	if (start > skb->len)
		return false;
	if (skb->len - start <= mss)
		return true;
	if (mss < TCP_MIN_SND_MSS || inner->end != skb->len)
		return false;
	shared->gso_size = mss;
	shared->gso_segs = DIV_ROUND_UP(skb->len - start, mss);
	/* The sizes came over the wire: whoever cuts this again is to look at it first. */
	shared->gso_type = (inner->ipv4 ? SKB_GSO_TCPV4 : SKB_GSO_TCPV6) | SKB_GSO_DODGY;
	if (tcp->cwr)
		shared->gso_type |= SKB_GSO_TCP_ECN;
	return true;
}

static void set_verified(struct stt_device *stt, struct sk_buff *skb)
{
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	stt_count(stt, STT_RX_VERIFIED);
}

/* Hand the stack what the sender left to it; false if the fields contradict the packet. */
static bool restore_offload(struct stt_device *stt, struct sk_buff *skb,
			    const struct stt_header *header)
{
	unsigned int mss = ntohs(header->mss);
	bool tcp = header->flags & STT_TCP;
	struct stt_inner inner;
	unsigned int field;
	bool parsed;

	if (!(header->flags & (STT_CSUM_PARTIAL | STT_CSUM_VERIFIED)))
		return true;
	parsed = stt_parse_inner(skb, &inner);
	/* Open vSwitch says "verified" of any packet and fills in nothing else. */
	if (!(header->flags & STT_CSUM_PARTIAL) && !header->l4_offset) {
		if (parsed && stt_has_checksum(&inner))
			set_verified(stt, skb);
		return true;
	}
	if (!parsed || inner.l4 != header->l4_offset ||
	    inner.ipv4 != !!(header->flags & STT_IPV4) ||
	    inner.protocol != (tcp ? IPPROTO_TCP : IPPROTO_UDP))
		return false;
	if (!(header->flags & STT_CSUM_PARTIAL)) {
		set_verified(stt, skb);
		return true;
	}
	field = tcp ? offsetof(struct tcphdr, check) : offsetof(struct udphdr, check);
	if (!pskb_may_pull(skb, inner.l4 + (tcp ? sizeof(struct tcphdr) : sizeof(struct udphdr))) ||
	    !skb_partial_csum_set(skb, inner.l4, field))
		return false;
	stt_count(stt, STT_RX_PARTIAL);
	if (!tcp || !mss)
		return true;
	if (!restore_gso(skb, &inner, mss))
		return false;
	if (skb_is_gso(skb))
		stt_count(stt, STT_RX_LARGE);
	return true;
}

/* Carry a congestion mark of the segments inwards. False: the packet is to be dropped. */
static bool carry_ecn(struct stt_device *stt, struct sk_buff *skb, u8 tos)
{
	u8 inner;
	int bad;

	if (!pskb_inet_may_pull(skb))
		return false;
	if (skb->protocol == htons(ETH_P_IP))
		inner = ip_hdr(skb)->tos;
	else if (skb->protocol == htons(ETH_P_IPV6))
		inner = ipv6_get_dsfield(ipv6_hdr(skb));
	else
		return true;
	bad = INET_ECN_decapsulate(skb, tos, inner);
	if (bad)
		stt_count(stt, STT_RX_BAD_ECN);
	return bad <= 1;
}

/* A whole STT frame: skb->data is at its header. */
static void deliver(struct stt_net *sn, struct sk_buff *skb, const struct stt_flow *flow, u8 tos,
		    int link)
{
	struct stt_header header;
	struct stt_device *stt;
	unsigned int length;

	/* The counters of segmentation are shared with clones, such as those of a capture. */
	if (!pskb_may_pull(skb, STT_HEADER_LEN + ETH_HLEN) || skb_unclone(skb, GFP_ATOMIC)) {
		stt_net_count(sn, STT_NET_NO_MEMORY);
		goto drop;
	}
	memcpy(&header, skb->data, sizeof(header));
	if (header.version != STT_VERSION) {
		stt_net_count(sn, STT_NET_VERSION);
		goto drop;
	}
	stt = find_device(sn, flow, header.key, link);
	if (!stt) {
		stt_net_count(sn, STT_NET_NO_DEVICE);
		goto drop;
	}
	__skb_pull(skb, STT_HEADER_LEN);
	skb_scrub_packet(skb, !net_eq(stt->net, dev_net(stt->dev)));
	skb_clear_hash_if_not_l4(skb);
	skb_gso_reset(skb);
	skb->ip_summed = CHECKSUM_NONE;
	skb->csum_valid = 0;
	skb->csum_level = 0;
	skb->encapsulation = 0;
	__vlan_hwaccel_clear_tag(skb);
	length = skb->len;
	if (!restore_offload(stt, skb, &header)) {
		stt_count(stt, STT_RX_BAD_OFFLOAD);
		goto bad;
	}
	skb_reset_mac_header(skb);
	skb->protocol = eth_type_trans(skb, stt->dev);
	skb_reset_network_header(skb);
	skb_reset_mac_len(skb);
	if (ether_addr_equal(eth_hdr(skb)->h_source, stt->dev->dev_addr)) {
		stt_count(stt, STT_RX_OWN_ADDRESS);
		goto bad;
	}
	if (!carry_ecn(stt, skb, tos))
		goto bad;
	if (header.vlan & htons(STT_VLAN_VALID))
		__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q),
				       ntohs(header.vlan) & ~STT_VLAN_VALID);
	stt_count(stt, STT_RX_PACKETS);
	stt_add(stt, STT_RX_BYTES, length);
	if (gro_cells_receive(&stt->cells, skb) == NET_RX_DROP)
		stt_count(stt, STT_RX_DROPPED);
	return;
bad:
	stt_count(stt, STT_RX_ERRORS);
drop:
	kfree_skb(skb);
}

/* Forget where a segment came from; it may wait for others when its route is gone. */
static void detach(struct sk_buff *skb)
{
	skb_orphan(skb);
	skb_dst_drop(skb);
	nf_reset_ct(skb);
	skb_ext_reset(skb);
}

static bool policy_allows(struct sk_buff *skb, int family)
{
	return family == AF_INET ? xfrm4_policy_check(NULL, XFRM_POLICY_IN, skb) :
				   xfrm6_policy_check(NULL, XFRM_POLICY_IN, skb);
}

/* A packet of TCP whose header is at an offset from skb->data, which is at the IP header. */
static unsigned int receive_segment(struct net *net, struct sk_buff *skb, int offset, int family,
				    struct stt_flow *flow, u8 tos)
{
	struct stt_net *sn = stt_pernet(net);
	int link = skb->dev->ifindex;
	unsigned int header, length;
	const struct tcphdr *tcp;
	struct tcphdr buffer;
	u32 seq, total;

	tcp = skb_header_pointer(skb, offset, sizeof(buffer), &buffer);
	if (!tcp || !port_is_ours(sn, tcp->dest) || !tcp->ack || tcp->syn || tcp->fin || tcp->rst)
		return NF_ACCEPT;
	stt_net_count(sn, STT_NET_SEGMENTS);
	header = offset + tcp->doff * 4;
	seq = ntohl(tcp->seq);
	flow->source_port = tcp->source;
	flow->destination_port = tcp->dest;
	flow->packet_id = tcp->ack_seq;
	total = seq >> 16;
	length = skb->len - min(header, skb->len);
	if (tcp->doff < sizeof(*tcp) / 4 || !length || total < STT_HEADER_LEN + ETH_HLEN ||
	    (seq & U16_MAX) + length > total || !pskb_may_pull(skb, header)) {
		stt_net_count(sn, STT_NET_MALFORMED);
		return NF_DROP;
	}
	if (!policy_allows(skb, family)) {
		stt_net_count(sn, STT_NET_POLICY);
		return NF_DROP;
	}
	if (nf_checksum(skb, NF_INET_LOCAL_IN, offset, IPPROTO_TCP, family)) {
		stt_net_count(sn, STT_NET_CHECKSUM);
		return NF_DROP;
	}
	detach(skb);
	__skb_pull(skb, header);
	if (length == total) {
		stt_net_count(sn, STT_NET_WHOLE);
	} else {
		skb = stt_reassemble(sn, skb, flow, seq, &tos);
		if (!skb)
			return NF_STOLEN;
	}
	deliver(sn, skb, flow, tos, link);
	return NF_STOLEN;
}

static unsigned int receive4(struct net *net, struct sk_buff *skb)
{
	const struct iphdr *ip = ip_hdr(skb);
	struct stt_flow flow;

	if (ip->protocol == IPPROTO_ICMP) {
		stt_icmp4(net, skb);
		return NF_ACCEPT;
	}
	if (ip->protocol != IPPROTO_TCP)
		return NF_ACCEPT;
	ipv6_addr_set_v4mapped(ip->saddr, &flow.source);
	ipv6_addr_set_v4mapped(ip->daddr, &flow.destination);
	return receive_segment(net, skb, ip_hdrlen(skb), AF_INET, &flow, ip->tos);
}

/*
 * Locks, counters and GRO cells want bottom halves off. A packet that a rule of NFQUEUE held comes
 * from the process that gave the verdict, with them on.
 */
static unsigned int hook4(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	unsigned int verdict;

	local_bh_disable();
	verdict = receive4(state->net, skb);
	local_bh_enable();
	return verdict;
}

#if IS_ENABLED(CONFIG_IPV6)
static unsigned int receive6(struct net *net, struct sk_buff *skb)
{
	const struct ipv6hdr *ip = ipv6_hdr(skb);
	u8 protocol = ip->nexthdr;
	struct stt_flow flow;
	__be16 fragment;
	int offset;

	offset = ipv6_skip_exthdr(skb, sizeof(*ip), &protocol, &fragment);
	if (offset < 0)
		return NF_ACCEPT;
	if (protocol == IPPROTO_ICMPV6) {
		stt_icmp6(net, skb, offset);
		return NF_ACCEPT;
	}
	if (protocol != IPPROTO_TCP)
		return NF_ACCEPT;
	flow.source = ip->saddr;
	flow.destination = ip->daddr;
	return receive_segment(net, skb, offset, AF_INET6, &flow, ipv6_get_dsfield(ip));
}

static unsigned int hook6(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	unsigned int verdict;

	local_bh_disable();
	verdict = receive6(state->net, skb);
	local_bh_enable();
	return verdict;
}
#endif

/* After the filters and source NAT; conntrack's last hooks have nothing to do with what is taken. */
static const struct nf_hook_ops hooks[] = {
	{
		.hook = hook4,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = NF_IP_PRI_NAT_SRC + 1,
	},
#if IS_ENABLED(CONFIG_IPV6)
	{
		.hook = hook6,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = NF_IP6_PRI_NAT_SRC + 1,
	},
#endif
};

static struct stt_port *find_port(struct stt_net *sn, __be16 number)
{
	struct stt_port *port;

	hlist_for_each_entry(port, &sn->ports, node)
		if (port->port == number)
			return port;
	return NULL;
}

static int claim_port(struct stt_net *sn, __be16 number)
{
	struct stt_port *port = find_port(sn, number);

	if (!port) {
		port = kzalloc(sizeof(*port), GFP_KERNEL);
		if (!port)
			return -ENOMEM;
		port->port = number;
		hlist_add_head_rcu(&port->node, &sn->ports);
	}
	port->users++;
	return 0;
}

static void release_port(struct stt_net *sn, __be16 number)
{
	struct stt_port *port = find_port(sn, number);

	if (WARN_ON_ONCE(!port) || --port->users)
		return;
	hlist_del_rcu(&port->node);
	kfree_rcu(port, rcu);
}

/* A device goes up (under RTNL): take its port, and the namespace's first one the hooks. */
int stt_receive_start(struct stt_device *stt)
{
	struct stt_net *sn = stt_pernet(stt->net);
	int error;

	error = stt_reassembly_start(sn);
	if (error)
		return error;
	error = claim_port(sn, stt->config.port);
	if (error)
		return error;
	if (!sn->up) {
		error = nf_register_net_hooks(stt->net, hooks, ARRAY_SIZE(hooks));
		if (error) {
			release_port(sn, stt->config.port);
			return error;
		}
	}
	sn->up++;
	hlist_add_head_rcu(&stt->node, devices_of_key(sn, stt->config.key));
	return 0;
}

/*
 * A device goes down (under RTNL). Readers may hold it until the grace period that closing or
 * unregistering it waits for; segments that still wait for others time out.
 */
void stt_receive_stop(struct stt_device *stt)
{
	struct stt_net *sn = stt_pernet(stt->net);

	hlist_del_rcu(&stt->node);
	release_port(sn, stt->config.port);
	if (!--sn->up)
		nf_unregister_net_hooks(stt->net, hooks, ARRAY_SIZE(hooks));
}
