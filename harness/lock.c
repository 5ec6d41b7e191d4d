#include "lock.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"

int lock_open(const char *const *folders, const char *name, char *ret_path, size_t path_size, char *ret_why, size_t why_size)
{
    text(ret_why, why_size, "no folder for it");
    for (; *folders; folders++) {
        struct stat found;
        if (!**folders) continue;
        text(ret_path, path_size, "%s/%s", *folders, name);
        const char *odd = NULL;
        int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;   /* who made a pipe of that name would keep us waiting */
        int fd = open(ret_path, O_RDWR | O_CREAT | flags, 0666);
        if (fd < 0) fd = open(ret_path, O_RDWR | flags);   /* another user's, in a folder with a sticky bit */
        if (fd < 0) fd = open(ret_path, O_RDONLY | flags);
        if (fd < 0 || fstat(fd, &found)) odd = strerror(errno);
        else if (!S_ISREG(found.st_mode)) odd = "not a file";
        else if (found.st_nlink != 1) odd = "has another name, which may be anybody's file";
        else if (found.st_uid == geteuid()) fchmod(fd, 0666);   /* for the next user, whatever this one's umask */
        if (!odd) return fd;
        text(ret_why, why_size, "%s: %s", ret_path, odd);
        if (fd >= 0) close(fd);
    }
    return -1;
}

/* Who has it, as they wrote it into the file: "pid 4711, ./kbench sweep"; "" unknown. Of another's words only plain ones. */
static char *holder(int fd, char *ret, size_t size)
{
    ssize_t n = pread(fd, ret, size - 1, 0);
    ret[n > 0 ? n : 0] = 0;
    ret[strcspn(ret, "\n")] = 0;
    for (char *c = ret; *c; c++)
        if (!isprint((unsigned char)*c)) *c = '?';
    return ret;
}

/* Root could write into anything that another user has put there. */
static bool may_write(int fd)
{
    struct stat found;
    return !fstat(fd, &found) && found.st_nlink == 1 && (geteuid() || !found.st_uid);
}

static void sign(int fd, const struct cli *cli)
{
    if (!may_write(fd)) return;
    char words[160];
    text(words, sizeof words, "pid %ld, kbench %s", (long)getpid(), cli->command);
    size_t n = strlen(words);
    words[n] = '\n';
    if (ftruncate(fd, 0) || pwrite(fd, words, n + 1, 0) < 0) return;   /* for people only */
}

static bool wait_for(int fd, const char *device, const volatile sig_atomic_t *interrupted)
{
    char who[160];
    bool told = false;
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (*interrupted) return false;
        if (errno != EWOULDBLOCK && errno != EINTR) {
            say("%s: can't be locked: %s; going on without", device, strerror(errno));
            return true;
        }
        if (!told) {
            holder(fd, who, sizeof who);
            say("%s: another run is on it%s%s; waiting for its end (Ctrl-C gives up, --no-lock runs beside it)", device,
                *who ? ": " : "", who);
        }
        told = true;
        usleep(100000);
    }
    return !*interrupted;
}

bool lock_device(struct lock *lock, const struct cli *cli, const struct machine *machine, const volatile sig_atomic_t *interrupted)
{
    const char *own = getenv("XDG_RUNTIME_DIR");
    const char *folders[] = {"/run/lock", "/tmp", own ? own : "", NULL};   /* those that all users share come first */
    char name[96], path[512], why[600];
    lock->fd = -1;
    if (cli->no_lock) return true;
    text(name, sizeof name, "kbench-%s.lock", *machine->uuid ? machine->uuid : "host");
    lock->fd = lock_open(folders, name, path, sizeof path, why, sizeof why);
    if (lock->fd < 0) {
        say("%s: no lock file: %s; other runs will not wait for this one", machine->name, why);
        return true;
    }
    if (!wait_for(lock->fd, machine->name, interrupted)) return false;
    sign(lock->fd, cli);
    return true;
}

void lock_drop(struct lock *lock)
{
    if (lock->fd < 0) return;
    if (may_write(lock->fd) && ftruncate(lock->fd, 0)) {}   /* nobody has it now; the file stays, so that all lock the same one */
    close(lock->fd);
    lock->fd = -1;
}
