// SPDX-License-Identifier: GPL-2.0
/*
 * ICMP errors about our own segments. TCP knows no socket for them and would only count them, so
 * they are read on their way to it: a smaller path MTU and redirects go to the routes, which
 * makes the next frame's segments fit. The inner sender never hears of it, nor needs to: a frame
 * is cut to whatever the path takes.
 */
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/tcp.h>
#include <net/icmp.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>

#include "stt.h"

/* The part of a TCP header that every ICMP error quotes. */
struct quoted_tcp {
	__be16 source;
	__be16 destination;
	__be32 seq;
};

/* A device that sends to the quoted address and port; any of several will do. */
static struct stt_device *sender_of(struct stt_net *sn, const struct in6_addr *local,
				    const struct in6_addr *remote, const struct quoted_tcp *tcp)
{
	struct stt_device *stt;
	int at;

	if (ntohs(tcp->source) < STT_FIRST_SOURCE_PORT)
		return NULL;
	for (at = 0; at < ARRAY_SIZE(sn->devices); at++)
		hlist_for_each_entry_rcu(stt, &sn->devices[at], node)
			if (stt->config.port == tcp->destination &&
			    ipv6_addr_equal(&stt->config.remote, remote) &&
			    (ipv6_addr_any(&stt->config.local) ||
			     ipv6_addr_equal(&stt->config.local, local)))
				return stt;
	return NULL;
}

static struct stt_device *sender4(struct net *net, const struct sk_buff *skb, int offset)
{
	const struct quoted_tcp *tcp;
	struct quoted_tcp tcp_buffer;
	struct in6_addr local, remote;
	const struct iphdr *quoted;
	struct iphdr buffer;

	quoted = skb_header_pointer(skb, offset, sizeof(buffer), &buffer);
	if (!quoted || quoted->version != 4 || quoted->ihl < 5 || quoted->protocol != IPPROTO_TCP)
		return NULL;
	tcp = skb_header_pointer(skb, offset + quoted->ihl * 4, sizeof(tcp_buffer), &tcp_buffer);
	if (!tcp)
		return NULL;
	ipv6_addr_set_v4mapped(quoted->saddr, &local);
	ipv6_addr_set_v4mapped(quoted->daddr, &remote);
	return sender_of(stt_pernet(net), &local, &remote, tcp);
}

/* Read an ICMP packet (skb->data at its IP header), which goes on its way afterwards. */
void stt_icmp4(struct net *net, struct sk_buff *skb)
{
	int offset = ip_hdrlen(skb), quoted = offset + sizeof(struct icmphdr);
	const struct icmphdr *icmp;
	struct stt_device *stt;
	struct icmphdr buffer;

	icmp = skb_header_pointer(skb, offset, sizeof(buffer), &buffer);
	if (!icmp || (icmp->type != ICMP_DEST_UNREACH && icmp->type != ICMP_REDIRECT))
		return;
	buffer = *icmp;
	stt = sender4(net, skb, quoted);
	if (!stt || nf_checksum(skb, NF_INET_LOCAL_IN, offset, IPPROTO_ICMP, AF_INET) ||
	    !pskb_may_pull(skb, quoted + sizeof(struct iphdr)))
		return;
	if (buffer.type == ICMP_DEST_UNREACH && buffer.code != ICMP_FRAG_NEEDED) {
		stt_count(stt, STT_ICMP_UNREACHABLE);
		return;
	}
	__skb_pull(skb, quoted);
	if (buffer.type == ICMP_REDIRECT) {
		ipv4_redirect(skb, net, stt->config.link, IPPROTO_TCP);
		stt_count(stt, STT_ICMP_REDIRECT);
	} else {
		ipv4_update_pmtu(skb, net, ntohs(buffer.un.frag.mtu), stt->config.link,
				 IPPROTO_TCP);
		stt_count(stt, STT_ICMP_PMTU);
	}
	__skb_push(skb, quoted);
}

#if IS_ENABLED(CONFIG_IPV6)
static struct stt_device *sender6(struct net *net, const struct sk_buff *skb, int offset)
{
	const struct quoted_tcp *tcp;
	struct quoted_tcp tcp_buffer;
	const struct ipv6hdr *quoted;
	struct ipv6hdr buffer;

	quoted = skb_header_pointer(skb, offset, sizeof(buffer), &buffer);
	if (!quoted || quoted->version != 6 || quoted->nexthdr != IPPROTO_TCP)
		return NULL;
	tcp = skb_header_pointer(skb, offset + sizeof(buffer), sizeof(tcp_buffer), &tcp_buffer);
	if (!tcp)
		return NULL;
	return sender_of(stt_pernet(net), &quoted->saddr, &quoted->daddr, tcp);
}

void stt_icmp6(struct net *net, struct sk_buff *skb, int offset)
{
	int quoted = offset + sizeof(struct icmp6hdr);
	const struct icmp6hdr *icmp;
	struct stt_device *stt;
	struct icmp6hdr buffer;

	icmp = skb_header_pointer(skb, offset, sizeof(buffer), &buffer);
	if (!icmp || (icmp->icmp6_type != ICMPV6_PKT_TOOBIG &&
		      icmp->icmp6_type != ICMPV6_DEST_UNREACH))
		return;
	buffer = *icmp;
	stt = sender6(net, skb, quoted);
	if (!stt || nf_checksum(skb, NF_INET_LOCAL_IN, offset, IPPROTO_ICMPV6, AF_INET6) ||
	    !pskb_may_pull(skb, quoted + sizeof(struct ipv6hdr)))
		return;
	if (buffer.icmp6_type == ICMPV6_DEST_UNREACH) {
		stt_count(stt, STT_ICMP_UNREACHABLE);
		return;
	}
	__skb_pull(skb, quoted);
	ip6_update_pmtu(skb, net, buffer.icmp6_mtu, stt->config.link, 0, sock_net_uid(net, NULL));
	__skb_push(skb, quoted);
	stt_count(stt, STT_ICMP_PMTU);
}
#endif
