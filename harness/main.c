/* kbench: is a kernel right, how fast is it and how far from the limit. One command a line below; each is a file of its own. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"
#include "cli.h"
#include "commands.h"
#include "commands_report.h"
#include "supervisor.h"

/* Data that did not arrive is no success, whichever command had it. A reader that went away has what it wanted. */
static void hand_over_stdout(void)
{
    struct pollfd reader = {.fd = STDOUT_FILENO};
    bool gone = fflush(stdout) && errno == EPIPE, lost = ferror(stdout);
    if (!lost || gone || (poll(&reader, 1, 0) > 0 && reader.revents & (POLLERR | POLLHUP))) return;
    say("stdout: can't be written whole: disk full? make room, or write to another place");
    fflush(stderr);
    _exit(EXIT_ENVIRONMENT);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);   /* a closed pipe is an error of one write, not the end of a measurement; */
    signal(SIGXFSZ, SIG_IGN);   /* so is a file that may not grow (ulimit -f) */
    if (argc > 1 && !strcmp(argv[1], "worker")) return worker_main(argc, argv);
    if (atexit(hand_over_stdout)) return EXIT_ENVIRONMENT;

    struct cli cli = cli_parse(argc, argv);
    if (!strcmp(cli.command, "check") || !strcmp(cli.command, "sweep")) return command_sweep(&cli);
    if (!strcmp(cli.command, "profile")) return command_sweep(&cli);
    if (!strcmp(cli.command, "list")) return command_list_all(&cli);
    if (!strcmp(cli.command, "doctor")) return command_doctor(&cli);
    if (!strcmp(cli.command, "precision")) return command_precision(&cli);
    if (!strcmp(cli.command, "gate")) return command_gate(&cli);
    if (!strcmp(cli.command, "plot")) return command_plot(&cli);
    if (!strcmp(cli.command, "report")) return command_report(&cli);
    die(EXIT_BUG, "%s: a command without code; report it", cli.command);
}
