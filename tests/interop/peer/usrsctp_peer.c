/*
 * A peer on usrsctp, steered by its command line: it opens or takes one association over UDP and echoes messages, or
 * carries standard input to the other side and what comes from there to standard output, or sends messages that nobody
 * looks at. What happens is told on standard error, one JSON object a line.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <usrsctp.h>

#define MOST_ADDRESSES 8
/* Of a message that is echoed. */
#define LARGEST_MESSAGE (1 << 20)
/* Option that <usrsctp.h> does not define, and its requirement: messages of different streams are read in parts. */
#define SCTP_INTERLEAVING_SUPPORTED 0x00001206
#define INTERLEAVE_STREAMS 2
/* Of what one call receives. */
#define PIECE_BYTES (64 << 10)

/* How long a flood sleeps that is ahead of its rate. */
#define TICK_US 1000

enum ending { END_WAIT, END_SHUTDOWN, END_ABORT };
enum work { WORK_ECHO, WORK_PIPE, WORK_FLOOD, WORK_DISCARD };

struct options {
	struct sockaddr_in local[MOST_ADDRESSES];
	struct sockaddr_in remote[MOST_ADDRESSES];
	int locals;
	int remotes;
	uint16_t udp_port;
	uint16_t remote_udp_port;
	uint16_t sctp_port;
	uint16_t remote_sctp_port;
	int buffer_bytes;
	int message_bytes;
	int lifetime_ms;
	/* Below 0 there is no limit. */
	int retransmissions;
	uint64_t expected_bytes;
	struct sockaddr_in added[MOST_ADDRESSES];
	int additions;
	uint64_t add_at_bytes;
	uint16_t streams;
	bool interleaving;
	enum ending ending;
	enum work work;
	/* Of a flood. */
	uint32_t count;
	/* 0 is as fast as it goes. */
	uint32_t mbit_per_s;
};

/* What the receiving thread has seen. */
struct tally {
	uint64_t messages;
	uint64_t bytes;
	/* When the first and the latest of them came. */
	double first_s;
	double last_s;
	bool lost;
	bool peer_closed;
};

static struct options options;
static struct tally tally;
/* Guards the tally. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t received = PTHREAD_COND_INITIALIZER;

static void tell(const char *format, ...)
{
	char line[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	fprintf(stderr, "{%s}\n", line);
	fflush(stderr);
}

static void fail(const char *what)
{
	tell("\"event\":\"error\",\"what\":\"%s\",\"reason\":\"%s\"", what, strerror(errno));
	_exit(2);
}

static void set(struct socket *sock, int level, int option, const void *value, size_t length, const char *name)
{
	if (usrsctp_setsockopt(sock, level, option, value, (socklen_t)length) < 0) {
		fail(name);
	}
}

static uint32_t number(const char *text)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || value > UINT32_MAX) {
		errno = EINVAL;
		fail(text);
	}
	return (uint32_t)value;
}

static void add_address(struct sockaddr_in *list, int *count, const char *text)
{
	struct sockaddr_in *address = &list[*count];

	if (*count == MOST_ADDRESSES) {
		errno = E2BIG;
		fail(text);
	}
	memset(address, 0, sizeof(*address));
	address->sin_family = AF_INET;
	if (inet_pton(AF_INET, text, &address->sin_addr) != 1) {
		errno = EINVAL;
		fail(text);
	}
	(*count)++;
}

/* name=value, as in cmt=1: the knobs of usrsctp that tests turn. */
static bool turn(char *text)
{
	static const struct {
		const char *name;
		int (*set)(uint32_t);
	} knobs[] = {
		{"cmt", usrsctp_sysctl_set_sctp_cmt_on_off},
		{"dac", usrsctp_sysctl_set_sctp_cmt_use_dac},
		{"nr-sack", usrsctp_sysctl_set_sctp_nrsack_enable},
		{"buffer-splitting", usrsctp_sysctl_set_sctp_buffer_splitting},
		{"rto-initial-ms", usrsctp_sysctl_set_sctp_rto_initial_default},
		{"rto-min-ms", usrsctp_sysctl_set_sctp_rto_min_default},
		{"rto-max-ms", usrsctp_sysctl_set_sctp_rto_max_default},
		{"path-max-retrans", usrsctp_sysctl_set_sctp_path_rtx_max_default},
		{"pf-threshold", usrsctp_sysctl_set_sctp_path_pf_threshold},
		{"heartbeat-s", usrsctp_sysctl_set_sctp_heartbeat_interval_default},
		{"auto-asconf", usrsctp_sysctl_set_sctp_auto_asconf},
	};
	char *value = strchr(text, '=');

	if (value == NULL) {
		return false;
	}
	*value++ = '\0';
	for (size_t i = 0; i < sizeof(knobs) / sizeof(knobs[0]); i++) {
		if (strcmp(knobs[i].name, text) == 0) {
			return knobs[i].set(number(value)) == 0;
		}
	}
	return false;
}

