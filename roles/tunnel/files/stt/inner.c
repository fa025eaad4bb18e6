// SPDX-License-Identifier: GPL-2.0
/* What an inner frame carries, read without trust in it. */
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "stt.h"

#define MAX_TAGS 2

static bool parse_ipv4(const struct sk_buff *skb, struct stt_inner *inner)
{
	const struct iphdr *ip;
	struct iphdr buffer;

	ip = skb_header_pointer(skb, inner->l3, sizeof(buffer), &buffer);
	if (!ip || ip->version != 4 || ip->ihl < 5 || ip_is_fragment(ip))
		return false;
	inner->ipv4 = true;
	inner->protocol = ip->protocol;
	inner->l4 = inner->l3 + ip->ihl * 4;
	inner->end = inner->l3 + ntohs(ip->tot_len);
	return true;
}

static bool parse_ipv6(const struct sk_buff *skb, struct stt_inner *inner)
{
	const struct ipv6hdr *ip;
	struct ipv6hdr buffer;
	__be16 fragment = 0;
	int l4;

	ip = skb_header_pointer(skb, inner->l3, sizeof(buffer), &buffer);
	if (!ip || ip->version != 6)
		return false;
	inner->ipv4 = false;
	inner->protocol = ip->nexthdr;
	l4 = ipv6_skip_exthdr(skb, inner->l3 + sizeof(buffer), &inner->protocol, &fragment);
	if (l4 < 0 || fragment)
		return false;
	inner->l4 = l4;
	inner->end = inner->l3 + sizeof(buffer) + ntohs(ip->payload_len);
	return true;
}

/*
 * Read the headers of the Ethernet frame at skb->data. False if it is not an unfragmented IPv4 or
 * IPv6 packet that ends inside the frame; tags of up to two VLANs may precede it.
 */
bool stt_parse_inner(const struct sk_buff *skb, struct stt_inner *inner)
{
	const struct ethhdr *eth;
	struct ethhdr eth_buffer;
	__be16 protocol;
	int tags;

	eth = skb_header_pointer(skb, 0, sizeof(eth_buffer), &eth_buffer);
	if (!eth)
		return false;
	protocol = eth->h_proto;
	inner->l3 = ETH_HLEN;
	for (tags = 0; eth_type_vlan(protocol); tags++) {
		const struct vlan_hdr *tag;
		struct vlan_hdr buffer;

		tag = skb_header_pointer(skb, inner->l3, sizeof(buffer), &buffer);
		if (!tag || tags == MAX_TAGS)
			return false;
		protocol = tag->h_vlan_encapsulated_proto;
		inner->l3 += VLAN_HLEN;
	}
	if (protocol == htons(ETH_P_IP)) {
		if (!parse_ipv4(skb, inner))
			return false;
	} else if (protocol == htons(ETH_P_IPV6)) {
		if (!parse_ipv6(skb, inner))
			return false;
	} else {
		return false;
	}
	return inner->l4 <= inner->end && inner->end <= skb->len;
}
