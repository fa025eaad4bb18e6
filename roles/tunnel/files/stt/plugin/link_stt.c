// SPDX-License-Identifier: GPL-2.0
/*
 * Plugin for iproute2: "ip link add NAME type stt ..." and what "ip -d link" says of such a link.
 * iproute2 looks for it as link_stt.so in its library folder.
 *
 * iproute2 has no header for plugins, so what is used of it is declared here: the structure
 * below and functions that the ip program exports. Both are the same from iproute2 5.x to 6.15.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/rtnetlink.h>

#include "../uapi.h"

struct link_util {
	struct link_util *next;
	const char *id;
	int maxattr;
	int (*parse_opt)(struct link_util *link, int argc, char **argv, struct nlmsghdr *message);
	void (*print_opt)(struct link_util *link, FILE *file, struct rtattr *attributes[]);
	void (*print_xstats)(struct link_util *link, FILE *file, struct rtattr *attribute);
	void (*print_help)(struct link_util *link, int argc, char **argv, FILE *file);
	int (*parse_ifla_xstats)(struct link_util *link, int argc, char **argv);
	int (*print_ifla_xstats)(struct nlmsghdr *message, void *argument);
};

/* Where a value goes (text or JSON) and in what colour, as iproute2 numbers them. */
enum { PRINT_FP = 1, PRINT_JSON = 2, PRINT_ANY = 4 };
enum { COLOR_NONE = 6 };

extern int addattr_l(struct nlmsghdr *message, int room, int type, const void *data, int length);
extern int print_color_string(int type, int color, const char *key, const char *format,
			      const char *value);
extern int print_color_uint(int type, int color, const char *key, const char *format,
			    unsigned int value);
extern int print_color_u64(int type, int color, const char *key, const char *format,
			   uint64_t value);
extern const char *ll_index_to_name(unsigned int index);
extern unsigned int ll_name_to_index(const char *name);

/* Room that iproute2 leaves for the attributes of a link type. */
#define ROOM 1024

static const char usage[] =
	"Usage: ... stt remote ADDRESS [ local ADDRESS ] [ key KEY ] [ port PORT ] [ dev DEVICE ]\n"
	"               [ ttl TTL ] [ tos TOS ]\n"
	"\n"
	"Where: ADDRESS := { IPv4 | IPv6 }, remote and local of one family\n"
	"       KEY     := 0..18446744073709551615 (default 0)\n"
	"       PORT    := 1..65535 (default 7471)\n"
	"       TTL     := { 1..255 | auto }\n"
	"       TOS     := { 0..255 | inherit }\n";

static void print_help(struct link_util *link, int argc, char **argv, FILE *file)
{
	(void)link;
	(void)argc;
	(void)argv;
	fputs(usage, file);
}

static int refuse(const char *option, const char *value, const char *wanted)
{
	fprintf(stderr, "Error: stt: %s: got \"%s\", wanted %s\n", option, value, wanted);
	return -1;
}

static int read_number(const char *option, const char *text, uint64_t least, uint64_t most,
		       uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-' || *number < least || *number > most) {
		fprintf(stderr, "Error: stt: %s: got \"%s\", wanted a number from %llu to %llu\n",
			option, text, (unsigned long long)least, (unsigned long long)most);
		return -1;
	}
	return 0;
}

static int add_address(struct nlmsghdr *message, const char *option, const char *text,
		       int attribute4, int attribute6)
{
	struct in6_addr address;

	if (inet_pton(AF_INET, text, &address) == 1)
		return addattr_l(message, ROOM, attribute4, &address, sizeof(struct in_addr));
	if (inet_pton(AF_INET6, text, &address) == 1)
		return addattr_l(message, ROOM, attribute6, &address, sizeof(address));
	return refuse(option, text, "an IPv4 or IPv6 address");
}

static int add_u8(struct nlmsghdr *message, const char *option, const char *text,
		  const char *word, uint8_t value_of_word, int attribute)
{
	uint64_t number;
	uint8_t value;

	if (!strcmp(text, word))
		number = value_of_word;
	else if (read_number(option, text, 0, UINT8_MAX, &number))
		return -1;
	value = number;
	return addattr_l(message, ROOM, attribute, &value, sizeof(value));
}

