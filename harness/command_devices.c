/* `list`, for which the devices are asked first: a worker each, since the parent keeps off them. */
#include <signal.h>
#include <string.h>

#include "base.h"
#include "commands.h"
#include "supervisor.h"

static volatile sig_atomic_t never;

int command_list_all(struct cli *cli)
{
    struct registry registry = registry_open(cli->plugins.n, (char *const *)cli->plugins.word);
    struct machine machine[2];
    const char *why_not[2] = {NULL, NULL};
    struct supervisor sv[2];
    int n = 0;
    bool ask = cli->args.n && !strcmp(cli->args.word[0], "devices");
    for (int i = 0; ask && i < 2; i++) {
        struct cli one = *cli;
        one.device = i ? "host" : "auto";
        one.wrap = NULL;
        supervisor_open(&sv[i], &one, &registry, &never);
        machine[n] = sv[i].hello.machine;
        bool fell_back = !i && machine[n].engine == HOST;
        if (fell_back) {
            why_not[n] = sv[i].hello.why_not_cuda;
            machine[n] = (struct machine){.engine = CUDA};
        }
        n++;
        supervisor_close(&sv[i]);
    }
    return command_list(cli, &registry, n, machine, why_not);
}
