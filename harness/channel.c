#include "channel.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base.h"

struct frame {
    uint32_t kind, reserved;
    uint64_t size;
};

static int write_all(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size) {
        ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

static int read_all(int fd, void *data, size_t size)
{
    char *at = data;
    while (size) {
        ssize_t n = recv(fd, at, size, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

int channel_send(int fd, enum message kind, const void *a, size_t a_size, const void *b, size_t b_size)
{
    struct frame frame = {.kind = kind, .size = a_size + b_size};
    TRY(write_all(fd, &frame, sizeof frame));
    TRY(write_all(fd, a, a_size));
    return b_size ? write_all(fd, b, b_size) : 0;
}

int channel_receive(int fd, double timeout_s, enum message *ret_kind, void **ret_body, size_t *ret_size)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    int ready = poll(&poller, 1, timeout_s < 0 ? -1 : (int)(timeout_s * 1e3));
    if (ready == 0 || (ready < 0 && errno == EINTR)) return 0;
    struct frame frame;
    if (ready < 0 || read_all(fd, &frame, sizeof frame)) return -1;
    void *body = must_alloc(frame.size + 1, 1);
    if (read_all(fd, body, frame.size)) {
        free(body);
        return -1;
    }
    *ret_kind = frame.kind;
    *ret_body = body;
    *ret_size = frame.size;
    return 1;
}

/* In Linux's abstract namespace: no file, so nothing is left behind however a run ends. */
static socklen_t address_of(const char *name, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    text(ret->sun_path + 1, sizeof ret->sun_path - 1, "%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

int channel_listen(char *ret_name, size_t size)
{
    struct sockaddr_un address;
    text(ret_name, size, "kbench-%ld-%llx", (long)getpid(), (unsigned long long)(now_s() * 1e9));
    socklen_t length = address_of(ret_name, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) || listen(fd, 4))
        die(EXIT_ENVIRONMENT, "no socket for the worker: %s; kbench needs Unix sockets", strerror(errno));
    return fd;
}

int channel_accept(int listener, int memory)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return -1;
    union {
        struct cmsghdr header;
        char           space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    char byte = 'm';
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.space,
        .msg_controllen = sizeof control.space};
    control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &memory, sizeof memory);
    if (sendmsg(fd, &message, MSG_NOSIGNAL) == 1) return fd;
    close(fd);
    return -1;
}

int channel_connect(const char *name, int *ret_memory)
{
    struct sockaddr_un address;
    socklen_t length = address_of(name, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, length)) return -1;
    union {
        struct cmsghdr header;
        char           space[CMSG_SPACE(sizeof(int))];
    } control;
    char byte;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.space,
        .msg_controllen = sizeof control.space};
    if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (!header || header->cmsg_type != SCM_RIGHTS) return -1;
    memcpy(ret_memory, CMSG_DATA(header), sizeof *ret_memory);
    return fd;
}