static int add_option(struct nlmsghdr *message, const char *option, const char *text)
{
	uint64_t number;

	if (!strcmp(option, "remote"))
		return add_address(message, option, text, IFLA_STT_REMOTE, IFLA_STT_REMOTE6);
	if (!strcmp(option, "local"))
		return add_address(message, option, text, IFLA_STT_LOCAL, IFLA_STT_LOCAL6);
	if (!strcmp(option, "key")) {
		if (read_number(option, text, 0, UINT64_MAX, &number))
			return -1;
		return addattr_l(message, ROOM, IFLA_STT_KEY, &number, sizeof(number));
	}
	if (!strcmp(option, "port")) {
		uint16_t port;

		if (read_number(option, text, 1, UINT16_MAX, &number))
			return -1;
		port = htons(number);
		return addattr_l(message, ROOM, IFLA_STT_PORT, &port, sizeof(port));
	}
	if (!strcmp(option, "dev")) {
		uint32_t index = ll_name_to_index(text);

		if (!index)
			return refuse(option, text, "a device that exists");
		return addattr_l(message, ROOM, IFLA_STT_LINK, &index, sizeof(index));
	}
	if (!strcmp(option, "ttl"))
		return add_u8(message, option, text, "auto", 0, IFLA_STT_TTL);
	if (!strcmp(option, "tos"))
		return add_u8(message, option, text, "inherit", STT_TOS_INHERIT, IFLA_STT_TOS);
	fprintf(stderr, "Error: stt: \"%s\" is none of its options\n%s", option, usage);
	return -1;
}

static int parse_opt(struct link_util *link, int argc, char **argv, struct nlmsghdr *message)
{
	(void)link;
	for (; argc > 0; argc -= 2, argv += 2) {
		if (!strcmp(*argv, "help")) {
			fputs(usage, stderr);
			return -1;
		}
		if (argc == 1) {
			fprintf(stderr, "Error: stt: \"%s\" needs a value\n", *argv);
			return -1;
		}
		if (add_option(message, argv[0], argv[1]))
			return -1;
	}
	return 0;
}

static void print_address(struct rtattr *attributes[], const char *name, int attribute4,
			  int attribute6)
{
	char text[INET6_ADDRSTRLEN], format[32];
	struct rtattr *found = attributes[attribute4];
	int family = AF_INET;

	if (!found) {
		found = attributes[attribute6];
		family = AF_INET6;
	}
	if (!found || !inet_ntop(family, RTA_DATA(found), text, sizeof(text)))
		return;
	snprintf(format, sizeof(format), "%s %%s ", name);
	print_color_string(PRINT_ANY, COLOR_NONE, name, format, text);
}

static void print_u8(const struct rtattr *attribute, const char *name, const char *word,
		     uint8_t value_of_word)
{
	char format[32];
	uint8_t value;

	if (!attribute)
		return;
	value = *(const uint8_t *)RTA_DATA(attribute);
	if (value == value_of_word) {
		snprintf(format, sizeof(format), "%s %%s ", name);
		print_color_string(PRINT_FP, COLOR_NONE, NULL, format, word);
	} else {
		snprintf(format, sizeof(format), "%s %%u ", name);
		print_color_uint(PRINT_FP, COLOR_NONE, NULL, format, value);
	}
	print_color_uint(PRINT_JSON, COLOR_NONE, name, NULL, value);
}

static void print_opt(struct link_util *link, FILE *file, struct rtattr *attributes[])
{
	(void)link;
	(void)file;
	if (!attributes)
		return;
	if (attributes[IFLA_STT_KEY]) {
		uint64_t key;

		memcpy(&key, RTA_DATA(attributes[IFLA_STT_KEY]), sizeof(key));
		print_color_u64(PRINT_ANY, COLOR_NONE, "key", "key %llu ", key);
	}
	print_address(attributes, "remote", IFLA_STT_REMOTE, IFLA_STT_REMOTE6);
	print_address(attributes, "local", IFLA_STT_LOCAL, IFLA_STT_LOCAL6);
	if (attributes[IFLA_STT_LINK]) {
		uint32_t index;

		memcpy(&index, RTA_DATA(attributes[IFLA_STT_LINK]), sizeof(index));
		print_color_string(PRINT_ANY, COLOR_NONE, "link", "dev %s ",
				   ll_index_to_name(index));
	}
	if (attributes[IFLA_STT_PORT]) {
		uint16_t port;

		memcpy(&port, RTA_DATA(attributes[IFLA_STT_PORT]), sizeof(port));
		print_color_uint(PRINT_ANY, COLOR_NONE, "port", "port %u ", ntohs(port));
	}
	print_u8(attributes[IFLA_STT_TTL], "ttl", "auto", 0);
	print_u8(attributes[IFLA_STT_TOS], "tos", "inherit", STT_TOS_INHERIT);
}

struct link_util stt_link_util = {
	.id = "stt",
	.maxattr = IFLA_STT_MAX,
	.parse_opt = parse_opt,
	.print_opt = print_opt,
	.print_help = print_help,
};
