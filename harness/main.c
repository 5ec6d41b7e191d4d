/* kbench: is a kernel right, how fast is it and how far from the limit. One command a line below; each is a file of its own. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "cli.h"
#include "commands.h"
#include "commands_report.h"
#include "supervisor.h"

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);   /* a closed pipe is an error of one write, not the end of a measurement */
    if (argc > 1 && !strcmp(argv[1], "worker")) return worker_main(argc, argv);

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