static void parse_ending(const char *text)
{
	if (strcmp(text, "shutdown") == 0) {
		options.ending = END_SHUTDOWN;
	} else if (strcmp(text, "abort") == 0) {
		options.ending = END_ABORT;
	} else if (strcmp(text, "wait") != 0) {
		errno = EINVAL;
		fail(text);
	}
}

static const char usage[] =
	"usrsctp_peer [OPTION]... echo|pipe|flood|discard\n"
	"  --local ADDRESS       bind it; may be repeated\n"
	"  --remote ADDRESS      connect to it; may be repeated; without any it listens\n"
	"  --udp PORT --remote-udp PORT --sctp PORT --remote-sctp PORT\n"
	"  --buffer BYTES        of each direction\n"
	"  --message BYTES       how standard input is cut, or the size of a flood's messages\n"
	"  --count N             messages of a flood\n"
	"  --mbit-per-s RATE     of a flood; as fast as it goes unless it is given\n"
	"  --lifetime MS         after which a message is abandoned\n"
	"  --retransmissions N   after which a message that is lost again is given up\n"
	"  --streams N\n"
	"  --interleave          offer I-DATA\n"
	"  --expect BYTES        receive as much before the end\n"
	"  --add ADDRESS --add-at BYTES  bind it once as much was received; may be repeated\n"
	"  --end wait|shutdown|abort  once standard input is read and what was expected has come\n"
	"  --set NAME=VALUE      a knob of usrsctp\n";

static void parse_work(const char *text)
{
	static const char *const works[] = {"echo", "pipe", "flood", "discard"};

	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
		if (strcmp(text, works[i]) == 0) {
			options.work = (enum work)i;
			return;
		}
	}
	fputs(usage, stderr);
	exit(2);
}

/* Knobs can be turned only once the stack has started, and that needs the UDP port. */
static void parse(int count, char *words[], char *knobs[], int *knob_count)
{
	static const struct option names[] = {
		{"local", required_argument, NULL, 'l'},	{"remote", required_argument, NULL, 'r'},
		{"udp", required_argument, NULL, 'u'},		{"remote-udp", required_argument, NULL, 'U'},
		{"sctp", required_argument, NULL, 'p'},		{"remote-sctp", required_argument, NULL, 'P'},
		{"buffer", required_argument, NULL, 'b'},	{"message", required_argument, NULL, 'm'},
		{"streams", required_argument, NULL, 's'},	{"expect", required_argument, NULL, 'x'},
		{"lifetime", required_argument, NULL, 't'},	{"end", required_argument, NULL, 'e'},
		{"add", required_argument, NULL, 'a'},		{"add-at", required_argument, NULL, 'A'},
		{"set", required_argument, NULL, 'k'},		{"retransmissions", required_argument, NULL, 'R'},
		{"count", required_argument, NULL, 'c'},	{"mbit-per-s", required_argument, NULL, 'M'},
		{"interleave", no_argument, NULL, 'i'},
		{NULL, 0, NULL, 0},
	};
	int which;

	options = (struct options){.udp_port = 9900, .remote_udp_port = 9899, .sctp_port = 5001,
		.remote_sctp_port = 9899, .buffer_bytes = 1 << 20, .message_bytes = 16 << 10, .streams = 16, .retransmissions = -1};
	while ((which = getopt_long(count, words, "", names, NULL)) != -1) {
		switch (which) {
		case 'l': add_address(options.local, &options.locals, optarg); break;
		case 'r': add_address(options.remote, &options.remotes, optarg); break;
		case 'u': options.udp_port = (uint16_t)number(optarg); break;
		case 'U': options.remote_udp_port = (uint16_t)number(optarg); break;
		case 'p': options.sctp_port = (uint16_t)number(optarg); break;
		case 'P': options.remote_sctp_port = (uint16_t)number(optarg); break;
		case 'b': options.buffer_bytes = (int)number(optarg); break;
		case 'm': options.message_bytes = (int)number(optarg); break;
		case 's': options.streams = (uint16_t)number(optarg); break;
		case 'i': options.interleaving = true; break;
		case 'x': options.expected_bytes = number(optarg); break;
		case 't': options.lifetime_ms = (int)number(optarg); break;
		case 'R': options.retransmissions = (int)number(optarg); break;
		case 'a': add_address(options.added, &options.additions, optarg); break;
		case 'A': options.add_at_bytes = number(optarg); break;
		case 'c': options.count = number(optarg); break;
		case 'M': options.mbit_per_s = number(optarg); break;
		case 'e': parse_ending(optarg); break;
		case 'k':
			if (*knob_count < MOST_ADDRESSES * 2) {
				knobs[(*knob_count)++] = optarg;
			}
			break;
		default: fputs(usage, stderr); exit(2);
		}
	}
	if (optind + 1 != count || options.message_bytes < 1 || options.message_bytes > LARGEST_MESSAGE) {
		fputs(usage, stderr);
		exit(2);
	}
	parse_work(words[optind]);
}

