// SPDX-License-Identifier: GPL-2.0
/* The link type "stt": devices, their netlink interface, and the life of the module. */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/module.h>
#include <net/ip_tunnels.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/rtnetlink.h>

#include "compat.h"
#include "stt.h"

unsigned int stt_net_id __read_mostly;

/* Offloads that reach the far end in the header, and those of VLANs on top. */
#define STT_FEATURES (NETIF_F_SG | NETIF_F_HIGHDMA | NETIF_F_HW_CSUM | NETIF_F_TSO | \
		      NETIF_F_TSO6 | NETIF_F_TSO_ECN | NETIF_F_RXCSUM)

static int stt_dev_init(struct net_device *dev)
{
	struct stt_device *stt = netdev_priv(dev);
	int error;

	stt->counters = netdev_alloc_pcpu_stats(struct stt_device_counters);
	if (!stt->counters)
		return -ENOMEM;
	error = gro_cells_init(&stt->cells, dev);
	if (error)
		goto no_cells;
	error = dst_cache_init(&stt->routes, GFP_KERNEL);
	if (error)
		goto no_routes;
	return 0;
no_routes:
	gro_cells_destroy(&stt->cells);
no_cells:
	free_percpu(stt->counters);
	return error;
}

static void stt_dev_uninit(struct net_device *dev)
{
	struct stt_device *stt = netdev_priv(dev);

	gro_cells_destroy(&stt->cells);
	dst_cache_destroy(&stt->routes);
	free_percpu(stt->counters);
}

static int stt_open(struct net_device *dev)
{
	return stt_receive_start(netdev_priv(dev));
}

static int stt_stop(struct net_device *dev)
{
	stt_receive_stop(netdev_priv(dev));
	return 0;
}

static const struct net_device_ops stt_netdev_ops = {
	.ndo_init = stt_dev_init,
	.ndo_uninit = stt_dev_uninit,
	.ndo_open = stt_open,
	.ndo_stop = stt_stop,
	.ndo_start_xmit = stt_xmit,
	.ndo_features_check = stt_features_check,
	.ndo_get_stats64 = stt_get_stats64,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_set_mac_address = eth_mac_addr,
};

static const struct device_type stt_type = {
	.name = "stt",
};

static void stt_setup(struct net_device *dev)
{
	ether_setup(dev);
	eth_hw_addr_random(dev);
	SET_NETDEV_DEVTYPE(dev, &stt_type);
	dev->netdev_ops = &stt_netdev_ops;
	dev->ethtool_ops = &stt_ethtool_ops;
	dev->needs_free_netdev = true;
	dev->hw_features = STT_FEATURES;
	dev->features = STT_FEATURES | NETIF_F_HW_VLAN_CTAG_TX | NETIF_F_HW_VLAN_CTAG_RX;
	dev->vlan_features = STT_FEATURES;
	stt_set_lockless(dev);
	dev->priv_flags &= ~IFF_TX_SKB_SHARING;
	dev->priv_flags |= IFF_LIVE_ADDR_CHANGE | IFF_NO_QUEUE;
	netif_keep_dst(dev);
	dev->min_mtu = ETH_MIN_MTU;
	dev->max_mtu = STT_MAX_FRAME - ETH_HLEN;
	netif_set_tso_max_size(dev, STT_MAX_FRAME);
}

static const struct nla_policy stt_policy[IFLA_STT_MAX + 1] = {
	[IFLA_STT_KEY] = { .type = NLA_U64 },
	[IFLA_STT_REMOTE] = { .type = NLA_U32 },
	[IFLA_STT_REMOTE6] = NLA_POLICY_EXACT_LEN(sizeof(struct in6_addr)),
	[IFLA_STT_LOCAL] = { .type = NLA_U32 },
	[IFLA_STT_LOCAL6] = NLA_POLICY_EXACT_LEN(sizeof(struct in6_addr)),
	[IFLA_STT_LINK] = { .type = NLA_U32 },
	[IFLA_STT_PORT] = { .type = NLA_U16 },
	[IFLA_STT_TTL] = { .type = NLA_U8 },
	[IFLA_STT_TOS] = { .type = NLA_U8 },
};

