// SPDX-License-Identifier: GPL-2.0
/* Statistics of a link, and those of its network namespace beside them (ethtool -S). */
#include <linux/ethtool.h>

#include "stt.h"

static const char device_names[][ETH_GSTRING_LEN] = {
	[STT_RX_PACKETS] = "rx_packets",
	[STT_RX_BYTES] = "rx_bytes",
	[STT_RX_DROPPED] = "rx_dropped",
	[STT_RX_ERRORS] = "rx_errors",
	[STT_TX_PACKETS] = "tx_packets",
	[STT_TX_BYTES] = "tx_bytes",
	[STT_TX_DROPPED] = "tx_dropped",
	[STT_TX_ERRORS] = "tx_errors",
	[STT_TX_CARRIER] = "tx_carrier_errors",
	[STT_TX_SEGMENTS] = "tx_segments",
	[STT_TX_LARGE] = "tx_large_frames",
	[STT_TX_PARTIAL] = "tx_checksum_partial",
	[STT_TX_TOO_LONG] = "tx_too_long",
	[STT_TX_NO_ROUTE] = "tx_no_route",
	[STT_TX_LOOP] = "tx_route_loop",
	[STT_TX_SMALL_MTU] = "tx_path_mtu_too_small",
	[STT_RX_LARGE] = "rx_large_frames",
	[STT_RX_PARTIAL] = "rx_checksum_partial",
	[STT_RX_VERIFIED] = "rx_checksum_verified",
	[STT_RX_BAD_OFFLOAD] = "rx_bad_offload_fields",
	[STT_RX_BAD_ECN] = "rx_bad_ecn",
	[STT_RX_OWN_ADDRESS] = "rx_own_mac_address",
	[STT_ICMP_PMTU] = "icmp_path_mtu",
	[STT_ICMP_REDIRECT] = "icmp_redirect",
	[STT_ICMP_UNREACHABLE] = "icmp_unreachable",
};

static const char net_names[][ETH_GSTRING_LEN] = {
	[STT_NET_SEGMENTS] = "netns_rx_segments",
	[STT_NET_WHOLE] = "netns_rx_whole_frames",
	[STT_NET_REASSEMBLED] = "netns_reassembled",
	[STT_NET_DUPLICATE] = "netns_duplicate",
	[STT_NET_OVERLAP] = "netns_overlap",
	[STT_NET_MISMATCH] = "netns_length_mismatch",
	[STT_NET_TIMEOUT] = "netns_reassembly_timeout",
	[STT_NET_EVICTED] = "netns_reassembly_evicted",
	[STT_NET_NO_MEMORY] = "netns_no_memory",
	[STT_NET_TOO_MANY] = "netns_too_many_pieces",
	[STT_NET_MALFORMED] = "netns_malformed",
	[STT_NET_CHECKSUM] = "netns_bad_checksum",
	[STT_NET_POLICY] = "netns_ipsec_policy",
	[STT_NET_VERSION] = "netns_unknown_version",
	[STT_NET_NO_DEVICE] = "netns_no_device",
};

static const char gauge_names[][ETH_GSTRING_LEN] = {
	"netns_reassembly_frames",
	"netns_reassembly_bytes",
};

static_assert(ARRAY_SIZE(device_names) == STT_DEVICE_COUNTERS);
static_assert(ARRAY_SIZE(net_names) == STT_NET_COUNTERS);

static void sum_device(const struct stt_device *stt, u64 *sums)
{
	int cpu, which;

	memset(sums, 0, STT_DEVICE_COUNTERS * sizeof(*sums));
	for_each_possible_cpu(cpu) {
		const struct stt_device_counters *counters = per_cpu_ptr(stt->counters, cpu);
		u64 values[STT_DEVICE_COUNTERS];
		unsigned int start;

		do {
			start = u64_stats_fetch_begin(&counters->syncp);
			for (which = 0; which < STT_DEVICE_COUNTERS; which++)
				values[which] = u64_stats_read(&counters->value[which]);
		} while (u64_stats_fetch_retry(&counters->syncp, start));
		for (which = 0; which < STT_DEVICE_COUNTERS; which++)
			sums[which] += values[which];
	}
}

static void sum_net(const struct stt_net *sn, u64 *sums)
{
	int cpu, which;

	memset(sums, 0, STT_NET_COUNTERS * sizeof(*sums));
	for_each_possible_cpu(cpu) {
		const struct stt_net_counters *counters = per_cpu_ptr(sn->counters, cpu);
		u64 values[STT_NET_COUNTERS];
		unsigned int start;

		do {
			start = u64_stats_fetch_begin(&counters->syncp);
			for (which = 0; which < STT_NET_COUNTERS; which++)
				values[which] = u64_stats_read(&counters->value[which]);
		} while (u64_stats_fetch_retry(&counters->syncp, start));
		for (which = 0; which < STT_NET_COUNTERS; which++)
			sums[which] += values[which];
	}
}

void stt_get_stats64(struct net_device *dev, struct rtnl_link_stats64 *stats)
{
	u64 sums[STT_DEVICE_COUNTERS];

	sum_device(netdev_priv(dev), sums);
	stats->rx_packets = sums[STT_RX_PACKETS];
	stats->rx_bytes = sums[STT_RX_BYTES];
	/* The core adds the drops of a full queue (STT_RX_DROPPED here) by itself. */
	stats->rx_errors = sums[STT_RX_ERRORS];
	stats->tx_packets = sums[STT_TX_PACKETS];
	stats->tx_bytes = sums[STT_TX_BYTES];
	stats->tx_dropped = sums[STT_TX_DROPPED];
	stats->tx_errors = sums[STT_TX_ERRORS];
	stats->tx_carrier_errors = sums[STT_TX_CARRIER];
}

static int get_sset_count(struct net_device *dev, int set)
{
	if (set != ETH_SS_STATS)
		return -EOPNOTSUPP;
	return ARRAY_SIZE(device_names) + ARRAY_SIZE(net_names) + ARRAY_SIZE(gauge_names);
}

static void get_strings(struct net_device *dev, u32 set, u8 *data)
{
	if (set != ETH_SS_STATS)
		return;
	memcpy(data, device_names, sizeof(device_names));
	data += sizeof(device_names);
	memcpy(data, net_names, sizeof(net_names));
	data += sizeof(net_names);
	memcpy(data, gauge_names, sizeof(gauge_names));
}

static void get_ethtool_stats(struct net_device *dev, struct ethtool_stats *request, u64 *data)
{
	const struct stt_device *stt = netdev_priv(dev);
	struct stt_net *sn = stt_pernet(stt->net);

	sum_device(stt, data);
	data += ARRAY_SIZE(device_names);
	sum_net(sn, data);
	data += ARRAY_SIZE(net_names);
	*data++ = atomic_read(&sn->partials);
	*data++ = atomic_long_read(&sn->memory);
}

static void get_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	strscpy(info->driver, "stt", sizeof(info->driver));
}

const struct ethtool_ops stt_ethtool_ops = {
	.get_drvinfo = get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_sset_count = get_sset_count,
	.get_strings = get_strings,
	.get_ethtool_stats = get_ethtool_stats,
};