static void subscribe(struct socket *sock)
{
	static const uint16_t types[] = {
		SCTP_ASSOC_CHANGE, SCTP_PEER_ADDR_CHANGE, SCTP_STREAM_RESET_EVENT, SCTP_STREAM_CHANGE_EVENT};
	const struct sctp_assoc_value resets = {
		.assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = SCTP_ENABLE_RESET_STREAM_REQ | SCTP_ENABLE_CHANGE_ASSOC_REQ};
	struct sctp_event event;

	set(sock, IPPROTO_SCTP, SCTP_ENABLE_STREAM_RESET, &resets, sizeof(resets), "SCTP_ENABLE_STREAM_RESET");

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		memset(&event, 0, sizeof(event));
		event.se_assoc_id = SCTP_FUTURE_ASSOC;
		event.se_type = types[i];
		event.se_on = 1;
		set(sock, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof(event), "SCTP_EVENT");
	}
}

static struct socket *prepare(void)
{
	struct socket *sock = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
	struct sctp_udpencaps encapsulation;
	struct sctp_initmsg init;
	const int on = 1;

	if (sock == NULL) {
		fail("usrsctp_socket");
	}
	memset(&encapsulation, 0, sizeof(encapsulation));
	encapsulation.sue_address.ss_family = AF_INET;
	encapsulation.sue_port = htons(options.remote_udp_port);
	set(sock, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encapsulation, sizeof(encapsulation), "encapsulation");
	memset(&init, 0, sizeof(init));
	init.sinit_num_ostreams = options.streams;
	init.sinit_max_instreams = options.streams;
	set(sock, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof(init), "SCTP_INITMSG");
	set(sock, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof(on), "SCTP_RECVRCVINFO");
	set(sock, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof(on), "SCTP_NODELAY");
	set(sock, SOL_SOCKET, SO_SNDBUF, &options.buffer_bytes, sizeof(int), "SO_SNDBUF");
	set(sock, SOL_SOCKET, SO_RCVBUF, &options.buffer_bytes, sizeof(int), "SO_RCVBUF");
	if (options.interleaving) {
		const int level = INTERLEAVE_STREAMS;
		const struct sctp_assoc_value offer = {.assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = 1};

		set(sock, IPPROTO_SCTP, SCTP_FRAGMENT_INTERLEAVE, &level, sizeof(level), "SCTP_FRAGMENT_INTERLEAVE");
		set(sock, IPPROTO_SCTP, SCTP_INTERLEAVING_SUPPORTED, &offer, sizeof(offer), "SCTP_INTERLEAVING_SUPPORTED");
	}
	subscribe(sock);
	for (int i = 0; i < options.locals; i++) {
		options.local[i].sin_port = htons(options.sctp_port);
		if (usrsctp_bindx(sock, (struct sockaddr *)&options.local[i], 1, SCTP_BINDX_ADD_ADDR) < 0) {
			fail("usrsctp_bindx");
		}
	}
	return sock;
}

static struct socket *associate(struct socket *sock)
{
	struct socket *accepted;

	if (options.remotes == 0) {
		if (usrsctp_listen(sock, 1) < 0) {
			fail("usrsctp_listen");
		}
		tell("\"event\":\"listening\"");
		accepted = usrsctp_accept(sock, NULL, NULL);
		if (accepted == NULL) {
			fail("usrsctp_accept");
		}
		return accepted;
	}
	for (int i = 0; i < options.remotes; i++) {
		options.remote[i].sin_port = htons(options.remote_sctp_port);
	}
	if (usrsctp_connectx(sock, (struct sockaddr *)options.remote, options.remotes, NULL) < 0) {
		fail("usrsctp_connectx");
	}
	return sock;
}

