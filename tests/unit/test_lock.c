/* Locks: two processes queue, a dead one's file does no harm, and no file is no end. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base.h"
#include "lock.h"

static volatile sig_atomic_t interrupted;
static char uuid[64];   /* of a device that no other test has */

static struct machine machine(void)
{
    struct machine ret = {.name = "a made-up device"};
    text(ret.uuid, sizeof ret.uuid, "%s", uuid);
    return ret;
}

/* In a child: takes the lock, says so by a byte, and keeps it until `end` closes. */
static pid_t holder(int say, int end)
{
    pid_t child = fork();
    if (child) return child;
    struct cli cli = {.command = "sweep"};
    struct machine m = machine();
    struct lock lock;
    char byte = 'x';
    if (!lock_device(&lock, &cli, &m, &interrupted) || lock.fd < 0 || write(say, &byte, 1) != 1) _exit(1);
    while (read(end, &byte, 1) > 0) {}
    lock_drop(&lock);
    _exit(0);
}

/* A first process has the lock; ret[1] lets it go. */
static pid_t begin(int ret[2])
{
    int said[2];
    char byte;
    assert_int_equal(pipe(said) || pipe(ret), 0);
    fcntl(ret[1], F_SETFD, FD_CLOEXEC);
    pid_t child = fork();
    if (!child) {
        close(ret[1]);
        pid_t inner = holder(said[1], ret[0]);
        int status;
        waitpid(inner, &status, 0);
        _exit(WEXITSTATUS(status));
    }
    close(said[1]);
    close(ret[0]);
    assert_int_equal(read(said[0], &byte, 1), 1);
    close(said[0]);
    return child;
}