static int stt_validate(struct nlattr *tb[], struct nlattr *data[], struct netlink_ext_ack *extack)
{
	if (tb[IFLA_ADDRESS]) {
		if (nla_len(tb[IFLA_ADDRESS]) != ETH_ALEN) {
			NL_SET_ERR_MSG_ATTR(extack, tb[IFLA_ADDRESS],
					    "the address is not an Ethernet address");
			return -EINVAL;
		}
		if (!is_valid_ether_addr(nla_data(tb[IFLA_ADDRESS]))) {
			NL_SET_ERR_MSG_ATTR(extack, tb[IFLA_ADDRESS],
					    "the address is not a unicast address");
			return -EADDRNOTAVAIL;
		}
	}
	return 0;
}

/* One address, given in one of two families. Returns whether it is there, or an error. */
static int read_address(struct nlattr *data[], int attribute4, int attribute6,
			struct in6_addr *address, struct netlink_ext_ack *extack)
{
	if (data[attribute4] && data[attribute6]) {
		NL_SET_ERR_MSG_ATTR(extack, data[attribute6], "one address in two families");
		return -EINVAL;
	}
	if (data[attribute4]) {
		__be32 ipv4 = nla_get_in_addr(data[attribute4]);

		if (!ipv4)
			return 0;
		ipv6_addr_set_v4mapped(ipv4, address);
		return 1;
	}
	if (data[attribute6]) {
		*address = nla_get_in6_addr(data[attribute6]);
		if (ipv6_addr_any(address))
			return 0;
		if (ipv6_addr_v4mapped(address)) {
			NL_SET_ERR_MSG_ATTR(extack, data[attribute6],
					    "an IPv4 address is given as such, not mapped");
			return -EINVAL;
		}
		return 1;
	}
	return 0;
}

static bool is_unicast(const struct in6_addr *address)
{
	__be32 ipv4 = address->s6_addr32[3];

	if (ipv6_addr_v4mapped(address))
		return !ipv4_is_multicast(ipv4) && !ipv4_is_lbcast(ipv4);
	return !ipv6_addr_is_multicast(address);
}

static int read_addresses(struct nlattr *data[], struct stt_config *config,
			  struct netlink_ext_ack *extack)
{
	int found;

	found = read_address(data, IFLA_STT_REMOTE, IFLA_STT_REMOTE6, &config->remote, extack);
	if (found < 0)
		return found;
	if (!found || !is_unicast(&config->remote)) {
		NL_SET_ERR_MSG(extack, "remote: a unicast address is needed");
		return -EINVAL;
	}
	found = read_address(data, IFLA_STT_LOCAL, IFLA_STT_LOCAL6, &config->local, extack);
	if (found < 0)
		return found;
	if (found && (!is_unicast(&config->local) ||
		      ipv6_addr_v4mapped(&config->local) != ipv6_addr_v4mapped(&config->remote))) {
		NL_SET_ERR_MSG(extack, "local: a unicast address of remote's family is needed");
		return -EINVAL;
	}
	if (!IS_ENABLED(CONFIG_IPV6) && !stt_is_ipv4(config)) {
		NL_SET_ERR_MSG(extack, "remote: the kernel has no IPv6");
		return -EAFNOSUPPORT;
	}
	return 0;
}

static int read_config(struct net *net, struct nlattr *data[], struct stt_config *config,
		       struct netlink_ext_ack *extack)
{
	int error;

	memset(config, 0, sizeof(*config));
	config->port = htons(STT_DEFAULT_PORT);
	if (!data) {
		NL_SET_ERR_MSG(extack, "remote: a unicast address is needed");
		return -EINVAL;
	}
	error = read_addresses(data, config, extack);
	if (error)
		return error;
	if (data[IFLA_STT_KEY])
		config->key = cpu_to_be64(nla_get_u64(data[IFLA_STT_KEY]));
	if (data[IFLA_STT_LINK])
		config->link = nla_get_u32(data[IFLA_STT_LINK]);
	if (config->link && !__dev_get_by_index(net, config->link)) {
		NL_SET_ERR_MSG_ATTR(extack, data[IFLA_STT_LINK], "dev: no such device");
		return -ENODEV;
	}
	if (!config->link && !stt_is_ipv4(config) &&
	    ipv6_addr_type(&config->remote) & IPV6_ADDR_LINKLOCAL) {
		NL_SET_ERR_MSG(extack, "dev: needed with a link-local remote");
		return -EINVAL;
	}
	if (data[IFLA_STT_PORT])
		config->port = nla_get_be16(data[IFLA_STT_PORT]);
	if (!config->port) {
		NL_SET_ERR_MSG_ATTR(extack, data[IFLA_STT_PORT], "port: 0 is none");
		return -EINVAL;
	}
	if (data[IFLA_STT_TTL])
		config->ttl = nla_get_u8(data[IFLA_STT_TTL]);
	if (data[IFLA_STT_TOS])
		config->tos = nla_get_u8(data[IFLA_STT_TOS]);
	return 0;
}