static void tell_addresses(struct socket *sock)
{
	struct sockaddr *addresses;
	int ours = usrsctp_getladdrs(sock, 0, &addresses);
	int theirs;

	if (ours > 0) {
		usrsctp_freeladdrs(addresses);
	}
	theirs = usrsctp_getpaddrs(sock, 0, &addresses);
	if (theirs > 0) {
		usrsctp_freepaddrs(addresses);
	}
	tell("\"event\":\"up\",\"local_addresses\":%d,\"remote_addresses\":%d", ours, theirs);
}

static void on_association(const struct sctp_assoc_change *change)
{
	const size_t features = change->sac_length > sizeof(*change) ? change->sac_length - sizeof(*change) : 0;

	switch (change->sac_state) {
	case SCTP_COMM_UP:
		if (memchr(change->sac_info, SCTP_ASSOC_SUPPORTS_INTERLEAVING, features) != NULL) {
			tell("\"event\":\"interleaves\"");
		}
		break;
	case SCTP_RESTART:
		tell("\"event\":\"restarted\"");
		break;
	case SCTP_COMM_LOST:
		pthread_mutex_lock(&lock);
		tally.lost = true;
		pthread_mutex_unlock(&lock);
		tell("\"event\":\"lost\",\"error\":%u", change->sac_error);
		break;
	default:
		break;
	}
}

static void on_path(const struct sctp_paddr_change *change)
{
	static const char *const states[] = {"?", "available", "unreachable", "removed", "added", "primary", "confirmed"};
	const size_t known = sizeof(states) / sizeof(states[0]);
	const struct sockaddr_in *address = (const struct sockaddr_in *)&change->spc_aaddr;
	char text[INET_ADDRSTRLEN] = "";

	inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text));
	tell("\"event\":\"path\",\"address\":\"%s\",\"state\":\"%s\"", text,
		change->spc_state < known ? states[change->spc_state] : "?");
}

static void on_reset(const struct sctp_stream_reset_event *reset)
{
	const unsigned int failures = SCTP_STREAM_RESET_DENIED | SCTP_STREAM_RESET_FAILED;
	const bool failed = (reset->strreset_flags & failures) != 0;

	if ((reset->strreset_flags & SCTP_STREAM_RESET_INCOMING_SSN) != 0) {
		tell("\"event\":\"reset-incoming\",\"failed\":%s", failed ? "true" : "false");
	}
	if ((reset->strreset_flags & SCTP_STREAM_RESET_OUTGOING_SSN) != 0) {
		tell("\"event\":\"reset-outgoing\",\"failed\":%s", failed ? "true" : "false");
	}
}

static void on_notification(const void *bytes)
{
	const union sctp_notification *news = bytes;

	if (news->sn_header.sn_type == SCTP_ASSOC_CHANGE) {
		on_association(&news->sn_assoc_change);
	} else if (news->sn_header.sn_type == SCTP_PEER_ADDR_CHANGE) {
		on_path(&news->sn_paddr_change);
	} else if (news->sn_header.sn_type == SCTP_STREAM_RESET_EVENT) {
		on_reset(&news->sn_strreset_event);
	} else if (news->sn_header.sn_type == SCTP_STREAM_CHANGE_EVENT) {
		tell("\"event\":\"streams\",\"flags\":%u,\"incoming\":%u,\"outgoing\":%u",
			news->sn_strchange_event.strchange_flags, news->sn_strchange_event.strchange_instrms,
			news->sn_strchange_event.strchange_outstrms);
	}
}

static bool send_message(struct socket *sock, const void *bytes, size_t length, uint16_t stream, uint16_t flags, uint32_t ppid)
{
	struct sctp_sendv_spa how;

	memset(&how, 0, sizeof(how));
	how.sendv_flags = SCTP_SEND_SNDINFO_VALID;
	how.sendv_sndinfo.snd_sid = stream;
	how.sendv_sndinfo.snd_flags = flags;
	how.sendv_sndinfo.snd_ppid = ppid;
	if (options.lifetime_ms > 0) {
		how.sendv_flags |= SCTP_SEND_PRINFO_VALID;
		how.sendv_prinfo.pr_policy = SCTP_PR_SCTP_TTL;
		how.sendv_prinfo.pr_value = (uint32_t)options.lifetime_ms;
	} else if (options.retransmissions >= 0) {
		how.sendv_flags |= SCTP_SEND_PRINFO_VALID;
		how.sendv_prinfo.pr_policy = SCTP_PR_SCTP_RTX;
		how.sendv_prinfo.pr_value = (uint32_t)options.retransmissions;
	}
	if (usrsctp_sendv(sock, bytes, length, NULL, 0, &how, sizeof(how), SCTP_SENDV_SPA, 0) < 0) {
		tell("\"event\":\"send-failed\",\"reason\":\"%s\"", strerror(errno));
		return false;
	}
	return true;
}