static int end_of(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void a_second_one_waits(void **state)
{
    (void)state;
    int end[2], said[2];
    char words[400] = "";
    pid_t first = begin(end);
    assert_int_equal(pipe(said), 0);
    pid_t second = fork();
    if (!second) {
        struct cli cli = {.command = "check"};
        struct machine m = machine();
        struct lock lock;
        close(end[1]);
        dup2(said[1], STDERR_FILENO);
        bool got = lock_device(&lock, &cli, &m, &interrupted);
        dprintf(STDERR_FILENO, "got %d\n", got && lock.fd >= 0);
        _exit(0);
    }
    close(said[1]);
    ssize_t n = read(said[0], words, sizeof words - 1);   /* it tells at once, and whom it waits for */
    assert_true(n > 0);
    assert_non_null(strstr(words, "a made-up device: another run is on it: pid "));
    assert_non_null(strstr(words, "kbench sweep"));
    assert_null(strstr(words, "got"));
    usleep(300000);
    assert_int_equal(waitpid(second, NULL, WNOHANG), 0);   /* still waits */
    close(end[1]);
    memset(words, 0, sizeof words);
    assert_true(read(said[0], words, sizeof words - 1) > 0);
    assert_string_equal(words, "got 1\n");
    assert_int_equal(end_of(first), 0);
    assert_int_equal(end_of(second), 0);
    close(said[0]);
}

static void waiting_ends_by_a_signal(void **state)
{
    (void)state;
    int end[2];
    struct cli cli = {.command = "sweep"};
    struct machine m = machine();
    struct lock lock;
    pid_t first = begin(end);
    interrupted = SIGINT;
    assert_false(lock_device(&lock, &cli, &m, &interrupted));
    lock_drop(&lock);
    interrupted = 0;
    cli.no_lock = true;
    assert_true(lock_device(&lock, &cli, &m, &interrupted));   /* does not even look */
    assert_int_equal(lock.fd, -1);
    close(end[1]);
    assert_int_equal(end_of(first), 0);
}

static void a_killed_holder_lets_go(void **state)
{
    (void)state;
    int end[2], said[2];
    char byte;
    struct cli cli = {.command = "sweep"};
    struct machine m = machine();
    struct lock lock;
    assert_int_equal(pipe(said) || pipe(end), 0);
    pid_t first = holder(said[1], end[0]);
    assert_int_equal(read(said[0], &byte, 1), 1);
    kill(first, SIGKILL);
    assert_int_equal(end_of(first), 128 + SIGKILL);
    assert_true(lock_device(&lock, &cli, &m, &interrupted));   /* its file is still there, with its name in it */
    assert_true(lock.fd >= 0);
    lock_drop(&lock);
    assert_true(lock_device(&lock, &cli, &m, &interrupted));   /* and again after an orderly end */
    lock_drop(&lock);
    for (int i = 0; i < 2; i++) close(said[i]), close(end[i]);
}

static void other_devices_do_not_wait(void **state)
{
    (void)state;
    int end[2];
    struct cli cli = {.command = "sweep"};
    struct machine m = machine();
    struct lock lock;
    pid_t first = begin(end);
    strcat(m.uuid, "-other");
    assert_true(lock_device(&lock, &cli, &m, &interrupted));
    char path[200];
    lock_drop(&lock);
    unlink(text(path, sizeof path, "/run/lock/kbench-%s.lock", m.uuid));
    unlink(text(path, sizeof path, "/tmp/kbench-%s.lock", m.uuid));
    close(end[1]);
    assert_int_equal(end_of(first), 0);
}

static void folders_in_turn(void **state)
{
    (void)state;
    char folder[] = "/tmp/kbench-lock-XXXXXX", path[300], why[400], inside[200], link[200];
    assert_non_null(mkdtemp(folder));
    const char *nowhere[] = {"/nonexistent/folder", "", NULL}, *second[] = {"/nonexistent/folder", "", folder, NULL};
    assert_int_equal(lock_open(nowhere, "a.lock", path, sizeof path, why, sizeof why), -1);
    assert_string_equal(why, "/nonexistent/folder/a.lock: No such file or directory");
    int fd = lock_open(second, "a.lock", path, sizeof path, why, sizeof why);
    assert_true(fd >= 0 && !strncmp(path, folder, strlen(folder)));
    struct stat found;
    assert_int_equal(fstat(fd, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0666);   /* the next user's too, whatever this one's umask */
    close(fd);
    /* A link that somebody laid there is not followed, nor is a folder a file. */
    text(inside, sizeof inside, "%s/target", folder);
    text(link, sizeof link, "%s/b.lock", folder);
    assert_int_equal(symlink(inside, link), 0);
    assert_int_equal(lock_open(second, "b.lock", path, sizeof path, why, sizeof why), -1);
    assert_int_equal(access(inside, F_OK), -1);
    unlink(link);
    assert_int_equal(mkdir(link, 0700), 0);
    assert_int_equal(lock_open(second, "b.lock", path, sizeof path, why, sizeof why), -1);
    rmdir(link);
    unlink(text(path, sizeof path, "%s/a.lock", folder));
    assert_int_equal(rmdir(folder), 0);
}

/* A second name of a file that is none of ours, laid where the lock would be: nothing of it may change. */
static void a_hard_link_is_no_lock(void **state)
{
    char folder[] = "/tmp/kbench-link-XXXXXX", path[200], why[400], secret[200], content[20] = "";
    const char *const folders[] = {folder, NULL};
    struct stat found;
    (void)state;
    assert_non_null(mkdtemp(folder));
    int fd = open(text(secret, sizeof secret, "%s/secret", folder), O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_int_equal(write(fd, "words", 5), 5);
    assert_int_equal(link(secret, text(path, sizeof path, "%s/a.lock", folder)), 0);
    assert_int_equal(lock_open(folders, "a.lock", path, sizeof path, why, sizeof why), -1);
    assert_non_null(strstr(why, "a.lock: has another name"));
    assert_int_equal(fstat(fd, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
    assert_int_equal(pread(fd, content, sizeof content - 1, 0), 5);
    close(fd), unlink(path), unlink(secret), rmdir(folder);
}

/* Root waits for another user's lock, too, but neither writes into their file nor opens it to all. */
static void root_leaves_others_files_alone(void **state)
{
    char path[200], content[20] = "";
    struct cli cli = {.command = "sweep"};
    struct machine m = machine();
    struct lock lock;
    struct stat found;
    (void)state;
    if (geteuid()) skip();
    strcat(m.uuid, "-theirs");
    const char *folder = access("/run/lock", W_OK) ? "/tmp" : "/run/lock";
    int fd = open(text(path, sizeof path, "%s/kbench-%s.lock", folder, m.uuid), O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0 && !fchown(fd, 65534, 65534) && write(fd, "words", 5) == 5);
    if (lock_device(&lock, &cli, &m, &interrupted) && lock.fd >= 0) {   /* some systems refuse O_CREAT on it even to root */
        assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
        lock_drop(&lock);
    }
    assert_int_equal(fstat(fd, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
    assert_int_equal(pread(fd, content, sizeof content - 1, 0), 5);
    close(fd), unlink(path);
}

/* In a folder that all users share somebody may have made a pipe of that name, which only they can write. */
static void a_pipe_is_no_lock(void **state)
{
    char folder[] = "/tmp/kbench-pipe-XXXXXX", path[200], why[200];
    const char *const folders[] = {folder, NULL};
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(mkfifo(text(path, sizeof path, "%s/a.lock", folder), 0444), 0);
    assert_int_equal(chmod(path, 0444), 0);
    pid_t child = fork();
    if (!child) {
        if (!geteuid() && setuid(65534)) _exit(3);
        alarm(5);
        _exit(lock_open(folders, "a.lock", path, sizeof path, why, sizeof why) == -1 && strstr(why, "a.lock") ? 0 : 1);
    }
    assert_int_equal(end_of(child), 0);
    unlink(path), rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_one_waits), cmocka_unit_test(waiting_ends_by_a_signal), cmocka_unit_test(a_killed_holder_lets_go),
        cmocka_unit_test(other_devices_do_not_wait), cmocka_unit_test(folders_in_turn),
        cmocka_unit_test(a_pipe_is_no_lock), cmocka_unit_test(a_hard_link_is_no_lock),
        cmocka_unit_test(root_leaves_others_files_alone),
    };
    char path[200];
    text(uuid, sizeof uuid, "test-%ld", (long)getpid());
    umask(077);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(text(path, sizeof path, "/run/lock/kbench-%s.lock", uuid));
    unlink(text(path, sizeof path, "/tmp/kbench-%s.lock", uuid));
    return failed;
}
