/* The network's configuration by messages, raw packets, and a cable between two namespaces. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netinet/if_ether.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "general.h"
#include "inet.h"

/* A message that is being put together: a header, a fixed part, and attributes within each other. */
struct request {
	_Alignas(struct nlmsghdr) unsigned char bytes[512];
};

static struct nlmsghdr *begin(struct request *request, int type, int flags, const void *fixed, size_t size)
{
	struct nlmsghdr *header = (struct nlmsghdr *)request->bytes;

	memset(request, 0, sizeof(*request));
	header->nlmsg_len = NLMSG_LENGTH(size);
	header->nlmsg_type = (uint16_t)type;
	header->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	header->nlmsg_seq = 1;
	memcpy(NLMSG_DATA(header), fixed, size);
	return header;
}

static struct rtattr *add(struct nlmsghdr *header, int type, const void *value, size_t size)
{
	struct rtattr *attribute = (struct rtattr *)((unsigned char *)header + NLMSG_ALIGN(header->nlmsg_len));

	attribute->rta_type = (unsigned short)type;
	attribute->rta_len = (unsigned short)RTA_LENGTH(size);
	if (size > 0)
		memcpy(RTA_DATA(attribute), value, size);
	header->nlmsg_len = NLMSG_ALIGN(header->nlmsg_len) + (uint32_t)RTA_ALIGN(attribute->rta_len);
	return attribute;
}

/* What follows since then is inside of the attribute. */
static void end(struct nlmsghdr *header, struct rtattr *attribute)
{
	attribute->rta_len = (unsigned short)((unsigned char *)header + header->nlmsg_len - (unsigned char *)attribute);
}

/* Send a request and take its acknowledgement; errno is the kernel's answer. */
static bool done(int fd, struct nlmsghdr *header)
{
	_Alignas(struct nlmsghdr) unsigned char answer[4096];

	header->nlmsg_flags |= NLM_F_ACK;
	if (send(fd, header, header->nlmsg_len, 0) != (ssize_t)header->nlmsg_len)
		return false;
	if (recv(fd, answer, sizeof(answer), 0) < (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)))
		return false;
	const struct nlmsghdr *head = (const struct nlmsghdr *)answer;
	const struct nlmsgerr *error = NLMSG_DATA(head);
	errno = head->nlmsg_type == NLMSG_ERROR ? -error->error : EPROTO;
	return errno == 0;
}

/* How many entries a table has. */
static int dumped(int fd, int type)
{
	static _Alignas(struct nlmsghdr) unsigned char answer[32768];
	const struct rtgenmsg family = {.rtgen_family = AF_UNSPEC};
	struct request request;
	struct nlmsghdr *header = begin(&request, type, NLM_F_DUMP, &family, sizeof(family));
	int count = 0;

	if (send(fd, header, header->nlmsg_len, 0) < 0)
		return -1;
	for (;;) {
		ssize_t got = recv(fd, answer, sizeof(answer), 0);
		if (got <= 0)
			return -1;
		unsigned size = (unsigned)got;
		for (const struct nlmsghdr *at = (const struct nlmsghdr *)answer; NLMSG_OK(at, size);
		     at = NLMSG_NEXT(at, size)) {
			if (at->nlmsg_type == NLMSG_DONE)
				return count;
			if (at->nlmsg_type == NLMSG_ERROR)
				return -1;
			count++;
		}
	}
}

static bool tables(void)
{
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return lacks("NETLINK_ROUTE");
	const struct sockaddr_nl own = {.nl_family = AF_NETLINK};
	TRY(bind(fd, (const struct sockaddr *)&own, sizeof(own)) == 0, "bind");
	TRY(dumped(fd, RTM_GETLINK) >= 1 + damaged() * 1000, "the links");
	TRY(dumped(fd, RTM_GETADDR) >= 0 && dumped(fd, RTM_GETROUTE) >= 0 && dumped(fd, RTM_GETNEIGH) >= 0,
	    "the addresses and routes");
	const struct ifinfomsg none = {.ifi_index = 987654};
	struct request request;
	TRY(!done(fd, begin(&request, RTM_GETLINK, 0, &none, sizeof(none))) && errno == ENODEV,
	    "a link that is not there");
	return close(fd) == 0;
}

/* The interfaces as older programs ask for them. */
static bool interfaces(void)
{
	struct ifreq one = {.ifr_name = "lo"};
	struct ifreq all[8];
	struct ifconf list = {.ifc_len = sizeof(all), .ifc_req = all};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return lacks("CONFIG_INET");
	TRY(ioctl(fd, SIOCGIFFLAGS, &one) == 0 && ioctl(fd, SIOCGIFMTU, &one) == 0 && one.ifr_mtu > 0 &&
		    ioctl(fd, SIOCGIFINDEX, &one) == 0 && if_nametoindex("lo") == (unsigned)one.ifr_ifindex &&
		    ioctl(fd, SIOCGIFCONF, &list) == 0,
	    "an interface");
	return close(fd) == 0;
}