/* Resets the stream of a message that asks for it, or adds two streams on which this side sends. */
static void obey(struct socket *sock, const uint8_t *message, size_t length, uint16_t stream)
{
	union {
		struct sctp_reset_streams request;
		uint8_t space[sizeof(struct sctp_reset_streams) + sizeof(uint16_t)];
	} reset;
	const struct sctp_add_streams more = {.sas_outstrms = 2};

	if (length == 3 && memcmp(message, "add", 3) == 0) {
		set(sock, IPPROTO_SCTP, SCTP_ADD_STREAMS, &more, sizeof(more), "SCTP_ADD_STREAMS");
	} else if (length == 5 && memcmp(message, "reset", 5) == 0) {
		memset(&reset, 0, sizeof(reset));
		reset.request.srs_flags = SCTP_STREAM_RESET_OUTGOING | SCTP_STREAM_RESET_INCOMING;
		reset.request.srs_number_streams = 1;
		reset.request.srs_stream_list[0] = stream;
		set(sock, IPPROTO_SCTP, SCTP_RESET_STREAMS, &reset, sizeof(reset), "SCTP_RESET_STREAMS");
	}
}

static void write_all(const uint8_t *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(STDOUT_FILENO, bytes, length);

		if (written < 0) {
			fail("write");
		}
		bytes += written;
		length -= (size_t)written;
	}
}

static double clock_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void count(size_t bytes, bool whole)
{
	const double now = clock_s();

	pthread_mutex_lock(&lock);
	if (tally.bytes == 0) {
		tally.first_s = now;
	}
	tally.last_s = now;
	tally.bytes += bytes;
	tally.messages += whole;
	pthread_cond_broadcast(&received);
	pthread_mutex_unlock(&lock);
}

/* Receives until the association is over; messages larger than a piece are put together by MSG_EOR. */
static void *receive(void *argument)
{
	struct socket *sock = argument;
	uint8_t *message = malloc(LARGEST_MESSAGE + PIECE_BYTES);
	size_t held = 0;

	if (message == NULL) {
		fail("malloc");
	}
	for (;;) {
		struct sctp_rcvinfo info;
		socklen_t info_length = sizeof(info);
		unsigned int info_type = 0;
		int flags = 0;
		ssize_t length = usrsctp_recvv(sock, message + held, PIECE_BYTES, NULL, NULL, &info, &info_length, &info_type, &flags);

		if (length <= 0) {
			pthread_mutex_lock(&lock);
			tally.peer_closed = length == 0;
			tally.lost |= length < 0;
			pthread_cond_broadcast(&received);
			pthread_mutex_unlock(&lock);
			break;
		}
		if ((flags & MSG_NOTIFICATION) != 0) {
			on_notification(message + held);
			continue;
		}
		count((size_t)length, (flags & MSG_EOR) != 0);
		if (options.work == WORK_PIPE) {
			write_all(message, (size_t)length);
		}
		if (options.work != WORK_ECHO) {
			continue;
		}
		held += (size_t)length;
		if ((flags & MSG_EOR) != 0) {
			send_message(sock, message, held, info.rcv_sid, info.rcv_flags & SCTP_UNORDERED, info.rcv_ppid);
			obey(sock, message, held, info.rcv_sid);
			held = 0;
		} else if (held > LARGEST_MESSAGE) {
			errno = EMSGSIZE;
			fail("message");
		}
	}
	free(message);
	return NULL;
}

static size_t read_full(uint8_t *bytes, size_t length)
{
	size_t held = 0;

	while (held < length) {
		ssize_t got = read(STDIN_FILENO, bytes + held, length - held);

		if (got < 0) {
			fail("read");
		}
		if (got == 0) {
			break;
		}
		held += (size_t)got;
	}
	return held;
}