static bool same_endpoint(const struct stt_config *one, const struct stt_config *other)
{
	return one->key == other->key && one->port == other->port && one->link == other->link &&
	       ipv6_addr_equal(&one->remote, &other->remote) &&
	       ipv6_addr_equal(&one->local, &other->local);
}

/* An MTU with which a full packet fits in one segment, if the path is known already. */
static unsigned int default_mtu(struct net *net, const struct stt_config *config)
{
	int path = stt_path_mtu(net, config), overhead = stt_overhead(config);

	if (path < 0)
		path = ETH_DATA_LEN;
	return clamp(path - overhead, ETH_MIN_MTU, STT_MAX_FRAME - ETH_HLEN);
}

static int create(struct net *net, struct net_device *dev, struct nlattr *tb[],
		  struct nlattr *data[], struct netlink_ext_ack *extack)
{
	struct stt_device *stt = netdev_priv(dev), *other;
	struct stt_net *sn = stt_pernet(net);
	struct stt_config config;
	int error;

	error = read_config(net, data, &config, extack);
	if (error)
		return error;
	list_for_each_entry(other, &sn->all, list) {
		if (same_endpoint(&other->config, &config)) {
			NL_SET_ERR_MSG(extack, "a link of this key, remote, local, port and dev exists");
			return -EEXIST;
		}
	}
	stt->dev = dev;
	stt->net = net;
	stt->config = config;
	dev->needed_headroom = LL_MAX_HEADER + stt_overhead(&config) - ETH_HLEN;
	if (!tb[IFLA_MTU])
		dev->mtu = default_mtu(net, &config);
	error = register_netdevice(dev);
	if (error)
		return error;
	list_add(&stt->list, &sn->all);
	return 0;
}

STT_DEFINE_NEWLINK(stt_newlink, create)

/* What a link is made of stays; the fields of the outer IP header may change. */
static int stt_changelink(struct net_device *dev, struct nlattr *tb[], struct nlattr *data[],
			  struct netlink_ext_ack *extack)
{
	struct stt_device *stt = netdev_priv(dev);
	static const int fixed[] = {
		IFLA_STT_KEY, IFLA_STT_REMOTE, IFLA_STT_REMOTE6, IFLA_STT_LOCAL, IFLA_STT_LOCAL6,
		IFLA_STT_LINK, IFLA_STT_PORT,
	};
	int at;

	if (!data)
		return 0;
	for (at = 0; at < ARRAY_SIZE(fixed); at++) {
		if (data[fixed[at]]) {
			NL_SET_ERR_MSG_ATTR(extack, data[fixed[at]],
					    "only ttl and tos of an existing link can change");
			return -EOPNOTSUPP;
		}
	}
	if (data[IFLA_STT_TTL])
		WRITE_ONCE(stt->config.ttl, nla_get_u8(data[IFLA_STT_TTL]));
	if (data[IFLA_STT_TOS]) {
		WRITE_ONCE(stt->config.tos, nla_get_u8(data[IFLA_STT_TOS]));
		dst_cache_reset(&stt->routes);
	}
	return 0;
}

static void stt_dellink(struct net_device *dev, struct list_head *head)
{
	struct stt_device *stt = netdev_priv(dev);

	list_del(&stt->list);
	unregister_netdevice_queue(dev, head);
}

static size_t stt_get_size(const struct net_device *dev)
{
	return nla_total_size_64bit(sizeof(u64)) +
	       nla_total_size(sizeof(struct in6_addr)) * 2 +
	       nla_total_size(sizeof(u32)) +
	       nla_total_size(sizeof(__be16)) +
	       nla_total_size(sizeof(u8)) * 2;
}

static int put_address(struct sk_buff *skb, int attribute4, int attribute6,
		       const struct in6_addr *address)
{
	if (ipv6_addr_any(address))
		return 0;
	if (ipv6_addr_v4mapped(address))
		return nla_put_in_addr(skb, attribute4, address->s6_addr32[3]);
	return nla_put_in6_addr(skb, attribute6, address);
}