static uint16_t sum_of(const void *bytes, size_t size)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		uint16_t word;
		memcpy(&word, (const unsigned char *)bytes + i, 2);
		sum += word;
	}
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* Echo requests, as ping sends them; a packet socket sees them go by. */
static bool echoes(void)
{
	struct {
		uint8_t type;
		uint8_t code;
		uint16_t sum;
		uint16_t id;
		uint16_t number;
		unsigned char payload[120];
	} echo;
	unsigned char answer[400];
	const struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	const int raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);

	if (raw < 0)
		return lacks("CONFIG_INET");
	const int seen = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP));
	if (seen < 0 && !lacks("CONFIG_PACKET"))
		return false;
	for (uint16_t i = 0; i < 8; i++) {
		echo.type = 8;
		echo.code = 0;
		echo.sum = 0;
		echo.id = htons(0x6770);
		echo.number = htons(i);
		pattern(echo.payload, sizeof(echo.payload), i);
		echo.sum = sum_of(&echo, sizeof(echo));
		TRY(sendto(raw, &echo, sizeof(echo), 0, (const struct sockaddr *)&to, sizeof(to)) == sizeof(echo),
		    "send an echo");
		/* A raw socket also gets the request, and what others send. */
		ssize_t got;
		do {
			got = recv(raw, answer, sizeof(answer), 0);
			TRY(got > 0, "receive an echo");
		} while (got < 20 + (ssize_t)sizeof(echo) || answer[20] != 0 || answer[27] != i);
		TRY(same(answer + 28, echo.payload, sizeof(echo.payload)), "contents of an echo");
	}
	if (seen >= 0)
		TRY(recv(seen, answer, sizeof(answer), 0) > 0 && close(seen) == 0, "a packet that went by");
	return close(raw) == 0;
}

bool netlink(unsigned rounds)
{
	for (unsigned round = 0; round < rounds; round++)
		if (!tables() || !interfaces() || !echoes())
			return false;
	return true;
}

/* cable: two virtual interfaces, one here and one in another namespace. */

static int other_namespace = -1;

static bool enter_other(void)
{
	return setns(other_namespace, CLONE_NEWNET) == 0 || fault("setns");
}

static bool make_cable(int fd)
{
	const struct ifinfomsg link = {.ifi_family = AF_UNSPEC};
	struct request request;
	struct nlmsghdr *header = begin(&request, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &link, sizeof(link));

	add(header, IFLA_IFNAME, "near", 5);
	struct rtattr *info = add(header, IFLA_LINKINFO, NULL, 0);
	add(header, IFLA_INFO_KIND, "veth", 4);
	struct rtattr *more = add(header, IFLA_INFO_DATA, NULL, 0);
	struct rtattr *peer = add(header, VETH_INFO_PEER, &link, sizeof(link));
	add(header, IFLA_IFNAME, "far", 4);
	add(header, IFLA_NET_NS_FD, &other_namespace, sizeof(other_namespace));
	end(header, peer);
	end(header, more);
	end(header, info);
	return done(fd, header);
}

/* Give an interface its address and switch it on. */
static bool attach(int fd, const char *name, const char *address)
{
	const struct ifinfomsg up = {
		.ifi_family = AF_UNSPEC, .ifi_index = (int)if_nametoindex(name), .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
	const struct ifaddrmsg given = {
		.ifa_family = AF_INET, .ifa_prefixlen = 24, .ifa_index = if_nametoindex(name)};
	struct in_addr number;
	struct request request;

	inet_pton(AF_INET, address, &number);
	struct nlmsghdr *header = begin(&request, RTM_NEWADDR, NLM_F_CREATE, &given, sizeof(given));
	add(header, IFA_LOCAL, &number, sizeof(number));
	add(header, IFA_ADDRESS, &number, sizeof(number));
	TRY(done(fd, header), "add an address");
	return done(fd, begin(&request, RTM_NEWLINK, 0, &up, sizeof(up))) || fault("switch an interface on");
}

static int route_socket(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
}

static bool attach_other(int own)
{
	TRY(enter_other(), "the other namespace");
	const int fd = route_socket();
	TRY(fd >= 0 && attach(fd, "far", "10.77.3.2") && close(fd) == 0, "the other end");
	return setns(own, CLONE_NEWNET) == 0 || fault("setns");
}

/* In a process of its own, whose namespaces end with it. */
static bool plugged(unsigned rounds)
{
	static const struct site far = {.family = AF_INET, .address = "10.77.3.2", .enter = enter_other};

	if (unshare(CLONE_NEWNET) != 0)
		return errno == EINVAL ? without("CONFIG_NET_NS") : lacks("CONFIG_NET_NS");
	other_namespace = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	TRY(other_namespace >= 0 && unshare(CLONE_NEWNET) == 0, "a second namespace");
	const int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	const int fd = route_socket();
	TRY(own >= 0 && fd >= 0, "a namespace");
	if (!make_cable(fd))
		return lacks("CONFIG_VETH");
	if (!attach(fd, "near", "10.77.3.1") || !attach_other(own))
		return false;
	for (unsigned round = 0; round < rounds; round++)
		if (!ask_over(&far, 40) || !stream_over(&far, 900000) || !datagrams_over(&far, 40))
			return false;
	return true;
}

bool cable(unsigned rounds)
{
	return apart(plugged, rounds, "CONFIG_VETH");
}