static void send_input(struct socket *sock)
{
	uint8_t *message = malloc((size_t)options.message_bytes);
	size_t length;

	if (message == NULL) {
		fail("malloc");
	}
	while ((length = read_full(message, (size_t)options.message_bytes)) > 0) {
		if (!send_message(sock, message, length, 0, 0, 0)) {
			break;
		}
	}
	free(message);
}

/* As many messages as are due by the rate, and then a nap. */
static void send_flood(struct socket *sock)
{
	const double message_s = options.mbit_per_s == 0 ? 0 : options.message_bytes * 8.0 / (options.mbit_per_s * 1e6);
	uint8_t *message = calloc(1, (size_t)options.message_bytes);
	double begun = clock_s();

	if (message == NULL) {
		fail("calloc");
	}
	for (uint32_t sent = 0; sent < options.count; sent++) {
		while (message_s > 0 && clock_s() - begun < sent * message_s) {
			usleep(TICK_US);
		}
		if (!send_message(sock, message, (size_t)options.message_bytes, 0, 0, 0)) {
			break;
		}
	}
	free(message);
}

static void await_bytes(uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	while (tally.bytes < bytes && !tally.lost && !tally.peer_closed) {
		pthread_cond_wait(&received, &lock);
	}
	pthread_mutex_unlock(&lock);
}

/* The stack tells the peer with an ASCONF. */
static void add_addresses(struct socket *sock)
{
	for (int i = 0; i < options.additions; i++) {
		options.added[i].sin_port = htons(options.sctp_port);
		if (usrsctp_bindx(sock, (struct sockaddr *)&options.added[i], 1, SCTP_BINDX_ADD_ADDR) < 0) {
			fail("usrsctp_bindx, later");
		}
	}
	tell("\"event\":\"added\"");
}

static void end(struct socket *sock, pthread_t receiver)
{
	struct sctp_sndinfo at_once;

	if (options.ending == END_SHUTDOWN && usrsctp_shutdown(sock, SHUT_WR) < 0 && errno != ENOTCONN) {
		fail("usrsctp_shutdown");
	}
	if (options.ending == END_ABORT) {
		memset(&at_once, 0, sizeof(at_once));
		at_once.snd_flags = SCTP_ABORT;
		if (usrsctp_sendv(sock, "", 0, NULL, 0, &at_once, sizeof(at_once), SCTP_SENDV_SNDINFO, 0) < 0 && errno != ENOTCONN) {
			fail("SCTP_ABORT");
		}
	}
	/* A socket must not be closed while another thread receives from it. */
	pthread_join(receiver, NULL);
	usrsctp_close(sock);
}

int main(int argc, char *argv[])
{
	char *knobs[MOST_ADDRESSES * 2];
	int knob_count = 0;
	struct socket *listener, *sock;
	struct sctpstat statistics;
	pthread_t receiver;

	parse(argc, argv, knobs, &knob_count);
	usrsctp_init(options.udp_port, NULL, NULL);
	usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
	for (int i = 0; i < knob_count; i++) {
		if (!turn(knobs[i])) {
			errno = EINVAL;
			fail(knobs[i]);
		}
	}
	listener = prepare();
	sock = associate(listener);
	tell_addresses(sock);
	if (pthread_create(&receiver, NULL, receive, sock) != 0) {
		fail("pthread_create");
	}
	if (options.work == WORK_PIPE) {
		send_input(sock);
	} else if (options.work == WORK_FLOOD) {
		send_flood(sock);
	}
	if (options.additions > 0) {
		await_bytes(options.add_at_bytes);
		add_addresses(sock);
	}
	await_bytes(options.expected_bytes);
	end(sock, receiver);
	usrsctp_get_stat(&statistics);
	pthread_mutex_lock(&lock);
	tell("\"event\":\"end\",\"outcome\":\"%s\",\"messages\":%llu,\"bytes\":%llu,\"seconds\":%f,\"bad_checksums\":%u,\"fast_retransmits\":%u,\"timeouts\":%u",
		tally.lost ? "lost" : "closed", (unsigned long long)tally.messages, (unsigned long long)tally.bytes,
		tally.last_s - tally.first_s,
		statistics.sctps_checksumerrors, statistics.sctps_sendfastretrans, statistics.sctps_timodata);
	pthread_mutex_unlock(&lock);
	fflush(stdout);
	/* An association that still says goodbye gets a moment for it; nothing depends on the stack's own end. */
	for (int tries = 0; tries < 20 && usrsctp_finish() != 0; tries++) {
		usleep(100000);
	}
	_exit(0);
}