static int stt_fill_info(struct sk_buff *skb, const struct net_device *dev)
{
	const struct stt_device *stt = netdev_priv(dev);
	const struct stt_config *config = &stt->config;

	if (nla_put_u64_64bit(skb, IFLA_STT_KEY, be64_to_cpu(config->key), IFLA_STT_PAD) ||
	    put_address(skb, IFLA_STT_REMOTE, IFLA_STT_REMOTE6, &config->remote) ||
	    put_address(skb, IFLA_STT_LOCAL, IFLA_STT_LOCAL6, &config->local) ||
	    (config->link && nla_put_u32(skb, IFLA_STT_LINK, config->link)) ||
	    nla_put_be16(skb, IFLA_STT_PORT, config->port) ||
	    nla_put_u8(skb, IFLA_STT_TTL, config->ttl) ||
	    nla_put_u8(skb, IFLA_STT_TOS, config->tos))
		return -EMSGSIZE;
	return 0;
}

static struct net *stt_get_link_net(const struct net_device *dev)
{
	const struct stt_device *stt = netdev_priv(dev);

	return stt->net;
}

static struct rtnl_link_ops stt_link_ops __read_mostly = {
	.kind = "stt",
	.maxtype = IFLA_STT_MAX,
	.policy = stt_policy,
	.priv_size = sizeof(struct stt_device),
	.setup = stt_setup,
	.validate = stt_validate,
	.newlink = stt_newlink,
	.changelink = stt_changelink,
	.dellink = stt_dellink,
	.get_size = stt_get_size,
	.fill_info = stt_fill_info,
	.get_link_net = stt_get_link_net,
};

static int __net_init stt_net_init(struct net *net)
{
	struct stt_net *sn = stt_pernet(net);
	int at;

	sn->net = net;
	INIT_LIST_HEAD(&sn->all);
	for (at = 0; at < ARRAY_SIZE(sn->devices); at++)
		INIT_HLIST_HEAD(&sn->devices[at]);
	INIT_HLIST_HEAD(&sn->ports);
	INIT_DELAYED_WORK(&sn->expiry, stt_expire);
	sn->counters = netdev_alloc_pcpu_stats(struct stt_net_counters);
	return sn->counters ? 0 : -ENOMEM;
}

/* Devices whose segments travel in an ending namespace go with it, wherever they are. */
static void __net_exit stt_net_exit_batch(struct list_head *nets)
{
	struct stt_device *stt, *next;
	LIST_HEAD(doomed);
	struct net *net;

	rtnl_lock();
	list_for_each_entry(net, nets, exit_list)
		list_for_each_entry_safe(stt, next, &stt_pernet(net)->all, list)
			stt_dellink(stt->dev, &doomed);
	unregister_netdevice_many(&doomed);
	rtnl_unlock();

	/* A hook that has just been unregistered may still run. */
	synchronize_net();
	list_for_each_entry(net, nets, exit_list) {
		stt_reassembly_end(stt_pernet(net));
		free_percpu(stt_pernet(net)->counters);
	}
}

static struct pernet_operations stt_net_ops = {
	.init = stt_net_init,
	.exit_batch = stt_net_exit_batch,
	.id = &stt_net_id,
	.size = sizeof(struct stt_net),
};

static int __init stt_init(void)
{
	int error;

	stt_transmit_init();
	error = stt_reassembly_init();
	if (error)
		return error;
	error = register_pernet_device(&stt_net_ops);
	if (error)
		goto no_net;
	error = rtnl_link_register(&stt_link_ops);
	if (error)
		goto no_link;
	return 0;
no_link:
	unregister_pernet_device(&stt_net_ops);
no_net:
	stt_reassembly_exit();
	return error;
}

static void __exit stt_exit(void)
{
	rtnl_link_unregister(&stt_link_ops);
	unregister_pernet_device(&stt_net_ops);
	/* Ports and route caches are freed after a grace period. */
	rcu_barrier();
	stt_reassembly_exit();
}

module_init(stt_init);
module_exit(stt_exit);

MODULE_DESCRIPTION("Stateless Transport Tunneling (draft-davie-stt-08)");
MODULE_AUTHOR("Crossover developers");
MODULE_LICENSE("GPL");
MODULE_VERSION("1.0");
MODULE_ALIAS_RTNL_LINK("stt");
