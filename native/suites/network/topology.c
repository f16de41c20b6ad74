/*
 * Network namespaces and the cable between them, by netlink, because guests do not have iproute2.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../case.h"
#include "network.h"

#define CLIENT_ADDRESS "10.77.0.1"
#define SERVER_ADDRESS "10.77.0.2"
#define PREFIX_BITS 24

/* A netlink request under construction. */
struct request {
	struct nlmsghdr header;
	unsigned char body[512];
};

static void *reserve(struct request *request, size_t size)
{
	unsigned char *at = (unsigned char *)request + NLMSG_ALIGN(request->header.nlmsg_len);

	request->header.nlmsg_len = NLMSG_ALIGN(request->header.nlmsg_len) + (unsigned)size;
	return at;
}

static struct rtattr *add(struct request *request, unsigned short type, const void *data,
			  size_t size)
{
	struct rtattr *attribute = reserve(request, RTA_LENGTH(size));

	attribute->rta_type = type;
	attribute->rta_len = (unsigned short)RTA_LENGTH(size);
	if (size > 0)
		memcpy(RTA_DATA(attribute), data, size);
	return attribute;
}

/* Attributes added between these two are nested in the first. */
static struct rtattr *open_nest(struct request *request, unsigned short type)
{
	return add(request, type, NULL, 0);
}

static void close_nest(struct request *request, struct rtattr *nest)
{
	const unsigned char *end = (unsigned char *)request + NLMSG_ALIGN(request->header.nlmsg_len);

	nest->rta_len = (unsigned short)(end - (unsigned char *)nest);
}

/* Send a request in the current namespace; returns the kernel's error number. */
static int ask(struct request *request)
{
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		unsigned char more[512];
	} reply;
	const int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (netlink < 0)
		return errno;
	request->header.nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	int error = EIO;
	if (send(netlink, request, request->header.nlmsg_len, 0) >= 0 &&
	    recv(netlink, &reply, sizeof(reply), 0) >= (ssize_t)NLMSG_LENGTH(sizeof(int)) &&
	    reply.header.nlmsg_type == NLMSG_ERROR)
		error = -reply.error.error;
	close(netlink);
	return error;
}

/* Create a pair of devices, the second of them in another namespace. */
static int make_pair(const char *ours, const char *theirs, int their_namespace)
{
	struct request request = {
		.header = {.nlmsg_len = NLMSG_LENGTH(0),
			   .nlmsg_type = RTM_NEWLINK,
			   .nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL},
	};

	memset(reserve(&request, sizeof(struct ifinfomsg)), 0, sizeof(struct ifinfomsg));
	add(&request, IFLA_IFNAME, ours, strlen(ours) + 1);
	struct rtattr *link = open_nest(&request, IFLA_LINKINFO);
	add(&request, IFLA_INFO_KIND, "veth", 4);
	struct rtattr *data = open_nest(&request, IFLA_INFO_DATA);
	struct rtattr *peer = open_nest(&request, VETH_INFO_PEER);
	memset(reserve(&request, sizeof(struct ifinfomsg)), 0, sizeof(struct ifinfomsg));
	add(&request, IFLA_IFNAME, theirs, strlen(theirs) + 1);
	add(&request, IFLA_NET_NS_FD, &their_namespace, sizeof(their_namespace));
	close_nest(&request, peer);
	close_nest(&request, data);
	close_nest(&request, link);
	return ask(&request);
}

static bool bring_up(const char *device)
{
	struct request request = {
		.header = {.nlmsg_len = NLMSG_LENGTH(0), .nlmsg_type = RTM_NEWLINK},
	};
	const struct ifinfomsg up = {
		.ifi_index = (int)if_nametoindex(device), .ifi_flags = IFF_UP, .ifi_change = IFF_UP};

	memcpy(reserve(&request, sizeof(up)), &up, sizeof(up));
	errno = ask(&request);
	return errno == 0 || fault("bring a network device up");
}

static bool give_address(const char *device, const char *address)
{
	struct request request = {
		.header = {.nlmsg_len = NLMSG_LENGTH(0),
			   .nlmsg_type = RTM_NEWADDR,
			   .nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL},
	};
	const struct ifaddrmsg message = {.ifa_family = AF_INET,
					.ifa_prefixlen = PREFIX_BITS,
					.ifa_index = if_nametoindex(device)};
	struct in_addr number;

	inet_pton(AF_INET, address, &number);
	memcpy(reserve(&request, sizeof(message)), &message, sizeof(message));
	add(&request, IFA_LOCAL, &number, sizeof(number));
	add(&request, IFA_ADDRESS, &number, sizeof(number));
	errno = ask(&request);
	return errno == 0 || fault("give a network device its address");
}

bool enter(int namespace)
{
	return namespace < 0 || setns(namespace, CLONE_NEWNET) == 0 || fault("enter a namespace");
}

/* A new namespace for this process; returns the descriptor to enter it again. */
static int new_namespace(void)
{
	if (unshare(CLONE_NEWNET) != 0)
		unsupported("CONFIG_NET_NS");
	return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

bool topology_loopback(struct topology *topology)
{
	*topology = (struct topology){"127.0.0.1", -1, -1};
	/* In a namespace of our own if possible, because nothing else is in it. */
	if (unshare(CLONE_NEWNET) == 0)
		return bring_up("lo");
	return true;
}

bool topology_cable(struct topology *topology)
{
	*topology = (struct topology){SERVER_ADDRESS, -1, -1};
	topology->server_namespace = new_namespace();
	topology->client_namespace = new_namespace();
	if (topology->server_namespace < 0 || topology->client_namespace < 0)
		return fault("open a namespace");
	const int error = make_pair("near", "far", topology->server_namespace);
	if (error == EOPNOTSUPP)
		unsupported("CONFIG_VETH");
	errno = error;
	if (error != 0)
		return fault("make a pair of network devices");
	return give_address("near", CLIENT_ADDRESS) && bring_up("near") &&
	       enter(topology->server_namespace) && give_address("far", SERVER_ADDRESS) &&
	       bring_up("far") && enter(topology->client_namespace);
}
