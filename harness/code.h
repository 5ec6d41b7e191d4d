/* Whether a run measured this build's machine code, by the hashes in its env.json. */
#ifndef KBENCH_CODE_H
#define KBENCH_CODE_H

#include <cjson/cJSON.h>
#include "registry.h"

/* device: the compute capability that the run was on, 90; 0: the host. The same over all architectures, or else in what that device
 * takes: then the builds differ for other devices only. */
bool code_same(const cJSON *env, int device, const struct entry *);

#endif
